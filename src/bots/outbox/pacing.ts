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
  /** Between flushes of output that goes on … */
  readonly intervalMs: number;
  /** … and while the platform's budget is spent: whatever waits coalesces. */
  readonly spentMs: number;
  /** Between edits of a live screen that keeps changing. */
  readonly screenMs: number;
}

/**
 * Found with test/bench/output.ts over the recordings, from OUTPUT.md §4: soon after silence, seldom
 * while output goes on. Fitted to those recordings, so its lead over others is indicative.
 */
export function pacingLimits(kind: PlatformKind): PacingLimits {
  if (kind === 'discord') {
    return {
      idleMs: 700,
      leadingQuietMs: 75,
      leadingMaxMs: 500,
      quietMs: 350,
      quietGapsMs: [600, 800, 1_200],
      firstRepeatMs: 680,
      intervalMs: 1_980,
      spentMs: 2_000,
      screenMs: 1_700,
    };
  }
  // All threads of a workspace share 50 edits a minute: fewer of them, each sooner.
  return {
    idleMs: 430,
    leadingQuietMs: 75,
    leadingMaxMs: 500,
    quietMs: 180,
    quietGapsMs: [560, 600, 850],
    firstRepeatMs: 850,
    intervalMs: 2_800,
    spentMs: 2_900,
    screenMs: 3_000,
  };
}

/** Silence after which a busy thread counts as fresh again. */
const RESET_MS = 2_000;

export class Pacing {
  readonly #limits: PacingLimits;
  #firstUnseenMs: number | undefined;
  #lastChangeMs = Number.NEGATIVE_INFINITY;
  #lastFlushMs = Number.NEGATIVE_INFINITY;
  #busyFlushes = 0;
  #isLeading = true;

  constructor(limits: PacingLimits) {
    this.#limits = limits;
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
    this.#busyFlushes = 0;
  }

  /** All that was new has been taken into a call at `nowMs`. */
  flushed(nowMs: number): void {
    const isBusy = nowMs - this.#lastChangeMs < this.#limits.quietMs;
    if (isBusy && !this.#isLeading) this.#busyFlushes += 1;
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
    const { quietMs, quietGapsMs, firstRepeatMs, intervalMs, spentMs } = this.#limits;
    const quietGapMs = quietGapsMs[tokens >= 3 ? 0 : tokens >= 2 ? 1 : 2];
    const whenQuiet = Math.max(this.#lastChangeMs + quietMs, this.#lastFlushMs + quietGapMs);
    const isFirst = this.#busyFlushes === 0 && tokens >= 4;
    const gapMs = tokens < 1 ? spentMs : isFirst ? firstRepeatMs : intervalMs;
    return Math.min(whenQuiet, this.#lastFlushMs + gapMs);
  }
}
