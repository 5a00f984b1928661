// An owner as tests need one: takes the kept lock of a directory, holds an abstract socket as the
// kernel's witness of exclusion, writes its state behind the fence, publishes an endpoint, says
// "serving", and then obeys lines on stdin: `write` writes the state again, `quit` ends it.
//
// argv: <directory>. Exit codes: 20 occupied, 1 refused (reason on stderr), 99 two owners.

import { appendFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/base/system-clock.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import { publishEndpoint, sweepScratchNames } from '../../src/ownership/endpoint.ts';
import { endpointId } from '../../src/ownership/endpoint-probe.ts';
import { sweepTemporaries, writeFenced } from '../../src/ownership/fenced-write.ts';
import { acquireKeptLock } from '../../src/ownership/kept-lock.ts';
import { EXIT_OCCUPIED, takeAnnouncer } from '../../src/ownership/spawn-ready.ts';
import { failpointsFromEnvironment } from './failpoints.ts';
import { asMyself } from './lock-records.ts';

const [, , directory = '.'] = process.argv;
const failpoints = failpointsFromEnvironment(process.env);
const announcer = takeAnnouncer(process.env, failpoints);
const random = systemRandom;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Fails the whole run if two processes believe they own the directory. */
function holdWitness(): Promise<Server> {
  return new Promise((resolve) => {
    const witness = createServer();
    witness.once('error', () => {
      appendFileSync(join(directory, 'violations'), `two owners: ${process.pid}\n`);
      process.exit(99);
    });
    witness.listen(`\0chatd-witness:${directory}`, () => resolve(witness));
  });
}

async function main(): Promise<void> {
  const me = asMyself();
  const acquired = acquireKeptLock(join(directory, 'owner.lock'), { ...me, failpoints });
  if (acquired.kind === 'busy') process.exit(EXIT_OCCUPIED);
  const { lock } = acquired;
  if (process.env['NO_WITNESS'] === undefined) await holdWitness();
  const statePath = join(directory, 'state.json');
  await sweepTemporaries(lock, statePath);
  let seq = 0;
  const write = async (): Promise<void> => {
    const state = JSON.stringify({ pid: process.pid, nonce: me.record.nonce, seq: ++seq });
    await writeFenced(lock, statePath, state, { random, failpoints });
  };
  await write();
  const path = join(directory, 'owner.sock');
  sweepScratchNames(lock, path);
  const published = await publishEndpoint({
    path,
    lock,
    clock: systemClock,
    random,
    failpoints,
    createServer: () => createServer((socket) => socket.on('error', () => undefined).end('hi')),
  });
  if (published.kind !== 'published') {
    throw new Error(`not published: ${JSON.stringify(published)}`);
  }
  announcer.announce('ready');
  say(`serving ${process.pid} ${endpointId(published.endpoint.identity)}`);
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    if (line === 'quit') process.exit(0);
    if (line === 'write') {
      write().then(
        () => say('written'),
        (error: unknown) => say(`refused ${String((error as { code?: string }).code)}`),
      );
    }
  });
}

// Longer than any test, so that an interrupted run leaves nothing for long.
setTimeout(() => process.exit(0), 300_000);

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
