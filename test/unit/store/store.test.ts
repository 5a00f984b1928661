import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { errorCode } from '../../../src/base/errors.ts';
import { seededRandom } from '../../../src/base/random.ts';
import { audit, readAudit } from '../../../src/store/audit.ts';
import { bind } from '../../../src/store/bindings.ts';
import { Database } from '../../../src/store/database.ts';
import { backupStore, checkStore, exportStore } from '../../../src/store/maintenance.ts';
import {
  openStore,
  openStoreForReading,
  type Store,
  type StoreMarker,
} from '../../../src/store/store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

const clock = new FakeClock();
const random = seededRandom(1);
let directory: ReturnType<typeof tempDir>;
let path: string;
const open: Store[] = [];

beforeEach(() => {
  directory = tempDir();
  path = join(directory.path, 'store.db');
});
afterEach(() => {
  for (const store of open.splice(0)) store.close();
  directory.remove();
});

function opened(known?: StoreMarker): Store {
  const store = openStore(path, { clock, random, known });
  open.push(store);
  return store;
}

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
  } catch (error) {
    return errorCode(error);
  }
  return 'nothing was thrown';
}

function withContent(count: number): StoreMarker {
  const store = opened();
  for (let i = 0; i < count; i += 1) {
    audit(store, { actor: 'operator', action: 'run', outcome: 'x'.repeat(200) });
  }
  store.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  store.close();
  return store.marker;
}

test('a new store is created whole, private to its name, and remembered by its marker', () => {
  const first = opened();
  first.close();
  const again = opened(first.marker);
  expect(again.marker.storeId).toBe(first.marker.storeId);
  expect(again.marker.openings).toBe(first.marker.openings + 1);
  expect(again.restored).toBe(false);
  expect(readdirSync(directory.path).filter((name) => name.endsWith('.new'))).toEqual([]);
});

test('the store writes through to the disk at each commit, in WAL mode', () => {
  const store = opened();
  expect(store.db.get('PRAGMA synchronous')).toMatchObject({ synchronous: 2 });
  expect(store.db.get('PRAGMA journal_mode')).toMatchObject({ journal_mode: 'wal' });
});

test('a store that is gone or emptied is named and not created again', () => {
  const marker = withContent(1);
  truncateSync(path, 0);
  expect(codeOf(() => opened(marker))).toBe('store-missing');
  expect(statSync(path).size).toBe(0);
});

test('another store in the place of ours is refused', () => {
  withContent(1);
  expect(codeOf(() => opened({ storeId: 'other', openings: 1 }))).toBe('store-missing');
});

test('an older copy put back is told from the store that was last open', () => {
  const marker = withContent(1);
  const copy = join(directory.path, 'copy');
  copyFileSync(path, copy);
  const later = opened(marker);
  later.close();
  copyFileSync(copy, path);
  const restored = opened(later.marker);
  expect(restored.restored).toBe(true);
});

test.each([
  ['garbage', () => writeFileSync(path, 'no database '.repeat(1_000))],
  ['a truncated file', () => truncateSync(path, Math.floor(statSync(path).size / 2))],
  [
    'damaged pages',
    () => {
      const bytes = readFileSync(path);
      bytes.fill(0x5a, 8_192, bytes.length);
      writeFileSync(path, bytes);
    },
  ],
  [
    "another program's database",
    () => new Database(path, { readOnly: false }).exec('PRAGMA application_id = 7'),
  ],
])('%s is named corrupt at open and left as it is', (_name, damage) => {
  const marker = withContent(300);
  damage();
  const before = readFileSync(path);
  expect(codeOf(() => opened(marker))).toBe('store-corrupt');
  expect(readFileSync(path).equals(before)).toBe(true);
});

test('a store of a later version is refused, for writing and for reading', () => {
  withContent(1);
  const db = new Database(path, { readOnly: false });
  db.exec('PRAGMA user_version = 99');
  db.close();
  expect(codeOf(() => opened())).toBe('store-version-unknown');
  expect(codeOf(() => openStoreForReading(path, clock))).toBe('store-version-unknown');
});

