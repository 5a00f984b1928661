// Time as a parameter. Durations use `monotonicMs`; only what a human or a file reads uses `wallMs`.

/** A running timer; `cancel` is idempotent. */
export interface Timer {
  cancel(): void;
  /** Do not keep the process alive for this timer. No effect on a fake clock. */
  unref(): void;
}

export interface Clock {
  /** Milliseconds since the Unix epoch. May jump. */
  wallMs(): number;
  /** Milliseconds on a clock that never jumps. Stops while the machine is suspended. */
  monotonicMs(): number;
  /** Calls `run` once after `delayMs`. */
  timer(delayMs: number, run: () => void): Timer;
  /** Resolves after `delayMs`; rejects with `signal.reason` when aborted first. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}
