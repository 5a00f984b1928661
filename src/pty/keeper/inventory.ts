// Every shell of this state directory: its terminal, its pipe, its process and how it ended. Opens,
// starts, signals and reaps. Never reads a master, knows no host.

import { ChatdError, errnoCode, errorText } from '../../base/errors.ts';
import { closeFd, openPipe } from '../../sys/fd.ts';
import type { FdWatch } from '../../sys/libc.ts';
import { hasEnded, openPidfd, signalGroup, signalPidfd, watchEnd } from '../../sys/pidfd.ts';
import { type SpawnResult, spawnProcess } from '../../sys/spawn.ts';
import { readForegroundGroup } from '../../sys/tty.ts';
import { type ExitStatus, peekEnded, reap } from '../../sys/wait.ts';
import type { KeptSession, SignalTarget, SpawnRequest, WaitStatus } from '../keeper-protocol.ts';
import { type OpenedTerminal, openTerminal } from './native-pty.ts';

interface Entry {
  readonly session: KeptSession;
  readonly fds: readonly [master: number, pipeRead: number, pipeWrite: number];
  /** Undefined once reaped, or where the platform has none. */
  pidfd: number | undefined;
  /** A session handed back by a host was another keeper's child: it is watched, not reaped. */
  readonly watch: FdWatch | undefined;
  status: WaitStatus | undefined;
}

export type SpawnOutcome =
  | { readonly kind: 'started'; readonly session: KeptSession; readonly fds: readonly number[] }
  | { readonly kind: 'failed'; readonly errno: string; readonly message: string };

export interface InventoryPorts {
  /** The record of a process that is certainly alive or unreaped. */
  describe(pid: number): unknown;
  /** Soft limit of open files for programs: Node raised our own. */
  readonly openFiles: number | undefined;
  onExit(session: KeptSession, status: WaitStatus): void;
}

export class Inventory {
  readonly #ports: InventoryPorts;
  readonly #entries = new Map<string, Entry>();

