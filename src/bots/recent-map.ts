// A map that remembers the most recently written entries only, each for a limited time.

import type { Clock } from '../base/clock.ts';

export class RecentMap<K, V> {
  readonly #entries = new Map<K, { readonly value: V; readonly untilMs: number }>();
  readonly #clock: Clock;
  readonly #capacity: number;
  readonly #ttlMs: number;

  constructor(options: { clock: Clock; capacity: number; ttlMs: number }) {
    this.#clock = options.clock;
    this.#capacity = options.capacity;
    this.#ttlMs = options.ttlMs;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.untilMs > this.#clock.monotonicMs()) return entry.value;
    this.#entries.delete(key);
    return undefined;
  }

  /** Remembers `value`; the oldest entry goes when the map is full. */
  set(key: K, value: V, ttlMs: number = this.#ttlMs): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#capacity) {
      for (const oldest of this.#entries.keys()) {
        this.#entries.delete(oldest);
        break;
      }
    }
    this.#entries.set(key, { value, untilMs: this.#clock.monotonicMs() + ttlMs });
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  get size(): number {
    return this.#entries.size;
  }
}
