// DELIVERY.md's model around the real outbox: each variant as proposed is always right, and each
// rule taken away is caught. 120 seeds here, 1,000 in test/storm/delivery-storm.ts.

import { expect, test } from 'vitest';
import { runSeeds, type Variant } from '../../support/delivery-model.ts';

const SEEDS = 120;

test.each<[string, Variant]>([
  ['Slack', { kind: 'slack' }],
  ['Discord', { kind: 'discord' }],
  // The window of the nonce has passed whenever it is needed: looking alone must do.
  [
    'Discord, looking only',
    { kind: 'discord', limits: { repeatWindowMs: 0 }, faults: { nonceMs: 0 } },
  ],
  ['Slack, without events', { kind: 'slack', faults: { events: false } }],
])('%s: every line once, in order, whatever dies or is lost', async (_name, variant) => {
  const result = await runSeeds(variant, SEEDS);
  // The subject was reached: daemons died and posts were made.
  expect(result.kills).toBeGreaterThan(SEEDS * 3);
  expect(result.posts).toBeGreaterThan(SEEDS * 5);
  expect(result.wrong).toEqual([]);
});

test.each<[string, Variant]>([
  ['no settle time, Slack', { kind: 'slack', limits: { settleMs: 0 }, heal: false }],
  [
    'neither nonce nor settle time, Discord',
    {
      kind: 'discord',
      limits: { settleMs: 0, repeatWindowMs: 0 },
      faults: { nonceMs: 0 },
      heal: false,
    },
  ],
  ['an edit in doubt is not repeated, Slack', { kind: 'slack', limits: { editSettleMs: 0 } }],
  ['an edit in doubt is not repeated, Discord', { kind: 'discord', limits: { editSettleMs: 0 } }],
  [
    'requests land later than the settle time, Slack',
    {
      kind: 'slack',
      limits: { settleMs: 2_500, editSettleMs: 2_500 },
      faults: { lateMs: 8_000 },
      heal: false,
    },
  ],
])('the model notices: %s', async (_name, variant) => {
  const { wrong } = await runSeeds(variant, SEEDS);
  expect(wrong.length).toBeGreaterThan(0);
});

test('a duplicate that is seen as an event is deleted', async () => {
  const broken: Variant = { kind: 'slack', limits: { settleMs: 0 } };
  const healed = await runSeeds(broken, SEEDS);
  const unhealed = await runSeeds({ ...broken, heal: false }, SEEDS);
  expect(healed.wrong.length).toBeLessThan(unhealed.wrong.length);
});
