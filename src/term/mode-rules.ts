// When a program that stays in the normal screen is one that repaints it: OUTPUT.md §1.2, rules 2
// and 3. Pure: it counts what it is told, with the time it is told.

/** Measured on recordings of top, Ink, apt, fzf and others. */
const UPWARD_MOVES = 3;
const UPWARD_WINDOW_MS = 10_000;
const CLEARS = 3;
const CLEAR_WINDOW_MS = 5_000;

export interface ScreenFlags {
  readonly cursorHidden: boolean;
  readonly applicationCursor: boolean;
  readonly synchronizing: boolean;
}

export interface ModeRulesState {
  readonly upwardMs: readonly number[];
  readonly clearMs: readonly number[];
}

export class ModeRules {
  #upwardMs: number[] = [];
  #clearMs: number[] = [];

  get state(): ModeRulesState {
    return { upwardMs: [...this.#upwardMs], clearMs: [...this.#clearMs] };
  }

  restore(state: ModeRulesState): void {
    this.#upwardMs = [...state.upwardMs];
    this.#clearMs = [...state.clearMs];
  }

  /** An absolute move to a row above the cursor. True: the program repaints. */
  movedUp(nowMs: number, flags: ScreenFlags): boolean {
    this.#upwardMs = recent(this.#upwardMs, nowMs, UPWARD_WINDOW_MS, UPWARD_MOVES);
    if (flags.cursorHidden && flags.applicationCursor) return true;
    return this.#upwardMs.length >= UPWARD_MOVES;
  }

  /** The whole screen is erased. True: the program repaints. */
  cleared(nowMs: number, flags: ScreenFlags): boolean {
    this.#clearMs = recent(this.#clearMs, nowMs, CLEAR_WINDOW_MS, CLEARS);
    if (flags.cursorHidden || flags.synchronizing) return true;
    return this.#clearMs.length >= CLEARS;
  }

  /** A shell's prompt, or a change of mode: what was counted belongs to another program. */
  reset(): void {
    this.#upwardMs = [];
    this.#clearMs = [];
  }
}

function recent(
  timesMs: readonly number[],
  nowMs: number,
  windowMs: number,
  max: number,
): number[] {
  return [...timesMs, nowMs].filter((timeMs) => timeMs > nowMs - windowMs).slice(-max);
}
