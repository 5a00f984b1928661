// The long form of test/e2e/kill.test.ts: 20 kills for each kind. Prints its seed and the counts.

import { isDeepStrictEqual } from 'node:util';
import { builtDist } from '../support/built-dist.ts';
import { EVERY_LINE_ONCE, killRounds } from '../support/kill-rounds.ts';
import { Stack, waitFor } from '../support/stack.ts';

const ROUNDS = Number(process.argv[2] ?? 20);
const SEED = Number(process.argv[3] ?? Date.now() % 100_000);

const stack = await Stack.start({ dist: builtDist() });
let wrong = 0;
try {
  process.stdout.write(`kill storm: seed ${SEED}, ${ROUNDS} rounds for each kind\n`);
  await stack.mustCli('ensure');
  await Promise.all(
    (['slack', 'discord'] as const).map(async (kind) => {
      const world = stack.worlds[kind];
      await world.run('alice', 'run');
      const root = await waitFor(`a thread in ${kind}`, async () => (await world.roots()).at(-1));
      await killRounds(stack, {
        kind,
        root: root.id,
        rounds: ROUNDS,
        seed: SEED,
        onRound: ({ round, killedAfterMs, shown }) => {
          const right = isDeepStrictEqual(shown, EVERY_LINE_ONCE);
          if (!right) wrong += 1;
          process.stdout.write(
            `${kind} round ${round}: killed after ${killedAfterMs} ms, ${shown.length} lines, ${right ? 'every line once, in order' : 'WRONG'}\n`,
          );
        },
      });
    }),
  );
  const violations = await stack.control.violations();
  process.stdout.write(
    `${2 * ROUNDS} kills, ${wrong} wrong threads, ${violations.length} violations\n`,
  );
  if (wrong > 0 || violations.length > 0) process.exitCode = 1;
} finally {
  await stack.close();
}
