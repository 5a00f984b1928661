import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { errorCode } from '../../../src/base/errors.ts';
import { seededRandom } from '../../../src/base/random.ts';
import { audit, readAudit } from '../../../src/store/audit.ts';
import { currentBackoffs, saveBackoff } from '../../../src/store/backoffs.ts';
import {
  activateBinding,
  type Binding,
  bind,
  bindingByName,
  changeSettings,
  endBinding,
  type NewBinding,
  openBindings,
  parkBinding,
  renameChannel,
  supersedeBinding,
} from '../../../src/store/bindings.ts';
import {
  catchUpCursor,
  claim,
  pruneReceipts,
  receiptById,
  settleReceipt,
  unsettledReceipts,
} from '../../../src/store/claims.ts';
import {
  insertIntent,
  knownMessageIds,
  NOTICES_MAX,
  newestCoveringRow,
  type OutboxRow,
  openRows,
  pruneRows,
  queuedNotices,
  queueNotice,
  remintNames,
  rowByName,
  saveRow,
} from '../../../src/store/outbox-rows.ts';
import {
  requestedSessions,
  requestSession,
  sessionCreated,
  startedSession,
} from '../../../src/store/sessions.ts';
import { openMemoryStore, type Store } from '../../../src/store/store.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let store: Store;
let clock: FakeClock;

beforeEach(() => {
  clock = new FakeClock();
  store = openMemoryStore({ clock, random: seededRandom(7) });
});

let counter = 0;
function wanted(change: Partial<NewBinding> = {}): NewBinding {
  counter += 1;
  return {
    b: `b${counter}`,
    sessionId: `s${counter}`,
    incarnation: 'i1',
    space: 'T1',
    channel: 'C1',
    root: `1.${counter}`,
    firstLine: 0,
    nextMark: 0,
    settings: { mode: 'auto' },
    ...change,
  };
}

function bound(change: Partial<NewBinding> = {}): Binding {
  const outcome = bind(store, wanted(change));
  if (outcome.kind !== 'bound') throw new Error(outcome.kind);
  return outcome.binding;
}

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
  } catch (error) {
    return errorCode(error);
  }
  return 'nothing was thrown';
}

test('a binding is opened without a root, gets it, and ends with its proof', () => {
  const opening = bound({ root: undefined });
  expect(opening).toMatchObject({ state: 'opening', version: 1, root: undefined });
  const place = { space: 'T1', channel: 'C1', root: '9.1' };
  const active = activateBinding(store, opening, place);
  expect(active).toMatchObject({ state: 'active', version: 2, root: '9.1' });
  expect(codeOf(() => activateBinding(store, opening, place))).toBe('store-conflict');
  expect(endBinding(store, active, 'exited 0')).toMatchObject({
    state: 'ended',
    endProof: 'exited 0',
  });
  expect(openBindings(store)).toEqual([]);
});

test('an exact rebind answers already, and each conflict names who holds what', () => {
  const first = bound({ sessionId: 'sx', root: '5.0' });
  const base = { sessionId: 'sx', root: '5.0' };
  expect(bind(store, wanted(base))).toMatchObject({ kind: 'already', binding: { b: first.b } });
  expect(bind(store, wanted({ ...base, root: '6.0' }))).toMatchObject({
    kind: 'session-taken',
    holder: { b: first.b },
  });
  expect(bind(store, wanted({ ...base, incarnation: 'i2' }))).toMatchObject({
    kind: 'session-taken',
  });
  expect(bind(store, wanted({ ...base, sessionId: 'sy' }))).toMatchObject({
    kind: 'root-taken',
    holder: { b: first.b },
  });
});

test('a replayed request commits nothing, whatever became of its binding', () => {
  const first = bound({ requestId: 'r1' });
  supersedeBinding(store, first);
  expect(bind(store, wanted({ requestId: 'r1' }))).toMatchObject({
    kind: 'already',
    binding: { b: first.b, state: 'superseded' },
  });
});

test('a change by a stale version is refused and changes nothing', () => {
  const first = bound();
  const second = changeSettings(store, first, { mode: 'screen' });
  expect(codeOf(() => changeSettings(store, first, { mode: 'log' }))).toBe('store-conflict');
  expect(bindingByName(store, first.b)).toEqual(second);
});

