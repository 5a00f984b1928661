// A numbered, bounded list: keeps the newest, counts what fell out.

export interface Numbered<T> {
  /** From 1, without gaps. */
  readonly seq: number;
  readonly value: T;
}

export class Ring<T> {
  readonly #capacity: number;
  readonly #items: Numbered<T>[] = [];
  #lastSeq = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  push(value: T): Numbered<T> {
    this.#lastSeq += 1;
    const entry = { seq: this.#lastSeq, value };
    this.#items.push(entry);
    if (this.#items.length > this.#capacity) this.#items.shift();
    return entry;
  }

  /** Everything kept with a number greater than `seq`, oldest first. */
  after(seq: number): readonly Numbered<T>[] {
    return this.#items.filter((entry) => entry.seq > seq);
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  get droppedCount(): number {
    return this.#lastSeq - this.#items.length;
  }

  clear(): void {
    this.#items.length = 0;
  }
}
