// The one place that talks to the SQLite package: statements, transactions, and what its errors
// mean. Knows no table.

import { DatabaseSync } from '@photostructure/sqlite';
import { ChatdError, type ErrorCode, errorText } from '../base/errors.ts';

type SqlValue = string | number | null | Uint8Array;
/** A result row; each repository reads its own columns. */
export type SqlRow = Readonly<Record<string, unknown>>;

interface Statement {
  run(...values: SqlValue[]): { changes: number; lastInsertRowid: number | bigint };
  get(...values: SqlValue[]): unknown;
  all(...values: SqlValue[]): unknown[];
}

/** SQLite's primary result codes that mean something to a person. */
const MEANINGS: Readonly<Record<number, { readonly code: ErrorCode; readonly state: string }>> = {
  8: { code: 'store-unwritable', state: 'it is read-only' },
  10: { code: 'store-unwritable', state: 'the disk reports an error' },
  11: { code: 'store-corrupt', state: 'its content is damaged' },
  13: { code: 'store-unwritable', state: 'the disk is full' },
  14: { code: 'store-unwritable', state: 'it cannot be opened' },
  26: { code: 'store-corrupt', state: 'it is not a database' },
};

function resultCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined;
}

/** True when a row broke a UNIQUE, CHECK or FOREIGN KEY rule. */
export function isConstraint(error: unknown): boolean {
  const cause = error instanceof ChatdError ? error.cause : error;
  return resultCode(cause) === 19;
}

/** An SQLite error as a ChatdError; anything else unchanged. */
export function explained(error: unknown, path: string, verb: string): unknown {
  if (error instanceof ChatdError) return error;
  const code = resultCode(error);
  const meaning = code === undefined ? undefined : MEANINGS[code];
  if (meaning === undefined) {
    return code === undefined
      ? error
      : new ChatdError('store-conflict', `Cannot ${verb} store ${path}: ${errorText(error)}`, {
          cause: error,
        });
  }
  return new ChatdError(meaning.code, `Cannot ${verb} store ${path}: ${meaning.state}`, {
    cause: error,
    details: { path },
  });
}

export class Database {
  readonly path: string;
  readonly #db: InstanceType<typeof DatabaseSync>;
  readonly #statements = new Map<string, Statement>();
  readonly #readOnly: boolean;
  #depth = 0;

  /** @throws {ChatdError} store-unwritable, store-corrupt */
  constructor(path: string, options: { readonly readOnly: boolean }) {
    this.path = path;
    this.#readOnly = options.readOnly;
    try {
      this.#db = new DatabaseSync(path, {
        readOnly: options.readOnly,
        enableForeignKeyConstraints: true,
        timeout: 5_000,
      });
    } catch (error) {
      throw explained(error, path, 'open');
    }
  }

  exec(sql: string): void {
    this.#guard('use', () => this.#db.exec(sql));
  }

  run(sql: string, ...values: SqlValue[]): { changes: number; id: number } {
    return this.#guard('write', () => {
      const done = this.#statement(sql).run(...values);
      return { changes: done.changes, id: Number(done.lastInsertRowid) };
    });
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return this.#guard('read', () => this.#statement(sql).get(...values) as SqlRow | undefined);
  }

  all(sql: string, ...values: SqlValue[]): readonly SqlRow[] {
    return this.#guard('read', () => this.#statement(sql).all(...values) as SqlRow[]);
  }

  /** Runs `work` in one durable transaction; a nested call joins the outer one. */
  transaction<T>(work: () => T): T {
    if (this.#depth > 0) return work();
    this.exec('BEGIN IMMEDIATE');
    this.#depth += 1;
    try {
      const result = work();
      this.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    } finally {
      this.#depth -= 1;
    }
  }

  /**
   * Empties the write-ahead log, so that the file alone is whole. The package finalises statements
   * only when they are collected, so closing does not do it. Nothing is lost when it fails.
   */
  checkpoint(): void {
    if (!this.#db.isOpen || this.#readOnly) return;
    try {
      this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // The commits are in the log, and the next opening reads them from there.
    }
  }

  close(): void {
    this.#statements.clear();
    if (this.#db.isOpen) this.#db.close();
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement: Statement = this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #guard<T>(verb: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw explained(error, this.path, verb);
    }
  }
}

/** Reads a TEXT column. */
export function text(row: SqlRow, column: string): string {
  const value = row[column];
  if (typeof value === 'string') return value;
  throw new ChatdError('store-corrupt', `Cannot read store: column ${column} is not text`);
}

/** Reads a nullable TEXT column. */
export function textOrNone(row: SqlRow, column: string): string | undefined {
  return row[column] === null ? undefined : text(row, column);
}

/** Reads an INTEGER column. */
export function integer(row: SqlRow, column: string): number {
  const value = row[column];
  if (typeof value === 'number') return value;
  throw new ChatdError('store-corrupt', `Cannot read store: column ${column} is not an integer`);
}

/** Reads a nullable INTEGER column. */
export function integerOrNone(row: SqlRow, column: string): number | undefined {
  return row[column] === null ? undefined : integer(row, column);
}

/** Reads a JSON column. The shape is what this program wrote into its own file. */
export function json<T>(value: string, column: string): T {
  try {
    return JSON.parse(value) as T;
  } catch (error) {
    throw new ChatdError('store-corrupt', `Cannot read store: column ${column} is not JSON`, {
      cause: error,
    });
  }
}
