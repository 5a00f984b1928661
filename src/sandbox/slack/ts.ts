// Message ids: decimal strings of microseconds, strictly increasing within a channel. Two channels
// may well use the same one: a ts alone names no message.

/** `1760000000.000100`. Micros stay below 2^53 for the next two centuries. */
export function formatTs(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  return `${String(seconds).padStart(10, '0')}.${String(micros % 1_000_000).padStart(6, '0')}`;
}

/** Undefined when it has not the form of a ts. */
export function parseTs(ts: string): number | undefined {
  const match = /^(\d{10})\.(\d{6})$/.exec(ts);
  return match === null ? undefined : Number(match[1]) * 1_000_000 + Number(match[2]);
}

/** As `oldest` and `latest` are written: any decimal number of seconds. */
export function parseTsBound(text: string): number | undefined {
  const match = /^(\d+)(?:\.(\d{1,6})\d*)?$/.exec(text);
  if (match === null) return undefined;
  return Number(match[1]) * 1_000_000 + Number((match[2] ?? '').padEnd(6, '0'));
}

/** The next ts of a channel whose last one was `lastMicros`. */
export function nextMicros(lastMicros: number, wallMs: number): number {
  return Math.max(lastMicros + 1, Math.floor(wallMs) * 1000);
}