test('at most one open binding per session and per root under any interleaving', () => {
  const step = fc.record({
    session: fc.integer({ min: 0, max: 2 }),
    root: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
    what: fc.constantFrom('bind', 'activate', 'end', 'supersede'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const own = openMemoryStore({ clock, random: seededRandom(3) });
      for (const { session, root, what } of steps) {
        const open = openBindings(own).find((one) => one.sessionId === `s${session}`);
        try {
          if (what === 'bind' || open === undefined) {
            bind(own, wanted({ sessionId: `s${session}`, root: root?.toString() }));
          } else if (what === 'activate') {
            activateBinding(own, open, { space: 'T1', channel: 'C1', root: `${root ?? 0}` });
          } else if (what === 'end') endBinding(own, open, 'proof');
          else supersedeBinding(own, open);
        } catch (error) {
          expect(errorCode(error)).toBe('store-conflict');
        }
        const now = openBindings(own);
        expect(new Set(now.map((one) => one.sessionId)).size).toBe(now.length);
        const roots = now.flatMap((one) => (one.root === undefined ? [] : [one.root]));
        expect(new Set(roots).size).toBe(roots.length);
      }
      own.close();
    }),
    { numRuns: 60 },
  );
});

test('a renamed channel takes all its bindings along', () => {
  const first = bound();
  bound({ channel: 'C2' });
  expect(renameChannel(store, 'C1', 'C9')).toBe(1);
  expect(bindingByName(store, first.b)).toMatchObject({ channel: 'C9', version: 2 });
});

test('a park is kept, counted and lifted', () => {
  const { b } = bound();
  const park = { untilWallMs: 5, count: 2, reason: 'locked' };
  parkBinding(store, b, park);
  expect(bindingByName(store, b)?.park).toEqual(park);
  parkBinding(store, b, undefined);
  expect(bindingByName(store, b)?.park).toBeUndefined();
});

function intent(b: string, change: Partial<OutboxRow> = {}): OutboxRow {
  return insertIntent(store, b, {
    kind: 'text',
    start: { line: 0, col: 0 },
    end: undefined,
    omitTo: undefined,
    frameMark: undefined,
    body: undefined,
    anchor: undefined,
    sentAtMs: 1,
    ...change,
  });
}

test('every field of a row survives being written and read', () => {
  const { b } = bound();
  const row: OutboxRow = {
    ...intent(b, { kind: 'flood' }),
    state: 'posted',
    start: { line: 3, col: 7 },
    end: { line: 9, col: 0 },
    omitTo: 8,
    frameMark: 4,
    body: { head: 'nul \u0000 and more' },
    anchor: '1.1',
    sentAtMs: 11,
    messageId: '1.2',
    shown: { hash: 'h', offset: 5 },
    pending: { hash: 'p', offset: 6, sentAtMs: 12 },
    doubtUntilMs: 99,
    fileId: 'F1',
  };
  saveRow(store, row);
  expect(rowByName(store, b, row.s)).toEqual(row);
  expect(openRows(store, b)).toEqual([row]);
  expect(newestCoveringRow(store, b)).toEqual(row);
  expect(knownMessageIds(store, b)).toEqual(new Set(['1.2']));
});

test('sequence numbers count all kinds of rows of a binding, and a nonce fits 25 characters', () => {
  const { b } = bound({ b: 'abcdefghijkl' });
  expect([intent(b), intent(b, { kind: 'notice' })].map((row) => row.s)).toEqual([0, 1]);
  store.db.run('UPDATE bindings SET next_seq = ? WHERE b = ?', Number.MAX_SAFE_INTEGER - 1, b);
  expect(intent(b).nonce.length).toBeLessThanOrEqual(25);
});

test('old sealed rows are forgotten, the root and the newest covering row never', () => {
  const { b } = bound();
  saveRow(store, { ...intent(b, { kind: 'root' }), state: 'sealed' });
  for (let i = 0; i < 300; i += 1) saveRow(store, { ...intent(b), state: 'sealed' });
  for (let i = 0; i < 300; i += 1)
    saveRow(store, { ...intent(b, { kind: 'notice' }), state: 'sealed' });
  pruneRows(store, b);
  expect(rowByName(store, b, 0)?.kind).toBe('root');
  expect(newestCoveringRow(store, b)?.s).toBe(300);
  expect(rowByName(store, b, 299)).toBeUndefined();
});

test('a restored store answers to new names and keeps its rows', () => {
  const { b } = bound();
  intent(b);
  expect(remintNames(store, () => 'fresh')).toBe(1);
  expect(bindingByName(store, b)).toBeUndefined();
  expect(openRows(store, 'fresh')).toMatchObject([{ b: 'fresh', nonce: 'fresh.0' }]);
});

test('a notice is told once in the life of a binding, and their number is bounded', () => {
  const { b } = bound();
  const notice = {
    b,
    line: 3,
    kind: 'notice',
    lane: 'exit',
    body: { head: 'x' },
    queuedAtMs: 1,
  } as const;
  expect(queueNotice(store, notice, 'exit')).toBe('queued');
  expect(queueNotice(store, notice, 'exit')).toBe('told-before');
  for (let i = 1; i < NOTICES_MAX; i += 1) queueNotice(store, notice, undefined);
  expect(queueNotice(store, notice, undefined)).toBe('full');
  expect(queuedNotices(store, b)).toHaveLength(NOTICES_MAX);
  expect(queuedNotices(store, b)[0]).toMatchObject({ ...notice });
});

