// Ownership on disks that fail: full, read-only, without descriptors. Real mounts where permitted.

import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { systemRandom } from '../../../src/base/system-random.ts';
import { writeFenced } from '../../../src/ownership/fenced-write.ts';
import {
  acquireKeptLock,
  type KeptLock,
  type SecondLook,
  viewLock,
} from '../../../src/ownership/kept-lock.ts';
import { errnoError, failAt } from '../../support/failpoints.ts';
import { asMyself } from '../../support/lock-records.ts';
import { kill, settled, startOwner } from '../../support/owners.ts';
import { privateDir } from '../../support/private-dir.ts';

const mounted: string[] = [];
afterEach(() => {
  for (const path of mounted.splice(0)) execFileSync('umount', ['-l', path]);
});

function mountTmpfs(options: string): string {
  const path = join(privateDir(), 'disk');
  mkdirSync(path);
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'chatd-test', path]);
  mounted.push(path);
  return path;
}

/** Fills what is left of a small disk. */
function fill(directory: string): void {
  for (const size of [65_536, 4096, 1]) {
    try {
      for (let count = 0; ; count++)
        writeFileSync(join(directory, `f${size}-${count}`), Buffer.alloc(size));
    } catch {
      // Full for this size.
    }
  }
}

const mayMount =
  spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'x', '/mnt'], { stdio: 'ignore' }).status ===
  0;

function take(path: string): KeptLock {
  const acquired = acquireKeptLock(path, asMyself());
  if (acquired.kind !== 'acquired') throw new Error(acquired.kind);
  return acquired.lock;
}

describe.runIf(mayMount)('on a full disk (D)', () => {
  it('a new lock is refused with ENOSPC; an existing one is taken and serves on', async () => {
    const directory = mountTmpfs('size=64k,nr_inodes=40,mode=0700');
    fill(directory);
    expect(() => acquireKeptLock(join(directory, 'owner.lock'), asMyself())).toThrow(/ENOSPC/);
    // The refused attempt left an empty file at most, which wedges nobody.
    execFileSync('sh', ['-c', `rm -f ${directory}/f*`]);
    take(join(directory, 'owner.lock')).release();
    fill(directory);
    const lock = take(join(directory, 'owner.lock'));
    expect(viewLock(lock.path)).toMatchObject({ state: 'held', record: { kind: 'record' } });
    lock.release();
  });

  it('a state that cannot be written keeps its old content', async () => {
    const directory = mountTmpfs('size=64k,nr_inodes=40,mode=0700');
    const lock = take(join(directory, 'owner.lock'));
    const path = join(directory, 'state.json');
    await writeFenced(lock, path, 'old', { random: systemRandom });
    fill(directory);
    await expect(
      writeFenced(lock, path, 'x'.repeat(9000), { random: systemRandom }),
    ).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(readdirSync(directory).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    lock.release();
  });

  it('a read-only disk is refused by name, and looking at it still works', () => {
    const directory = mountTmpfs('size=64k,mode=0700');
    take(join(directory, 'owner.lock')).release();
    execFileSync('mount', ['-o', 'remount,ro', directory]);
    expect(() => acquireKeptLock(join(directory, 'owner.lock'), asMyself())).toThrow(/EROFS/);
    expect(viewLock(join(directory, 'owner.lock')).state).toBe('free');
  });
});

describe('a file system that cannot lock', () => {
  it('delta 2 (as amended): without the capability to lock nothing starts', () => {
    const directory = privateDir();
    const failpoints = failAt('lock.flocked', () => {
      throw errnoError('ENOLCK');
    });
    expect(() =>
      acquireKeptLock(join(directory, 'owner.lock'), { ...asMyself(), failpoints }),
    ).toThrow(expect.objectContaining({ code: 'capability-missing' }));
  });

  it.each([
    ['grants every lock', { flock: 'locked', ofd: 'held' }],
    ['hides locks from others', { flock: 'busy', ofd: 'free' }],
  ] as const)('is refused when it %s', (_what, seen) => {
    const path = join(privateDir(), 'owner.lock');
    const secondLook = (): SecondLook => ({ inode: statSync(path), ...seen });
    expect(() => acquireKeptLock(path, { ...asMyself(), secondLook })).toThrow(
      expect.objectContaining({ code: 'capability-missing' }),
    );
    expect(viewLock(path).state).toBe('free');
  });

  it('is refused when other machines may share it, before anything is created', () => {
    const directory = privateDir();
    expect(() =>
      acquireKeptLock(join(directory, 'owner.lock'), {
        ...asMyself(),
        filesystem: () => ({ kind: 'network', type: 'nfs' }),
      }),
    ).toThrow(
      expect.objectContaining({
        code: 'state-directory-unusable',
        message: expect.stringMatching(/nfs.*CHATD_STATE/) as string,
      }),
    );
    expect(readdirSync(directory)).toEqual([]);
  });
});

const mayTrace =
  spawnSync('strace', ['-f', '-o', '/dev/null', 'true'], { stdio: 'ignore' }).status === 0;

describe.runIf(mayTrace)('I5: names', () => {
  it('of others are never removed or renamed over, by start, take-over or end', async () => {
    const directory = privateDir();
    const dead = await startOwner(directory);
    await settled(dead);
    await kill(dead);
    const trace = join(privateDir(), 'trace');
    const owner = await startOwner(directory, undefined, {}, [
      'strace',
      '-f',
      '-qq',
      '-e',
      'trace=unlink,unlinkat,rename,renameat,renameat2',
      '-o',
      trace,
    ]);
    expect(await settled(owner)).toBe('serving');
    const published = lstatSync(join(directory, 'owner.sock')).ino;
    owner.child.stdin?.write('quit\n');
    await new Promise((resolve) => owner.child.once('exit', resolve));
    const calls = readFileSync(trace, 'utf8')
      .split('\n')
      .filter((line) => line.includes(directory));
    const removed = calls.filter((line) => line.includes('unlink'));
    const renamed = calls.filter((line) => line.includes('rename'));
    // Its own private name (libuv, once more after the rename) and nothing else.
    for (const line of removed) expect(line).toMatch(/\/\.p[0-9a-f]{10}"/);
    expect(renamed).toHaveLength(2);
    expect(renamed[0]).toMatch(/state\.json\.[0-9a-z]{12}\.tmp", ".*\/state\.json"/);
    expect(renamed[1]).toMatch(/\/\.p[0-9a-f]{10}", ".*\/owner\.sock"/);
    // Left as it was when the process ended: the next one judges it.
    expect(lstatSync(join(directory, 'owner.sock')).ino).toBe(published);
    for (const name of ['owner.lock', 'state.json']) {
      expect(existsSync(join(directory, name))).toBe(true);
    }
  });
});
