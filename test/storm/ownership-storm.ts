// The long storm: `npm run test:storm [-- --seed N] [-- --acquisitions N]`. Prints seed and counts;
// exit code 1 on any violation or when it got too few acquisitions.

import { parseArgs } from 'node:util';
import { runPidReuse } from '../support/pid-reuse.ts';
import { runStorm } from '../support/storm.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    acquisitions: { type: 'string', default: '5000' },
    contenders: { type: 'string', default: '12' },
    rounds: { type: 'string', default: '2000' },
  },
});
const wanted = Number(values.acquisitions);
const storm = await runStorm({
  contenders: Number(values.contenders),
  acquisitions: wanted,
  maxMs: 900_000,
  killChance: 0.01,
  seed: Number(values.seed),
});
const reuse = runPidReuse(Number(values.rounds));
process.stdout.write(`${JSON.stringify({ storm, reuse }, null, 2)}\n`);
const ok =
  storm.violations.length === 0 &&
  storm.acquisitions >= wanted &&
  (reuse === 'not permitted' || reuse.wrongSignals === 0);
process.exit(ok ? 0 : 1);
