// The log port: an event name (`noun.past-verb`) and fields. Never terminal bytes, chat text,
// tokens, environment variables or file contents.

export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  /** A human must act. */
  error(event: string, fields?: LogFields): void;
  /** Degraded but healing. */
  warn(event: string, fields?: LogFields): void;
  /** State transitions, start and stop. */
  info(event: string, fields?: LogFields): void;
  /** Per message. */
  debug(event: string, fields?: LogFields): void;
  /** A child whose lines all carry `fields`. */
  with(fields: LogFields): Log;
}

/** Drops everything. */
export const silentLog: Log = {
  error: () => undefined,
  warn: () => undefined,
  info: () => undefined,
  debug: () => undefined,
  with: () => silentLog,
};
