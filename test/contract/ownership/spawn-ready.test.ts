import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/system-clock.ts';
import { acquireKeptLock } from '../../../src/ownership/kept-lock.ts';
import {
  type SpawnReadyOutcome,
  type SpawnReadyRequest,
  spawnReady,
  takeSpawnTurn,
} from '../../../src/ownership/spawn-ready.ts';
import { readProcessFacts } from '../../../src/sys/process-facts.ts';
import { bundleForChild } from '../../support/bundle.ts';
import { asMyself } from '../../support/lock-records.ts';
import { privateDir } from '../../support/private-dir.ts';
import { killAfterTest, stateOf } from '../../support/processes.ts';

async function start(
  directory: string,
  what: string,
  change: Partial<SpawnReadyRequest> = {},
): Promise<SpawnReadyOutcome> {
  const main = await bundleForChild('test/support/child-main.ts');
  const outcome = await spawnReady({
    file: process.execPath,
    args: [main, what, join(directory, 'out')],
    environment: { PATH: '/usr/bin:/bin', KEPT: 'yes' },
    cwd: directory,
    stderrPath: join(directory, 'stderr'),
    timeoutMs: 30_000,
    clock: systemClock,
    ...change,
  });
  if (outcome.kind === 'ready' || outcome.kind === 'timed-out') killAfterTest(outcome.pid);
  return outcome;
}

describe('starting with readiness', () => {
  it('hears the line of a child that runs on in a session of its own', async () => {
    const outcome = await start(privateDir(), 'ready');
    expect(outcome).toMatchObject({ kind: 'ready', line: 'owned 42' });
    if (outcome.kind !== 'ready') return;
    expect(readProcessFacts(outcome.pid).session).toBe(outcome.pid);
    expect(stateOf(outcome.pid)).not.toBe('Z');
  });

  it('exit code 20 means occupied: adopt', async () => {
    expect(await start(privateDir(), 'occupied')).toEqual({ kind: 'occupied' });
  });

  it('race 16: the end of the pipe without a line is an end, with the tail of stderr', async () => {
    const directory = privateDir();
    const outcome = await start(directory, 'fails');
    expect(outcome).toMatchObject({ kind: 'ended', status: 'code 3' });
    if (outcome.kind !== 'ended') return;
    expect(outcome.stderrTail).toMatch(/the reason$/);
    expect(outcome.stderrTail.length).toBeLessThanOrEqual(4096);
    expect(statSync(join(directory, 'stderr')).mode & 0o777).toBe(0o600);
  });

  it('names the signal that ended it', async () => {
    expect(await start(privateDir(), 'killed')).toMatchObject({ kind: 'ended', status: 'SIGKILL' });
  });

  it('I16: a time-out ends the waiting, not the child', async () => {
    const outcome = await start(privateDir(), 'silent', { timeoutMs: 1500 });
    expect(outcome.kind).toBe('timed-out');
    if (outcome.kind === 'timed-out') expect(stateOf(outcome.pid)).not.toBeUndefined();
  });

  it('an empty line is a line: what it means is the caller’s', async () => {
    expect(await start(privateDir(), 'gives-up')).toMatchObject({ kind: 'ready', line: '' });
  });

  it('is not held up by a grandchild', async () => {
    const directory = privateDir();
    expect(await start(directory, 'grandchild')).toMatchObject({ kind: 'ended', status: 'code 4' });
    killAfterTest(Number(readFileSync(join(directory, 'out'), 'utf8')));
  });

  it('hands down the environment given, the ready pipe, and no other descriptor', async () => {
    const directory = privateDir();
    const lock = acquireKeptLock(join(directory, 'lock'), asMyself());
    expect(await start(directory, 'look')).toMatchObject({ kind: 'ready' });
    const seen = JSON.parse(readFileSync(join(directory, 'out'), 'utf8')) as {
      fds: number[];
      ready?: string;
      kept: string;
      cwd: string;
    };
    expect(seen).toMatchObject({ kept: 'yes', cwd: directory });
    // Taken out of the environment, so that its own children do not look for it.
    expect(seen.ready).toBeUndefined();
    if (lock.kind === 'acquired') {
      const heldInode = statSync(join(directory, 'lock')).ino;
      expect(heldInode).toBeGreaterThan(0);
      lock.lock.release();
      // The child runs on, and the lock is free all the same (I15).
      const again = acquireKeptLock(join(directory, 'lock'), asMyself());
      expect(again.kind).toBe('acquired');
      if (again.kind === 'acquired') again.lock.release();
    }
  });

  it.each([
    ['ENOENT', { file: '/nonexistent/program' }],
    ['EACCES', { file: '/etc/passwd' }],
    ['ENOENT', { cwd: '/nonexistent' }],
  ])('reports %s when nothing could be started', async (code, change) => {
    await expect(start(privateDir(), 'ready', change)).rejects.toMatchObject({
      code: 'spawn-failed',
      message: expect.stringContaining(code) as string,
    });
  });

  it('does not write through a link planted at the place of its stderr', async () => {
    const directory = privateDir();
    writeFileSync(join(directory, 'precious'), 'keep');
    symlinkSync(join(directory, 'precious'), join(directory, 'stderr'));
    await expect(start(directory, 'fails')).rejects.toMatchObject({ code: 'spawn-failed' });
    expect(readFileSync(join(directory, 'precious'), 'utf8')).toBe('keep');
  });
});

describe('race 15: turns at starting', () => {
  it('let one start while all others adopt what it started', async () => {
    const directory = privateDir();
    let started = 0;
    let running: string | undefined;
    const turns = await Promise.all(
      Array.from({ length: 20 }, () =>
        takeSpawnTurn({
          lockPath: join(directory, 'spawn.lock'),
          lock: asMyself(),
          clock: systemClock,
          waitMs: 30_000,
          adopt: async () => running,
          start: async () => {
            started++;
            await systemClock.sleep(100);
            running = 'it';
            return running;
          },
        }),
      ),
    );
    expect(started).toBe(1);
    expect(turns.filter((turn) => turn.kind === 'started')).toHaveLength(1);
    expect(turns.filter((turn) => turn.kind === 'adopted')).toHaveLength(19);
    expect(existsSync(join(directory, 'spawn.lock'))).toBe(true);
  });

  it('looks once more under the lock before it starts', async () => {
    let looks = 0;
    const turn = await takeSpawnTurn({
      lockPath: join(privateDir(), 'spawn.lock'),
      lock: asMyself(),
      clock: systemClock,
      waitMs: 1000,
      adopt: async () => (++looks === 2 ? 'appeared' : undefined),
      start: async () => 'started',
    });
    expect(turn).toEqual({ kind: 'adopted', value: 'appeared' });
  });

  it('gives its turn back when starting fails, and waits for a bounded time only', async () => {
    const path = join(privateDir(), 'spawn.lock');
    const request = {
      lockPath: path,
      lock: asMyself(),
      clock: systemClock,
      waitMs: 100,
      adopt: async () => undefined,
    };
    const failing = { ...request, start: () => Promise.reject(new Error('no')) };
    await expect(takeSpawnTurn(failing)).rejects.toThrow('no');
    const other = acquireKeptLock(path, asMyself());
    expect(other.kind).toBe('acquired');
    expect(await takeSpawnTurn(failing)).toEqual({ kind: 'timed-out' });
    if (other.kind === 'acquired') other.lock.release();
  });
});
