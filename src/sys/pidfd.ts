// A pinned process: a descriptor that names one process for good, so that neither a signal nor a
// wait can reach another one that was given its number. Linux 5.3 and newer; elsewhere ENOSYS.

import { fstatSync } from 'node:fs';
import { constants } from 'node:os';
import {
  checked,
  type FdWatch,
  lastErrno,
  libc,
  onDarwin,
  rawSyscall,
  watchReadable,
} from './libc.ts';
import { POLLIN, pollOne } from './poll.ts';

/**
 * Pins `pid`. The descriptor is close-on-exec.
 * @throws {SysError} ESRCH no such process, ENOENT or EINVAL a thread id, ENOSYS, EMFILE, …
 */
export function openPidfd(pid: number): number {
  return checked('pidfd_open', rawSyscall('pidfd_open', pid, 0));
}

/** Sends a signal (0 probes) through the pin. @throws {SysError} ESRCH, EPERM, … */
export function signalPidfd(pidfd: number, signal: NodeJS.Signals | 0): void {
  const number = signal === 0 ? 0 : constants.signals[signal];
  checked('pidfd_send_signal', rawSyscall('pidfd_send_signal', pidfd, number, null, 0));
}

/** Whether the process has ended; a zombie has. */
export function hasEnded(pidfd: number): boolean {
  return (pollOne(pidfd, POLLIN, 0) & POLLIN) !== 0;
}

/** Calls `onEnd` once, from the event loop, when the process has ended. No thread waits. */
export function watchEnd(pidfd: number, onEnd: () => void): FdWatch {
  const watch = watchReadable(pidfd, () => {
    watch.close();
    onEnd();
  });
  return watch;
}

/** The descriptor's inode: unique per process of this boot where pidfs exists (Linux 6.9). */
export function pidfdInode(pidfd: number): bigint {
  return fstatSync(pidfd, { bigint: true }).ino;
}

const kill = libc('int kill(int pid, int signal)');

/**
 * Signals a process group. Only for a group whose leader the caller knows to be unreaped, so that
 * the number cannot have been given away.
 * @throws {SysError} ESRCH, EPERM
 */
export function signalGroup(processGroup: number, signal: NodeJS.Signals): void {
  checked('kill', kill(-processGroup, constants.signals[signal]));
}

/**
 * Signals by number, for platforms without pidfd only: the caller has compared the incarnation on
 * the line before, and what may happen in between is the risk it accepts.
 */
export function signalByNumber(pid: number, signal: NodeJS.Signals): void {
  if (!onDarwin) throw new Error('signalByNumber is for platforms without pidfd');
  checked('kill', kill(pid, constants.signals[signal]));
}

/** What kill(pid, 0) says: weaker than a pidfd, since zombies and threads also answer. */
export function probeByNumber(pid: number): 'there' | 'ESRCH' | 'EPERM' {
  if (kill(pid, 0) === 0) return 'there';
  return lastErrno() === constants.errno.ESRCH ? 'ESRCH' : 'EPERM';
}
