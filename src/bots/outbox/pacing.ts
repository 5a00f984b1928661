// When a thread may show what is new: soon after silence, then seldom enough that the platform's
// budget lasts, sooner again when people wait. Pure; OUTPUT.md §4 has the measurements behind it.

import type { PlatformKind } from '../chat-platform.ts';

export interface PacingLimits {
  /** Silence after which the next output is news. */
  readonly idleMs: number;
  /** News is shown this long after its last byte … */
  readonly leadingQuietMs: number;
  /** … and never later than this after its first. */
  readonly leadingMaxMs: number;
  /** Output that stopped for this long is complete as far as anyone can tell. */
  readonly quietMs: number;
  /** Least time between two flushes of output that stops, with 3, 2 or fewer calls left. */
  readonly quietGapsMs: readonly [number, number, number];
  /** The first repeat of continuous output, while 4 calls are left. */
  readonly firstRepeatMs: number;
  /** Shortest and longest interval between flushes of continuous output, and its growth. */
  readonly intervalMs: number;
  readonly intervalMaxMs: number;
  readonly growth: number;
  /** Between edits of a live screen that keeps changing. */
  readonly screenMs: number;
}

/** Chosen with test/bench/output.ts over the recordings; the starting point was OUTPUT.md §4. */
export function pacingLimits(kind: PlatformKind): PacingLimits {
  const common = {
    idleMs: 1_000,
    leadingQuietMs: 75,
    leadingMaxMs: 500,
    quietMs: 250,
    quietGapsMs: [300, 600, 1_000],
    firstRepeatMs: 500,
    growth: 1.35,
  } as const;
  return kind === 'discord'
    ? { ...common, intervalMs: 1_000, intervalMaxMs: 2_000, screenMs: 1_500 }
    : { ...common, intervalMs: 1_200, intervalMaxMs: 3_000, screenMs: 2_000 };
}

/** Silence after which a busy thread counts as fresh again. */
const RESET_MS = 2_000;

export class Pacing {
  readonly #limits: PacingLimits;
  #firstUnseenMs: number | undefined;
  #lastChangeMs = Number.NEGATIVE_INFINITY;
  #lastFlushMs = Number.NEGATIVE_INFINITY;
  #intervalMs: number;
  #busyFlushes = 0;
  #isLeading = true;

  constructor(limits: PacingLimits) {
    this.#limits = limits;
    this.#intervalMs = limits.intervalMs;
  }

  /** The transcript moved. */
  changed(nowMs: number): void {
    if (nowMs - this.#lastChangeMs >= RESET_MS) this.reset();
    if (this.#firstUnseenMs === undefined) {
      this.#firstUnseenMs = nowMs;
      this.#isLeading =
        nowMs - Math.max(this.#lastFlushMs, this.#lastChangeMs) >= this.#limits.idleMs;
    }
    this.#lastChangeMs = nowMs;
  }

  /** A person pressed Enter here: they wait for what comes now. */
  reset(): void {
    this.#intervalMs = this.#limits.intervalMs;
    this.#busyFlushes = 0;
  }

  /** All that was new has been taken into a call at `nowMs`. */
  flushed(nowMs: number): void {
    const isBusy = nowMs - this.#lastChangeMs < this.#limits.quietMs;
    if (isBusy && !this.#isLeading) {
      this.#busyFlushes += 1;
      if (this.#busyFlushes > 1) {
        this.#intervalMs = Math.min(
          this.#limits.intervalMaxMs,
          this.#intervalMs * this.#limits.growth,
        );
      }
    }
    this.#firstUnseenMs = undefined;
    this.#isLeading = false;
    this.#lastFlushMs = nowMs;
  }

  /** Time without a change, for the end of a flood. */
  quietMs(nowMs: number): number {
    return nowMs - this.#lastChangeMs;
  }

  /**
   * Earliest moment to show what is new, if nothing else comes; undefined when nothing is new.
   * `tokens`: calls the budget has left right now.
   */
  earliestMs(kind: 'text' | 'screen', tokens: number): number | undefined {
    const first = this.#firstUnseenMs;
    if (first === undefined) return undefined;
    const { leadingQuietMs, leadingMaxMs } = this.#limits;
    const leading = Math.min(this.#lastChangeMs + leadingQuietMs, first + leadingMaxMs);
    if (kind === 'screen') {
      const isFresh = this.#busyFlushes === 0 && tokens >= 2;
      const gapMs = isFresh ? this.#limits.firstRepeatMs : this.#limits.screenMs;
      return Math.max(leading, this.#lastFlushMs + gapMs);
    }
    return this.#isLeading ? leading : this.#repeatMs(tokens);
  }

  #repeatMs(tokens: number): number {
    const { quietMs, quietGapsMs, firstRepeatMs, intervalMaxMs } = this.#limits;
    const quietGapMs = quietGapsMs[tokens >= 3 ? 0 : tokens >= 2 ? 1 : 2];
    const whenQuiet = Math.max(this.#lastChangeMs + quietMs, this.#lastFlushMs + quietGapMs);
    const isFirst = this.#busyFlushes === 0 && tokens >= 4;
    const busyGapMs = isFirst ? firstRepeatMs : this.#intervalMs;
    // With nothing left there is no hurry: whatever waits coalesces.
    const gapMs = tokens < 1 ? intervalMaxMs : busyGapMs;
    return Math.min(whenQuiet, this.#lastFlushMs + gapMs);
  }
}
