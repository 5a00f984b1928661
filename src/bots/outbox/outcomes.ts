// What a call's end means for its row. Pure: ok, refused (known not processed), gone, in doubt.

import type { OutboxRow, Version } from '../../store/outbox-rows.ts';
import { isCovering } from './rows.ts';

/** Posted, and its content is known to be `version` (undefined: found again, content unknown). */
export function posted(row: OutboxRow, messageId: string, version: Version | undefined): OutboxRow {
  return { ...row, state: 'posted', messageId, shown: version, pending: undefined };
}

/** Before an edit leaves. */
export function editing(row: OutboxRow, version: Version, nowMs: number): OutboxRow {
  return { ...row, pending: { ...version, sentAtMs: nowMs } };
}

/** Acknowledged; an older edit in doubt may still land unless this one left after that was over. */
export function edited(row: OutboxRow): OutboxRow {
  const { pending, doubtUntilMs } = row;
  if (pending === undefined) return row;
  const isSettled = doubtUntilMs === undefined || pending.sentAtMs >= doubtUntilMs;
  return {
    ...row,
    shown: { hash: pending.hash, offset: pending.offset },
    pending: undefined,
    doubtUntilMs: isSettled ? undefined : doubtUntilMs,
  };
}

/** Known not to have been processed: as before the call. */
export function editRefused(row: OutboxRow): OutboxRow {
  return { ...row, pending: undefined };
}

/** Nobody knows: it may have been shown, be shown, or land until the doubt is over. */
export function editInDoubt(row: OutboxRow, settleMs: number): OutboxRow {
  const sentAtMs = row.pending?.sentAtMs ?? 0;
  return {
    ...row,
    pending: undefined,
    shown: undefined,
    doubtUntilMs: Math.max(row.doubtUntilMs ?? 0, sentAtMs + settleMs),
  };
}

/** The message no longer exists. An open chunk's lines are shown again, below. */
export function vanished(row: OutboxRow): OutboxRow {
  const end = isCovering(row) && row.end === undefined ? { end: row.start } : {};
  return { ...row, ...end, state: 'gone', pending: undefined, doubtUntilMs: undefined };
}

/** At start: whatever was in flight died with its sender, and may still land. */
export function recovered(row: OutboxRow, nowMs: number, settleMs: number): OutboxRow {
  if (row.state !== 'posted' || row.pending === undefined) return row;
  return {
    ...row,
    pending: undefined,
    shown: undefined,
    doubtUntilMs: Math.max(row.doubtUntilMs ?? 0, nowMs + settleMs),
  };
}

/** Ids of messages grow with time on both platforms: equal length or longer is later. */
export function isNewerMessage(a: string, b: string): boolean {
  return a.length === b.length ? a > b : a.length > b.length;
}
