// Sessions this daemon asked the host to start. The token is durable before the request leaves, so
// that a daemon that dies between asking and hearing finds its session again instead of starting two.

import { integer, json, type SqlRow, text, textOrNone } from './database.ts';
import type { Store } from './store.ts';

export interface StartedSession {
  readonly token: string;
  readonly state: 'requested' | 'created' | 'failed';
  readonly sessionId: string | undefined;
  readonly incarnation: string | undefined;
  readonly actor: string;
  readonly profile: string | undefined;
  /** Where it was asked for: JSON of the bridge. */
  readonly place: unknown;
  /** What was asked for: JSON of the bridge, without secrets. */
  readonly request: unknown;
  readonly atWallMs: number;
}

/** Answered requests kept, newest first. */
const SESSIONS_KEPT = 5_000;

export function requestSession(
  store: Store,
  session: Pick<StartedSession, 'token' | 'actor' | 'profile' | 'place' | 'request'>,
): void {
  store.transaction(() => {
    store.db.run(
      `DELETE FROM sessions WHERE state <> 'requested' AND at < coalesce(
         (SELECT at FROM sessions ORDER BY at DESC LIMIT 1 OFFSET ${SESSIONS_KEPT}), 0)`,
    );
    store.db.run(
      `INSERT INTO sessions (token, state, actor, profile, place, request, at)
       VALUES (?, 'requested', ?, ?, ?, ?, ?)`,
      session.token,
      session.actor,
      session.profile ?? null,
      JSON.stringify(session.place),
      JSON.stringify(session.request),
      store.wallMs(),
    );
  });
}

export function sessionCreated(
  store: Store,
  token: string,
  sessionId: string,
  incarnation: string,
): void {
  store.db.run(
    `UPDATE sessions SET state = 'created', session_id = ?, incarnation = ? WHERE token = ?`,
    sessionId,
    incarnation,
    token,
  );
}

export function sessionFailed(store: Store, token: string): void {
  store.db.run(`UPDATE sessions SET state = 'failed' WHERE token = ?`, token);
}

/** Requests whose answer this daemon never heard. */
export function requestedSessions(store: Store): readonly StartedSession[] {
  return store.db
    .all(`SELECT * FROM sessions WHERE state = 'requested' ORDER BY at LIMIT 1000`)
    .map((row) => toSession(row));
}

export function startedSession(store: Store, sessionId: string): StartedSession | undefined {
  const row = store.db.get('SELECT * FROM sessions WHERE session_id = ?', sessionId);
  return row === undefined ? undefined : toSession(row);
}

function toSession(row: SqlRow): StartedSession {
  return {
    token: text(row, 'token'),
    // The CHECK of the column admits nothing else.
    state: text(row, 'state') as StartedSession['state'],
    sessionId: textOrNone(row, 'session_id'),
    incarnation: textOrNone(row, 'incarnation'),
    actor: text(row, 'actor'),
    profile: textOrNone(row, 'profile'),
    place: json(text(row, 'place'), 'place'),
    request: json(text(row, 'request'), 'request'),
    atWallMs: integer(row, 'at'),
  };
}
