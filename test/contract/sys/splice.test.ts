import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { openPipe } from '../../../src/sys/fd.ts';
import { POLLHUP, POLLIN, POLLNVAL, POLLOUT, PollSet, pollOne } from '../../../src/sys/poll.ts';
import { SpliceIntoFile, splice, tee } from '../../../src/sys/splice.ts';
import { bundleForChild } from '../../support/bundle.ts';
import { privateDir } from '../../support/private-dir.ts';

describe('splice', () => {
  it('moves bytes from a pipe to a file at the offset given, and says EAGAIN when empty', () => {
    const pipe = openPipe({ nonBlocking: true });
    const path = join(privateDir(), 'segment');
    const file = openSync(path, 'w');
    const mover = new SpliceIntoFile();
    writeSync(pipe.write, 'world');
    expect(mover.move(pipe.read, file, 6, 100)).toBe(5);
    writeSync(pipe.write, 'hello ');
    expect(mover.move(pipe.read, file, 0, 100)).toBe(6);
    expect(mover.move(pipe.read, file, 0, 100)).toBe('EAGAIN');
    expect(readFileSync(path, 'utf8')).toBe('hello world');
    closeSync(pipe.write);
    expect(mover.move(pipe.read, file, 11, 100)).toBe(0);
    closeSync(pipe.read);
    closeSync(file);
  });

  it('takes no more than the length given', () => {
    const pipe = openPipe({ nonBlocking: true });
    const second = openPipe({ nonBlocking: true });
    writeSync(pipe.write, '0123456789');
    expect(splice(pipe.read, second.write, 4)).toBe(4);
    const rest = Buffer.alloc(10);
    expect(readSync(pipe.read, rest)).toBe(6);
    for (const fd of [pipe.read, pipe.write, second.read, second.write]) closeSync(fd);
  });

  it('names the error instead of throwing', () => {
    const pipe = openPipe();
    expect(splice(pipe.read, 987_654, 10)).toBe('EBADF');
    closeSync(pipe.read);
    closeSync(pipe.write);
  });

  it('tee leaves the source as it was', () => {
    const [from, to] = [openPipe({ nonBlocking: true }), openPipe({ nonBlocking: true })];
    writeSync(from.write, 'abc');
    expect(tee(from.read, to.write, 10)).toBe(3);
    const buffer = Buffer.alloc(3);
    readSync(from.read, buffer);
    expect(buffer.toString()).toBe('abc');
    readSync(to.read, buffer);
    expect(buffer.toString()).toBe('abc');
    for (const fd of [from.read, from.write, to.read, to.write]) closeSync(fd);
  });
});

describe('poll', () => {
  it('tells which of many are readable, skips -1, and sees hang-ups', () => {
    const pipes = Array.from({ length: 100 }, () => openPipe({ nonBlocking: true }));
    const set = new PollSet(16);
    for (const [slot, pipe] of pipes.entries()) set.set(slot, pipe.read, POLLIN);
    expect(set.wait(0)).toBe(0);
    writeSync(pipes[7]?.write ?? -1, 'x');
    closeSync(pipes[93]?.write ?? -1);
    expect(set.wait(1000)).toBe(2);
    expect(set.seen(7)).toBe(POLLIN);
    expect(set.seen(93) & POLLHUP).toBe(POLLHUP);
    set.set(7, -1, POLLIN);
    expect(set.wait(0)).toBe(1);
    expect(set.seen(7)).toBe(0);
    set.truncate(50);
    expect(set.size).toBe(50);
    expect(set.wait(0)).toBe(0);
    for (const [slot, pipe] of pipes.entries()) {
      closeSync(pipe.read);
      if (slot !== 93) closeSync(pipe.write);
    }
  });

  it('answers for one descriptor', () => {
    const pipe = openPipe();
    expect(pollOne(pipe.write, POLLOUT, 0)).toBe(POLLOUT);
    expect(pollOne(987_654, POLLIN, 0)).toBe(POLLNVAL);
    closeSync(pipe.read);
    closeSync(pipe.write);
  });
});

describe('in a worker thread', () => {
  it('splice and poll work as in the main thread', async () => {
    const pipe = openPipe({ nonBlocking: true });
    const path = join(privateDir(), 'segment');
    const file = openSync(path, 'w');
    writeSync(pipe.write, 'from the worker');
    const worker = new Worker(await bundleForChild('test/support/splice-worker-main.ts'), {
      workerData: { read: pipe.read, file },
    });
    const moved = await new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    expect(moved).toEqual({ seen: POLLIN, moved: 15 });
    expect(readFileSync(path, 'utf8')).toBe('from the worker');
    await worker.terminate();
    for (const fd of [pipe.read, pipe.write, file]) closeSync(fd);
  });
});
