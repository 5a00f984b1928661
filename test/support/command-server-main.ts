// An owner for the command storm: takes the kept lock, serves commands whose commit is a line in a
// file, is slow and faulty at random, and is killed by the storm at any moment.
//
// argv: <directory> <seed>. Writes owner.json once it serves, says "serving".

import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mintId } from '../../src/base/ids.ts';
import { silentLog } from '../../src/base/log.ts';
import { seededRandom } from '../../src/base/random.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import { CommandServer } from '../../src/control/command-server.ts';
import { systemMachineTime } from '../../src/control/machine-time.ts';
import { tupleOf } from '../../src/control/records.ts';
import { acquireKeptLock } from '../../src/ownership/kept-lock.ts';
import { asMyself } from './lock-records.ts';

const directory = process.argv[2] ?? '.';
const random = seededRandom(Number(process.argv[3] ?? '1'));
const acquired = acquireKeptLock(join(directory, 'owner.lock'), asMyself());
if (acquired.kind === 'busy') process.exit(20);
const { lock } = acquired;

/** Most steps are quick, some are slow enough for a kill or a cancellation to fall into. */
function jitter(): Promise<void> {
  const slow = random.next() < 0.2;
  return systemClock.sleep(slow ? random.next() * 30 : 0);
}

const server = new CommandServer({
  directory: join(directory, 'commands'),
  kind: 'slack',
  owner: tupleOf(lock.record),
  proven: () => lock.prove().kind === 'held',
  handlers: {
    'bind-thread': async (args, fence) => {
      if (random.next() < 0.05) throw new Error('before authority');
      const entered = await fence.enter();
      if (!entered.granted) return { kind: 'rejected', code: entered.because };
      await jitter();
      if (random.next() < 0.05) throw new Error('after authority');
      if (random.next() < 0.05) return { kind: 'rejected', code: 'root_conflict' };
      appendFileSync(join(directory, 'commits'), `${fence.requestId}\n`);
      if (random.next() < 0.05) throw new Error('after the commit');
      return { kind: 'ok', result: { session: args.session } };
    },
  },
  clock: systemClock,
  machine: systemMachineTime(),
  random: systemRandom,
  log: silentLog,
  step: jitter,
});
server.start();
const temporary = join(directory, `owner.json.${mintId(systemRandom)}`);
writeFileSync(temporary, JSON.stringify(tupleOf(lock.record)));
renameSync(temporary, join(directory, 'owner.json'));
process.stdout.write('serving\n');
