// A connection is judged by its traffic, replaced before it ends, and never rebuilt in a hurry.

import { beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import { seededRandom } from '../../../src/base/random.ts';
import {
  type ConnectionHooks,
  type ConnectionState,
  ConnectionSupervisor,
} from '../../../src/bots/connection-supervisor.ts';
import { FakeClock } from '../../support/fake-clock.ts';

interface Opened {
  readonly hooks: ConnectionHooks;
  readonly atMs: number;
  discarded: boolean;
}

let clock: FakeClock;
let opened: Opened[];
let states: ConnectionState[];
let supervisor: ConnectionSupervisor;
let failsToOpen: boolean;

beforeEach(() => {
  clock = new FakeClock();
  opened = [];
  states = [];
  failsToOpen = false;
  supervisor = new ConnectionSupervisor({
    name: 'test',
    clock,
    random: seededRandom(1),
    log: silentLog,
    open: (hooks) => {
      if (failsToOpen) throw new Error('no');
      const one: Opened = { hooks, atMs: clock.monotonicMs(), discarded: false };
      opened.push(one);
      return {
        discard: () => {
          one.discarded = true;
        },
      };
    },
    readyWithinMs: 15_000,
    silenceMs: 90_000,
    openGapMs: 5_000,
    backoff: { initialMs: 1_000, maxMs: 30_000, factor: 2 },
    onState: (state) => states.push(state),
  });
});

function last(): Opened {
  const one = opened.at(-1);
  if (one === undefined) throw new Error('nothing was opened');
  return one;
}

/** Opened and ready. */
async function up(): Promise<void> {
  supervisor.start();
  await clock.advance(0);
  last().hooks.ready();
}

function live(): number {
  return opened.filter((one) => !one.discarded).length;
}

describe('a supervised connection', () => {
  it('gives up on one that says no hello and opens a new object', async () => {
    supervisor.start();
    await clock.advance(14_000);
    expect(opened.length).toBe(1);
    await clock.advance(10_000);
    expect(opened.length).toBe(2);
    expect(opened[0]?.discarded).toBe(true);
  });

  it('gives up on one that is silent, whatever it says of itself', async () => {
    await up();
    for (let turn = 0; turn < 10; turn += 1) {
      await clock.advance(60_000);
      last().hooks.traffic();
    }
    expect(opened.length).toBe(1);
    await clock.advance(100_000);
    expect(opened.length).toBe(2);
    expect(opened[0]?.discarded).toBe(true);
  });

  it('opens the next one before the present one ends, and keeps exactly one', async () => {
    await up();
    await clock.advance(10_000);
    last().hooks.down({ kind: 'replace', reason: 'refresh' });
    await clock.advance(0);
    expect(live()).toBe(2);
    expect(supervisor.state.kind).toBe('up');
    last().hooks.ready();
    expect(live()).toBe(1);
    expect(states.filter((state) => state.kind !== 'up').map((state) => state.kind)).toEqual([
      'connecting',
      'connecting',
    ]);
  });

  it('does not hear of a replaced one any more', async () => {
    await up();
    await clock.advance(10_000);
    const old = last();
    old.hooks.down({ kind: 'replace', reason: 'refresh' });
    await clock.advance(0);
    last().hooks.ready();
    old.hooks.down({ kind: 'lost', reason: 'closed' });
    await clock.advance(60_000);
    expect(opened.length).toBe(2);
    expect(supervisor.state.kind).toBe('up');
  });

  it('never opens two within the gap, however fast they fail', async () => {
    supervisor.start();
    for (let turn = 0; turn < 200; turn += 1) {
      await clock.advance(500);
      last().hooks.down({ kind: 'lost', reason: 'refused' });
    }
    const gaps = opened.slice(1).map((one, index) => one.atMs - (opened[index]?.atMs ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5_000);
    // 100 s of trying: the waits grow to half a minute and no further.
    expect(Math.max(...gaps)).toBeLessThanOrEqual(31_000);
    expect(opened.length).toBeGreaterThanOrEqual(5);
  });

  it('waits as long as the platform asks', async () => {
    await up();
    last().hooks.down({ kind: 'lost', reason: 'too many', atLeastMs: 60_000 });
    await clock.advance(59_000);
    expect(opened.length).toBe(1);
    await clock.advance(2_000);
    expect(opened.length).toBe(2);
  });

  it('stays down after a fatal end', async () => {
    await up();
    last().hooks.down({ kind: 'fatal', reason: 'token refused' });
    supervisor.rebuild('again');
    await clock.advance(3_600_000);
    expect(opened.length).toBe(1);
    expect(supervisor.state).toEqual({ kind: 'fatal', reason: 'token refused' });
  });

  it('starts anew after the machine was asleep', async () => {
    await up();
    last().hooks.traffic();
    clock.jumpWall(3_600_000);
    await clock.advance(6_000);
    expect(supervisor.state).toMatchObject({ reason: 'the machine was asleep' });
    expect(live()).toBe(opened.length - 1);
  });

  it('gives one that repairs itself as long as a new one, then replaces it', async () => {
    await up();
    last().hooks.unsettled('reconnecting');
    expect(supervisor.state.kind).toBe('connecting');
    await clock.advance(10_000);
    last().hooks.ready();
    expect(supervisor.state.kind).toBe('up');
    last().hooks.unsettled('reconnecting');
    await clock.advance(20_000);
    expect(opened.length).toBe(2);
  });

  it('tries again when opening itself fails', async () => {
    failsToOpen = true;
    supervisor.start();
    await clock.advance(1_000);
    failsToOpen = false;
    await clock.advance(20_000);
    expect(opened.length).toBe(1);
  });

  it('opens nothing and holds nothing after it was stopped', async () => {
    await up();
    supervisor.stop();
    last().hooks.down({ kind: 'lost', reason: 'closed' });
    await clock.advance(3_600_000);
    expect(opened.length).toBe(1);
    expect(live()).toBe(0);
    expect(clock.pendingCount).toBe(0);
  });
});
