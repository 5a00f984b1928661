// The one writer to a session's master: a bounded queue per incarnation, partial writes accounted,
// never waiting in the kernel, slower and slower while the program does not read.

import type { Clock, Timer } from '../../base/clock.ts';

/** Typed error beyond it (SESSIONS.md "Starting numbers"). */
export const INPUT_QUEUE_BYTES_MAX = 8 * 1024 * 1024;
const BACKOFF_FIRST_MS = 1;
const BACKOFF_LAST_MS = 16;
/** One write call: the line discipline takes a few kilobytes at a time anyway. */
const WRITE_BYTES = 65_536;

export type WriteOutcome =
  | { readonly kind: 'written'; readonly sizeBytes: number }
  /** Nothing of it was written: `admit` said no. */
  | { readonly kind: 'refused' }
  /** The terminal closed before all of it was written. */
  | { readonly kind: 'closed'; readonly sizeBytes: number };

interface Item {
  readonly bytes: Uint8Array;
  at: number;
  /** Asked once, on the line before the first byte is written. */
  readonly admit: (() => boolean) | undefined;
  readonly done: (outcome: WriteOutcome) => void;
}

export class InputWriter {
  readonly #write: (bytes: Uint8Array) => number | string;
  readonly #clock: Clock;
  readonly #queue: Item[] = [];
  #queuedBytes = 0;
  #delayMs = BACKOFF_FIRST_MS;
  #timer: Timer | undefined;
  #closed = false;

  /** `write` takes what fits and says how much, or an errno name. */
  constructor(write: (bytes: Uint8Array) => number | string, clock: Clock) {
    this.#write = write;
    this.#clock = clock;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Undefined when the queue is full. Resolves when written, refused, or the terminal is gone. */
  push(bytes: Uint8Array, admit?: () => boolean): Promise<WriteOutcome> | undefined {
    if (this.#queuedBytes + bytes.length > INPUT_QUEUE_BYTES_MAX) return undefined;
    return new Promise((resolve) => {
      if (this.#closed) {
        resolve({ kind: 'closed', sizeBytes: 0 });
        return;
      }
      this.#queue.push({ bytes, at: 0, admit, done: resolve });
      this.#queuedBytes += bytes.length;
      if (this.#timer === undefined) this.#pump();
    });
  }

  /** Nothing is written after this, whatever is queued: the descriptor may mean another terminal. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const item of this.#queue.splice(0)) item.done({ kind: 'closed', sizeBytes: item.at });
    this.#queuedBytes = 0;
  }

  #pump(): void {
    for (let item = this.#queue[0]; item !== undefined; item = this.#queue[0]) {
      if (item.at === 0 && item.admit !== undefined && !item.admit()) {
        this.#finish(item, { kind: 'refused' });
        continue;
      }
      const written = this.#write(item.bytes.subarray(item.at, item.at + WRITE_BYTES));
      if (typeof written === 'string') {
        if (written === 'EAGAIN' || written === 'EINTR') this.#later();
        else this.close();
        return;
      }
      item.at += written;
      this.#queuedBytes -= written;
      if (written > 0) this.#delayMs = BACKOFF_FIRST_MS;
      if (item.at >= item.bytes.length) {
        this.#finish(item, { kind: 'written', sizeBytes: item.bytes.length });
      } else if (written === 0) {
        this.#later();
        return;
      }
    }
  }

  #finish(item: Item, outcome: WriteOutcome): void {
    this.#queue.shift();
    this.#queuedBytes -= item.bytes.length - item.at;
    item.done(outcome);
  }

  #later(): void {
    this.#timer = this.#clock.timer(this.#delayMs, () => {
      this.#timer = undefined;
      this.#pump();
    });
    this.#delayMs = Math.min(BACKOFF_LAST_MS, this.#delayMs * 2);
  }
}

/** Bytes of a line that a canonical terminal keeps; it drops the rest without a word. */
const CANONICAL_LINE_BYTES_MAX = 4095;

/** Whether a canonical terminal would silently cut a line of `bytes`. */
export function hasOverlongLine(bytes: Uint8Array): boolean {
  let lineBytes = 0;
  for (const byte of bytes) {
    lineBytes = byte === 0x0a || byte === 0x0d ? 0 : lineBytes + 1;
    if (lineBytes > CANONICAL_LINE_BYTES_MAX) return true;
  }
  return false;
}
