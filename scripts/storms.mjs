// Runs every storm of test/storm one after another; fails if one does.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

const storms = readdirSync('test/storm').filter((name) => name.endsWith('-storm.ts'));
const failed = [];
for (const storm of storms) {
  console.log(`\n== ${storm}`);
  const { status } = spawnSync('npx', ['tsx', `test/storm/${storm}`], { stdio: 'inherit' });
  if (status !== 0) failed.push(storm);
}
console.log(
  `\n${storms.length - failed.length} storms passed, ${failed.length} failed ${failed.join(' ')}`,
);
if (failed.length > 0) process.exitCode = 1;
