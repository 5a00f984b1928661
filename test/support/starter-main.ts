// A starter as clients are one: adopts a running owner, or takes its turn and starts one.
//
// argv: <directory> <owner bundle> <wait ms>. Writes one line of JSON: the outcome.

import { join } from 'node:path';
import { systemClock } from '../../src/base/system-clock.ts';
import { probeEndpoint } from '../../src/ownership/endpoint-probe.ts';
import { spawnReady, takeSpawnTurn } from '../../src/ownership/spawn-ready.ts';
import { failpointsFromEnvironment } from './failpoints.ts';
import { asMyself } from './lock-records.ts';

const [, , directory = '.', owner = '', waitMs = '10000'] = process.argv;
const failpoints = failpointsFromEnvironment(process.env);

async function adopt(): Promise<string | undefined> {
  const answer = await probeEndpoint(join(directory, 'owner.sock'), systemClock);
  return answer.kind === 'serving' ? `serving ${answer.pid ?? '?'}` : undefined;
}

async function start(): Promise<string> {
  const outcome = await spawnReady({
    file: process.execPath,
    args: [owner, directory],
    environment: process.env,
    cwd: directory,
    stderrPath: join(directory, 'owner.stderr'),
    timeoutMs: 10_000,
    clock: systemClock,
    failpoints,
  });
  return JSON.stringify(outcome);
}

takeSpawnTurn({
  lockPath: join(directory, 'spawn.lock'),
  lock: asMyself(),
  clock: systemClock,
  waitMs: Number(waitMs),
  adopt,
  start,
  failpoints,
}).then(
  (turn) => {
    process.stdout.write(`${JSON.stringify(turn)}\n`);
    process.exit(0);
  },
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exit(1);
  },
);