test('one act is claimed once under any of its keys, in any order', () => {
  const act = { id: 'r1', keys: ['msg:1', 'event:9'], actor: 'slack:U1', kind: 'message' };
  expect(claim(store, act).kind).toBe('claimed');
  expect(claim(store, { ...act, id: 'r2', keys: ['client:5', 'msg:1'] })).toMatchObject({
    kind: 'already',
    receipt: { id: 'r1' },
  });
  // The key learned from the second delivery counts too.
  expect(claim(store, { ...act, id: 'r3', keys: ['client:5'] }).kind).toBe('already');
  expect(unsettledReceipts(store)).toHaveLength(1);
  settleReceipt(store, 'r1', 'written');
  expect(receiptById(store, 'r1')?.state).toBe('written');
  expect(unsettledReceipts(store)).toEqual([]);
});

test('receipts are kept for 24 h of running time and forgotten after two looks', async () => {
  claim(store, { id: 'old', keys: ['old'], actor: 'a', kind: 'message' });
  pruneReceipts(store);
  clock.jumpWall(1_000 * 3_600_000);
  await clock.advance(23 * 3_600_000);
  expect(pruneReceipts(store)).toBe(0);
  expect(claim(store, { id: 'x', keys: ['old'], actor: 'a', kind: 'message' }).kind).toBe(
    'already',
  );
  await clock.advance(2 * 3_600_000);
  expect(pruneReceipts(store)).toBe(0);
  await clock.advance(660_000);
  expect(pruneReceipts(store)).toBe(1);
  expect(claim(store, { id: 'y', keys: ['old'], actor: 'a', kind: 'message' }).kind).toBe(
    'claimed',
  );
});

test('catch-up reads again what was claimed in the last five minutes, and knows its place for ever', async () => {
  const { b } = bound();
  const say = (id: string): unknown =>
    claim(store, { id, keys: [id], actor: 'a', kind: 'message', b, messageId: id });
  say('1.1');
  await clock.advance(200_000);
  say('1.2');
  expect(catchUpCursor(store, b)).toBeUndefined();
  await clock.advance(200_000);
  say('1.3');
  expect(catchUpCursor(store, b)).toBe('1.1');
  pruneReceipts(store);
  await clock.advance(30 * 3_600_000);
  pruneReceipts(store);
  await clock.advance(700_000);
  expect(pruneReceipts(store)).toBe(3);
  expect(catchUpCursor(store, b)).toBe('1.3');
});

test('a session asked for and never heard of is found again', () => {
  const session = {
    token: 't1',
    actor: 'slack:U1',
    profile: undefined,
    place: { channel: 'C1' },
    request: { command: ['ls'] },
  };
  requestSession(store, session);
  expect(requestedSessions(store)).toMatchObject([{ ...session, state: 'requested' }]);
  sessionCreated(store, 't1', 's1', 'i1');
  expect(requestedSessions(store)).toEqual([]);
  expect(startedSession(store, 's1')).toMatchObject({ token: 't1', incarnation: 'i1' });
});

test('a back-off outlives the process and is forgotten when over', () => {
  saveBackoff(store, { scope: 'app', untilWallMs: clock.wallMs() + 5_000, detail: 'ratelimited' });
  saveBackoff(store, { scope: 'method:edit', untilWallMs: clock.wallMs() - 1, detail: 'x' });
  expect(currentBackoffs(store).map((one) => one.scope)).toEqual(['app']);
});

test('the audit is read newest first and is bounded', () => {
  for (let i = 0; i < 3; i += 1) {
    audit(store, {
      actor: 'operator',
      action: `a${i}`,
      sessionId: 's',
      outcome: 'ok',
      detail: { i },
    });
  }
  expect(readAudit(store, { sessionId: 's', max: 2 })).toMatchObject([
    { action: 'a2', detail: { i: 2 } },
    { action: 'a1' },
  ]);
  store.db.run('UPDATE audit SET id = id + 200996');
  audit(store, { actor: 'operator', action: 'last', outcome: 'ok' });
  expect(readAudit(store, { max: 10 }).at(-1)?.id).toBeGreaterThan(0);
  store.db.run(`UPDATE sqlite_sequence SET seq = 401999 WHERE name = 'audit'`);
  audit(store, { actor: 'operator', action: 'thousandth', outcome: 'ok' });
  expect(readAudit(store, { max: 10 }).map((one) => one.action)).toEqual(['thousandth']);
});
