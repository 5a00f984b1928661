// When a thread may show what is new: soon after silence, then seldom enough that the platform's
// budget lasts, sooner again when people wait. Pure; OUTPUT.md §4 has the measurements behind it.

import type { PlatformKind } from '../chat-platform.ts';

export interface PacingLimits {
  /** Longest and shortest interval between flushes of continuous output. */
  readonly intervalMs: number;
  readonly intervalMaxMs: number;
  /** Between edits of a live screen that keeps changing. */
  readonly screenMs: number;
}

export function pacingLimits(kind: PlatformKind): PacingLimits {
  return kind === 'discord'
    ? { intervalMs: 1_000, intervalMaxMs: 2_000, screenMs: 1_500 }
    : { intervalMs: 1_200, intervalMaxMs: 3_000, screenMs: 2_000 };
}

/** Silence after which the next output is news. */
const IDLE_MS = 1_000;
/** A burst after silence is shown this long after its last byte … */
const LEADING_QUIET_MS = 80;
/** … and never later than this after its first. */
const LEADING_MAX_MS = 500;
/** Output that stopped for this long is complete as far as anyone can tell. */
const QUIET_MS = 250;
const GROWTH = 1.35;
/** Silence after which a busy thread counts as fresh again. */
const RESET_MS = 2_000;
const FIRST_REPEAT_MS = 500;

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
      this.#isLeading = nowMs - Math.max(this.#lastFlushMs, this.#lastChangeMs) >= IDLE_MS;
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
    const isBusy = nowMs - this.#lastChangeMs < QUIET_MS;
    if (isBusy && !this.#isLeading) {
      this.#busyFlushes += 1;
      if (this.#busyFlushes > 1) {
        this.#intervalMs = Math.min(this.#limits.intervalMaxMs, this.#intervalMs * GROWTH);
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
    if (kind === 'screen') {
      const settled = Math.min(this.#lastChangeMs + LEADING_QUIET_MS, first + LEADING_MAX_MS);
      const isFresh = this.#busyFlushes === 0 && tokens >= 2;
      const gap = isFresh ? FIRST_REPEAT_MS : this.#limits.screenMs;
      return Math.max(settled, this.#lastFlushMs + gap);
    }
    if (this.#isLeading) {
      return Math.min(this.#lastChangeMs + LEADING_QUIET_MS, first + LEADING_MAX_MS);
    }
    const quietGap = tokens >= 3 ? 300 : tokens >= 2 ? 600 : 1_000;
    const whenQuiet = Math.max(this.#lastChangeMs + QUIET_MS, this.#lastFlushMs + quietGap);
    const isFirstRepeat = this.#busyFlushes === 0 && tokens >= 4;
    const busyGap = isFirstRepeat ? FIRST_REPEAT_MS : this.#intervalMs;
    return Math.min(whenQuiet, this.#lastFlushMs + Math.max(busyGap, this.#gapFloor(tokens)));
  }

  /** With an empty bucket there is no hurry: whatever waits coalesces. */
  #gapFloor(tokens: number): number {
    return tokens < 1 ? this.#limits.intervalMaxMs : 0;
  }
}
