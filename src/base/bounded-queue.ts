// A queue that says what happens when it is full. There is no default policy.

type Overflow = 'refuse' | 'drop-oldest';

export class BoundedQueue<T> {
  readonly #items: T[] = [];
  readonly #capacity: number;
  readonly #overflow: Overflow;
  #droppedCount = 0;

  constructor(options: { readonly capacity: number; readonly overflow: Overflow }) {
    this.#capacity = options.capacity;
    this.#overflow = options.overflow;
  }

  /** False when the item was refused. With `drop-oldest` the oldest item is dropped and counted. */
  push(item: T): boolean {
    if (this.#items.length >= this.#capacity) {
      if (this.#overflow === 'refuse') return false;
      this.#items.shift();
      this.#droppedCount += 1;
    }
    this.#items.push(item);
    return true;
  }

  /** Removes and returns the oldest item. */
  take(): T | undefined {
    return this.#items.shift();
  }

  get length(): number {
    return this.#items.length;
  }

  get droppedCount(): number {
    return this.#droppedCount;
  }
}
