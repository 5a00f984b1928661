// The delivery model at length: 1,000 seeds for each variant of DELIVERY.md's table, the first of
// them chosen by the first argument so that a nightly run sees fresh ones. One run in ten keeps its
// store in a file and opens it again after each kill. Prints the table; exit code 1 when a variant
// that must be right is wrong, or one that must be wrong is not noticed.

import { join } from 'node:path';
import { seededRandom } from '../../src/base/random.ts';
import { openStore } from '../../src/store/store.ts';
import { runSeeds, type Variant } from '../support/delivery-model.ts';
import { tempDir } from '../support/temp-dir.ts';

const first = Number.parseInt(process.argv[2] ?? '1', 10);
const seeds = Number.parseInt(process.argv[3] ?? '1000', 10);

const NO_NONCE = { limits: { repeatWindowMs: 0 }, faults: { nonceMs: 0 } };
const RIGHT: readonly [string, Variant][] = [
  ['Slack as proposed', { kind: 'slack' }],
  ['Discord as proposed', { kind: 'discord' }],
  ['Discord, window passed', { kind: 'discord', ...NO_NONCE }],
  ['Slack, no events', { kind: 'slack', faults: { events: false } }],
];
const WRONG: readonly [string, Variant][] = [
  ['Slack without settle, HEAL', { kind: 'slack', limits: { settleMs: 0 } }],
  ['Slack without settle, no HEAL', { kind: 'slack', limits: { settleMs: 0 }, heal: false }],
  [
    'Discord without nonce and settle',
    {
      kind: 'discord',
      limits: { repeatWindowMs: 0, settleMs: 0 },
      faults: { nonceMs: 0 },
      heal: false,
    },
  ],
  ['edit in doubt not repeated, Slack', { kind: 'slack', limits: { editSettleMs: 0 } }],
  ['edit in doubt not repeated, Discord', { kind: 'discord', limits: { editSettleMs: 0 } }],
];

/** The store of each run in a file, opened anew by each life of the daemon. */
const inFile: NonNullable<Variant['store']> = (clock) => {
  const directory = tempDir();
  const path = join(directory.path, 'store.db');
  return {
    open: () => openStore(path, { clock, random: seededRandom(1) }),
    done: () => directory.remove(),
  };
};

async function run(name: string, variant: Variant, mustBeRight: boolean): Promise<void> {
  const inMemory = await runSeeds(variant, Math.ceil(seeds * 0.9), first);
  const onDisk = await runSeeds({ ...variant, store: inFile }, Math.floor(seeds * 0.1), first);
  const wrong = [...inMemory.wrong, ...onDisk.wrong];
  const kills = inMemory.kills + onDisk.kills;
  const ok = mustBeRight ? wrong.length === 0 : wrong.length > 0;
  console.log(`${ok ? ' ' : '!'} ${name.padEnd(38)} ${kills} kills, ${wrong.length} wrong`);
  if (ok) return;
  process.exitCode = 1;
  for (const { seed, what } of wrong.slice(0, 5)) console.log(`    seed ${seed}: ${what}`);
}

for (const [name, variant] of RIGHT) await run(name, variant, true);
for (const [name, variant] of WRONG) await run(name, variant, false);
