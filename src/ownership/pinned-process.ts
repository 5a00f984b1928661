// Signals exactly the process a record names, or nobody. On Linux through a pidfd that was compared
// with the record after it was opened; on macOS by comparing the start time on the line before.

import type { Clock } from '../base/clock.ts';
import { errnoCode } from '../base/errors.ts';
import { signalByNumber, watchEnd } from '../sys/pidfd.ts';
import {
  type Judgement,
  judgeIncarnation,
  judgeKeepingPin,
  type ProcessIncarnation,
  type ProcessObserver,
} from './process-incarnation.ts';
import type { SystemPin } from './process-observer.ts';

export type SignalOutcome =
  | { readonly kind: 'sent' }
  /** It ended before. */
  | { readonly kind: 'ended' }
  | { readonly kind: 'failed'; readonly because: string };

export type PinOutcome =
  | { readonly kind: 'pinned'; readonly process: PinnedProcess }
  | { readonly kind: 'dead' | 'unknown'; readonly because: string };

/** How often death is looked for where no descriptor announces it. */
const POLL_MS = 50;

/** Pins the process that `record` names. */
export function pinIncarnation(record: ProcessIncarnation, observer: ProcessObserver): PinOutcome {
  const { judgement, pin } = judgeKeepingPin(record, observer);
  if (judgement.verdict !== 'alive') return { kind: judgement.verdict, because: judgement.because };
  return {
    kind: 'pinned',
    process: new PinnedProcess(record, observer, isSystemPin(pin) ? pin : undefined),
  };
}

function isSystemPin(pin: object | undefined): pin is SystemPin {
  return pin !== undefined && 'pidfd' in pin;
}

/** A process that cannot be mistaken for another. Close it after use. */
export class PinnedProcess {
  readonly record: ProcessIncarnation;
  readonly #observer: ProcessObserver;
  readonly #pin: SystemPin | undefined;

  constructor(record: ProcessIncarnation, observer: ProcessObserver, pin: SystemPin | undefined) {
    this.record = record;
    this.#observer = observer;
    this.#pin = pin;
  }

  /** Sends `signal` to the pinned process and to no other. */
  signal(signal: NodeJS.Signals): SignalOutcome {
    try {
      if (this.#pin !== undefined) {
        if (this.#pin.hasEnded()) return { kind: 'ended' };
        this.#pin.signal(signal);
        return { kind: 'sent' };
      }
      const judgement = judgeIncarnation(this.record, this.#observer);
      if (judgement.verdict === 'dead') return { kind: 'ended' };
      if (judgement.verdict === 'unknown') return { kind: 'failed', because: judgement.because };
      signalByNumber(this.record.pid, signal);
      return { kind: 'sent' };
    } catch (error) {
      const code = errnoCode(error) ?? 'unknown error';
      return code === 'ESRCH' ? { kind: 'ended' } : { kind: 'failed', because: code };
    }
  }

  /** What is known about it now. */
  judge(): Judgement {
    if (this.#pin === undefined) return judgeIncarnation(this.record, this.#observer);
    try {
      return this.#pin.hasEnded()
        ? { verdict: 'dead', because: 'it has ended' }
        : { verdict: 'alive', because: 'it is pinned and has not ended' };
    } catch {
      return { verdict: 'unknown', because: 'cannot ask about the process' };
    }
  }

  /** Waits until it has ended, at most `withinMs`. A zombie has ended. */
  async waitForDeath(clock: Clock, withinMs: number): Promise<'ended' | 'still-running'> {
    const pin = this.#pin;
    if (pin === undefined) return this.#pollForDeath(clock, withinMs);
    if (pin.hasEnded()) return 'ended';
    return new Promise((resolve) => {
      const watch = watchEnd(pin.pidfd, () => {
        timer.cancel();
        resolve('ended');
      });
      const timer = clock.timer(withinMs, () => {
        watch.close();
        resolve(pin.hasEnded() ? 'ended' : 'still-running');
      });
    });
  }

  async #pollForDeath(clock: Clock, withinMs: number): Promise<'ended' | 'still-running'> {
    const deadline = clock.monotonicMs() + withinMs;
    for (;;) {
      if (this.judge().verdict === 'dead') return 'ended';
      const leftMs = deadline - clock.monotonicMs();
      if (leftMs <= 0) return 'still-running';
      await clock.sleep(Math.min(POLL_MS, leftMs));
    }
  }

  close(): void {
    this.#pin?.close();
  }
}
