// Kills a chat daemon with SIGKILL at a random moment of a 400-line output paced at 40 lines a second,
// starts it again, and looks at the thread: every line once, in order. Seeded.

import type { Kind } from '../../src/base/paths.ts';
import { seededRandom } from '../../src/base/random.ts';
import { programLines } from './chat-world.ts';
import { type Stack, waitFor } from './stack.ts';

export const LINES = 400;
const LINES_PER_SECOND = 40;
/** The whole output takes 10 s; after that the thread must settle within the platform's limits. */
const SETTLE_MS = 90_000;

export interface KillRound {
  readonly round: number;
  readonly killedAfterMs: number;
  /** Numbers of the lines as they stand in the thread. */
  readonly shown: readonly number[];
}

export interface KillPlan {
  readonly kind: Kind;
  readonly root: string;
  readonly rounds: number;
  readonly seed: number;
  readonly onRound?: (round: KillRound) => void;
}

/** Runs the rounds in one thread. @throws {Error} when a thread never becomes complete */
export async function killRounds(stack: Stack, plan: KillPlan): Promise<readonly KillRound[]> {
  const random = seededRandom(plan.seed);
  const rounds: KillRound[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    const killedAfterMs = Math.floor(random.next() * (LINES / LINES_PER_SECOND) * 1000);
    rounds.push(await oneRound(stack, plan, round, killedAfterMs));
    plan.onRound?.(rounds[rounds.length - 1] as KillRound);
  }
  return rounds;
}

async function oneRound(
  stack: Stack,
  plan: KillPlan,
  round: number,
  killedAfterMs: number,
): Promise<KillRound> {
  const world = stack.worlds[plan.kind];
  const tag = `r${round}s${plan.seed}`;
  const pause = 1 / LINES_PER_SECOND;
  await world.type(
    'alice',
    plan.root,
    `for i in $(seq 1 ${LINES}); do echo "${tag} $i"; sleep ${pause}; done`,
  );
  const pattern = new RegExp(`^${tag} (\\d+)$`);
  const numbers = async (): Promise<readonly number[]> =>
    programLines(await world.thread(plan.root)).flatMap((line) => {
      const match = pattern.exec(line);
      return match === null ? [] : [Number(match[1])];
    });
  await waitFor(`round ${round} began`, async () =>
    (await numbers()).length > 0 ? true : undefined,
  );
  // The moment of the kill is the seeded random one; nothing is waited for by this time.
  await new Promise((resolve) => setTimeout(resolve, killedAfterMs));
  process.kill(stack.daemonPid(plan.kind), 'SIGKILL');
  await stack.mustCli('ensure', plan.kind);
  await waitFor(
    `line ${LINES} of round ${round} in ${plan.kind}`,
    async () => ((await numbers()).includes(LINES) ? true : undefined),
    SETTLE_MS,
  );
  return { round, killedAfterMs, shown: await numbers() };
}

export const EVERY_LINE_ONCE: readonly number[] = Array.from({ length: LINES }, (_, i) => i + 1);
