// The sandbox's time: a base clock that can run faster and be moved ahead, so that windows of
// seconds (trigger ids) and hours (late redelivery, archive) can be lived through in a test.

import type { Clock, Timer } from '../base/clock.ts';

interface Pending {
  readonly dueMs: number;
  readonly run: () => void;
  armed: Timer;
  unreferenced: boolean;
}

export class SandboxClock implements Clock {
  readonly #base: Clock;
  readonly #wallStartMs: number;
  readonly #pending = new Set<Pending>();
  #scale: number;
  // Virtual time = #virtualMs + (base time - #baseMs) × scale.
  #virtualMs = 0;
  #baseMs: number;

  constructor(base: Clock, scale = 1) {
    this.#base = base;
    this.#wallStartMs = base.wallMs();
    this.#baseMs = base.monotonicMs();
    this.#scale = scale;
  }

  wallMs(): number {
    return this.#wallStartMs + this.monotonicMs();
  }

  monotonicMs(): number {
    return this.#virtualMs + (this.#base.monotonicMs() - this.#baseMs) * this.#scale;
  }

  timer(delayMs: number, run: () => void): Timer {
    const entry: Pending = {
      dueMs: this.monotonicMs() + Math.max(0, delayMs),
      run,
      armed: { cancel: () => undefined, unref: () => undefined },
      unreferenced: false,
    };
    this.#pending.add(entry);
    this.#arm(entry);
    return {
      cancel: () => {
        this.#pending.delete(entry);
        entry.armed.cancel();
      },
      unref: () => {
        entry.unreferenced = true;
        entry.armed.unref();
      },
    };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = (): void => {
        reject(new Error('aborted', { cause: signal?.reason }));
      };
      if (signal?.aborted === true) {
        refuse();
        return;
      }
      const timer = this.timer(delayMs, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      const onAbort = (): void => {
        timer.cancel();
        refuse();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  get scale(): number {
    return this.#scale;
  }

  /** Timers already running keep their due times on this clock. */
  setScale(scale: number): void {
    this.#virtualMs = this.monotonicMs();
    this.#baseMs = this.#base.monotonicMs();
    this.#scale = scale;
    this.#rearm();
  }

  /** Moves ahead by `byMs`; everything due by then runs soon, in order of its due time. */
  advance(byMs: number): void {
    this.#virtualMs += Math.max(0, byMs);
    this.#rearm();
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  /** Cancels everything still running. */
  close(): void {
    for (const entry of this.#pending) entry.armed.cancel();
    this.#pending.clear();
  }

  #rearm(): void {
    for (const entry of [...this.#pending].sort((a, b) => a.dueMs - b.dueMs)) {
      entry.armed.cancel();
      this.#arm(entry);
    }
  }

  #arm(entry: Pending): void {
    const waitMs = Math.max(0, (entry.dueMs - this.monotonicMs()) / this.#scale);
    // Longer than Node's 32-bit timers: look again in a day.
    entry.armed = this.#base.timer(Math.min(waitMs, 86_400_000), () => {
      if (!this.#pending.has(entry)) return;
      if (entry.dueMs - this.monotonicMs() > 1) {
        this.#arm(entry);
        return;
      }
      this.#pending.delete(entry);
      entry.run();
    });
    if (entry.unreferenced) entry.armed.unref();
  }
}
