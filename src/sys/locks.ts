// flock and OFD (open file description) locks. Both live as long as any duplicate of the
// description, are not lost when another descriptor of the file is closed, and are independent of
// each other on local file systems; only the OFD lock can be asked about without taking it.
// macOS: numbers from its headers, untested.

import { constants } from 'node:os';
import { checked, lastErrno, libc, memory, onDarwin, uninterrupted } from './libc.ts';

const flock = libc('int flock(int fd, int operation)');
const fcntl = libc('int fcntl(int fd, int command, ...)');

const LOCK_EX = 2;
const LOCK_NB = 4;
const F_OFD_GETLK = onDarwin ? 92 : 36;
const F_OFD_SETLK = onDarwin ? 90 : 37;
const F_WRLCK = onDarwin ? 3 : 1;
const F_UNLCK = 2;
// struct flock. Linux: type 0, whence 2, start 8, len 16, pid 24. macOS: start 0, len 8, pid 16,
// type 20, whence 22.
const TYPE_OFFSET = onDarwin ? 20 : 0;
const STRUCT_FLOCK_BYTES = 32;

export type LockAttempt = 'locked' | 'busy';

function isBusy(): boolean {
  const errno = lastErrno();
  return errno === constants.errno.EAGAIN || errno === constants.errno.EACCES;
}

/** Takes flock exclusively without waiting. @throws {SysError} ENOLCK, ENOTSUP, … */
export function tryFlock(fd: number): LockAttempt {
  const result = uninterrupted(() => flock(fd, LOCK_EX | LOCK_NB));
  if (result === -1 && lastErrno() === constants.errno.EWOULDBLOCK) return 'busy';
  checked('flock', result);
  return 'locked';
}

function wholeFileLock(type: number): Buffer {
  const lock = memory(STRUCT_FLOCK_BYTES);
  lock.writeInt16LE(type, TYPE_OFFSET); // whence, start and len stay 0: the whole file.
  return lock;
}

/** Takes the OFD write lock on the whole file without waiting. `fd` must be open for writing. */
export function tryOfdLock(fd: number): LockAttempt {
  const lock = wholeFileLock(F_WRLCK);
  const result = uninterrupted(() => fcntl(fd, F_OFD_SETLK, 'void *', lock));
  if (result === -1 && isBusy()) return 'busy';
  checked('fcntl(F_OFD_SETLK)', result);
  return 'locked';
}

/** Whether somebody else holds an OFD lock on the file. Takes nothing; `fd` may be read-only. */
export function probeOfdLock(fd: number): 'held' | 'free' {
  const lock = wholeFileLock(F_WRLCK);
  checked(
    'fcntl(F_OFD_GETLK)',
    uninterrupted(() => fcntl(fd, F_OFD_GETLK, 'void *', lock)),
  );
  return lock.readInt16LE(TYPE_OFFSET) === F_UNLCK ? 'free' : 'held';
}
