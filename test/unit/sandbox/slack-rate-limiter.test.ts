// The tiers as token buckets, on a clock that moves only when told.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RateLimiter } from '../../../src/sandbox/slack/rate-limiter.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('no minute holds more than its tier after the first burst, and waiting as told always helps', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 50, maxLength: 120 }),
      async (gaps) => {
        const clock = new FakeClock();
        const limiter = new RateLimiter(clock, 'real', 5);
        const passed: number[] = [];
        for (const gap of gaps) {
          await clock.advance(gap);
          const verdict = limiter.take('conversations.list', 2, undefined);
          if (verdict.kind === 'pass') {
            passed.push(clock.monotonicMs());
            continue;
          }
          expect(Number.isInteger(verdict.retryAfterSec) && verdict.retryAfterSec >= 1).toBe(true);
          await clock.advance(verdict.retryAfterSec * 1000);
          expect(limiter.take('conversations.list', 2, undefined).kind).toBe('pass');
          passed.push(clock.monotonicMs());
        }
        for (const start of passed) {
          const inMinute = passed.filter((at) => at >= start && at < start + 60_000);
          expect(inMinute.length).toBeLessThanOrEqual(20 + 20);
        }
      },
    ),
    { numRuns: 30 },
  );
});

test('posts are limited by channel, methods do not touch each other, scaling and off work', async () => {
  const clock = new FakeClock();
  const real = new RateLimiter(clock, 'real', 2);
  const post = (channel: string) => real.take('chat.postMessage', 'post', channel).kind;
  expect([post('a'), post('a'), post('a'), post('b')]).toEqual(['pass', 'pass', 'limited', 'pass']);
  expect(real.take('chat.update', 3, 'a').kind).toBe('pass');
  await clock.advance(1_000);
  expect([post('a'), post('a')]).toEqual(['pass', 'limited']);
  const again = real.take('chat.postMessage', 'post', 'a');
  expect(again).toMatchObject({ kind: 'limited', ignoredRetryAfter: true });
  const double = new RateLimiter(clock, 2, 2);
  const kinds = Array.from({ length: 5 }, () => double.take('chat.postMessage', 'post', 'a').kind);
  expect(kinds).toEqual(['pass', 'pass', 'pass', 'pass', 'limited']);
  const off = new RateLimiter(clock, 'off', 1);
  for (let i = 0; i < 1_000; i += 1) expect(off.take('x', 1, 'a').kind).toBe('pass');
});
