// One contender of the ownership storm: takes the lock, publishes, proves that it alone owns and is
// reached, lets go, again and again until it is killed.
//
// argv: <directory> <seed> <chance to die at each step>. History lines (O_APPEND): "A <pid> <nonce>", "R <pid> <nonce>".
// Violations go to <directory>/violations.

import { appendFileSync, fstatSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { seededRandom } from '../../src/base/random.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import { publishEndpoint, sweepScratchNames } from '../../src/ownership/endpoint.ts';
import { probeEndpoint } from '../../src/ownership/endpoint-probe.ts';
import type { Failpoints } from '../../src/ownership/failpoints.ts';
import { writeFenced } from '../../src/ownership/fenced-write.ts';
import { acquireKeptLock, type KeptLock } from '../../src/ownership/kept-lock.ts';
import { asMyself } from './lock-records.ts';

const [, , directory = '.', seed = '1', killChance = '0'] = process.argv;
const chance = seededRandom(Number(seed));
const history = openSync(join(directory, 'history'), 'a+', 0o600);
const path = join(directory, 'owner.sock');

function violate(what: string): void {
  appendFileSync(join(directory, 'violations'), `${what}: seen by ${process.pid}\n`);
}

const failpoints: Failpoints = {
  hit: () => {
    if (chance.next() < Number(killChance)) process.kill(process.pid, 'SIGKILL');
  },
};

function note(line: string): void {
  writeSync(history, `${line}\n`);
}

/** PF_EXITING of field 9: its descriptors are being closed, in the order of their numbers. */
function isGoing(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ['Z', 'X'].includes(fields[0] ?? '') || (Number(fields[6]) & 0x4) !== 0;
  } catch {
    return true;
  }
}

/** The pid of the last acquisition in the history that was not released. */
function lastHolder(): number | undefined {
  const size = fstatSync(history).size;
  const buffer = Buffer.alloc(Math.min(size, 4096));
  readSync(history, buffer, 0, buffer.length, size - buffer.length);
  const last = buffer.toString().trimEnd().split('\n').at(-1)?.split(' ');
  return last?.[0] === 'A' ? Number(last[1]) : undefined;
}

/** Oracle 1: who acquired before us has released, or is at its end. */
function checkPredecessor(): void {
  const pid = lastHolder();
  if (pid !== undefined && pid !== process.pid && !isGoing(pid))
    violate(`two owners, other ${pid}`);
}

/** Oracle 2: an abstract socket, which the kernel gives to one. */
async function holdWitness(): Promise<Server> {
  for (;;) {
    const witness = createServer();
    const held = await new Promise<boolean>((resolve) => {
      witness.once('error', () => resolve(false));
      witness.listen(`\0chatd-storm:${directory}`, () => resolve(true));
    });
    if (held) return witness;
    // A killed owner's lock is released a moment before its witness: higher descriptor, closed later.
    const answer = await probeEndpoint(`\0chatd-storm:${directory}`, systemClock);
    if (answer.kind === 'serving' && answer.pid !== undefined && !isGoing(answer.pid)) {
      violate(`witness held by ${answer.pid}`);
    }
    await systemClock.sleep(1);
  }
}

/** Oracle 3: the name leads to us. */
async function checkReachable(): Promise<void> {
  const answer = await probeEndpoint(path, systemClock);
  if (answer.kind === 'serving' && answer.pid === process.pid) note(`S ${process.pid} -`);
  else violate(`name leads to ${JSON.stringify(answer)}`);
}

async function own(lock: KeptLock, nonce: string): Promise<void> {
  checkPredecessor();
  note(`A ${process.pid} ${nonce}`);
  const witness = await holdWitness();
  await writeFenced(lock, join(directory, 'state.json'), nonce, {
    random: systemRandom,
    failpoints,
  });
  sweepScratchNames(lock, path);
  const published = await publishEndpoint({
    path,
    lock,
    clock: systemClock,
    random: systemRandom,
    failpoints,
    createServer: () => createServer((socket) => socket.on('error', () => undefined).destroy()),
  });
  if (published.kind === 'published') {
    await checkReachable();
    if (chance.next() < 0.3) await systemClock.sleep(chance.next() * 3);
    published.endpoint.stopListening();
  } else if (published.kind !== 'inconclusive') {
    violate(`not published: ${JSON.stringify(published)}`);
  }
  if (readFileSync(join(directory, 'state.json'), 'utf8') !== nonce) violate('state of another');
  await new Promise((resolve) => witness.close(resolve));
  note(`R ${process.pid} ${nonce}`);
  lock.release();
}

for (;;) {
  const me = asMyself();
  const acquired = acquireKeptLock(join(directory, 'owner.lock'), { ...me, failpoints });
  if (acquired.kind === 'acquired') await own(acquired.lock, me.record.nonce);
  await systemClock.sleep(chance.next() * 4);
  // The storm is over and its directory removed.
  if (fstatSync(history).nlink === 0) process.exit(0);
}
