// The audit: who did what to which session, and what came of it. Bounded by count; never the bytes
// of a secret, never output of a program.

import { integer, json, type SqlRow, text, textOrNone } from './database.ts';
import type { Store } from './store.ts';

export interface AuditEntry {
  /** `slack:U0123`, `discord:4`, `operator`. */
  readonly actor: string;
  readonly action: string;
  readonly sessionId?: string | undefined;
  readonly incarnation?: string | undefined;
  readonly messageId?: string | undefined;
  readonly outcome: string;
  readonly detail?: Readonly<Record<string, string | number | boolean>> | undefined;
}

export interface AuditRecord extends AuditEntry {
  readonly id: number;
  readonly atWallMs: number;
}

/** About 50 MB. */
const AUDIT_MAX = 200_000;

export function audit(store: Store, entry: AuditEntry): void {
  const { id } = store.db.run(
    `INSERT INTO audit (at, actor, action, session_id, incarnation, message_id, outcome, detail)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    store.wallMs(),
    entry.actor,
    entry.action,
    entry.sessionId ?? null,
    entry.incarnation ?? null,
    entry.messageId ?? null,
    entry.outcome,
    entry.detail === undefined ? null : JSON.stringify(entry.detail),
  );
  // Ids grow by one: every thousandth entry pays for the bound.
  if (id % 1_000 === 0) store.db.run('DELETE FROM audit WHERE id <= ?', id - AUDIT_MAX);
}

/** Newest first. */
export function readAudit(
  store: Store,
  filter: { readonly sessionId?: string; readonly max: number },
): readonly AuditRecord[] {
  const rows =
    filter.sessionId === undefined
      ? store.db.all('SELECT * FROM audit ORDER BY id DESC LIMIT ?', filter.max)
      : store.db.all(
          'SELECT * FROM audit WHERE session_id = ? ORDER BY id DESC LIMIT ?',
          filter.sessionId,
          filter.max,
        );
  return rows.map((row) => toRecord(row));
}

function toRecord(row: SqlRow): AuditRecord {
  const detail = textOrNone(row, 'detail');
  return {
    id: integer(row, 'id'),
    atWallMs: integer(row, 'at'),
    actor: text(row, 'actor'),
    action: text(row, 'action'),
    sessionId: textOrNone(row, 'session_id'),
    incarnation: textOrNone(row, 'incarnation'),
    messageId: textOrNone(row, 'message_id'),
    outcome: text(row, 'outcome'),
    detail: detail === undefined ? undefined : json(detail, 'detail'),
  };
}