test('a directory in which nothing may be created is named unwritable', () => {
  expect(codeOf(() => openStore('/proc/none/store.db', { clock, random }))).toBe(
    'store-unwritable',
  );
});

test('a read-only store is named unwritable', () => {
  // Permissions do not bind root: the kernel's own read-only file does.
  expect(codeOf(() => openStore('/proc/version', { clock, random }))).toMatch(/^store-/);
  if (process.getuid?.() === 0) return;
  withContent(1);
  chmodSync(path, 0o400);
  expect(codeOf(() => opened())).toBe('store-unwritable');
});

test('a full disk is named, and memory and store stay as they were', () => {
  const store = opened();
  store.db.exec('PRAGMA max_page_count = 60');
  const fill = (): void => {
    for (let i = 0; i < 2_000; i += 1) {
      audit(store, { actor: 'operator', action: 'x'.repeat(500), outcome: 'ok' });
    }
  };
  expect(codeOf(() => store.transaction(fill))).toBe('store-unwritable');
  expect(readAudit(store, { max: 10 })).toEqual([]);
});

test('a reader sees what the owner has committed, while it is open', () => {
  const owner = opened();
  const reader = openStoreForReading(path, clock);
  open.push(reader);
  audit(owner, { actor: 'operator', action: 'bind', sessionId: 's1', outcome: 'ok' });
  expect(readAudit(reader, { sessionId: 's1', max: 5 })).toHaveLength(1);
  expect(codeOf(() => audit(reader, { actor: 'x', action: 'y', outcome: 'z' }))).toBe(
    'store-unwritable',
  );
});

test('a reader opens a store that nobody has open', () => {
  withContent(3);
  const reader = openStoreForReading(path, clock);
  open.push(reader);
  expect(readAudit(reader, { max: 5 })).toHaveLength(3);
});

test('reading where there is no store creates none', () => {
  expect(codeOf(() => openStoreForReading(path, clock))).toBe('store-missing');
  expect(existsSync(path)).toBe(false);
});

test('check, backup and export see every row, and a backup is never written over a file', () => {
  const store = opened();
  bind(store, {
    b: 'b1',
    sessionId: 's1',
    incarnation: 'i1',
    space: 'T1',
    channel: 'C1',
    root: '1.0',
    firstLine: 0,
    nextMark: 0,
    settings: {},
  });
  expect(checkStore(store)).toMatchObject({ ok: true, counts: { bindings: 1, outbox: 0 } });
  const target = join(directory.path, 'backup.db');
  backupStore(store, target);
  expect(codeOf(() => backupStore(store, target))).toBe('store-unwritable');
  const copy = openStoreForReading(target, clock);
  open.push(copy);
  expect([...exportStore(copy)].filter(({ table }) => table === 'bindings')).toMatchObject([
    { row: { b: 'b1', session_id: 's1' } },
  ]);
});

test('a commit survives SIGKILL of the process that made it', () => {
  withContent(1);
  const script = `
    const { openStore } = await import('./src/store/store.ts');
    const { audit } = await import('./src/store/audit.ts');
    const { systemClock } = await import('./src/base/system-clock.ts');
    const { systemRandom } = await import('./src/base/system-random.ts');
    const store = openStore(${JSON.stringify(path)}, { clock: systemClock, random: systemRandom });
    audit(store, { actor: 'operator', action: 'survives', outcome: 'ok' });
    process.kill(process.pid, 'SIGKILL');`;
  const child = spawnSync(process.execPath, [
    '--import',
    'tsx',
    '--input-type=module',
    '-e',
    script,
  ]);
  expect(child.signal).toBe('SIGKILL');
  expect(readAudit(opened(), { max: 1 })[0]?.action).toBe('survives');
});
