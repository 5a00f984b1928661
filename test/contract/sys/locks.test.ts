import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isCloseOnExec } from '../../../src/sys/fd.ts';
import { probeOfdLock, tryFlock, tryOfdLock } from '../../../src/sys/locks.ts';
import { privateDir } from '../../support/private-dir.ts';
import { startProcess } from '../../support/processes.ts';

function openTwice(): [number, number, string] {
  const path = join(privateDir(), 'lock');
  return [openSync(path, 'a+'), openSync(path, 'a+'), path];
}

describe.each([
  ['flock', tryFlock],
  ['OFD lock', tryOfdLock],
])('%s', (_name, take) => {
  it('excludes another description of the same file, also in one process', () => {
    const [first, second] = openTwice();
    expect(take(first)).toBe('locked');
    expect(take(second)).toBe('busy');
    closeSync(first);
    expect(take(second)).toBe('locked');
    closeSync(second);
  });

  it('survives closing another descriptor of the file', () => {
    const [first, second, path] = openTwice();
    expect(take(first)).toBe('locked');
    closeSync(openSync(path, 'r'));
    expect(take(second)).toBe('busy');
    closeSync(first);
    closeSync(second);
  });

  it('can be taken again by its own description', () => {
    const [first, second] = openTwice();
    expect(take(first)).toBe('locked');
    expect(take(first)).toBe('locked');
    closeSync(first);
    closeSync(second);
  });

  it('throws EBADF for a closed descriptor instead of answering', () => {
    const [first, second] = openTwice();
    closeSync(first);
    expect(() => take(first)).toThrow(expect.objectContaining({ code: 'EBADF' }));
    closeSync(second);
  });
});

describe('probing the OFD lock', () => {
  it('tells held from free without taking it, through a read-only descriptor', () => {
    const [first, second, path] = openTwice();
    const reader = openSync(path, 'r');
    expect(probeOfdLock(reader)).toBe('free');
    tryOfdLock(first);
    expect(probeOfdLock(reader)).toBe('held');
    closeSync(first);
    expect(probeOfdLock(reader)).toBe('free');
    expect(tryOfdLock(second)).toBe('locked');
    closeSync(second);
    closeSync(reader);
  });

  it('does not see a flock: the two are independent', () => {
    const [first, second] = openTwice();
    tryFlock(first);
    expect(probeOfdLock(second)).toBe('free');
    closeSync(first);
    closeSync(second);
  });
});

describe('descriptors of locks', () => {
  it('are close-on-exec as Node opens them, so that a child does not keep the lock', async () => {
    const [first, second] = openTwice();
    expect(isCloseOnExec(first)).toBe(true);
    tryFlock(first);
    const child = startProcess('sleep', ['60']);
    closeSync(first);
    expect(tryFlock(second)).toBe('locked');
    child.kill('SIGKILL');
    closeSync(second);
  });
});
