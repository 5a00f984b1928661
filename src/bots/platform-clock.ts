// The platform's clock as its Date headers tell it. The age of input is judged by this clock and
// not by ours alone: a laptop's clock may be wrong by hours.

import type { Clock } from '../base/clock.ts';

/** An answer is at most this old when it arrives: the adapters' HTTP time-out. */
const LATENCY_MAX_MS = 5_000;

export class PlatformClock {
  readonly #clock: Clock;
  /** The platform's clock minus ours is between these. */
  #atLeastMs = Number.NEGATIVE_INFINITY;
  #atMostMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes the Date header of a response that has just arrived. */
  observe(dateHeader: string | null | undefined): void {
    if (dateHeader === null || dateHeader === undefined) return;
    // eslint-disable-next-line no-restricted-globals -- parsing a header reads no clock
    const atMs = Date.parse(dateHeader);
    if (!Number.isFinite(atMs)) return;
    // The header has whole seconds, rounded down, and was written before it arrived.
    const atLeastMs = atMs - this.#clock.wallMs();
    const atMostMs = atLeastMs + 1_000 + LATENCY_MAX_MS;
    const jumped = atLeastMs > this.#atMostMs || atMostMs < this.#atLeastMs;
    this.#atLeastMs = jumped ? atLeastMs : Math.max(this.#atLeastMs, atLeastMs);
    this.#atMostMs = jumped ? atMostMs : Math.min(this.#atMostMs, atMostMs);
  }

  /**
   * Platform minus ours; undefined until a response was seen. Two machines that are set right agree
   * better than a header of whole seconds can tell, so no difference is the best guess where the
   * answers allow it: half a second of doubt would take what was just written for old, or the reverse.
   */
  skewMs(): number | undefined {
    if (!Number.isFinite(this.#atLeastMs)) return undefined;
    return this.#atLeastMs <= 0 && this.#atMostMs >= 0 ? 0 : this.#atLeastMs;
  }

  /** The platform's time now, as far as known. */
  nowMs(): number {
    return this.#clock.wallMs() + (this.skewMs() ?? 0);
  }
}
