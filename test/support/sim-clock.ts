// Virtual time for simulations of thousands of runs: a heap of timers, one turn of the event loop
// after each. Nothing in a simulation may wait for anything but this clock.

import type { Clock, Timer } from '../../src/base/clock.ts';

interface Entry {
  readonly atMs: number;
  readonly order: number;
  run: (() => void) | undefined;
}

export class SimClock implements Clock {
  #nowMs = 0;
  #order = 0;
  readonly #heap: Entry[] = [];

  wallMs(): number {
    return 1_800_000_000_000 + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  timer(delayMs: number, run: () => void): Timer {
    const entry: Entry = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run };
    this.#push(entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
      unref: () => undefined,
    };
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.timer(delayMs, resolve);
    });
  }

  /** Runs everything due within `byMs`. */
  async advance(byMs: number): Promise<void> {
    const endMs = this.#nowMs + byMs;
    await turn();
    for (let next = this.#heap[0]; next !== undefined && next.atMs <= endMs; next = this.#heap[0]) {
      this.#pop();
      if (next.run === undefined) continue;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
      await turn();
    }
    this.#nowMs = endMs;
    await turn();
  }

  #before(a: Entry, b: Entry): boolean {
    return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !this.#before(entry, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const left = heap[child];
      if (left === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && this.#before(right, left)) child += 1;
      const smallest = heap[child];
      if (smallest === undefined || !this.#before(smallest, last)) break;
      heap[at] = smallest;
      at = child;
    }
    heap[at] = last;
  }
}

/** Microtasks run dry before the next macrotask: all that is ready has run. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
