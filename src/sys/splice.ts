// Moves bytes between a pipe and another descriptor inside the kernel: whole or not at all, however
// the caller dies. Results are numbers or errno names, not exceptions: this is a hot path.
// Linux only; elsewhere ENOSYS.

import { lastErrnoName, libc, onLinux, unsupported } from './libc.ts';

const spliceFunction = libc(
  'intptr_t splice(int from, void *fromOffset, int to, void *toOffset, size_t length, uint flags)',
);
const teeFunction = libc('intptr_t tee(int from, int to, size_t length, uint flags)');

const SPLICE_F_MOVE = 1;
const SPLICE_F_NONBLOCK = 2;
const FLAGS = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

/**
 * Moves up to `length` bytes; one of the two descriptors is a pipe. Never waits for the pipe; a
 * terminal or socket waits unless it is non-blocking itself.
 * @returns bytes moved (0: end of file), or an errno name (EAGAIN; EIO from a hung-up terminal).
 */
export function splice(from: number, to: number, length: number): number | string {
  if (!onLinux) throw unsupported('splice');
  const moved = spliceFunction(from, null, to, null, length, FLAGS);
  return moved === -1 ? lastErrnoName() : moved;
}

/** Moves bytes of a pipe into a file at an offset, for one caller at a time per instance. */
export class SpliceIntoFile {
  /** BigInt64Array keeps loff_t; 9 elements, so that it is never on V8's moving heap. */
  readonly #offset = new BigInt64Array(9);

  /** @returns bytes moved, or an errno name (EAGAIN: pipe empty; ENOSPC, EIO, EDQUOT: the file). */
  move(pipe: number, file: number, offset: number, length: number): number | string {
    this.#offset[0] = BigInt(offset);
    const moved = spliceFunction(pipe, null, file, this.#offset, length, FLAGS);
    return moved === -1 ? lastErrnoName() : moved;
  }
}

/** Duplicates up to `length` bytes from one pipe into another without consuming them. */
export function tee(from: number, to: number, length: number): number | string {
  if (!onLinux) throw unsupported('tee');
  const copied = teeFunction(from, to, length, SPLICE_F_NONBLOCK);
  return copied === -1 ? lastErrnoName() : copied;
}
