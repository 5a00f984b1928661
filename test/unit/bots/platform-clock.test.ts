import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PlatformClock } from '../../../src/bots/platform-clock.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function header(platformMs: number): string {
  return new Date(platformMs).toUTCString();
}

// What happened: a header of whole seconds was taken in its middle, so what was written within half a
// second of a daemon's start looked written before it, and was offered instead of typed.
test('clocks that agree are taken to agree; one that does not is followed to the second', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.constant(0), fc.integer({ min: 7_000, max: 3_600_000 })),
      fc.constantFrom(1, -1),
      fc.array(fc.record({ gapMs: fc.nat(3_000), latencyMs: fc.nat(300) }), { minLength: 1 }),
      async (amountMs, sign, answers) => {
        const skewMs = amountMs * sign;
        const clock = new FakeClock(1_800_000_000_123);
        const platform = new PlatformClock(clock);
        for (const { gapMs, latencyMs } of answers) {
          await clock.advance(gapMs);
          const written = header(clock.wallMs() + skewMs);
          await clock.advance(latencyMs);
          platform.observe(written);
          const seen = platform.skewMs() ?? Number.NaN;
          if (skewMs === 0) expect(seen).toBe(0);
          expect(seen).toBeLessThanOrEqual(skewMs);
          expect(seen).toBeGreaterThan(skewMs - 1_301);
        }
      },
    ),
    { numRuns: 50 },
  );
});

test('a clock that was set is followed', () => {
  const clock = new FakeClock(1_800_000_000_000);
  const platform = new PlatformClock(clock);
  platform.observe(header(clock.wallMs()));
  clock.jumpWall(-3_600_000);
  platform.observe(header(clock.wallMs() + 3_600_000));
  expect(platform.skewMs()).toBe(3_600_000);
});
