// The platform's clock as its Date headers tell it. The age of input is judged by this clock and
// not by ours alone: a laptop's clock may be wrong by hours.

import type { Clock } from '../base/clock.ts';

export class PlatformClock {
  readonly #clock: Clock;
  #skewMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes the Date header of a response that has just arrived. */
  observe(dateHeader: string | null | undefined): void {
    if (dateHeader === null || dateHeader === undefined) return;
    // eslint-disable-next-line no-restricted-globals -- parsing a header reads no clock
    const atMs = Date.parse(dateHeader);
    if (!Number.isFinite(atMs)) return;
    // The header has whole seconds: its middle is the best guess.
    this.#skewMs = atMs + 500 - this.#clock.wallMs();
  }

  /** Platform minus ours; undefined until a response was seen. */
  skewMs(): number | undefined {
    return this.#skewMs;
  }

  /** The platform's time now, as far as known. */
  nowMs(): number {
    return this.#clock.wallMs() + (this.#skewMs ?? 0);
  }
}
