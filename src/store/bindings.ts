// Bindings: the durable pair session - thread root. Each change names the version it read; at most
// one binding is open or opening per session and per root, whatever interleaves.

import { ChatdError } from '../base/errors.ts';
import {
  integer,
  integerOrNone,
  isConstraint,
  json,
  type SqlRow,
  text,
  textOrNone,
} from './database.ts';
import type { Store } from './store.ts';

export type BindingState = 'opening' | 'active' | 'superseded' | 'ended';

export interface Binding {
  /** Minted at random; names our messages on the platform. */
  readonly b: string;
  readonly sessionId: string;
  readonly incarnation: string;
  readonly state: BindingState;
  readonly version: number;
  readonly space: string;
  readonly channel: string;
  /** Undefined only while opening. */
  readonly root: string | undefined;
  /** The command that made it, so that a replay commits nothing. */
  readonly requestId: string | undefined;
  /** Lines before it are not this thread's to show. */
  readonly firstLine: number;
  /** Mark up to which the outbox has acted. */
  readonly nextMark: number;
  /** Newest message id of a person that retention has removed; catch-up goes on from there. */
  readonly cursor: string | undefined;
  /** What people set for this thread; owned by the bridge. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly endProof: string | undefined;
  readonly park: Park | undefined;
  readonly createdAtWallMs: number;
  readonly changedAtWallMs: number;
}

/** A thread that keeps failing waits alone. */
export interface Park {
  readonly untilWallMs: number;
  readonly count: number;
  readonly reason: string;
}

export interface NewBinding {
  readonly b: string;
  readonly sessionId: string;
  readonly incarnation: string;
  readonly space: string;
  readonly channel: string;
  /** Undefined: the root is still to be posted. */
  readonly root: string | undefined;
  readonly requestId?: string | undefined;
  readonly firstLine: number;
  readonly nextMark: number;
  readonly settings: Readonly<Record<string, unknown>>;
}

export type BindOutcome =
  | { readonly kind: 'bound'; readonly binding: Binding }
  /** Exactly this is already so, or this request has been executed before. */
  | { readonly kind: 'already'; readonly binding: Binding }
  | { readonly kind: 'session-taken'; readonly holder: Binding }
  | { readonly kind: 'root-taken'; readonly holder: Binding };

/** Binds, or says who holds what. One transaction; joins the caller's. */
export function bind(store: Store, wanted: NewBinding): BindOutcome {
  return store.transaction(() => {
    const obstacle = obstacleTo(store, wanted);
    if (obstacle !== undefined) return obstacle;
    const now = store.wallMs();
    store.db.run(
      `INSERT INTO bindings (b, session_id, incarnation, state, version, space, channel, root,
         request_id, first_line, next_seq, next_mark, settings, created_at, changed_at)
       VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`,
      wanted.b,
      wanted.sessionId,
      wanted.incarnation,
      wanted.root === undefined ? 'opening' : 'active',
      wanted.space,
      wanted.channel,
      wanted.root ?? null,
      wanted.requestId ?? null,
      wanted.firstLine,
      wanted.nextMark,
      JSON.stringify(wanted.settings),
      now,
      now,
    );
    return { kind: 'bound', binding: requireBinding(store, wanted.b) };
  });
}

function obstacleTo(store: Store, wanted: NewBinding): BindOutcome | undefined {
  if (wanted.requestId !== undefined) {
    const row = store.db.get('SELECT * FROM bindings WHERE request_id = ?', wanted.requestId);
    if (row !== undefined) return { kind: 'already', binding: toBinding(row) };
  }
  const bySession = openBindingOfSession(store, wanted.sessionId);
  if (bySession !== undefined) {
    const same =
      bySession.incarnation === wanted.incarnation &&
      bySession.space === wanted.space &&
      bySession.channel === wanted.channel &&
      bySession.root === wanted.root &&
      wanted.root !== undefined;
    return same
      ? { kind: 'already', binding: bySession }
      : { kind: 'session-taken', holder: bySession };
  }
  if (wanted.root === undefined) return undefined;
  const byRoot = openBindingOfRoot(store, wanted.space, wanted.channel, wanted.root);
  return byRoot === undefined ? undefined : { kind: 'root-taken', holder: byRoot };
}

/**
 * The root is posted: opening → active.
 * @throws {ChatdError} store-conflict when the version is not the one read, or the root is taken
 */
export function activateBinding(
  store: Store,
  binding: Pick<Binding, 'b' | 'version'>,
  place: { readonly space: string; readonly channel: string; readonly root: string },
): Binding {
  return change(
    store,
    binding,
    `state = 'active', space = ?, channel = ?, root = ?`,
    [place.space, place.channel, place.root],
    `state = 'opening'`,
  );
}

/** The session's end is proven: frees the root. `proof` says by what. */
export function endBinding(
  store: Store,
  binding: Pick<Binding, 'b' | 'version'>,
  proof: string,
): Binding {
  return change(store, binding, `state = 'ended', end_proof = ?`, [proof], OPEN);
}

/** An operator moved or unbound it. */
export function supersedeBinding(store: Store, binding: Pick<Binding, 'b' | 'version'>): Binding {
  return change(store, binding, `state = 'superseded'`, [], OPEN);
}

export function changeSettings(
  store: Store,
  binding: Pick<Binding, 'b' | 'version'>,
  settings: Readonly<Record<string, unknown>>,
): Binding {
  return change(store, binding, 'settings = ?', [JSON.stringify(settings)], '1 = 1');
}

/** The platform gave a channel another id: all its bindings follow in one transaction. */
export function renameChannel(store: Store, from: string, to: string): number {
  return store.transaction(
    () =>
      store.db.run(
        'UPDATE bindings SET channel = ?, version = version + 1, changed_at = ? WHERE channel = ?',
        to,
        store.wallMs(),
        from,
      ).changes,
  );
}

/** Progress of the outbox, not a change of the binding: the version stays. */
export function parkBinding(store: Store, b: string, park: Park | undefined): void {
  store.db.run(
    'UPDATE bindings SET park_until = ?, park_count = ?, park_reason = ? WHERE b = ?',
    park?.untilWallMs ?? null,
    park?.count ?? 0,
    park?.reason ?? null,
    b,
  );
}

/** Takes the next sequence number of a binding. */
export function takeSequence(store: Store, b: string): number {
  const row = store.db.get(
    'UPDATE bindings SET next_seq = next_seq + 1 WHERE b = ? RETURNING next_seq - 1 AS s',
    b,
  );
  if (row === undefined) throw gone(b);
  return integer(row, 's');
}

export function saveNextMark(store: Store, b: string, nextMark: number): void {
  store.db.run('UPDATE bindings SET next_mark = ? WHERE b = ?', nextMark, b);
}

export function bindingByName(store: Store, b: string): Binding | undefined {
  const row = store.db.get('SELECT * FROM bindings WHERE b = ?', b);
  return row === undefined ? undefined : toBinding(row);
}

export function openBindingOfSession(store: Store, sessionId: string): Binding | undefined {
  const row = store.db.get(`SELECT * FROM bindings WHERE session_id = ? AND ${OPEN}`, sessionId);
  return row === undefined ? undefined : toBinding(row);
}

export function openBindingOfRoot(
  store: Store,
  space: string,
  channel: string,
  root: string,
): Binding | undefined {
  const row = store.db.get(
    `SELECT * FROM bindings WHERE space = ? AND channel = ? AND root = ? AND ${OPEN}`,
    space,
    channel,
    root,
  );
  return row === undefined ? undefined : toBinding(row);
}

/** The newest binding a root ever had: a message in an ended thread is still answered. */
export function newestBindingOfRoot(
  store: Store,
  channel: string,
  root: string,
): Binding | undefined {
  const row = store.db.get(
    'SELECT * FROM bindings WHERE channel = ? AND root = ? ORDER BY created_at DESC LIMIT 1',
    channel,
    root,
  );
  return row === undefined ? undefined : toBinding(row);
}

/** Opening and active ones, oldest first. */
export function openBindings(store: Store): readonly Binding[] {
  return store.db
    .all(`SELECT * FROM bindings WHERE ${OPEN} ORDER BY created_at, b`)
    .map((row) => toBinding(row));
}

const OPEN = `state IN ('opening', 'active')`;

function change(
  store: Store,
  binding: Pick<Binding, 'b' | 'version'>,
  assignments: string,
  values: readonly string[],
  condition: string,
): Binding {
  return store.transaction(() => {
    const { changes } = guardUnique(binding.b, () =>
      store.db.run(
        `UPDATE bindings SET ${assignments}, version = version + 1, changed_at = ?
         WHERE b = ? AND version = ? AND ${condition}`,
        ...values,
        store.wallMs(),
        binding.b,
        binding.version,
      ),
    );
    if (changes !== 1) {
      throw new ChatdError(
        'store-conflict',
        `Cannot change binding ${binding.b}: it is no longer at version ${binding.version}`,
        { details: { b: binding.b, version: binding.version } },
      );
    }
    return requireBinding(store, binding.b);
  });
}

function guardUnique<T>(b: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!isConstraint(error)) throw error;
    throw new ChatdError('store-conflict', `Cannot change binding ${b}: its root is taken`, {
      cause: error,
      details: { b },
    });
  }
}

