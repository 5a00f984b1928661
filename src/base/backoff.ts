// Growing delays with jitter, bounded.

import type { Random } from './random.ts';

export interface BackoffLimits {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly factor: number;
}

export class Backoff {
  readonly #limits: BackoffLimits;
  readonly #random: Random;
  #attempt = 0;

  constructor(limits: BackoffLimits, random: Random) {
    this.#limits = limits;
    this.#random = random;
  }

  /** The next delay: grows by `factor` up to `maxMs`, with 0 to 25 % taken off so peers spread. */
  nextMs(): number {
    const { initialMs, maxMs, factor } = this.#limits;
    const fullMs = Math.min(maxMs, initialMs * factor ** this.#attempt);
    this.#attempt += 1;
    return fullMs * (1 - 0.25 * this.#random.next());
  }

  reset(): void {
    this.#attempt = 0;
  }
}
