import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  acquireKeptLock,
  adoptKeptLock,
  type KeptLock,
  viewLock,
} from '../../../src/ownership/kept-lock.ts';
import { encodeLockRecord } from '../../../src/ownership/lock-record.ts';
import { ensurePrivateDirectory } from '../../../src/ownership/private-directory.ts';
import { isCloseOnExec } from '../../../src/sys/fd.ts';
import { tryFlock, tryOfdLock } from '../../../src/sys/locks.ts';
import { errnoError, failAt } from '../../support/failpoints.ts';
import { asMyself, makeRecord } from '../../support/lock-records.ts';
import { privateDir } from '../../support/private-dir.ts';
import { eventually, startProcess } from '../../support/processes.ts';

const uid = process.getuid?.() ?? 0;

function take(path: string): KeptLock {
  const outcome = acquireKeptLock(path, asMyself());
  if (outcome.kind !== 'acquired') throw new Error(outcome.kind);
  return outcome.lock;
}

describe('a kept lock', () => {
  it('I1: is given to one at a time, and again after release; the file stays', () => {
    const path = join(privateDir(), 'owner.lock');
    const lock = take(path);
    expect(acquireKeptLock(path, asMyself())).toEqual({ kind: 'busy' });
    const inode = lstatSync(path).ino;
    lock.release();
    lock.release();
    expect(existsSync(path)).toBe(true);
    const again = take(path);
    expect(lstatSync(path).ino).toBe(inode);
    again.release();
  });

  it('delta 1: is created 0600, close-on-exec, and holds the record of its holder', () => {
    const path = join(privateDir(), 'owner.lock');
    const lock = take(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(isCloseOnExec(lock.descriptor)).toBe(true);
    const view = viewLock(path);
    expect(view.state).toBe('held');
    expect(view.record).toEqual({ kind: 'record', record: lock.record });
    lock.release();
    expect(viewLock(path)).toMatchObject({ state: 'free', record: { kind: 'record' } });
  });

  it('I15: does not live on in a child of its holder', async () => {
    const path = join(privateDir(), 'owner.lock');
    const lock = take(path);
    const child = startProcess('sleep', ['60']);
    await eventually(
      () => readFileSync(`/proc/${child.pid}/comm`, 'utf8').trim() === 'sleep',
      'exec of the child',
    );
    const target = statSync(path).ino;
    // What the loader opens it may close between the two looks: then it is not ours either.
    const open = readdirSync(`/proc/${child.pid}/fd`).map(
      (fd) => statSync(`/proc/${child.pid}/fd/${fd}`, { throwIfNoEntry: false })?.ino,
    );
    expect(open).not.toContain(target);
    lock.release();
    take(path).release();
  });

  it('delta 7, race 8: looking takes nothing, so that a look never makes a starter lose', () => {
    const path = join(privateDir(), 'owner.lock');
    expect(viewLock(path)).toMatchObject({ state: 'free', record: { kind: 'absent' } });
    expect(existsSync(path)).toBe(false);
    take(path).release();
    for (let round = 0; round < 100; round++) {
      viewLock(path);
      const lock = take(path);
      expect(viewLock(path).state).toBe('held');
      lock.release();
    }
  });

  it('tightens a lock file of ours that is too open', () => {
    const path = join(privateDir(), 'owner.lock');
    writeFileSync(path, '');
    chmodSync(path, 0o666);
    take(path).release();
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['removed', (path: string) => unlinkSync(path)],
    ['moved away', (path: string) => renameSync(path, `${path}.old`)],
    [
      'replaced',
      (path: string) => {
        writeFileSync(`${path}.new`, '');
        renameSync(`${path}.new`, path);
      },
    ],
  ])('losing the inode: %s, and it is lost for good', (_how, lose) => {
    const path = join(privateDir(), 'owner.lock');
    const lock = take(path);
    expect(lock.prove()).toEqual({ kind: 'held' });
    lose(path);
    expect(lock.prove()).toMatchObject({ kind: 'lost' });
    expect(() => lock.assertHeld()).toThrow(expect.objectContaining({ code: 'ownership-lost' }));
    // Somebody else may own the name now: what came back is not ours again.
    const successor = take(path);
    expect(lock.prove()).toMatchObject({ kind: 'lost' });
    expect(successor.prove()).toEqual({ kind: 'held' });
    lock.release();
    expect(viewLock(path).state).toBe('held');
    successor.release();
  });

  it('stays lost when the file is put back: what happened in between is not known', () => {
    const path = join(privateDir(), 'owner.lock');
    const lock = take(path);
    renameSync(path, `${path}.old`);
    expect(lock.prove().kind).toBe('lost');
    renameSync(`${path}.old`, path);
    expect(lock.prove().kind).toBe('lost');
    lock.release();
  });

  it('race 10: a file that is replaced between open and lock is not mistaken for the lock', () => {
    const path = join(privateDir(), 'owner.lock');
    let other: KeptLock | undefined;
    const failpoints = failAt('lock.opened', () => {
      unlinkSync(path);
      other = take(path);
    });
    // We hold the removed inode; the name belongs to the other one.
    expect(acquireKeptLock(path, { ...asMyself(), failpoints })).toEqual({ kind: 'busy' });
    expect(other?.prove()).toEqual({ kind: 'held' });
    other?.release();
  });

  it('a name that is replaced again and again is unknown, not owned', () => {
    const path = join(privateDir(), 'owner.lock');
    const failpoints = { hit: (name: string) => name === 'lock.ofd-locked' && unlinkSync(path) };
    expect(() => acquireKeptLock(path, { ...asMyself(), failpoints })).toThrow(
      expect.objectContaining({ code: 'ownership-unknown' }),
    );
  });

  it.each([
    ['flock', tryFlock],
    ['OFD lock', tryOfdLock],
  ])('is busy while somebody holds only the %s', (_name, takeOne) => {
    const path = join(privateDir(), 'owner.lock');
    const fd = openSync(path, 'a+', 0o600);
    expect(takeOne(fd)).toBe('locked');
    expect(acquireKeptLock(path, asMyself())).toEqual({ kind: 'busy' });
    closeSync(fd);
    take(path).release();
  });

  it('a holder whose record cannot be written holds nothing', () => {
    const path = join(privateDir(), 'owner.lock');
    const failpoints = failAt('lock.verified', () => {
      throw errnoError('EIO');
    });
    expect(() => acquireKeptLock(path, { ...asMyself(), failpoints })).toThrow(/EIO/);
    expect(viewLock(path).state).toBe('free');
    expect(() => acquireKeptLock(path, asMyself({ ownerId: 'x'.repeat(5000) }))).toThrow(
      /record too large/,
    );
    take(path).release();
  });

  it('is not proved after release', () => {
    const lock = take(join(privateDir(), 'owner.lock'));
    lock.release();
    expect(lock.prove()).toEqual({ kind: 'lost', because: 'released' });
  });

  it('I2: writes its record again when a foreign hand changed it', () => {
    const path = join(privateDir(), 'owner.lock');
    const lock = take(path);
    expect(lock.healRecord()).toBe(false);
    truncateSync(path, 5);
    expect(viewLock(path)).toMatchObject({ state: 'held', record: { kind: 'malformed' } });
    expect(lock.healRecord()).toBe(true);
    expect(viewLock(path).record).toEqual({ kind: 'record', record: lock.record });
    lock.release();
  });

  it('is adopted by its descriptor, as after an execve, and by no other', () => {
    const path = join(privateDir(), 'owner.lock');
    const lock = take(path);
    const next = makeRecord({ generation: 2 });
    const adopted = adoptKeptLock(lock.descriptor, path, { uid, record: next });
    expect(viewLock(path).record).toEqual({ kind: 'record', record: next });
    const other = openSync(path, 'r+');
    expect(() => adoptKeptLock(other, path, asMyself())).toThrow(/not the lock we held/);
    expect(() => adoptKeptLock(987_654, path, asMyself())).toThrow(/EBADF/);
    adopted.release();
  });
});

describe('hostile lock files (H, I17): refused or taken in bounded time, never followed', () => {
  const cases: [string, (path: string) => void][] = [
    ['a directory', (path) => mkdirSync(path)],
    ['a dangling link', (path) => symlinkSync(`${path}.nowhere`, path)],
    [
      'a link to a file',
      (path) => {
        writeFileSync(`${path}.file`, 'x');
        symlinkSync(`${path}.file`, path);
      },
    ],
    ['a link to itself', (path) => symlinkSync(path, path)],
    ['a link to /dev/zero', (path) => symlinkSync('/dev/zero', path)],
    ['a FIFO', (path) => execFileSync('mkfifo', [path])],
  ];

  it.each(cases)('%s', (_what, plant) => {
    const path = join(privateDir(), 'owner.lock');
    plant(path);
    expect(() => acquireKeptLock(path, asMyself())).toThrow(
      expect.objectContaining({ code: 'state-directory-unusable' }),
    );
    expect(viewLock(path).state).toBe('unknown');
  });

  it('a device', () => {
    expect(viewLock('/dev/zero').state).toBe('unknown');
    expect(() => acquireKeptLock('/dev/null', asMyself())).toThrow(/not a regular file/);
  });

  it.runIf(uid === 0)('a file of another user', () => {
    const path = join(privateDir(), 'owner.lock');
    writeFileSync(path, '');
    execFileSync('chown', ['nobody', path]);
    expect(() => acquireKeptLock(path, asMyself())).toThrow(/owned by user/);
    expect(readFileSync(path, 'utf8')).toBe('');
  });

  it('a hard link to a file of ours that is no lock: its content is not overwritten', () => {
    const directory = privateDir();
    const precious = join(directory, 'precious');
    writeFileSync(precious, 'do not touch');
    linkSync(precious, join(directory, 'owner.lock'));
    expect(() => acquireKeptLock(join(directory, 'owner.lock'), asMyself())).toThrow(/hard link/);
    expect(readFileSync(precious, 'utf8')).toBe('do not touch');
  });

  it('race 1: a second link to the lock itself (a backup by links) wedges nobody', () => {
    const path = join(privateDir(), 'owner.lock');
    take(path).release();
    linkSync(path, `${path}.backup`);
    take(path).release();
  });

  it.each([
    ['empty', ''],
    ['NUL bytes', '\0'.repeat(100)],
    ['not UTF-8', Buffer.from([0xff, 0xfe, 0x80])],
    ['not an object', '[1,2,3]'],
    ['__proto__', '{"__proto__":{"v":1}}'],
    ['duplicate keys', '{"v":1,"v":2}'],
    ['huge numbers', '{"v":1e999,"generation":1e400}'],
    ['deep nesting', '['.repeat(4000)],
  ])(
    'content: %s: held or free is still told, the record is not believed, a starter gets it',
    (_what, content) => {
      const path = join(privateDir(), 'owner.lock');
      writeFileSync(path, content);
      const view = viewLock(path);
      expect(view.state).toBe('free');
      expect(view.record.kind).not.toBe('record');
      const lock = take(path);
      expect(viewLock(path).record).toEqual({ kind: 'record', record: lock.record });
      lock.release();
    },
  );

  it('I11: a record torn at every byte wedges nobody', () => {
    const path = join(privateDir(), 'owner.lock');
    const text = encodeLockRecord(makeRecord());
    for (let length = 0; length < text.length; length++) {
      writeFileSync(path, text.slice(0, length));
      expect(viewLock(path).state).toBe('free');
      // JSON is complete one byte before its newline.
      if (length < text.length - 1) expect(viewLock(path).record.kind).not.toBe('record');
      take(path).release();
    }
  });

  it('a sparse gigabyte is not read', () => {
    const path = join(privateDir(), 'owner.lock');
    writeFileSync(path, '');
    truncateSync(path, 2 ** 30);
    const before = process.memoryUsage().rss;
    expect(viewLock(path)).toMatchObject({ state: 'free', record: { kind: 'malformed' } });
    take(path).release();
    expect(process.memoryUsage().rss - before).toBeLessThan(50_000_000);
    expect(statSync(path).size).toBeLessThan(4096);
  });
});

describe('the directory', () => {
  it('is created 0700 and tightened when ours', () => {
    const path = join(privateDir(), 'a', 'b');
    expect(ensurePrivateDirectory(path, uid)).toEqual({ tightened: false });
    expect(statSync(path).mode & 0o777).toBe(0o700);
    chmodSync(path, 0o755);
    expect(ensurePrivateDirectory(path, uid)).toEqual({ tightened: true });
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it('is refused as a link, as a file, or as somebody else’s', () => {
    const base = privateDir();
    writeFileSync(join(base, 'file'), '');
    symlinkSync(base, join(base, 'link'));
    for (const name of ['file', 'link']) {
      expect(() => ensurePrivateDirectory(join(base, name), uid)).toThrow(/Cannot use/);
    }
    expect(() => ensurePrivateDirectory(base, uid + 1)).toThrow(/owned by user/);
  });
});
