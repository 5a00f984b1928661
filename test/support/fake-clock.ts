// A clock that moves only when told. Passes the same contract as the system clock.

import type { Clock, Timer } from '../../src/base/clock.ts';

interface Pending {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

export class FakeClock implements Clock {
  #nowMs = 0;
  #order = 0;
  #wallOffsetMs: number;
  #pending: Pending[] = [];

  constructor(wallStartMs = 1_800_000_000_000) {
    this.#wallOffsetMs = wallStartMs;
  }

  wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  /** Moves the wall clock alone, as a person or NTP does. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  timer(delayMs: number, run: () => void): Timer {
    const entry: Pending = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run };
    this.#pending.push(entry);
    return {
      cancel: () => {
        this.#pending = this.#pending.filter((other) => other !== entry);
      },
      unref: () => undefined,
    };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(new Error('aborted', { cause: signal.reason }));
        return;
      }
      const timer = this.timer(delayMs, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      const onAbort = (): void => {
        timer.cancel();
        reject(new Error('aborted', { cause: signal?.reason }));
      };
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  get pendingCount(): number {
    return this.#pending.length;
  }

  /** Runs everything due within `byMs`, in order, letting promises settle after each timer. */
  async advance(byMs: number): Promise<void> {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      await settle();
      const due = this.#pending
        .filter((entry) => entry.atMs <= endMs)
        .sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0];
      if (due === undefined) break;
      this.#pending = this.#pending.filter((entry) => entry !== due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.run();
    }
    this.#nowMs = endMs;
    await settle();
  }
}

/** Lets all ready microtasks and immediates run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
