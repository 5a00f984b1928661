// The controller against owners that the daemon of this revision can never be: newer, older, deaf,
// of another account, with records of the first days or of nobody. Its waits run 20 times faster.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DaemonPaths, daemonPaths } from '../../../src/base/paths.ts';
import { systemRandom } from '../../../src/base/system-random.ts';
import { Controller } from '../../../src/control/controller.ts';
import { systemMachineTime } from '../../../src/control/machine-time.ts';
import { bundleForChild } from '../../support/bundle.ts';
import type { FakeOwner } from '../../support/fake-owner-main.ts';
import { fastClock } from '../../support/fast-clock.ts';
import { eventually, startProcess, stateOf } from '../../support/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';

let program: string;
let directory: ReturnType<typeof tempDir>;
let paths: DaemonPaths;
let spawned: FakeOwner[];

beforeAll(async () => {
  program = await bundleForChild('test/support/fake-owner-main.ts');
});
beforeEach(() => {
  directory = tempDir();
  paths = daemonPaths(directory.path, 'slack');
  mkdirSync(paths.directory, { recursive: true, mode: 0o700 });
  spawned = [];
});
afterEach(() => directory.remove());

async function startOwner(told: FakeOwner): Promise<number> {
  const child = startProcess(process.execPath, [program, paths.directory, JSON.stringify(told)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve, reject) => {
    child.stdout?.once('data', resolve);
    child.once('exit', () => reject(new Error('the owner ended')));
  });
  if (told.stateAfterMs === undefined && told.rawState === undefined) {
    await eventually(() => readOrNothing(paths.state).includes(`"pid":${child.pid}`), 'state');
  }
  return child.pid;
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function controller(identity = 'T0123/A0123'): Controller {
  return new Controller({
    kind: 'slack',
    paths,
    configured: { identity, configHash: 'mine' },
    generation: 1,
    self: { pid: process.pid, uid: process.getuid?.() ?? 0 },
    clock: fastClock(20),
    machine: systemMachineTime(),
    random: systemRandom,
    spawn: async (ownerId) => {
      const told: FakeOwner = { ownerId };
      spawned.push(told);
      const pid = await startOwner(told);
      return { kind: 'ready', pid, line: 'owned' };
    },
  });
}

function runs(pid: number): boolean {
  return !['Z', undefined].includes(stateOf(pid));
}

describe('generations', () => {
  it('attaches to a newer healthy owner, and refuses to stop or reload it', async () => {
    const pid = await startOwner({ generation: 2 });
    const ensured = await controller().ensure();
    expect(ensured.outcome).toBe('attached');
    expect(ensured.warnings).toContain('it is newer (generation 2, ours 1)');
    for (const refused of [await controller().stop({ force: true }), await controller().reload()]) {
      expect(refused).toMatchObject({ outcome: 'newer', exitCode: 21 });
      expect(refused.message).toContain('upgrade this chatd first');
    }
    expect(runs(pid)).toBe(true);
  });

  it('refuses a newer owner that is not healthy, naming both generations', async () => {
    const pid = await startOwner({ generation: 2, healthy: false });
    const refused = await controller().ensure();
    expect(refused).toMatchObject({ outcome: 'newer', exitCode: 21 });
    expect(refused.message).toMatch(/generation 2.*generation 1.*told to be sick.*upgrade/);
    expect(runs(pid)).toBe(true);
  });

  it.each([
    ['an older generation', { generation: 0 }, false],
    ['no generation at all', { generation: null }, false],
    ['an older generation that hears no signal', { generation: 0, deaf: true }, true],
  ])('replaces an owner of %s by itself', async (_name, told: FakeOwner, killed) => {
    const pid = await startOwner(told);
    const ensured = await controller().ensure();
    expect(ensured.outcome).toBe('spawned');
    expect(ensured.warnings).toEqual(killed ? ['it had to be killed'] : []);
    expect(runs(pid)).toBe(false);
    expect(spawned).toHaveLength(1);
  });

  it('keeps an owner of the same version whose record has unknown extra keys', async () => {
    const pid = await startOwner({ extra: { colour: 'blue', __proto__: { x: 1 } } });
    expect(await controller().ensure()).toMatchObject({ outcome: 'attached', after: { pid } });
  });
});

describe('owners that must not be touched', () => {
  it('I3: refuses an owner of another account, and signals nobody', async () => {
    const pid = await startOwner({ identity: 'T0999/A0999' });
    for (const refused of [
      await controller().ensure(),
      await controller().stop({ force: true }),
      await controller().reload({ force: true }),
    ]) {
      expect(refused).toMatchObject({ outcome: 'unauthorized', exitCode: 21 });
    }
    expect(runs(pid)).toBe(true);
  });

  it('leaves a compatible but unhealthy owner alone and names the way out', async () => {
    const pid = await startOwner({ healthy: false });
    const ensured = await controller().ensure();
    expect(ensured).toMatchObject({ outcome: 'unhealthy', exitCode: 25 });
    expect(ensured.message).toContain('told to be sick; to replace it: chatd reload slack --force');
    expect(runs(pid)).toBe(true);
  });

  it('I16: says of an owner with an old heartbeat that it does not answer, and leaves it alone', async () => {
    const pid = await startOwner({ heartbeatAgeMs: 60_000 });
    const ensured = await controller().ensure();
    expect(ensured.outcome).toBe('unhealthy');
    expect(ensured.message).toMatch(/not answering, its last heartbeat is 6\d s old/);
    expect(runs(pid)).toBe(true);
  });

  it.each([
    ['junk', '\u0000\u0001{]'],
    ['a torn record', '{"version":1,"kind":"sla'],
    ['a record of nobody', '{}'],
    ['a malformed generation', '{"version":1,"generation":"new"}'],
  ])('I4: refuses a held lock whose state is %s', async (_name, rawState) => {
    const pid = await startOwner({ rawState });
    await eventually(() => readOrNothing(paths.state) === rawState, 'the raw state');
    for (const refused of [await controller().ensure(), await controller().stop({ force: true })]) {
      expect(refused).toMatchObject({ outcome: 'malformed', exitCode: 21 });
      expect(refused.message).toContain('chatd status slack --explain');
    }
    expect(runs(pid)).toBe(true);
  });

  it('waits for an owner that is just starting', async () => {
    const pid = await startOwner({ stateAfterMs: 200 });
    expect(await controller().ensure()).toMatchObject({ outcome: 'attached', after: { pid } });
  });

  it('I4: refuses after one start when the holder never says who it is', async () => {
    const pid = await startOwner({ stateAfterMs: 3_600_000 });
    const refused = await controller().ensure();
    expect(refused).toMatchObject({ outcome: 'unknown', exitCode: 24 });
    expect(runs(pid)).toBe(true);
  });
});

describe('ending an owner', () => {
  it('does not kill a deaf owner without --force, and proves its death with it', async () => {
    const pid = await startOwner({ deaf: true });
    expect(await controller().stop()).toMatchObject({ outcome: 'did-not-exit', exitCode: 25 });
    expect(runs(pid)).toBe(true);
    expect(await controller().stop({ force: true })).toMatchObject({
      outcome: 'stopped',
      warnings: ['it had to be killed'],
    });
    expect(runs(pid)).toBe(false);
  });

  it('takes a stopped process for alive, and kills it only with --force', async () => {
    const pid = await startOwner({});
    process.kill(pid, 'SIGSTOP');
    await eventually(() => stateOf(pid) === 'T', 'stopped');
    expect(await controller().stop()).toMatchObject({ outcome: 'did-not-exit' });
    expect(stateOf(pid)).toBe('T');
    expect(await controller().reload({ force: true })).toMatchObject({ outcome: 'reloaded' });
    expect(runs(pid)).toBe(false);
  });

  it('joins the request of another controller instead of replacing it', async () => {
    await startOwner({ deaf: true });
    const [one, two] = await Promise.all([controller().stop(), controller().stop()]);
    expect([one.outcome, two.outcome]).toEqual(['did-not-exit', 'did-not-exit']);
    expect([...one.warnings, ...two.warnings]).toEqual([]);
    const request = JSON.parse(readOrNothing(paths.control)) as { action: string };
    expect(request.action).toBe('stop');
  });

  it('§4.4: replaces a request for an owner that no longer holds the lock', async () => {
    const first = await startOwner({ deaf: true });
    await controller().stop({ force: true });
    expect(readOrNothing(paths.control)).toContain(`"pid":${first}`);
    const second = await startOwner({ deaf: true });
    expect((await controller().stop()).warnings).toEqual([]);
    expect(readOrNothing(paths.control)).toContain(`"pid":${second}`);
  });

  it('§4.7: takes a zombie owner for dead', async () => {
    // The shell starts the owner, becomes `sleep`, and never waits for it.
    const told = JSON.stringify({});
    const parent = startProcess('/bin/sh', [
      '-c',
      `"$0" "$1" "$2" "$3" >/dev/null & exec sleep 600`,
      process.execPath,
      program,
      paths.directory,
      told,
    ]);
    await eventually(() => readOrNothing(paths.state) !== '', 'state');
    const { pid } = JSON.parse(readOrNothing(paths.state)) as { pid: number };
    process.kill(pid, 'SIGKILL');
    await eventually(() => stateOf(pid) === 'Z', 'a zombie');
    // Its leader is a zombie a moment before its last thread lets go of the lock: then `stop` sees the
    // death itself. Either way it is dead, and nobody waits for a parent that never will.
    const stopped = await controller().stop();
    expect(stopped.exitCode).toBe(0);
    expect(['not-running', 'stopped']).toContain(stopped.outcome);
    expect((await controller().ensure()).outcome).toBe('spawned');
    expect(runs(parent.pid)).toBe(true);
  });
});

describe('records without an owner', () => {
  const old = (pid: number): string =>
    JSON.stringify({
      version: 1,
      kind: 'slack',
      ownerId: 'x',
      pid,
      incarnation: 'unavailable',
      identity: 'T0123/A0123',
      heartbeatAt: 1,
    });

  it('recovers an old record without incarnation only when its pid is proven dead', async () => {
    writeFileSync(paths.state, old(process.pid));
    expect(await controller().ensure()).toMatchObject({ outcome: 'unknown', exitCode: 24 });
    const gone = spawnSync('/bin/true').pid;
    writeFileSync(paths.state, old(gone));
    expect((await controller().ensure()).outcome).toBe('spawned');
  });

  const HOSTILE: readonly (readonly [string, (path: string) => void])[] = [
    ['empty', (path) => writeFileSync(path, '')],
    [
      'a gigabyte of nothing',
      (path) => {
        writeFileSync(path, '');
        truncateSync(path, 2 ** 30);
      },
    ],
    ['a link to an endless device', (path) => symlinkSync('/dev/zero', path)],
    ['a link to itself', (path) => symlinkSync(path, path)],
    ['a directory', (path) => mkdirSync(path)],
    [
      'a pipe nobody writes',
      (path) => {
        execFileSync('mkfifo', [path]);
      },
    ],
  ];

  it.each(HOSTILE)('I17: names a state file that is %s, in bounded time', async (_name, plant) => {
    plant(paths.state);
    expect(await controller().stop()).toMatchObject({ outcome: 'not-running' });
    rmSync(paths.state, { recursive: true });
  });

  it.each(HOSTILE)('I12, I17: ends an owner although control.json is %s', async (_name, plant) => {
    const pid = await startOwner({});
    plant(paths.control);
    const stopped = await controller().stop();
    expect(stopped.outcome).toBe('stopped');
    expect(stopped.warnings.join()).toContain('control.json was not written');
    expect(runs(pid)).toBe(false);
    rmSync(join(paths.directory, 'control.json'), { recursive: true });
  });
});
