// poll(2) on many descriptors, for a thread that waits for terminals and pipes: one preallocated
// array, no object per call. An entry with fd -1 is skipped by the kernel.

import { constants } from 'node:os';
import { checked, lastErrno, libc, onDarwin } from './libc.ts';

const pollFunction = onDarwin
  ? libc('int poll(void *fds, uint count, int timeoutMs)')
  : libc('int poll(void *fds, ulong count, int timeoutMs)');

export const POLLIN = 0x1;
export const POLLOUT = 0x4;
export const POLLHUP = 0x10;
export const POLLNVAL = 0x20;

/** struct pollfd: int fd, short events, short revents. */
const ENTRY_BYTES = 8;

/** The descriptors one thread waits for, by slot. */
export class PollSet {
  #memory: Buffer;
  #ints: Int32Array;
  #shorts: Int16Array;
  #size = 0;

  constructor(capacity = 64) {
    this.#memory = Buffer.alloc(Math.max(capacity, 16) * ENTRY_BYTES);
    [this.#ints, this.#shorts] = views(this.#memory);
  }

  /** Number of slots in use. */
  get size(): number {
    return this.#size;
  }

  /** Fills `slot`, growing the set up to it. fd -1 keeps the slot and waits for nothing. */
  set(slot: number, fd: number, events: number): void {
    while ((slot + 1) * ENTRY_BYTES > this.#memory.length) {
      const larger = Buffer.alloc(this.#memory.length * 2);
      this.#memory.copy(larger);
      this.#memory = larger;
      [this.#ints, this.#shorts] = views(larger);
    }
    while (this.#size <= slot) this.#ints[this.#size++ * 2] = -1;
    this.#ints[slot * 2] = fd;
    this.#shorts[slot * 4 + 2] = events;
    this.#shorts[slot * 4 + 3] = 0;
  }

  /** Drops all slots from `size` on. */
  truncate(size: number): void {
    this.#size = Math.min(size, this.#size);
  }

  /** What the last wait saw at `slot`. */
  seen(slot: number): number {
    return this.#shorts[slot * 4 + 3] ?? 0;
  }

  /** Waits; returns how many slots saw something. A signal counts as nothing seen. -1: no limit. */
  wait(timeoutMs: number): number {
    const result = pollFunction(this.#memory, this.#size, timeoutMs);
    if (result === -1 && lastErrno() === constants.errno.EINTR) {
      for (let slot = 0; slot < this.#size; slot++) this.#shorts[slot * 4 + 3] = 0;
      return 0;
    }
    return checked('poll', result);
  }
}

function views(bytes: Buffer): [Int32Array, Int16Array] {
  const { buffer, byteOffset, length } = bytes;
  return [
    new Int32Array(buffer, byteOffset, length / 4),
    new Int16Array(buffer, byteOffset, length / 2),
  ];
}

/** What `fd` shows within `timeoutMs`, 0 for nothing. */
export function pollOne(fd: number, events: number, timeoutMs: number): number {
  const set = new PollSet();
  set.set(0, fd, events);
  return set.wait(timeoutMs) === 0 ? 0 : set.seen(0);
}
