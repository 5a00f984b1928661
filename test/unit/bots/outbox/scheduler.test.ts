import { beforeEach, describe, expect, test } from 'vitest';
import { seededRandom } from '../../../../src/base/random.ts';
import type { PlatformKind } from '../../../../src/bots/chat-platform.ts';
import { backoffsInStore } from '../../../../src/bots/outbox/backoff-memory.ts';
import {
  type Lane,
  type Need,
  Scheduler,
  type Seat,
} from '../../../../src/bots/outbox/scheduler.ts';
import { openMemoryStore } from '../../../../src/store/store.ts';
import { SimClock } from '../../../support/sim-clock.ts';

let clock: SimClock;

beforeEach(() => {
  clock = new SimClock();
});

function scheduler(kind: PlatformKind): Scheduler {
  return new Scheduler({ kind, clock, memory: { load: () => [], save: () => undefined } });
}

function need(thread: string, method: Need['method'] = 'edit', lane: Lane = 'live'): Need {
  return { method, lane, channel: 'C1', thread };
}

/** A thread that always wants to call, and counts how often it may. */
class Busy {
  count = 0;
  readonly atMs: number[] = [];
  readonly seat: Seat;
  readonly #own: Scheduler;
  readonly #need: Need;

  constructor(own: Scheduler, wanted: Need) {
    this.#own = own;
    this.#need = wanted;
    this.seat = { name: wanted.thread, wake: () => this.go() };
  }

  go(): void {
    while (this.#own.tryTake(this.seat, this.#need)) {
      this.count += 1;
      this.atMs.push(clock.monotonicMs());
    }
  }
}

describe('budgets', () => {
  test('Slack: the edits of all threads together are 50 a minute and a burst', async () => {
    const own = scheduler('slack');
    const threads = Array.from({ length: 7 }, (_, i) => new Busy(own, need(`t${i}`)));
    for (const one of threads) one.go();
    await clock.advance(60_000);
    const total = threads.reduce((sum, one) => sum + one.count, 0);
    expect(total).toBeLessThanOrEqual(55);
    expect(total).toBeGreaterThanOrEqual(53);
    const counts = threads.map((one) => one.count);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(5);
  });

  test('Slack: posts are one a second in a channel, with a burst of three', async () => {
    const own = scheduler('slack');
    const one = new Busy(own, need('t', 'post'));
    one.go();
    expect(one.count).toBe(3);
    await clock.advance(10_000);
    expect(one.count).toBe(13);
  });

  test("Discord: a thread's edits take nothing from another thread's", async () => {
    const own = scheduler('discord');
    const [a, b] = [new Busy(own, need('a')), new Busy(own, need('b'))];
    a.go();
    await clock.advance(3_000);
    b.go();
    expect(b.count).toBe(5);
  });
});

describe('who goes first', () => {
  test('a prompt before final text before a live tail before a screen', async () => {
    const own = scheduler('slack');
    const hog = new Busy(own, need('hog'));
    hog.go();
    own.withdraw(hog.seat);
    const lanes: Lane[] = ['screen', 'live', 'final', 'exit', 'prompt'];
    const order: string[] = [];
    for (const lane of lanes) {
      const seat: Seat = {
        name: lane,
        wake: () => {
          if (own.tryTake(seat, need(lane, 'edit', lane))) order.push(lane);
        },
      };
      expect(own.tryTake(seat, need(lane, 'edit', lane))).toBe(false);
    }
    await clock.advance(8_000);
    expect(order).toEqual(['prompt', 'exit', 'final', 'live', 'screen']);
  });

  test('whoever last got input gets three times the share', async () => {
    const own = scheduler('slack');
    const threads = Array.from({ length: 4 }, (_, i) => new Busy(own, need(`t${i}`)));
    const [first] = threads;
    if (first === undefined) throw new Error('no thread');
    own.gotInput(first.seat);
    for (const one of threads) one.go();
    await clock.advance(28_000);
    const others = threads.slice(1).map((one) => one.count);
    expect(first.count).toBeGreaterThan(1.8 * Math.max(...others));
    expect(Math.min(...others)).toBeGreaterThan(1);
  });

  test('a screen that has waited long enough is not starved by live tails', async () => {
    const own = scheduler('slack');
    const tails = [new Busy(own, need('a')), new Busy(own, need('b'))];
    const screen = new Busy(own, need('s', 'edit', 'screen'));
    for (const one of [...tails, screen]) one.go();
    await clock.advance(60_000);
    expect(screen.count).toBeGreaterThan(2);
  });

  test('a budget that was set aside and not taken goes to the next', async () => {
    const own = scheduler('slack');
    const hog = new Busy(own, need('hog'));
    hog.go();
    own.withdraw(hog.seat);
    const asleep: Seat = { name: 'asleep', wake: () => undefined };
    own.tryTake(asleep, need('asleep', 'edit', 'prompt'));
    const next = new Busy(own, need('next'));
    next.go();
    await clock.advance(4_000);
    expect(next.count).toBeGreaterThan(0);
  });
});

describe('rate limits', () => {
  test('a limit delays only what shares it', () => {
    const own = scheduler('slack');
    own.limited(need('a'), { retryAfterMs: 30_000, scope: 'method', detail: 'ratelimited' });
    const seat: Seat = { name: 'a', wake: () => undefined };
    expect(own.tryTake(seat, need('b'))).toBe(false);
    expect(own.tokens(need('b'))).toBe(0);
    expect(own.tryTake(seat, need('a', 'post'))).toBe(true);
  });

  test('a limit of one place leaves the others alone; one of the app does not', () => {
    const own = scheduler('discord');
    const seat: Seat = { name: 'x', wake: () => undefined };
    own.limited(need('a'), { retryAfterMs: 30_000, scope: 'place', detail: '' });
    expect(own.tryTake(seat, need('a'))).toBe(false);
    expect(own.tryTake(seat, need('b'))).toBe(true);
    own.limited(need('a'), { retryAfterMs: 30_000, scope: 'app', detail: '' });
    expect(own.tryTake(seat, need('b'))).toBe(false);
  });

  test('whoever waits is woken when the limit is over, and not before', async () => {
    const own = scheduler('discord');
    own.limited(need('a'), { retryAfterMs: 7_000, scope: 'place', detail: '' });
    const one = new Busy(own, need('a'));
    one.go();
    await clock.advance(6_900);
    expect(one.count).toBe(0);
    await clock.advance(700);
    expect(one.count).toBeGreaterThan(0);
  });

  test('a limit outlives the process', async () => {
    const store = openMemoryStore({ clock, random: seededRandom(1) });
    const memory = backoffsInStore(store);
    const before = new Scheduler({ kind: 'slack', clock, memory });
    before.limited(need('a'), { retryAfterMs: 20_000, scope: 'method', detail: 'ratelimited' });
    await clock.advance(5_000);
    const after = new Scheduler({ kind: 'slack', clock, memory });
    const one = new Busy(after, need('a'));
    one.go();
    await clock.advance(14_000);
    expect(one.count).toBe(0);
    await clock.advance(2_000);
    expect(one.count).toBeGreaterThan(0);
  });

  test('an answer of hours is asked again after 15 minutes', async () => {
    const own = scheduler('discord');
    own.limited(need('a'), { retryAfterMs: 86_400_000, scope: 'app', detail: '' });
    const one = new Busy(own, need('a'));
    one.go();
    await clock.advance(16 * 60_000);
    expect(one.count).toBeGreaterThan(0);
  });
});
