// The reader thread's own code on a real terminal, with a disk that refuses.

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readRecords } from '../../../src/base/frame-codec.ts';
import { systemClock } from '../../../src/base/system-clock.ts';
import { Reader } from '../../../src/pty/host/reader.ts';
import type { FromReader, ToReader } from '../../../src/pty/host/reader-messages.ts';
import { decodeIndexRecord } from '../../../src/pty/host/segments.ts';
import { SharedState } from '../../../src/pty/host/shared-state.ts';
import { openTerminal } from '../../../src/pty/keeper/native-pty.ts';
import { closeFd, openPipe } from '../../../src/sys/fd.ts';
import { spawnProcess } from '../../../src/sys/spawn.ts';
import { writeSome } from '../../../src/sys/tty.ts';
import { reap } from '../../../src/sys/wait.ts';

let directory = '';
const fds: number[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'chatd-reader-'));
});
afterEach(() => {
  for (const fd of fds.splice(0)) closeFd(fd);
  rmSync(directory, { recursive: true, force: true });
});

/** Runs the reader until the program's terminal closed; `act` sees each message as it comes. */
function readAll(
  script: string,
  act: (message: FromReader, post: (to: ToReader) => void) => void,
  segmentFd: number,
): FromReader[] {
  const terminal = openTerminal(80, 24);
  const pipe = openPipe({ nonBlocking: true });
  const wake = openPipe({ nonBlocking: true });
  fds.push(terminal.master, pipe.read, pipe.write, wake.read, wake.write);
  const started = spawnProcess({
    file: '/bin/sh',
    argv: ['sh', '-c', script],
    environment: { PATH: '/bin:/usr/bin' },
    terminal: terminal.path,
  });
  closeFd(terminal.slave);
  if (started.kind !== 'started') throw new Error(started.code);
  const indexFd = openSync(join(directory, 'idx'), 'a');
  const lostFd = openSync(join(directory, 'lost.bin'), 'w+');
  const queue: ToReader[] = [
    {
      t: 'add',
      slot: 0,
      master: terminal.master,
      pipeRead: pipe.read,
      pipeWrite: pipe.write,
      lostFd,
      from: 0,
      segments: [{ index: 0, fd: segmentFd, indexFd }],
    },
  ];
  const seen: FromReader[] = [];
  const post = (message: ToReader): void => {
    queue.push(message);
  };
  const deadlineMs = systemClock.monotonicMs() + 30_000;
  const shared = new SharedState();
  const reader = new Reader({
    clock: systemClock,
    shared,
    wakeFd: wake.read,
    receive: () => queue.shift(),
    toModel: () => undefined,
    toMain: (message) => {
      seen.push(message);
      act(message, (to) => {
        post(to);
        // The reader looks at its queue when its wake pipe is readable.
        wakeUp(wake.write);
      });
      if (message.t === 'closed' || systemClock.monotonicMs() > deadlineMs) {
        post({ t: 'stop' });
        wakeUp(wake.write);
      }
    },
  });
  reader.run();
  closeSync(indexFd);
  closeSync(lostFd);
  for (let state = reap(started.pid); state.kind === 'running'; state = reap(started.pid)) {
    if (systemClock.monotonicMs() > deadlineMs) break;
  }
  return seen;
}

function wakeUp(fd: number): void {
  writeSome(fd, Buffer.from([1]));
}

test('a disk that refuses holds the program up for a second, then the loss is counted and the program goes on', () => {
  const full = openSync('/dev/full', 'r+');
  fds.push(full);
  const good = openSync(join(directory, 'segment'), 'w+');
  fds.push(good);
  let lostTo = 0;
  const seen = readAll(
    'seq 1 3000; sleep 0.5; echo last',
    (message, post) => {
      if (message.t !== 'lost') return;
      if (lostTo === 0) {
        const indexFd = openSync(join(directory, 'idx'), 'a');
        fds.push(indexFd);
        post({ t: 'segment', slot: 0, segment: { index: 0, fd: good, indexFd } });
      }
      lostTo = message.to;
    },
    full,
  );
  const total =
    'last\r\n'.length + Array.from({ length: 3000 }, (_, i) => `${i + 1}\r\n`).join('').length;
  expect(seen.some((message) => message.t === 'disk' && message.errno !== '')).toBe(true);
  expect(seen.some((message) => message.t === 'disk' && message.errno === '')).toBe(true);
  expect(lostTo).toBeGreaterThan(0);
  expect(seen.find((message) => message.t === 'closed')).toMatchObject({ offset: total });
  const kept = readFileSync(join(directory, 'segment'));
  expect(kept.length).toBe(total);
  expect(kept.subarray(-6).toString()).toBe('last\r\n');
  const records = readRecords(readFileSync(join(directory, 'idx')), 64).records.map(
    decodeIndexRecord,
  );
  expect(records.find((record) => record?.kind === 'lost')).toMatchObject({
    offset: 0,
    to: lostTo,
  });
  expect(readFileSync(join(directory, 'lost.bin')).readDoubleLE(8)).toBe(lostTo);
});
