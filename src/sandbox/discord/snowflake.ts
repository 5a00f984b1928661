// Discord ids: 42 bits of milliseconds since 2015, 10 bits of machine, 12 bits of counter. SDKs
// read time out of them and route by their length, so they must be real ones.

const EPOCH_MS = 1_420_070_400_000; // 2015-01-01T00:00:00Z, Discord's epoch.
const MACHINE = 33n << 12n;

/** The wall time inside a snowflake. */
export function snowflakeTimeMs(id: string): number {
  return Number(BigInt(id) >> 22n) + EPOCH_MS;
}

/** Numeric order of two snowflakes. */
export function compareIds(left: string, right: string): number {
  return left.length === right.length
    ? Number(left > right) - Number(left < right)
    : left.length - right.length;
}

/** True for 17 to 19 digits: what clients and routes take for an id. */
export function isSnowflake(text: string): boolean {
  return /^\d{17,19}$/.test(text);
}

/** Mints ids that only grow, also when the wall clock steps back or many fall into one millisecond. */
export class SnowflakeMint {
  readonly #wallMs: () => number;
  #lastMs = 0;
  #counter = 0n;

  constructor(wallMs: () => number) {
    this.#wallMs = wallMs;
  }

  mint(): string {
    const nowMs = Math.floor(this.#wallMs()) - EPOCH_MS;
    if (nowMs > this.#lastMs) {
      this.#lastMs = nowMs;
      this.#counter = 0n;
    } else {
      this.#counter += 1n;
      if (this.#counter > 4095n) {
        this.#lastMs += 1;
        this.#counter = 0n;
      }
    }
    return ((BigInt(this.#lastMs) << 22n) | MACHINE | this.#counter).toString();
  }
}
