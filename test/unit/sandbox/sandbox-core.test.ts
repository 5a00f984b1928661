// What both halves of the sandbox stand on: its time, dates, rings, faults.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../src/base/random.ts';
import { httpDate, isoTime } from '../../../src/sandbox/dates.ts';
import { Faults } from '../../../src/sandbox/faults.ts';
import { Ring } from '../../../src/sandbox/ring.ts';
import { SandboxClock } from '../../../src/sandbox/sandbox-clock.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('the sandbox clock', () => {
  test('runs faster than the clock below it, timers included', async () => {
    const base = new FakeClock();
    const clock = new SandboxClock(base, 60);
    const ran: number[] = [];
    clock.timer(60_000, () => ran.push(clock.monotonicMs()));
    await base.advance(999);
    expect(ran).toEqual([]);
    await base.advance(1);
    expect(ran).toEqual([60_000]);
    expect(clock.wallMs() - base.wallMs()).toBe(59_000);
  });

  test('moves ahead at once and keeps the order of what becomes due', async () => {
    const base = new FakeClock();
    const clock = new SandboxClock(base);
    const ran: string[] = [];
    clock.timer(3_000, () => ran.push('late'));
    clock.timer(1_000, () => ran.push('early'));
    const cancelled = clock.timer(2_000, () => ran.push('never'));
    cancelled.cancel();
    clock.timer(10_000, () => ran.push('too late'));
    clock.advance(5_000);
    await base.advance(0);
    expect(ran).toEqual(['early', 'late']);
    expect(clock.pendingCount).toBe(1);
  });

  test('keeps due times when its speed changes', async () => {
    const base = new FakeClock();
    const clock = new SandboxClock(base, 1);
    let ran = false;
    clock.timer(10_000, () => {
      ran = true;
    });
    await base.advance(4_000);
    clock.setScale(6);
    await base.advance(999);
    expect(ran).toBe(false);
    await base.advance(1);
    expect(ran).toBe(true);
  });

  test('waits longer than 32-bit timers can, and cancels everything when closed', async () => {
    const base = new FakeClock();
    const clock = new SandboxClock(base);
    let ran = false;
    clock.timer(40 * 86_400_000, () => {
      ran = true;
    });
    await base.advance(39 * 86_400_000);
    expect(ran).toBe(false);
    await base.advance(86_400_000);
    expect(ran).toBe(true);
    clock.timer(1, () => undefined);
    clock.close();
    expect([clock.pendingCount, base.pendingCount]).toEqual([0, 0]);
  });

  test('sleeps until aborted', async () => {
    const base = new FakeClock();
    const clock = new SandboxClock(base);
    const controller = new AbortController();
    const slept = clock.sleep(1_000, controller.signal);
    controller.abort();
    await expect(slept).rejects.toThrow('aborted');
    expect(clock.pendingCount).toBe(0);
  });
});

test('dates are those of the machine, for every day of two centuries', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 6_000_000_000_000 }), (epochMs) => {
      const date = new Date(epochMs);
      expect(httpDate(epochMs)).toBe(date.toUTCString());
      expect(isoTime(epochMs)).toBe(date.toISOString().replace('Z', '000+00:00'));
    }),
  );
});

test('a ring keeps the newest and counts the rest', () => {
  const ring = new Ring<string>(3);
  for (const value of ['a', 'b', 'c', 'd', 'e']) ring.push(value);
  expect(ring.after(0).map((entry) => entry.value)).toEqual(['c', 'd', 'e']);
  expect(ring.after(4)).toEqual([{ seq: 5, value: 'e' }]);
  expect([ring.lastSeq, ring.droppedCount]).toEqual([5, 2]);
  ring.clear();
  expect([ring.after(0), ring.lastSeq]).toEqual([[], 5]);
});

describe('faults', () => {
  const error = { kind: 'error', code: 'x' } as const;

  test('strike once by default, after those skipped, for targets the pattern names', () => {
    const faults = new Faults(seededRandom(1));
    faults.add({ on: 'slack:chat.*', fault: error, skip: 1 });
    const strikes = (target: string): boolean => faults.take(target, ['error']) !== undefined;
    expect(strikes('slack:auth.test')).toBe(false);
    expect(strikes('discord:chat.update')).toBe(false);
    expect(strikes('slack:chatXupdate')).toBe(false);
    expect(strikes('slack:chat.update')).toBe(false);
    expect(strikes('slack:chat.update')).toBe(true);
    expect(strikes('slack:chat.update')).toBe(false);
    expect(faults.list()).toMatchObject([{ on: 'slack:chat.*', struck: 1 }]);
  });

  test('are not used up by whoever cannot carry them out', () => {
    const faults = new Faults(seededRandom(1));
    faults.add({ on: '*', fault: { kind: 'duplicate' } });
    expect(faults.take('slack:event', ['error', 'reset'])).toBeUndefined();
    expect(faults.take('slack:event', ['duplicate'])).toEqual({ kind: 'duplicate' });
  });

  test('without end strike about as often as their chance says', () => {
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom(0, 0.25, 0.5, 1), (seed, probability) => {
        const faults = new Faults(seededRandom(seed));
        faults.add({ on: '*', fault: error, count: 0, probability });
        let struck = 0;
        for (let i = 0; i < 400; i += 1) if (faults.take('a', ['error'])) struck += 1;
        // Six standard deviations of a binomial distribution.
        const spread = 6 * Math.sqrt(400 * probability * (1 - probability));
        expect(Math.abs(struck - 400 * probability)).toBeLessThanOrEqual(spread);
      }),
      { numRuns: 50 },
    );
  });

  test('are bounded, and cleared one by one or all', () => {
    const faults = new Faults(seededRandom(1));
    const first = faults.add({ on: 'a', fault: error });
    for (let i = 1; i < 500; i += 1) faults.add({ on: 'b', fault: error });
    expect(() => faults.add({ on: 'c', fault: error })).toThrow('500');
    faults.clear(first);
    expect(faults.take('a', ['error'])).toBeUndefined();
    faults.clear();
    expect(faults.list()).toEqual([]);
  });
});
