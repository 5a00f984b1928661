// The durable rows of what a thread shows, and the notices waiting for their place. No output text
// is stored: a row says which lines, the text is rendered from the transcript when a call is made.

import { takeSequence } from './bindings.ts';
import { integer, integerOrNone, json, type SqlRow, text, textOrNone } from './database.ts';
import type { Store } from './store.ts';

export type RowKind = 'root' | 'text' | 'flood' | 'gap' | 'screen' | 'notice' | 'file';
/** `sealed` rows are never touched again; `gone`: the message no longer exists. */
export type RowState = 'intent' | 'posted' | 'sealed' | 'gone';

/** A place in the transcript: column 0 of a line, or inside a line too long for one message. */
export interface Position {
  readonly line: number;
  readonly col: number;
}

/** Names a rendering of a row. */
export interface Version {
  readonly hash: string;
  /** Offset of the transcript it was rendered at. */
  readonly offset: number;
}

export interface OutboxRow {
  readonly b: string;
  readonly s: number;
  readonly kind: RowKind;
  readonly state: RowState;
  readonly start: Position;
  /** Undefined while the row is open. */
  readonly end: Position | undefined;
  /** Flood: lines from `start` to this one are omitted and attached. */
  readonly omitTo: number | undefined;
  /** Screen: the mark that holds the last frame, once the program has left. */
  readonly frameMark: number | undefined;
  /** Notice and file: our own words, JSON. Never text of a program. */
  readonly body: unknown;
  readonly nonce: string;
  /** Newest message of ours in the thread before the first try. */
  readonly anchor: string | undefined;
  readonly sentAtMs: number;
  readonly firstSentAtMs: number;
  readonly messageId: string | undefined;
  /** What the platform has acknowledged; undefined when its content is not known. */
  readonly shown: Version | undefined;
  readonly pending: (Version & { readonly sentAtMs: number }) | undefined;
  /** An edit in doubt may land until then; what is shown counts only if sent later. */
  readonly doubtUntilMs: number | undefined;
  readonly fileId: string | undefined;
}

export type NewRow = Pick<
  OutboxRow,
  'kind' | 'start' | 'end' | 'omitTo' | 'frameMark' | 'body' | 'anchor' | 'sentAtMs'
>;

/** Queued, not yet sent: no sequence, no nonce. */
export interface QueuedNotice {
  readonly id: number;
  readonly b: string;
  /** Its place: after the lines before this one. */
  readonly line: number;
  readonly kind: 'notice' | 'file';
  readonly lane: string;
  readonly body: unknown;
  readonly queuedAtMs: number;
}

/** Chosen against a program that rings the bell for an hour: B7. */
export const NOTICES_MAX = 64;

/** TX1: the intent to post is durable before the request leaves. */
export function insertIntent(store: Store, b: string, row: NewRow): OutboxRow {
  return store.transaction(() => {
    const s = takeSequence(store, b);
    const full: OutboxRow = {
      ...row,
      b,
      s,
      state: 'intent',
      nonce: nonceOf(b, s),
      firstSentAtMs: row.sentAtMs,
      messageId: undefined,
      shown: undefined,
      pending: undefined,
      doubtUntilMs: undefined,
      fileId: undefined,
    };
    saveRow(store, full);
    return full;
  });
}

/** At most 25 characters, Discord's limit: b has 12, s in base 36 at most 11. */
function nonceOf(b: string, s: number): string {
  return `${b}.${s.toString(36)}`;
}

/**
 * A restored copy of the store must not answer for messages posted after it was made: every name
 * is minted anew, rows follow, and nothing on the platform carries the new names.
 */
export function remintNames(store: Store, mint: () => string): number {
  return store.transaction(() => {
    const bindings = store.db.all('SELECT b FROM bindings').map((row) => text(row, 'b'));
    for (const old of bindings) {
      const b = mint();
      store.db.run('UPDATE bindings SET b = ? WHERE b = ?', b, old);
      store.db.run('UPDATE receipts SET b = ? WHERE b = ?', b, old);
      for (const row of store.db.all('SELECT s FROM outbox WHERE b = ?', b)) {
        const s = integer(row, 's');
        store.db.run('UPDATE outbox SET nonce = ? WHERE b = ? AND s = ?', nonceOf(b, s), b, s);
      }
    }
    return bindings.length;
  });
}

