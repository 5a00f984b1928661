// How a host is started: one JSON argument, passed through by the keeper unread.

import { ChatdError } from '../base/errors.ts';

export interface HostOptions {
  readonly state: string;
  readonly runtime?: string;
  /** chatd's version, for people. */
  readonly version: string;
  /** What a new keeper is started from when ours dies. */
  readonly interpreter: string;
  readonly keeperEntry: string;
  readonly hostEntry: string;
  /** 0: never. */
  readonly idleExitSecs: number;
  readonly journalMbPerSession: number;
  readonly journalMbTotal: number;
  readonly sessionsMax: number;
  readonly openFiles?: number;
}

/** @throws {ChatdError} config-invalid */
export function parseHostOptions(text: string | undefined): HostOptions {
  let value: unknown;
  try {
    value = JSON.parse(text ?? '');
  } catch (cause) {
    throw new ChatdError('config-invalid', 'Cannot start host: its argument is not JSON', {
      cause,
    });
  }
  const options = value as HostOptions;
  const texts = [options.state, options.interpreter, options.keeperEntry, options.hostEntry];
  const counts = [
    options.idleExitSecs,
    options.journalMbPerSession,
    options.journalMbTotal,
    options.sessionsMax,
  ];
  const sound =
    texts.every((item) => typeof item === 'string' && item.startsWith('/')) &&
    counts.every((item) => Number.isFinite(item) && item >= 0);
  if (!sound) throw new ChatdError('config-invalid', 'Cannot start host: its argument lacks a key');
  return options;
}
