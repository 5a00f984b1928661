// Discord's ids: a time and a counter in 64 bits. Text on the wire; compared by length, then by text.

const EPOCH_MS = 1_420_070_400_000n;

export function isSnowflake(value: string): boolean {
  return /^\d{15,20}$/.test(value);
}

/** Milliseconds since the Unix epoch at which the id was made. */
export function snowflakeMs(id: string): number {
  return isSnowflake(id) ? Number((BigInt(id) >> 22n) + EPOCH_MS) : 0;
}

/** The first id of a moment, for bounds of a search. */
export function snowflakeAt(ms: number): string {
  const sinceEpoch = BigInt(Math.max(0, Math.floor(ms))) - EPOCH_MS;
  return String((sinceEpoch < 0n ? 0n : sinceEpoch) << 22n);
}

/** Negative when `a` is older. */
export function compareSnowflakes(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : Number(a > b);
}