function requireBinding(store: Store, b: string): Binding {
  const binding = bindingByName(store, b);
  if (binding === undefined) throw gone(b);
  return binding;
}

function gone(b: string): ChatdError {
  return new ChatdError('store-conflict', `Cannot find binding ${b}: it is gone`, {
    details: { b },
  });
}

function toBinding(row: SqlRow): Binding {
  const parkUntil = integerOrNone(row, 'park_until');
  return {
    b: text(row, 'b'),
    sessionId: text(row, 'session_id'),
    incarnation: text(row, 'incarnation'),
    // The CHECK of the column admits nothing else.
    state: text(row, 'state') as BindingState,
    version: integer(row, 'version'),
    space: text(row, 'space'),
    channel: text(row, 'channel'),
    root: textOrNone(row, 'root'),
    requestId: textOrNone(row, 'request_id'),
    firstLine: integer(row, 'first_line'),
    nextMark: integer(row, 'next_mark'),
    cursor: textOrNone(row, 'cursor'),
    settings: json(text(row, 'settings'), 'settings'),
    endProof: textOrNone(row, 'end_proof'),
    park:
      parkUntil === undefined
        ? undefined
        : {
            untilWallMs: parkUntil,
            count: integer(row, 'park_count'),
            reason: textOrNone(row, 'park_reason') ?? '',
          },
    createdAtWallMs: integer(row, 'created_at'),
    changedAtWallMs: integer(row, 'changed_at'),
  };
}
