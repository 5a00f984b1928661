// A host as a process of ours: started with its pair, or inherited from a keeper that died.

import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { Socket } from 'node:net';
import { isAbsolute } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { ChatdError, errorText, invariant } from '../../base/errors.ts';
import { closeFd } from '../../sys/fd.ts';
import { openSocketPair } from '../../sys/fd-passing.ts';
import { openPidfd, signalPidfd, watchEnd } from '../../sys/pidfd.ts';
import { HOST_CONTROL_FD, HOST_MASTERS_FD, KeeperLink, parseToKeeper } from '../keeper-protocol.ts';
import type { HostEntry, HostEvents, HostProcess } from './host-supervisor.ts';

const STDERR_TAIL_CHARS = 2_000;

/** A host process and the descriptors it sends. */
export interface LinkedHost extends HostProcess {
  takeFds(): readonly number[];
}

/** @throws when it cannot be started */
export function startHost(
  entry: HostEntry,
  hostOptions: string,
  environment: Readonly<Record<string, string | undefined>>,
  clock: Clock,
  events: HostEvents,
): LinkedHost {
  const [ours, theirs] = openSocketPair();
  let child: ChildProcess;
  try {
    child = spawn(entry.interpreter, [entry.entry, hostOptions], {
      cwd: '/',
      detached: true,
      env: { ...environment },
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', theirs],
    });
  } catch (error) {
    closeFd(ours);
    throw error;
  } finally {
    closeFd(theirs);
  }
  let tail = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-STDERR_TAIL_CHARS);
  });
  const stream = child.stdio[HOST_CONTROL_FD];
  invariant(stream instanceof Socket, 'the control pipe of a child is a socket');
  const link = openLink(stream, ours, clock, events);
  // `exit` may come before the last of stderr; `close` waits for it, but not for ever held pipes.
  child.once('exit', (code) => events.exited(code ?? undefined));
  child.once('error', (error) => {
    tail = errorText(error);
    if (child.pid === undefined) events.exited(undefined);
  });
  return {
    pid: child.pid ?? 0,
    send: (message, fds) => link.send(message, fds),
    kill: () => child.kill('SIGKILL'),
    stderrTail: () => tail.trim(),
    takeFds: () => link.takeFds(),
    dispose: disposer(link, ours),
  };
}

/** The host that started us. @throws {SysError} ESRCH when it is gone already */
export function inheritHost(pid: number, clock: Clock, events: HostEvents): LinkedHost {
  const pidfd = openPidfd(pid);
  const stream = new Socket({ fd: HOST_CONTROL_FD, readable: true, writable: true });
  const link = openLink(stream, HOST_MASTERS_FD, clock, events);
  watchEnd(pidfd, () => events.exited(undefined));
  return {
    pid,
    send: (message, fds) => link.send(message, fds),
    kill: () => {
      try {
        signalPidfd(pidfd, 'SIGKILL');
      } catch {
        // Ended, and perhaps let go of already.
      }
    },
    stderrTail: () => '',
    takeFds: () => link.takeFds(),
    dispose: disposer(link, HOST_MASTERS_FD, pidfd),
  };
}

function openLink(stream: Socket, mastersFd: number, clock: Clock, events: HostEvents): KeeperLink {
  return new KeeperLink({
    stream,
    mastersFd,
    clock,
    onMessage: (payload) => events.message(parseToKeeper(payload)),
    onClose: (because) => events.linkLost(because),
  });
}

function disposer(link: KeeperLink, ...fds: readonly number[]): () => void {
  let disposed = false;
  return () => {
    if (disposed) return;
    disposed = true;
    link.close();
    for (const fd of fds) closeFd(fd);
  };
}

/** Sends sessions in batches that one SCM_RIGHTS message can carry. */
export function sendBatches<T>(
  items: readonly T[],
  batchSize: number,
  send: (batch: readonly T[], last: boolean) => void,
): void {
  for (let at = 0; at === 0 || at < items.length; at += batchSize) {
    send(items.slice(at, at + batchSize), at + batchSize >= items.length);
  }
}

/**
 * Code that is about to hold every terminal: a regular file, ours or root's, writable by no other.
 * @throws {ChatdError} refused
 */
export function checkHostEntry(entry: HostEntry, uid: number): void {
  for (const path of [entry.interpreter, entry.entry]) {
    if (!isAbsolute(path)) throw untrusted(path, 'not an absolute path');
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) throw untrusted(path, 'not there');
    if (!stat.isFile()) throw untrusted(path, 'not a regular file');
    if (stat.uid !== uid && stat.uid !== 0) throw untrusted(path, 'owned by another user');
    if ((stat.mode & 0o022) !== 0) throw untrusted(path, 'writable by others');
  }
}

function untrusted(path: string, because: string): ChatdError {
  return new ChatdError('refused', `Cannot start host from ${path}: ${because}`);
}
