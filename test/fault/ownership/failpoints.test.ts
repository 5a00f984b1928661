// Every step of the protocols × {SIGKILL, SIGSTOP + successor + SIGCONT, each errno}. After each,
// one fresh contender alone gets ownership: no step leaves a wedge (I11).

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/system-clock.ts';
import { systemRandom } from '../../../src/base/system-random.ts';
import { publishEndpoint, sweepScratchNames } from '../../../src/ownership/endpoint.ts';
import { probeEndpoint } from '../../../src/ownership/endpoint-probe.ts';
import {
  FAILPOINTS,
  type FailpointName,
  type Failpoints,
} from '../../../src/ownership/failpoints.ts';
import { sweepTemporaries, writeFenced } from '../../../src/ownership/fenced-write.ts';
import { acquireKeptLock, type KeptLock, viewLock } from '../../../src/ownership/kept-lock.ts';
import { bundleForChild } from '../../support/bundle.ts';
import { errnoError, FAILPOINT_VARIABLE, failAt } from '../../support/failpoints.ts';
import { asMyself } from '../../support/lock-records.ts';
import { kill, type Owner, settled, startOwner } from '../../support/owners.ts';
import { privateDir } from '../../support/private-dir.ts';
import { eventually, killAfterTest, startProcess, stateOf } from '../../support/processes.ts';

const OWNER_POINTS = FAILPOINTS.filter((name) => !name.startsWith('spawn.'));
const SPAWN_POINTS = FAILPOINTS.filter((name) => name.startsWith('spawn.'));
const ERRNOS = ['ENOSPC', 'EIO', 'EPERM', 'EACCES', 'EROFS', 'EMFILE'];

/** Points on the way of a publisher that finds a dead predecessor's name. */
const NEEDS_INCUMBENT: readonly FailpointName[] = [
  'endpoint.probed-once',
  'endpoint.probed-twice',
  'endpoint.renamed',
];

/** Before these nobody holds the lock yet. */
const BEFORE_LOCK: readonly FailpointName[] = ['lock.before-open', 'lock.opened'];

async function leaveDeadName(directory: string, point: FailpointName): Promise<void> {
  if (!NEEDS_INCUMBENT.includes(point)) return;
  const dead = await startOwner(directory);
  expect(await settled(dead)).toBe('serving');
  await kill(dead);
}

/** The oracle: one contender, alone, gets everything; the name and the record lead to it. */
async function expectLoneContenderServes(directory: string): Promise<Owner> {
  const lone = await startOwner(directory);
  expect(`${await settled(lone)} ${lone.stderr}`).toBe('serving ');
  await expectReachable(directory, lone);
  const scratch = readdirSync(directory).filter((name) => /^\.p|\.tmp$/.test(name));
  expect(scratch).toEqual([]);
  return lone;
}

async function expectReachable(directory: string, owner: Owner): Promise<void> {
  expect(existsSync(join(directory, 'violations'))).toBe(false);
  const answer = await probeEndpoint(join(directory, 'owner.sock'), systemClock);
  expect(answer).toEqual({ kind: 'serving', pid: owner.child.pid });
  const view = viewLock(join(directory, 'owner.lock'));
  const record = view.record.kind === 'record' ? view.record.record : undefined;
  expect([view.state, record?.incarnation.pid]).toEqual(['held', owner.child.pid]);
  const state = JSON.parse(readFileSync(join(directory, 'state.json'), 'utf8')) as {
    nonce: string;
  };
  expect(state.nonce).toBe(record?.nonce);
}

describe.each(OWNER_POINTS)('at %s', (point) => {
  it('SIGKILL leaves no wedge', async () => {
    const directory = privateDir();
    await leaveDeadName(directory, point);
    const victim = await startOwner(directory, `${point}=kill`);
    expect(await settled(victim)).toBe('ended SIGKILL');
    await kill(await expectLoneContenderServes(directory));
  });

  it('SIGSTOP, a successor, SIGCONT: one owner, and the loser writes nothing', async () => {
    const directory = privateDir();
    await leaveDeadName(directory, point);
    const first = await startOwner(directory, `${point}=stop`);
    expect(await settled(first)).toBe('stopped');
    const second = await startOwner(directory);
    const held = !BEFORE_LOCK.includes(point);
    // A stopped owner is an owner: nobody takes its place.
    expect(await settled(second)).toBe(held ? 'ended 20' : 'serving');
    first.child.kill('SIGCONT');
    await eventually(() => first.ended !== undefined || stateOf(first.child.pid) !== 'T', 'go on');
    expect(await settled(first)).toBe(held ? 'serving' : 'ended 20');
    await expectReachable(directory, held ? first : second);
    await kill(held ? first : second);
    await kill(await expectLoneContenderServes(directory));
  });
});

