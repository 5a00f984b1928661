// A short run of the command channel's storm; `npm run test:storm` has the long one.

import { expect, it } from 'vitest';
import { runCommandStorm } from '../../support/command-storm.ts';

it('I8, I9: cancelled is never committed, ok always is, nothing twice, under kills', async () => {
  const report = await runCommandStorm({ rounds: 300, submitters: 12, seed: 7, maxMs: 60_000 });
  expect(report.violations).toEqual([]);
  // The storm reached what it is about.
  expect(report.kills).toBeGreaterThan(3);
  expect(report.outcomes['ok']).toBeGreaterThan(20);
  expect(report.outcomes['cancelled']).toBeGreaterThan(5);
  expect(report.commits).toBeGreaterThanOrEqual(report.outcomes['ok'] ?? 0);
});
