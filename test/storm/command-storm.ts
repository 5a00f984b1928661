// The long storm of the command channel: part of `npm run test:storm` [-- --rounds N --seed N]. Prints
// seed and counts; exit code 1 on any violation or when it got too few rounds.

import { parseArgs } from 'node:util';
import { runCommandStorm } from '../support/command-storm.ts';

const { values } = parseArgs({
  strict: false,
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    rounds: { type: 'string', default: '2000' },
  },
});
const rounds = Number(values['rounds']);
const seed = Number(values['seed']);
const report = await runCommandStorm({ rounds, submitters: 12, seed, maxMs: 600_000 });
process.stdout.write(`${JSON.stringify({ commands: { seed, ...report } }, null, 2)}\n`);
process.exit(report.violations.length === 0 && report.rounds >= rounds ? 0 : 1);
