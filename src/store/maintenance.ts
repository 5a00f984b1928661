// What an operator does with a store: check it whole, copy it while it is in use, read it as JSON.

import { existsSync } from 'node:fs';
import { ChatdError } from '../base/errors.ts';
import type { SqlRow } from './database.ts';
import type { Store } from './store.ts';

const TABLES = [
  'meta',
  'bindings',
  'outbox',
  'notices',
  'told',
  'receipts',
  'claims',
  'sessions',
  'backoff',
  'audit',
] as const;

export interface StoreCheck {
  readonly ok: boolean;
  /** What is wrong, in SQLite's words; at most 20 lines. */
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

/** Reads every page, index and reference. */
export function checkStore(store: Store): StoreCheck {
  const problems: string[] = [];
  for (const row of store.db.all('PRAGMA integrity_check(20)')) {
    if (row['integrity_check'] !== 'ok') problems.push(String(row['integrity_check']));
  }
  for (const row of store.db.all('PRAGMA foreign_key_check').slice(0, 20)) {
    problems.push(`a row of ${String(row['table'])} refers to a row that is gone`);
  }
  const counts = Object.fromEntries(
    TABLES.map((table) => {
      const row = store.db.get(`SELECT count(*) AS n FROM ${table}`);
      return [table, Number(row?.['n'])];
    }),
  );
  return { ok: problems.length === 0, problems, counts };
}

/**
 * Copies the store, consistent at one moment, while its owner goes on.
 * @throws {ChatdError} store-unwritable when `target` exists or cannot be written
 */
export function backupStore(store: Store, target: string): void {
  if (existsSync(target)) {
    throw new ChatdError('store-unwritable', `Cannot write backup ${target}: it exists`, {
      details: { path: target },
    });
  }
  store.db.run('VACUUM INTO ?', target);
}

/** Every row of every table, one at a time. */
export function* exportStore(
  store: Store,
): Generator<{ readonly table: string; readonly row: SqlRow }> {
  for (const table of TABLES) {
    for (const row of store.db.all(`SELECT * FROM ${table}`)) yield { table, row: { ...row } };
  }
}
