// Looks at real processes for process-incarnation.ts, and writes the record of the running one.

import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { ChatdError, errnoCode, errorText } from '../base/errors.ts';
import { closeFd } from '../sys/fd.ts';
import { onDarwin } from '../sys/libc.ts';
import { hasEnded, openPidfd, pidfdInode, probeByNumber, signalPidfd } from '../sys/pidfd.ts';
import {
  readBootId,
  readMachineId,
  readNamespace,
  readProcessFacts,
  readThreadGroup,
} from '../sys/process-facts.ts';
import type {
  Pin,
  PinAttempt,
  ProcessIncarnation,
  ProcessObserver,
  Standpoint,
} from './process-incarnation.ts';

/** A pin that can also be signalled and waited for. */
export interface SystemPin extends Pin {
  readonly pidfd: number;
  /** @throws {SysError} ESRCH, EPERM, … */
  signal(signal: NodeJS.Signals): void;
}

let standpoint: Standpoint | undefined;

/** Where this process stands; read once, since none of it changes while it runs. */
export function readStandpoint(): Standpoint {
  standpoint ??= {
    hostId: readHostId(),
    bootId: readBootId(),
    pidNs: readNamespace('pid'),
    timeNs: readNamespace('time'),
  };
  return standpoint;
}

/** Hashed, since machine-id must not be published. Without one, the host name has to do. */
function readHostId(): string {
  const machine = readMachineId() ?? `name:${hostname()}`;
  return createHash('sha256').update(`chatd:${machine}`).digest('hex').slice(0, 16);
}

function pinProcess(pid: number): PinAttempt {
  if (onDarwin) return { kind: 'unavailable', present: probeByNumber(pid) };
  try {
    return { kind: 'pinned', pin: systemPin(openPidfd(pid)) };
  } catch (error) {
    return { kind: 'failed', code: errnoCode(error) ?? 'unknown error' };
  }
}

function systemPin(pidfd: number): SystemPin {
  let closed = false;
  return {
    pidfd,
    inode: () => pidfdInode(pidfd).toString(),
    hasEnded: () => hasEnded(pidfd),
    signal: (signal) => signalPidfd(pidfd, signal),
    close: () => {
      if (!closed) closeFd(pidfd);
      closed = true;
    },
  };
}

/** The kernel's own view. */
export const systemObserver: ProcessObserver = {
  standpoint: readStandpoint,
  pin: pinProcess,
  facts: (pid) => readable(() => readProcessFacts(pid)),
  threadGroup: (pid) => readable(() => readThreadGroup(pid)),
};

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

export interface Self {
  readonly pid: number;
  readonly uid: number;
  /** Random, minted once per process. */
  readonly nonce: string;
}

/**
 * The record of the running process.
 * @throws {ChatdError} capability-missing: who cannot say who he is must not own anything.
 */
export function ownIncarnation(self: Self): ProcessIncarnation {
  try {
    const inode = onDarwin ? undefined : ownPidfdInode(self.pid);
    return {
      v: 1,
      pid: self.pid,
      startTicks: readProcessFacts(self.pid).startTicks,
      ...readStandpoint(),
      ...(inode === undefined ? {} : { pidfsIno: inode }),
      uid: self.uid,
      nonce: self.nonce,
    };
  } catch (error) {
    throw new ChatdError(
      'capability-missing',
      `Cannot tell which process this is: ${errorText(error)}`,
      { cause: error },
    );
  }
}

/** The inode of a process' pidfd, or undefined where all pidfds share one (before Linux 6.9). */
export function trustedPidfdInode(pid: number, otherPid: number): string | undefined {
  const own = openPidfd(pid);
  try {
    const other = openPidfd(otherPid);
    try {
      const inode = pidfdInode(own);
      return inode === pidfdInode(other) ? undefined : inode.toString();
    } finally {
      closeFd(other);
    }
  } finally {
    closeFd(own);
  }
}

function ownPidfdInode(pid: number): string | undefined {
  // Any second process will do; pid 1 exists in every pid namespace. As pid 1 we have no other.
  return pid === 1 ? undefined : trustedPidfdInode(pid, 1);
}

/**
 * The record of another process that is known to be the one meant, such as a child not yet reaped.
 * @throws errors of sys when it cannot be had
 */
export function incarnationOfChild(pid: number, uid: number, nonce: string): ProcessIncarnation {
  const inode = onDarwin || pid === 1 ? undefined : trustedPidfdInode(pid, 1);
  return {
    v: 1,
    pid,
    startTicks: readProcessFacts(pid).startTicks,
    ...readStandpoint(),
    ...(inode === undefined ? {} : { pidfsIno: inode }),
    uid,
    nonce,
  };
}
