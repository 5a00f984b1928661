// Inbound claims: one act of a person has one effect, however often and by whichever way it comes.
// A receipt is kept at least 24 h of running time; claiming fails rather than forget one earlier.

import { integer, type SqlRow, text, textOrNone } from './database.ts';
import type { Store } from './store.ts';

export type ReceiptState = 'claimed' | 'written' | 'refused' | 'unknown' | 'offered' | 'done';

export interface Receipt {
  /** Names the act towards the host: input frames carry it. */
  readonly id: string;
  readonly b: string | undefined;
  readonly actor: string;
  readonly kind: string;
  readonly messageId: string | undefined;
  readonly state: ReceiptState;
  readonly atWallMs: number;
}

export interface Claim {
  readonly id: string;
  /** Every key under which this act may come again. */
  readonly keys: readonly string[];
  readonly b?: string | undefined;
  readonly actor: string;
  readonly kind: string;
  readonly messageId?: string | undefined;
}

export type ClaimOutcome =
  /** First time: act on it. */
  | { readonly kind: 'claimed'; readonly receipt: Receipt }
  /** Seen before: whatever was to be done has been or is being done. */
  | { readonly kind: 'already'; readonly receipt: Receipt }
  /** More acts within 24 h than chatd keeps: refused, not forgotten. */
  | { readonly kind: 'full' };

/** 10 a second, day and night; about 100 MB. */
const RECEIPTS_MAX = 864_000;
const KEPT_MS = 24 * 3_600_000;
/** Removed only after two looks this far apart: one wrong clock must not forget a day. */
const SECOND_LOOK_MS = 600_000;

/** Claims an act durably, before any effect. */
export function claim(store: Store, act: Claim): ClaimOutcome {
  return store.transaction(() => {
    const known = firstKnown(store, act.keys);
    if (known !== undefined) {
      addKeys(store, act.keys, known.id);
      return { kind: 'already', receipt: known };
    }
    if (isFull(store)) return { kind: 'full' };
    store.db.run(
      `INSERT INTO receipts (id, b, actor, kind, message_id, state, at, running_at)
       VALUES (?, ?, ?, ?, ?, 'claimed', ?, ?)`,
      act.id,
      act.b ?? null,
      act.actor,
      act.kind,
      act.messageId ?? null,
      store.wallMs(),
      store.runningMs(),
    );
    addKeys(store, act.keys, act.id);
    const receipt = receiptById(store, act.id);
    if (receipt === undefined) throw new Error('Invariant broken: a receipt just written is there');
    return { kind: 'claimed', receipt };
  });
}

/** Counting reads the whole index: done once for many claims, fewer of them near the bound. */
const roomLeft = new WeakMap<Store, number>();
const COUNT_EVERY = 1_000;

function isFull(store: Store): boolean {
  let room = roomLeft.get(store) ?? 0;
  if (room <= 0) {
    const row = store.db.get('SELECT count(*) AS n FROM receipts');
    room = Math.min(COUNT_EVERY, RECEIPTS_MAX - integer(row ?? {}, 'n'));
  }
  roomLeft.set(store, room - 1);
  return room <= 0;
}

function firstKnown(store: Store, keys: readonly string[]): Receipt | undefined {
  for (const key of keys) {
    const row = store.db.get(
      'SELECT receipts.* FROM claims JOIN receipts ON receipts.id = claims.receipt WHERE key = ?',
      key,
    );
    if (row !== undefined) return toReceipt(row);
  }
  return undefined;
}

function addKeys(store: Store, keys: readonly string[], id: string): void {
  for (const key of keys) {
    store.db.run('INSERT INTO claims (key, receipt) VALUES (?, ?) ON CONFLICT DO NOTHING', key, id);
  }
}

/** What became of a claimed act. */
export function settleReceipt(store: Store, id: string, state: ReceiptState): void {
  store.db.run('UPDATE receipts SET state = ? WHERE id = ?', state, id);
}

export function receiptById(store: Store, id: string): Receipt | undefined {
  const row = store.db.get('SELECT * FROM receipts WHERE id = ?', id);
  return row === undefined ? undefined : toReceipt(row);
}

/** Claimed and not settled: after a crash the host is asked what became of each. */
export function unsettledReceipts(store: Store): readonly Receipt[] {
  return store.db
    .all(`SELECT * FROM receipts WHERE state = 'claimed' ORDER BY at LIMIT 1000`)
    .map((row) => toReceipt(row));
}

/** Two sockets leave holes: messages of this long before the newest claim are read again. */
const OVERLAP_MS = 300_000;

/** The message from which catch-up reads a thread; undefined: from its beginning. */
export function catchUpCursor(store: Store, b: string): string | undefined {
  const row = store.db.get(
    `SELECT message_id FROM receipts
     WHERE b = ?1 AND message_id IS NOT NULL
       AND at <= (SELECT max(at) FROM receipts WHERE b = ?1) - ${OVERLAP_MS}
     ORDER BY at DESC LIMIT 1`,
    b,
  );
  if (row !== undefined) return text(row, 'message_id');
  const kept = store.db.get('SELECT cursor FROM bindings WHERE b = ?', b);
  return kept === undefined ? undefined : textOrNone(kept, 'cursor');
}

/**
 * Forgets receipts older than 24 h of running time, those found so at an earlier look as well.
 * Called every few minutes; answers how many were removed.
 */
export function pruneReceipts(store: Store): number {
  return store.transaction(() => {
    const now = store.runningMs();
    store.saveRunning();
    const looked = store.db.get(`SELECT value FROM meta WHERE key = 'prune_look'`);
    const previous = looked === undefined ? undefined : Number.parseInt(text(looked, 'value'), 10);
    if (previous !== undefined && now - previous < SECOND_LOOK_MS) return 0;
    store.db.run(
      `INSERT INTO meta (key, value) VALUES ('prune_look', ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
      String(now),
    );
    if (previous === undefined) return 0;
    const cutoff = Math.min(previous, now) - KEPT_MS;
    store.db.run(
      `UPDATE bindings SET cursor = coalesce((
         SELECT message_id FROM receipts
         WHERE receipts.b = bindings.b AND message_id IS NOT NULL AND running_at < ?1
         ORDER BY at DESC LIMIT 1), cursor)
       WHERE b IN (SELECT DISTINCT b FROM receipts WHERE running_at < ?1)`,
      cutoff,
    );
    return store.db.run('DELETE FROM receipts WHERE running_at < ?', cutoff).changes;
  });
}

function toReceipt(row: SqlRow): Receipt {
  return {
    id: text(row, 'id'),
    b: textOrNone(row, 'b'),
    actor: text(row, 'actor'),
    kind: text(row, 'kind'),
    messageId: textOrNone(row, 'message_id'),
    // The CHECK of the column admits nothing else.
    state: text(row, 'state') as ReceiptState,
    atWallMs: integer(row, 'at'),
  };
}
