import { describe, expect, it } from 'vitest';
import {
  type Classification,
  classify,
  healthWord,
  type Observation,
} from '../../../src/control/classify.ts';
import type { MachineTime } from '../../../src/control/machine-time.ts';
import { parseState, type StateRecord } from '../../../src/control/records.ts';
import type { LockRecord } from '../../../src/ownership/lock-record.ts';
import type { ProcessIncarnation } from '../../../src/ownership/process-incarnation.ts';

const INCARNATION: ProcessIncarnation = {
  v: 1,
  pid: 100,
  startTicks: 5,
  bootId: 'boot',
  pidNs: '1',
  timeNs: '1',
  uid: 0,
  hostId: 'h',
  nonce: 'process-nonce',
};
const LOCK: LockRecord = {
  v: 1,
  incarnation: INCARNATION,
  ownerId: 'o',
  generation: 1,
  nonce: 'lock-nonce',
  createdAtMs: 1,
};
const STATE: StateRecord = {
  version: 1,
  kind: 'slack',
  ownerId: 'o',
  pid: 100,
  incarnation: INCARNATION,
  generation: 1,
  identity: 'T/A',
  configHash: 'c',
  nonce: 'lock-nonce',
  startedAtWallMs: 1,
  heartbeat: { seq: 1, wallMs: 1, bootId: 'boot', bootMs: 1000, monotonicMs: 1000 },
  phase: 'running',
  transportHealthy: true,
  transportReason: 'connected',
  programVersion: '1',
  interpreter: 'node',
};
const EXPECTED = { identity: 'T/A', generation: 1 };

function seen(change: Partial<Observation> = {}): Observation {
  return {
    lock: { state: 'held', because: '', record: { kind: 'record', record: LOCK } },
    holder: { verdict: 'alive', because: '' },
    state: { kind: 'record', record: STATE },
    oldPid: undefined,
    ...change,
  };
}

function withState(change: Partial<StateRecord>): Observation {
  return seen({ state: { kind: 'record', record: { ...STATE, ...change } } });
}

const FREE = { state: 'free', because: '', record: { kind: 'absent' } } as const;

describe('the class of an owner directory', () => {
  const cases: readonly (readonly [string, Observation, Classification['class']])[] = [
    ['nothing there', seen({ lock: FREE, state: { kind: 'absent' } }), 'absent'],
    ['a free lock, whatever the record says', seen({ lock: FREE }), 'stopped'],
    [
      'a free lock and a bad record',
      seen({ lock: FREE, state: { kind: 'malformed', because: '' } }),
      'stopped',
    ],
    [
      'a free lock and an old record whose pid exists',
      seen({
        lock: FREE,
        state: { kind: 'unavailable', pid: 7, identity: 'T/A' },
        oldPid: 'exists',
      }),
      'unknown',
    ],
    [
      'a free lock and an old record whose pid is gone',
      seen({ lock: FREE, state: { kind: 'unavailable', pid: 7, identity: 'T/A' }, oldPid: 'gone' }),
      'stopped',
    ],
    [
      'a lock that cannot be looked at',
      seen({ lock: { state: 'unknown', because: 'EACCES', record: { kind: 'absent' } } }),
      'unknown',
    ],
    [
      'a holder in another namespace',
      seen({ holder: { verdict: 'unknown', because: '' } }),
      'unknown',
    ],
    [
      'a held lock that names a dead process',
      seen({ holder: { verdict: 'dead', because: '' } }),
      'unknown',
    ],
    ['a held lock without a record of state', seen({ state: { kind: 'absent' } }), 'unknown'],
    [
      'a state that cannot be read',
      seen({ state: { kind: 'unreadable', because: 'EIO' } }),
      'unknown',
    ],
    ['a state of an earlier owner', withState({ nonce: 'before' }), 'unknown'],
    ['a malformed state', seen({ state: { kind: 'malformed', because: '' } }), 'malformed'],
    [
      'a malformed lock record',
      seen({ lock: { state: 'held', because: '', record: { kind: 'malformed', because: '' } } }),
      'malformed',
    ],
    ['lock and state that disagree on the owner', withState({ ownerId: 'x' }), 'malformed'],
    ['lock and state that disagree on the generation', withState({ generation: 2 }), 'malformed'],
    [
      'lock and state that disagree on the process',
      withState({ incarnation: { ...INCARNATION, startTicks: 6 } }),
      'malformed',
    ],
    ['another account', withState({ identity: 'T/B' }), 'unauthorized'],
    ['a record of the first days', withState({ generation: undefined }), 'replaceable'],
    ['an owner like ours', seen(), 'compatible'],
  ];

  it.each(cases)('%s', (_name, observation, expected) => {
    expect(classify(observation, EXPECTED).class).toBe(expected);
  });

  it.each([
    [0, 'newer'],
    [1, 'compatible'],
    [2, 'replaceable'],
  ])('for a controller of generation %d is %s', (generation, expected) => {
    expect(classify(seen(), { ...EXPECTED, generation }).class).toBe(expected);
  });

  it('does not compare accounts when no configuration names one', () => {
    const expected = { identity: undefined, generation: 1 };
    expect(classify(withState({ identity: 'T/B' }), expected).class).toBe('compatible');
  });

  it('I4: never lets what cannot be told look like nobody', () => {
    for (const [, observation, expected] of cases) {
      if (observation.lock.state === 'free') continue;
      expect(['absent', 'stopped']).not.toContain(classify(observation, EXPECTED).class);
      expect(['absent', 'stopped']).not.toContain(expected);
    }
  });
});

