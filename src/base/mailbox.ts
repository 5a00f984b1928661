// One entity, one mailbox: events are handled one after another, in the order they came.

import { BoundedQueue } from './bounded-queue.ts';

export class Mailbox<E> {
  readonly #queue: BoundedQueue<E>;
  readonly #handle: (event: E) => Promise<void> | void;
  readonly #onError: (error: unknown, event: E) => void;
  #running = false;
  #closed = false;
  #idle: Promise<void> = Promise.resolve();

  constructor(options: {
    readonly capacity: number;
    readonly handle: (event: E) => Promise<void> | void;
    /** Called with what `handle` threw; the mailbox goes on with the next event. */
    readonly onError: (error: unknown, event: E) => void;
  }) {
    this.#queue = new BoundedQueue({ capacity: options.capacity, overflow: 'refuse' });
    this.#handle = options.handle;
    this.#onError = options.onError;
  }

  /** False when the mailbox is full or closed: the caller says what that means. */
  post(event: E): boolean {
    if (this.#closed || !this.#queue.push(event)) return false;
    if (!this.#running) {
      this.#running = true;
      this.#idle = this.#run();
    }
    return true;
  }

  get length(): number {
    return this.#queue.length;
  }

  /** Takes no more events; resolves when those already taken are handled. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#idle;
  }

  async #run(): Promise<void> {
    // The first event starts in a later microtask, so that `post` never runs a handler inside itself.
    await Promise.resolve();
    for (let event = this.#queue.take(); event !== undefined; event = this.#queue.take()) {
      try {
        await this.#handle(event);
      } catch (error) {
        this.#onError(error, event);
      }
    }
    this.#running = false;
  }
}
