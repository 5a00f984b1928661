// Opens store.db: creates it whole or not at all, proves it is ours, complete and of a version we
// know, brings it up to date. A store that is lost or damaged is named, never silently replaced.

import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { ChatdError, errnoCode } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import { Database, explained, integer, type SqlRow, text } from './database.ts';
import { APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION } from './schema.ts';

export interface StoreOptions {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * What state.json remembers of this store (`marker`); undefined when it remembers none. A missing
   * or empty file is a new store only then.
   */
  readonly known?: StoreMarker | undefined;
}

/** Kept in state.json, so that a lost or restored store is told from a new one. */
export interface StoreMarker {
  readonly storeId: string;
  /** Counts the openings for writing; smaller than remembered means an older copy was put back. */
  readonly openings: number;
}

/** An open store. The repositories beside this file take it as their first argument. */
export class Store {
  readonly db: Database;
  readonly marker: StoreMarker;
  /** True when the file is an older copy than state.json remembers: names must be minted anew. */
  readonly restored: boolean;
  readonly #clock: Clock;
  readonly #runningBaseMs: number;
  readonly #openedAtMs: number;

  constructor(db: Database, marker: StoreMarker, restored: boolean, clock: Clock) {
    this.db = db;
    this.marker = marker;
    this.restored = restored;
    this.#clock = clock;
    this.#openedAtMs = clock.monotonicMs();
    this.#runningBaseMs = integer(
      db.get(`SELECT max(
        coalesce((SELECT max(running_at) FROM receipts), 0),
        coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'running_ms'), 0)) AS ms`) ??
        {},
      'ms',
    );
  }

  wallMs(): number {
    return Math.round(this.#clock.wallMs());
  }

  /**
   * Milliseconds this store has been open in all its life, by a clock that stops while the machine
   * is suspended. Retention counts these: a machine that slept for a week forgets nothing.
   */
  runningMs(): number {
    return Math.round(this.#runningBaseMs + this.#clock.monotonicMs() - this.#openedAtMs);
  }

  /** Writes the running time down; called by what prunes. */
  saveRunning(): void {
    setMeta(this.db, 'running_ms', String(this.runningMs()));
  }

  transaction<T>(work: () => T): T {
    return this.db.transaction(work);
  }

  close(): void {
    this.db.checkpoint();
    this.db.close();
  }
}

/**
 * Opens the store for its one owner.
 * @throws {ChatdError} store-missing, store-corrupt, store-version-unknown, store-unwritable
 */
export function openStore(path: string, options: StoreOptions): Store {
  if (isAbsent(path)) {
    if (options.known !== undefined) {
      throw new ChatdError('store-missing', `Cannot open store ${path}: it is gone`, {
        details: { path },
      });
    }
    createStore(path, options);
  }
  const db = new Database(path, { readOnly: false });
  try {
    const version = prove(db);
    configure(db);
    migrate(db, version);
    const marker = countOpening(db);
    return new Store(db, marker, isRestored(path, marker, options.known), options.clock);
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Opens the store to read it while its owner may be writing.
 * @throws {ChatdError} store-missing, store-corrupt, store-version-unknown, store-unwritable
 */
export function openStoreForReading(path: string, clock: Clock): Store {
  if (isAbsent(path)) {
    throw new ChatdError('store-missing', `Cannot open store ${path}: there is none`, {
      details: { path },
    });
  }
  const db = new Database(path, { readOnly: true });
  try {
    const version = prove(db);
    if (version !== SCHEMA_VERSION) throw unknownVersion(path, version);
    return new Store(db, readMarker(db), false, clock);
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A store in memory, for tests and simulations. */
export function openMemoryStore(options: StoreOptions): Store {
  const db = new Database(':memory:', { readOnly: false });
  initialise(db, options);
  return new Store(db, countOpening(db), false, options.clock);
}

/** A zero-length file is what a lost store leaves behind: SQLite would open it as an empty one. */
function isAbsent(path: string): boolean {
  try {
    return statSync(path).size === 0;
  } catch (error) {
    if (errnoCode(error) === 'ENOENT') return true;
    throw new ChatdError('store-unwritable', `Cannot open store ${path}: ${errnoCode(error)}`, {
      cause: error,
      details: { path },
    });
  }
}

/** Built under another name and renamed: at `path` there is never half a store. */
function createStore(path: string, options: StoreOptions): void {
  const temporary = `${path}.${mintId(options.random, 10)}.new`;
  try {
    const db = new Database(temporary, { readOnly: false });
    try {
      db.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL');
      initialise(db, options);
    } finally {
      db.close();
    }
    renameSync(temporary, path);
    syncDirectory(dirname(path));
  } catch (error) {
    rmSync(temporary, { force: true });
    const known = explained(error, path, 'create');
    if (known instanceof ChatdError) throw known;
    throw new ChatdError('store-unwritable', `Cannot create store ${path}: ${errnoCode(error)}`, {
      cause: error,
      details: { path },
    });
  }
}

function syncDirectory(directory: string): void {
  const fd = openSync(directory, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function initialise(db: Database, options: StoreOptions): void {
  db.transaction(() => {
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    for (const migration of MIGRATIONS) db.exec(migration);
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    setMeta(db, 'store_id', mintId(options.random, 20));
    setMeta(db, 'openings', '0');
    setMeta(db, 'created_at', String(Math.round(options.clock.wallMs())));
  });
}

/** Proves that the file is ours and whole; answers its version. */
function prove(db: Database): number {
  const id = integer(db.get('PRAGMA application_id') ?? {}, 'application_id');
  if (id !== APPLICATION_ID) {
    throw new ChatdError(
      'store-corrupt',
      `Cannot open store ${db.path}: it belongs to another program`,
      { details: { path: db.path } },
    );
  }
  const version = integer(db.get('PRAGMA user_version') ?? {}, 'user_version');
  if (version < 1 || version > SCHEMA_VERSION) throw unknownVersion(db.path, version);
  const check = db.get('PRAGMA quick_check(1)') ?? {};
  if (check['quick_check'] !== 'ok') {
    throw new ChatdError('store-corrupt', `Cannot open store ${db.path}: its content is damaged`, {
      details: { path: db.path },
    });
  }
  return version;
}

function unknownVersion(path: string, version: number): ChatdError {
  return new ChatdError(
    'store-version-unknown',
    `Cannot open store ${path}: it has version ${version}, this chatd knows 1 to ${SCHEMA_VERSION}`,
    { details: { path, version } },
  );
}

function configure(db: Database): void {
  // The package's default in WAL mode is NORMAL, which may lose the last commits in a power cut.
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON');
  const mode = db.get('PRAGMA journal_mode')?.['journal_mode'];
  if (mode !== 'wal') {
    throw new ChatdError(
      'store-unwritable',
      `Cannot open store ${db.path}: its file system has no shared memory for a write-ahead log`,
      { details: { path: db.path } },
    );
  }
}

function migrate(db: Database, from: number): void {
  for (let version = from; version < SCHEMA_VERSION; version += 1) {
    db.transaction(() => {
      db.exec(MIGRATIONS[version] ?? '');
      db.exec(`PRAGMA user_version = ${version + 1}`);
    });
  }
}

function countOpening(db: Database): StoreMarker {
  return db.transaction(() => {
    const { storeId, openings } = readMarker(db);
    setMeta(db, 'openings', String(openings + 1));
    return { storeId, openings: openings + 1 };
  });
}

function readMarker(db: Database): StoreMarker {
  return {
    storeId: requireMeta(db, 'store_id'),
    openings: Number.parseInt(requireMeta(db, 'openings'), 10),
  };
}

function isRestored(path: string, marker: StoreMarker, known: StoreMarker | undefined): boolean {
  if (known === undefined) return false;
  if (known.storeId !== marker.storeId) {
    throw new ChatdError(
      'store-missing',
      `Cannot open store ${path}: another store is in its place`,
      { details: { path } },
    );
  }
  return marker.openings <= known.openings;
}

function requireMeta(db: Database, key: string): string {
  const row: SqlRow | undefined = db.get('SELECT value FROM meta WHERE key = ?', key);
  if (row === undefined) {
    throw new ChatdError('store-corrupt', `Cannot open store ${db.path}: no ${key} in it`, {
      details: { path: db.path },
    });
  }
  return text(row, 'value');
}

function setMeta(db: Database, key: string, value: string): void {
  db.run(
    'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    key,
    value,
  );
}