describe('the word of health', () => {
  const at = (monotonicMs: number): MachineTime => ({
    bootId: 'boot',
    bootMs: () => monotonicMs,
    monotonicMs: () => monotonicMs,
  });
  const word = (change: Partial<StateRecord>, nowMs = 2000): string =>
    healthWord(classify(withState(change), EXPECTED), true, at(nowMs));

  it.each([
    ['running', {}, 2000],
    ['running', {}, 21_000],
    ['not-answering', {}, 21_001],
    ['starting', { phase: 'starting' }, 2000],
    ['degraded', { transportHealthy: false }, 2000],
    ['degraded', { degraded: 'two threads are parked' }, 2000],
  ] as const)('%s', (expected, change, nowMs) => {
    expect(word(change, nowMs)).toBe(expected);
  });

  it('of a heartbeat of another boot is not-answering', () => {
    expect(word({ heartbeat: { ...STATE.heartbeat, bootId: 'before' } })).toBe('not-answering');
  });

  it('tells off from stopped', () => {
    expect(healthWord({ class: 'absent' }, false, at(0))).toBe('not-configured');
    expect(healthWord({ class: 'absent' }, true, at(0))).toBe('stopped');
  });
});

describe('a record of state', () => {
  const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

  it('is read back as it was written', () => {
    const full: StateRecord = {
      ...STATE,
      lastEventAtWallMs: 5,
      connectionsSeen: 3,
      connectionsOwn: 2,
      degraded: 'x',
      store: { storeId: 's', openings: 4 },
      stoppedAtWallMs: 6,
      stopCause: { code: 'stop', reason: 'asked' },
    };
    expect(parseState(bytes(full))).toEqual({ kind: 'record', record: full });
  });

  it('leaves unknown keys out', () => {
    expect(parseState(bytes({ ...STATE, colour: 'blue' }))).toEqual({
      kind: 'record',
      record: STATE,
    });
  });

  it('without incarnation is an old one only with exactly the old keys', () => {
    const old = {
      version: 1,
      kind: 'slack',
      ownerId: 'o',
      pid: 7,
      incarnation: 'unavailable',
      identity: 'T/A',
      heartbeatAt: 1,
    };
    expect(parseState(bytes(old))).toEqual({ kind: 'unavailable', pid: 7, identity: 'T/A' });
    expect(parseState(bytes({ ...old, generation: 1 })).kind).toBe('malformed');
    expect(parseState(bytes({ ...STATE, incarnation: 'unavailable' })).kind).toBe('malformed');
  });

  it('cut at any byte is malformed, and never throws', () => {
    const whole = bytes(STATE);
    for (let length = 0; length < whole.length; length += 1) {
      expect(parseState(whole.subarray(0, length)).kind).toBe('malformed');
    }
  });
});
