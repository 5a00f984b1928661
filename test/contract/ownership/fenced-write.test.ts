import { existsSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../../src/base/system-random.ts';
import { sweepTemporaries, writeFenced } from '../../../src/ownership/fenced-write.ts';
import { acquireKeptLock, type KeptLock } from '../../../src/ownership/kept-lock.ts';
import { errnoError, failAt } from '../../support/failpoints.ts';
import { asMyself } from '../../support/lock-records.ts';
import { ask, settled, startOwner } from '../../support/owners.ts';
import { privateDir } from '../../support/private-dir.ts';

const random = systemRandom;

function held(directory: string): KeptLock {
  const acquired = acquireKeptLock(join(directory, 'owner.lock'), asMyself());
  if (acquired.kind !== 'acquired') throw new Error(acquired.kind);
  return acquired.lock;
}

describe('a fenced write (delta 3)', () => {
  it('replaces the file while the lock is held', async () => {
    const directory = privateDir();
    const lock = held(directory);
    const path = join(directory, 'state.json');
    await writeFenced(lock, path, 'one', { random });
    await writeFenced(lock, path, 'two', { random, durable: true });
    expect(readFileSync(path, 'utf8')).toBe('two');
    expect(readdirSync(directory).sort()).toEqual(['owner.lock', 'state.json']);
    lock.release();
  });

  it('race 4: is not published when the lock was lost after the temporary was written', async () => {
    const directory = privateDir();
    const lock = held(directory);
    const path = join(directory, 'state.json');
    await writeFenced(lock, path, 'one', { random });
    const failpoints = failAt('write.before-publish', () => unlinkSync(lock.path));
    await expect(writeFenced(lock, path, 'two', { random, failpoints })).rejects.toMatchObject({
      code: 'ownership-lost',
    });
    expect(readFileSync(path, 'utf8')).toBe('one');
    expect(readdirSync(directory)).toEqual(['state.json']);
    lock.release();
  });

  it('keeps the old content and leaves nothing when the disk fails', async () => {
    const directory = privateDir();
    const lock = held(directory);
    const path = join(directory, 'state.json');
    await writeFenced(lock, path, 'one', { random });
    const failpoints = failAt('write.before-publish', () => {
      throw errnoError('ENOSPC');
    });
    await expect(writeFenced(lock, path, 'two', { random, failpoints })).rejects.toThrow('ENOSPC');
    expect(readFileSync(path, 'utf8')).toBe('one');
    expect(readdirSync(directory).sort()).toEqual(['owner.lock', 'state.json']);
    lock.release();
  });

  it('I2: a predecessor that wakes up after its lock was replaced writes nothing', async () => {
    const directory = privateDir();
    const first = await startOwner(directory, 'write.before-publish=stop', { NO_WITNESS: '1' });
    expect(await settled(first)).toBe('stopped');
    // Somebody removes the lock file: the worst that can be done to a kept lock.
    unlinkSync(join(directory, 'owner.lock'));
    const second = await startOwner(directory, undefined, { NO_WITNESS: '1' });
    expect(await settled(second)).toBe('serving');
    const state = readFileSync(join(directory, 'state.json'), 'utf8');
    first.child.kill('SIGCONT');
    expect(await settled(first)).toBe('ended 1');
    expect(first.stderr).toMatch(/Cannot prove ownership/);
    expect(readFileSync(join(directory, 'state.json'), 'utf8')).toBe(state);
    expect(await ask(second, 'write')).toBe('written');
  });
});

describe('temporaries of interrupted writes (I18)', () => {
  it('are swept by the next holder, and only those', async () => {
    const directory = privateDir();
    const crashed = await startOwner(directory, 'write.before-publish=kill');
    expect(await settled(crashed)).toBe('ended SIGKILL');
    const temporaries = (): string[] =>
      readdirSync(directory).filter((name) => name.endsWith('.tmp'));
    expect(temporaries()).toHaveLength(1);
    writeFileSync(join(directory, 'other.json.0123456789ab.tmp'), '');
    writeFileSync(join(directory, 'state.json.notes'), '');
    const lock = held(directory);
    expect(await sweepTemporaries(lock, join(directory, 'state.json'))).toBe(1);
    expect(temporaries()).toEqual(['other.json.0123456789ab.tmp']);
    expect(existsSync(join(directory, 'state.json.notes'))).toBe(true);
    lock.release();
    writeFileSync(join(directory, 'state.json.0123456789ab.tmp'), '');
    await expect(sweepTemporaries(lock, join(directory, 'state.json'))).rejects.toMatchObject({
      code: 'ownership-lost',
    });
  });
});
