// File descriptor flags, duplicates, pipes, and replacing the running program (execve).

import { closeSync, constants } from 'node:fs';
import {
  checked,
  lastErrno,
  libc,
  memory,
  type NativeArgument,
  onDarwin,
  onLinux,
  SysError,
  uninterrupted,
} from './libc.ts';

const fcntl = libc('int fcntl(int fd, int command, ...)');
const pipe2Function = libc('int pipe2(void *fds, int flags)');
const pipeFunction = libc('int pipe(void *fds)');
const execveFunction = libc(
  'int execve(const char *path, const char **argv, const char **environment)',
);

const F_GETFD = 1;
const F_SETFD = 2;
const F_GETFL = 3;
const F_SETFL = 4;
const F_DUPFD_CLOEXEC = onDarwin ? 67 : 1030;
const FD_CLOEXEC = 1;
/** Octal 02000000 on x64 and arm64. */
const O_CLOEXEC = 0x80000;

function control(fd: number, command: number, argument: number): number {
  return checked('fcntl', fcntl(fd, command, 'int', argument));
}

/** Whether the descriptor closes when a program is started. */
export function isCloseOnExec(fd: number): boolean {
  return (control(fd, F_GETFD, 0) & FD_CLOEXEC) !== 0;
}

export function setCloseOnExec(fd: number, closes: boolean): void {
  const flags = control(fd, F_GETFD, 0);
  control(fd, F_SETFD, closes ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC);
}

export function setNonBlocking(fd: number, nonBlocking: boolean): void {
  const flags = control(fd, F_GETFL, 0);
  const bit = constants.O_NONBLOCK;
  control(fd, F_SETFL, nonBlocking ? flags | bit : flags & ~bit);
}

/** Whether `fd` names an open descriptor. */
export function isOpen(fd: number): boolean {
  return fcntl(fd, F_GETFD, 'int', 0) !== -1;
}

/** A close-on-exec duplicate with a number of at least `atLeast`. */
export function duplicate(fd: number, atLeast = 3): number {
  return control(fd, F_DUPFD_CLOEXEC, atLeast);
}

/** Closes a descriptor; one that is already closed throws EBADF. */
export function closeFd(fd: number): void {
  closeSync(fd);
}

export interface Pipe {
  readonly read: number;
  readonly write: number;
}

/** A pipe, close-on-exec at both ends, blocking unless asked otherwise. */
export function openPipe(options: { readonly nonBlocking?: boolean } = {}): Pipe {
  const pair = memory(8);
  if (onLinux) {
    const flags = O_CLOEXEC | (options.nonBlocking === true ? constants.O_NONBLOCK : 0);
    checked('pipe2', pipe2Function(pair, flags));
  } else {
    checked('pipe', pipeFunction(pair));
  }
  const ends = { read: pair.readInt32LE(0), write: pair.readInt32LE(4) };
  if (!onLinux) {
    for (const fd of [ends.read, ends.write]) {
      setCloseOnExec(fd, true);
      setNonBlocking(fd, options.nonBlocking === true);
    }
  }
  return ends;
}

/** The `NAME=value` strings of an environment. */
export function environmentStrings(
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  return Object.entries(environment).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
}

/**
 * Replaces the running program. Returns only by throwing: the old program then goes on, its
 * descriptors as before. `keep` names every descriptor the new program gets; Node marks even 0, 1
 * and 2 close-on-exec. Signal handlers reset; other threads end.
 */
export function execve(
  path: string,
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  keep: readonly number[],
): never {
  const closing = keep.filter(isCloseOnExec);
  const terminated = (list: readonly string[]): NativeArgument => [...list, null];
  for (const fd of closing) setCloseOnExec(fd, false);
  const result = uninterrupted(() =>
    execveFunction(path, terminated(argv), terminated(environmentStrings(environment))),
  );
  const errno = lastErrno();
  for (const fd of closing) setCloseOnExec(fd, true);
  throw new SysError('execve', result === -1 ? errno : 0);
}