/** Writes a row as it is in memory. */
export function saveRow(store: Store, row: OutboxRow): void {
  store.db.run(
    SAVE,
    row.b,
    row.s,
    row.kind,
    row.state,
    row.start.line,
    row.start.col,
    row.end?.line ?? null,
    row.end?.col ?? null,
    row.omitTo ?? null,
    row.frameMark ?? null,
    row.body === undefined ? null : JSON.stringify(row.body),
    row.nonce,
    row.anchor ?? null,
    row.sentAtMs,
    row.firstSentAtMs,
    row.messageId ?? null,
    row.shown?.hash ?? null,
    row.shown?.offset ?? null,
    row.pending?.hash ?? null,
    row.pending?.offset ?? null,
    row.pending?.sentAtMs ?? null,
    row.doubtUntilMs ?? null,
    row.fileId ?? null,
  );
}

const COLUMNS = `b, s, kind, state, start_line, start_col, end_line, end_col, omit_to, frame_mark,
  body, nonce, anchor, sent_at, first_sent_at, message_id, shown_hash, shown_offset, pending_hash,
  pending_offset, pending_at, doubt_until, file_id`;
const SAVE = `INSERT OR REPLACE INTO outbox (${COLUMNS})
  VALUES (${Array.from({ length: 23 }, () => '?').join(', ')})`;

/** Rows that still need work, in order. */
export function openRows(store: Store, b: string): readonly OutboxRow[] {
  return store.db
    .all(
      `SELECT ${COLUMNS} FROM outbox WHERE b = ? AND state IN ('intent', 'posted') ORDER BY s`,
      b,
    )
    .map((row) => toRow(row));
}

export function rowByName(store: Store, b: string, s: number): OutboxRow | undefined {
  const row = store.db.get(`SELECT ${COLUMNS} FROM outbox WHERE b = ? AND s = ?`, b, s);
  return row === undefined ? undefined : toRow(row);
}

/** The newest row that covers lines: where the next chunk starts. */
export function newestCoveringRow(store: Store, b: string): OutboxRow | undefined {
  const row = store.db.get(
    `SELECT ${COLUMNS} FROM outbox WHERE b = ? AND kind IN ('text', 'flood', 'gap')
     ORDER BY s DESC LIMIT 1`,
    b,
  );
  return row === undefined ? undefined : toRow(row);
}

/** Message of the newest row that has one. */
export function newestMessageId(store: Store, b: string): string | undefined {
  const row = store.db.get(
    `SELECT message_id FROM outbox WHERE b = ? AND message_id IS NOT NULL ORDER BY s DESC LIMIT 1`,
    b,
  );
  return row === undefined ? undefined : text(row, 'message_id');
}

/** Which of a thread's newest rows has which message, for LOOK and HEAL. */
export function knownMessageIds(store: Store, b: string): ReadonlySet<string> {
  const rows = store.db.all(
    'SELECT message_id FROM outbox WHERE b = ? AND message_id IS NOT NULL ORDER BY s DESC LIMIT 200',
    b,
  );
  return new Set(rows.map((row) => text(row, 'message_id')));
}

export function rowOfMessage(store: Store, b: string, messageId: string): OutboxRow | undefined {
  const row = store.db.get(
    `SELECT ${COLUMNS} FROM outbox WHERE message_id = ? AND b = ?`,
    messageId,
    b,
  );
  return row === undefined ? undefined : toRow(row);
}

/** A root post of another binding whose fate is open: root posts are single-flight per channel. */
export function rootInFlight(store: Store, channel: string, exceptB: string): boolean {
  return (
    store.db.get(
      `SELECT 1 AS one FROM outbox JOIN bindings USING (b)
       WHERE outbox.kind = 'root' AND outbox.state = 'intent'
         AND bindings.channel = ? AND bindings.b <> ? AND bindings.state = 'opening' LIMIT 1`,
      channel,
      exceptB,
    ) !== undefined
  );
}

/** Sealed rows kept per binding: enough to recognise a late duplicate. */
const SEALED_KEPT = 200;

