import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtDist } from '../support/built-dist.ts';
import { EVERY_LINE_ONCE, killRounds } from '../support/kill-rounds.ts';
import { Stack, waitFor } from '../support/stack.ts';

// What happened elsewhere: a bridge that dies while it posts loses what it had not posted, or posts
// again what it had. 20 rounds are in `npm run test:storm`.
const ROUNDS = 4;
const SEED = 4711;

let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start({ dist: builtDist() });
  await stack.mustCli('ensure');
});

afterAll(async () => {
  await stack.close();
});

test('a killed chat daemon loses no line and repeats none, in either kind', async () => {
  const shown = await Promise.all(
    (['slack', 'discord'] as const).map(async (kind) => {
      const world = stack.worlds[kind];
      await world.run('alice', 'run');
      const root = await waitFor(`a thread in ${kind}`, async () => (await world.roots()).at(-1));
      return await killRounds(stack, { kind, root: root.id, rounds: ROUNDS, seed: SEED });
    }),
  );
  for (const rounds of shown) {
    for (const round of rounds) expect(round.shown, `seed ${SEED}`).toEqual(EVERY_LINE_ONCE);
  }
  expect(await stack.control.violations()).toEqual([]);
}, 240_000);
