// Measures the store on a disk: opening with 1,000 bindings and 100,000 receipts, and the store work
// of one post (intent, receipt, seal) and of one claim. `--json` prints rows.

import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { systemClock } from '../../src/base/system-clock.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import { bind, openBindings } from '../../src/store/bindings.ts';
import { claim } from '../../src/store/claims.ts';
import { insertIntent, newestCoveringRow, openRows, saveRow } from '../../src/store/outbox-rows.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const BINDINGS = 1_000;
const RECEIPTS = 100_000;
const POSTS = 500;

function fill(store: Store): void {
  for (let i = 0; i < BINDINGS; i += 1) {
    const names = { b: `b${i}`, sessionId: `s${i}`, incarnation: 'i', root: `${i}.0` };
    bind(store, { ...names, space: 'T', channel: 'C', firstLine: 0, nextMark: 0, settings: {} });
    for (let s = 0; s < 4; s += 1) post(store, `b${i}`, s < 3);
  }
  for (let at = 0; at < RECEIPTS; at += 1_000) {
    store.transaction(() => {
      for (let i = at; i < at + 1_000; i += 1) claimOne(store, i);
    });
  }
}

function claimOne(store: Store, i: number): void {
  claim(store, {
    id: `r${i}`,
    keys: [`message:C:${i}`, `event:${i}`, `client:${i}`],
    actor: 'slack:U1',
    kind: 'message',
    b: `b${i % BINDINGS}`,
    messageId: `${i}.1`,
  });
}

/** What a post costs: TX1, TX2, and the seal. */
function post(store: Store, b: string, seal: boolean): void {
  const row = insertIntent(store, b, {
    kind: 'text',
    start: { line: 0, col: 0 },
    end: undefined,
    omitTo: undefined,
    frameMark: undefined,
    body: undefined,
    anchor: undefined,
    sentAtMs: 1,
  });
  const shown = { hash: 'aaaaaaaaaaaaaaaa', offset: 1 };
  saveRow(store, { ...row, state: 'posted', messageId: `${b}.${row.s}`, shown });
  if (seal) saveRow(store, { ...row, state: 'sealed', messageId: `${b}.${row.s}`, shown });
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

const directory = tempDir();
const path = join(directory.path, 'store.db');
const options = { clock: systemClock, random: systemRandom };
const filling = openStore(path, options);
filling.db.exec('PRAGMA synchronous = OFF');
fill(filling);
filling.close();

const openMs: number[] = [];
for (let run = 0; run < 5; run += 1) {
  const startMs = performance.now();
  const store = openStore(path, options);
  for (const { b } of openBindings(store)) {
    openRows(store, b);
    newestCoveringRow(store, b);
  }
  openMs.push(performance.now() - startMs);
  store.close();
}
const store = openStore(path, options);
const time = (work: (i: number) => void): number =>
  median(
    Array.from({ length: POSTS }, (_, i) => {
      const startMs = performance.now();
      work(i);
      return performance.now() - startMs;
    }),
  );
const postMs = time((i) => post(store, `b${i % BINDINGS}`, false));
const claimMs = time((i) => claimOne(store, RECEIPTS + i));
store.close();
directory.remove();

const rows = [
  { name: 'open, check, read all rows', value: median(openMs), limit: 1_000 },
  { name: 'store work of a post', value: postMs, limit: 1 },
  { name: 'a claim with three keys', value: claimMs, limit: 1 },
].map(({ name, value, limit }) => ({
  name,
  value: Math.round(value * 1_000) / 1_000,
  unit: 'ms',
  against: `${BINDINGS} bindings, ${RECEIPTS} receipts`,
  ratio: value / limit,
  target: `< ${limit}`,
  ok: value < limit,
}));
for (const row of rows) {
  if (process.argv.includes('--json')) console.log(JSON.stringify(row));
  else console.log(`${row.ok ? ' ' : '!'} ${row.name.padEnd(30)} ${row.value} ms  ${row.target}`);
}
if (rows.some((row) => !row.ok)) process.exitCode = 1;