  constructor(ports: InventoryPorts) {
    this.#ports = ports;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** All sessions with their descriptors, oldest first. */
  list(): readonly { readonly session: KeptSession; readonly fds: readonly number[] }[] {
    return [...this.#entries.values()].map((entry) => ({
      session: {
        ...entry.session,
        ...(entry.status === undefined ? {} : { status: entry.status }),
      },
      fds: entry.fds,
    }));
  }

  spawn(request: SpawnRequest): SpawnOutcome {
    if (this.#entries.has(request.sessionId)) {
      return { kind: 'failed', errno: 'EEXIST', message: 'session id already used' };
    }
    let terminal: OpenedTerminal | undefined;
    const opened: number[] = [];
    try {
      terminal = openTerminal(request.cols, request.rows);
      opened.push(terminal.master);
      const pipe = openPipe({ nonBlocking: true });
      opened.push(pipe.read, pipe.write);
      const result = start(request, terminal.path, this.#ports.openFiles);
      if (result.kind === 'failed') {
        closeAll(opened);
        return { kind: 'failed', errno: result.code, message: `posix_spawn: ${result.code}` };
      }
      const fds = [terminal.master, pipe.read, pipe.write] as const;
      return { kind: 'started', session: this.#keep(request, result.pid, fds), fds };
    } catch (error) {
      closeAll(opened);
      return { kind: 'failed', errno: errnoCode(error) ?? 'EIO', message: errorText(error) };
    } finally {
      // Without a slave of ours the last program's close is seen as EIO, after the last byte.
      if (terminal !== undefined) closeFd(terminal.slave);
    }
  }

  /** Takes over a session whose keeper died. Its status will never be known. */
  adopt(session: KeptSession, fds: readonly [number, number, number], alive: boolean): void {
    if (this.#entries.has(session.sessionId)) {
      closeAll(fds);
      return;
    }
    let pidfd: number | undefined;
    let watch: FdWatch | undefined;
    if (alive && session.status === undefined) {
      try {
        pidfd = openPidfd(session.pid);
        watch = watchEnd(pidfd, () => this.#lost(session.sessionId));
        watch.unref();
      } catch {
        pidfd = undefined;
      }
    }
    const entry: Entry = { session, fds, pidfd, watch, status: session.status };
    this.#entries.set(session.sessionId, entry);
    if (session.status === undefined && pidfd === undefined) this.#lost(session.sessionId);
  }

  /** Looks at every child once: SIGCHLD is one signal for many. */
  reapAll(): void {
    for (const entry of this.#entries.values()) {
      if (entry.status !== undefined) continue;
      if (entry.watch !== undefined) {
        if (entry.pidfd !== undefined && hasEnded(entry.pidfd)) this.#lost(entry.session.sessionId);
        continue;
      }
      const state = reap(entry.session.pid);
      if (state.kind === 'ended') this.#ended(entry, waitStatus(state.status));
      if (state.kind === 'not-a-child') this.#ended(entry, { kind: 'unknown' });
    }
  }

  /**
   * @throws {ChatdError} session-not-found, other-incarnation, session-exited
   * @throws {SysError} ESRCH, EPERM, EINVAL
   */
  signal(sessionId: string, incarnation: string, signal: NodeJS.Signals, to: SignalTarget): void {
    const entry = this.#find(sessionId, incarnation);
    if (to === 'foreground') {
      const group = readForegroundGroup(entry.fds[0]);
      if (group === undefined) throw new ChatdError('session-exited', 'Nothing in the foreground');
      signalGroup(group, signal);
      return;
    }
    const unreaped =
      entry.status === undefined &&
      (entry.watch === undefined ? peekEnded(entry.session.pid) === 'running' : true);
    if (!unreaped) throw new ChatdError('session-exited', 'Cannot signal: its program has ended');
    // A group by number only while its leader certainly has that number.
    if (to === 'group' && entry.watch === undefined) signalGroup(entry.session.pid, signal);
    else if (entry.pidfd !== undefined) signalPidfd(entry.pidfd, signal);
  }

  /** The host has recorded the end: nothing of this session is needed any more. */
  forget(sessionId: string, incarnation: string): void {
    const entry = this.#entries.get(sessionId);
    if (entry === undefined || entry.session.incarnation !== incarnation) return;
    if (entry.status === undefined) return;
    this.#entries.delete(sessionId);
    closeAll(entry.fds);
    entry.watch?.close();
    if (entry.pidfd !== undefined) closeFd(entry.pidfd);
  }

  #find(sessionId: string, incarnation: string): Entry {
    const entry = this.#entries.get(sessionId);
    if (entry === undefined) throw new ChatdError('session-not-found', 'Cannot find session');
    if (entry.session.incarnation !== incarnation) {
      throw new ChatdError('other-incarnation', 'Cannot signal: another program runs there');
    }
    return entry;
  }

  #keep(
    request: SpawnRequest,
    pid: number,
    fds: readonly [master: number, pipeRead: number, pipeWrite: number],
  ): KeptSession {
    const session: KeptSession = {
      sessionId: request.sessionId,
      incarnation: request.incarnation,
      token: request.token,
      pid,
      process: this.#ports.describe(pid),
      record: request.record,
    };
    let pidfd: number | undefined;
    try {
      pidfd = openPidfd(pid);
    } catch {
      // Without it the leader is signalled through its group only.
    }
    const entry = { session, fds, pidfd, watch: undefined, status: undefined };
    this.#entries.set(request.sessionId, entry);
    return session;
  }

  #ended(entry: Entry, status: WaitStatus): void {
    entry.status = status;
    this.#ports.onExit(entry.session, status);
  }

  #lost(sessionId: string): void {
    const entry = this.#entries.get(sessionId);
    if (entry !== undefined && entry.status === undefined) this.#ended(entry, { kind: 'unknown' });
  }
}

function start(
  request: SpawnRequest,
  terminal: string,
  openFiles: number | undefined,
): SpawnResult {
  return spawnProcess({
    file: request.file,
    argv: request.argv,
    environment: Object.fromEntries(request.env.map(splitVariable)),
    cwd: request.cwd,
    terminal,
    ...(openFiles === undefined ? {} : { openFiles }),
  });
}

function splitVariable(text: string): [string, string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}

function waitStatus(status: ExitStatus): WaitStatus {
  return status.kind === 'code'
    ? { kind: 'code', code: status.code }
    : { kind: 'signal', signal: status.signal };
}

function closeAll(fds: readonly number[]): void {
  for (const fd of fds) closeFd(fd);
}