/** One contender's whole way, in this process. Returns the lock once it has it. */
async function contend(
  directory: string,
  failpoints: Failpoints,
  owned: (lock: KeptLock) => void,
): Promise<{ close(): void }> {
  const me = asMyself();
  const acquired = acquireKeptLock(join(directory, 'owner.lock'), { ...me, failpoints });
  if (acquired.kind === 'busy') throw new Error('busy: the one before did not let go');
  const { lock } = acquired;
  owned(lock);
  const statePath = join(directory, 'state.json');
  await sweepTemporaries(lock, statePath);
  const state = JSON.stringify({ nonce: me.record.nonce });
  await writeFenced(lock, statePath, state, { random: systemRandom, failpoints });
  const path = join(directory, 'owner.sock');
  sweepScratchNames(lock, path);
  const published = await publishEndpoint({
    path,
    lock,
    clock: systemClock,
    random: systemRandom,
    failpoints,
    createServer: () => createServer((socket) => socket.on('error', () => undefined).destroy()),
  });
  if (published.kind !== 'published') throw new Error(published.kind);
  return {
    close: () => {
      published.endpoint.stopListening();
      lock.release();
    },
  };
}

const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

describe.each(ERRNOS)('%s', (errno) => {
  it.each(OWNER_POINTS)(
    'at %s fails cleanly, leaks no descriptor, leaves no wedge',
    async (point) => {
      const directory = privateDir();
      if (NEEDS_INCUMBENT.includes(point)) {
        (await contend(directory, failAt(undefined), () => undefined)).close();
      }
      await eventually(() => true, 'a turn of the loop');
      const before = openDescriptors();
      const failpoints = failAt(point, () => {
        throw errnoError(errno);
      });
      let lock: KeptLock | undefined;
      const failure: unknown = await contend(directory, failpoints, (taken) => {
        lock = taken;
      }).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failpoints.passed).toContain(point);
      expect(failure).toBeInstanceOf(Error);
      expect((failure as { code?: string }).code ?? '').toMatch(
        new RegExp(`${errno}|state-directory-unusable|capability-missing`),
      );
      // A process that fails ends: what it held goes with it.
      lock?.release();
      await eventually(() => openDescriptors() <= before, 'descriptors closed');
      const lone = await contend(directory, failAt(undefined), () => undefined);
      expect(await probeEndpoint(join(directory, 'owner.sock'), systemClock)).toMatchObject({
        kind: 'serving',
      });
      lone.close();
    },
  );
});

async function startStarter(
  directory: string,
  failpoint?: string,
  waitMs = 10_000,
): Promise<{ pid: number; outcome: Promise<string> }> {
  const main = await bundleForChild('test/support/starter-main.ts');
  const owner = await bundleForChild('test/support/owner-main.ts');
  const child = startProcess(process.execPath, [main, directory, owner, String(waitMs)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...(failpoint === undefined ? {} : { [FAILPOINT_VARIABLE]: failpoint }),
    },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  const outcome = new Promise<string>((resolve) => {
    child.once('close', (_code, signal) => resolve(signal ?? text.trim()));
  });
  return { pid: child.pid, outcome };
}

/** The owner that serves now, to be ended after the test. */
async function servingPid(directory: string): Promise<number> {
  const answer = await probeEndpoint(join(directory, 'owner.sock'), systemClock);
  if (answer.kind !== 'serving' || answer.pid === undefined) throw new Error(answer.kind);
  return killAfterTest(answer.pid);
}

describe.each(SPAWN_POINTS)('at %s', (point) => {
  it('SIGKILL leaves a next starter able to start or adopt', async () => {
    const directory = privateDir();
    const victim = await startStarter(directory, `${point}=kill`);
    const ended = await victim.outcome;
    if (point === 'spawn.before-announce') {
      // It is the child that was killed; its starter learns that it ended.
      expect(ended).toMatch(/"kind":"started".*SIGKILL/);
    } else {
      expect(ended).toBe('SIGKILL');
    }
    const next = await startStarter(directory);
    const outcome = JSON.parse(await next.outcome) as { kind: string; value: string };
    expect(['started', 'adopted']).toContain(outcome.kind);
    // A child whose starter died goes on to own; whoever comes next stands down for it.
    expect(outcome.value).toMatch(/ready|serving|occupied/);
    await eventually(() => existsSync(join(directory, 'owner.sock')), 'an owner');
    await servingPid(directory);
    expect(existsSync(join(directory, 'violations'))).toBe(false);
  });
});

describe('a starter that is stopped while it holds the turn', () => {
  it('is waited for within a bound, and its turn goes on when it does', async () => {
    const directory = privateDir();
    const first = await startStarter(directory, 'spawn.locked=stop');
    await eventually(() => stateOf(first.pid) === 'T', 'stop');
    const second = await startStarter(directory, undefined, 500);
    expect(JSON.parse(await second.outcome)).toEqual({ kind: 'timed-out' });
    process.kill(first.pid, 'SIGCONT');
    expect(JSON.parse(await first.outcome)).toMatchObject({ kind: 'started' });
    await servingPid(directory);
  });
});