/** Forgets sealed and gone rows beyond the newest ones, never the newest that covers lines. */
export function pruneRows(store: Store, b: string): number {
  return store.db.run(
    `DELETE FROM outbox WHERE b = ?1 AND state IN ('sealed', 'gone') AND kind <> 'root'
       AND s < (SELECT next_seq FROM bindings WHERE b = ?1) - ${SEALED_KEPT}
       AND s < coalesce((SELECT max(s) FROM outbox
                         WHERE b = ?1 AND kind IN ('text', 'flood', 'gap')), 0)`,
    b,
  ).changes;
}

export type QueueOutcome = 'queued' | 'told-before' | 'full';

/**
 * Queues a notice; with `once` at most one of that key in the life of the binding. `must`: part of
 * the transcript, which the bound does not hold back.
 */
export function queueNotice(
  store: Store,
  notice: Omit<QueuedNotice, 'id'>,
  once: string | undefined,
  must = false,
): QueueOutcome {
  return store.transaction(() => {
    const waiting = store.db.get('SELECT count(*) AS n FROM notices WHERE b = ?', notice.b);
    if (!must && integer(waiting ?? {}, 'n') >= NOTICES_MAX) return 'full';
    if (once !== undefined) {
      const { changes } = store.db.run(
        'INSERT INTO told (b, key, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
        notice.b,
        once,
        notice.queuedAtMs,
      );
      if (changes === 0) return 'told-before';
    }
    // Never before one that was queued earlier: the screen may have shrunk since.
    store.db.run(
      `INSERT INTO notices (b, line, kind, lane, body, queued_at)
       VALUES (?1, max(?2, coalesce((SELECT max(line) FROM notices WHERE b = ?1), 0)), ?3, ?4, ?5, ?6)`,
      notice.b,
      notice.line,
      notice.kind,
      notice.lane,
      JSON.stringify(notice.body),
      notice.queuedAtMs,
    );
    return 'queued';
  });
}

export function queuedNotices(store: Store, b: string): readonly QueuedNotice[] {
  return store.db
    .all(`SELECT * FROM notices WHERE b = ? ORDER BY line, kind = 'notice', id`, b)
    .map((row) => ({
      id: integer(row, 'id'),
      b: text(row, 'b'),
      line: integer(row, 'line'),
      // The CHECK of the column admits nothing else.
      kind: text(row, 'kind') as QueuedNotice['kind'],
      lane: text(row, 'lane'),
      body: json(text(row, 'body'), 'body'),
      queuedAtMs: integer(row, 'queued_at'),
    }));
}

export function reviseNotice(store: Store, id: number, body: unknown): void {
  store.db.run('UPDATE notices SET body = ? WHERE id = ?', JSON.stringify(body), id);
}

export function dropNotice(store: Store, id: number): void {
  store.db.run('DELETE FROM notices WHERE id = ?', id);
}

function toRow(row: SqlRow): OutboxRow {
  const endLine = integerOrNone(row, 'end_line');
  const shownHash = textOrNone(row, 'shown_hash');
  const pendingHash = textOrNone(row, 'pending_hash');
  const body = textOrNone(row, 'body');
  return {
    b: text(row, 'b'),
    s: integer(row, 's'),
    // The CHECKs of the columns admit nothing else.
    kind: text(row, 'kind') as RowKind,
    state: text(row, 'state') as RowState,
    start: { line: integer(row, 'start_line'), col: integer(row, 'start_col') },
    end: endLine === undefined ? undefined : { line: endLine, col: integer(row, 'end_col') },
    omitTo: integerOrNone(row, 'omit_to'),
    frameMark: integerOrNone(row, 'frame_mark'),
    body: body === undefined ? undefined : json(body, 'body'),
    nonce: text(row, 'nonce'),
    anchor: textOrNone(row, 'anchor'),
    sentAtMs: integer(row, 'sent_at'),
    firstSentAtMs: integer(row, 'first_sent_at'),
    messageId: textOrNone(row, 'message_id'),
    shown:
      shownHash === undefined
        ? undefined
        : { hash: shownHash, offset: integer(row, 'shown_offset') },
    pending:
      pendingHash === undefined
        ? undefined
        : {
            hash: pendingHash,
            offset: integer(row, 'pending_offset'),
            sentAtMs: integer(row, 'pending_at'),
          },
    doubtUntilMs: integerOrNone(row, 'doubt_until'),
    fileId: textOrNone(row, 'file_id'),
  };
}
