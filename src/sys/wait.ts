// Statuses of our own children, never waiting: looked at without reaping, or reaped. libuv waits
// only for the children it started itself, so the two do not meet.

import { constants } from 'node:os';
import { checked, lastErrno, libc, memory, onDarwin, uninterrupted } from './libc.ts';

const waitpid = libc('int waitpid(int pid, void *status, int options)');
const waitid = libc('int waitid(int type, uint id, void *info, int options)');

const WNOHANG = 1;
const P_PID = 1;
const WEXITED = 4;
const WNOWAIT = onDarwin ? 0x20 : 0x0100_0000;
/** siginfo_t is 128 bytes; si_pid is at 16 on Linux and 12 on macOS. */
const SIGINFO_BYTES = 128;
const SI_PID_OFFSET = onDarwin ? 12 : 16;

export type ExitStatus =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string; readonly number: number };

export type ChildState =
  | { readonly kind: 'running' }
  | { readonly kind: 'ended'; readonly pid: number; readonly status: ExitStatus }
  /** ECHILD: not our child, or reaped by somebody else. Its status cannot be had. */
  | { readonly kind: 'not-a-child' };

/** Reaps `pid` (-1: any child) if it has ended. */
export function reap(pid: number): ChildState {
  const status = memory(4);
  const result = uninterrupted(() => waitpid(pid, status, WNOHANG));
  if (result === 0) return { kind: 'running' };
  if (result === -1 && lastErrno() === constants.errno.ECHILD) return { kind: 'not-a-child' };
  checked('waitpid', result);
  return { kind: 'ended', pid: result, status: decodeStatus(status.readInt32LE(0)) };
}

/** Whether the child has ended, leaving it unreaped so that its number stays taken. */
export function peekEnded(pid: number): 'running' | 'ended' | 'not-a-child' {
  const info = memory(SIGINFO_BYTES);
  const options = WEXITED | WNOHANG | WNOWAIT;
  const result = uninterrupted(() => waitid(P_PID, pid, info, options));
  if (result === -1 && lastErrno() === constants.errno.ECHILD) return 'not-a-child';
  checked('waitid', result);
  return info.readInt32LE(SI_PID_OFFSET) === 0 ? 'running' : 'ended';
}

/** The meaning of a wait status of an ended child. */
export function decodeStatus(status: number): ExitStatus {
  const number = status & 0x7f;
  if (number === 0) return { kind: 'code', code: (status >> 8) & 0xff };
  return { kind: 'signal', signal: signalName(number), number };
}

const nameOfSignal = new Map<number, string>();
for (const [name, value] of Object.entries(constants.signals)) {
  // SIGIOT, SIGPOLL and SIGUNUSED are second names; the first listed is the usual one.
  if (!nameOfSignal.has(value)) nameOfSignal.set(value, name);
}

/** `SIGKILL` for 9; `SIG<number>` for real-time signals. */
export function signalName(number: number): string {
  return nameOfSignal.get(number) ?? `SIG${number}`;
}
