// When a host that keeps dying may be started again: 5 times in 60 s, then once each 30 s, for ever.
// A short success does not empty the window.

const WINDOW_MS = 60_000;
const WINDOW_STARTS = 5;
const SLOW_MS = 30_000;

export class RestartBudget {
  #startsMs: number[] = [];
  #total = 0;

  /** Starts ever recorded. */
  get total(): number {
    return this.#total;
  }

  recordStart(nowMs: number): void {
    this.#total += 1;
    this.#startsMs = [...this.#startsMs.filter((at) => nowMs - at < WINDOW_MS), nowMs];
  }

  /** How long to wait before the next start. 0: at once. */
  delayMs(nowMs: number): number {
    const recent = this.#startsMs.filter((at) => nowMs - at < WINDOW_MS);
    const last = recent.at(-1);
    if (recent.length < WINDOW_STARTS || last === undefined) return 0;
    return Math.max(0, last + SLOW_MS - nowMs);
  }
}
