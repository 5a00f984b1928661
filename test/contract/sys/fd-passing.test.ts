import { closeSync, fstatSync, openSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isCloseOnExec, openPipe } from '../../../src/sys/fd.ts';
import {
  FDS_PER_MESSAGE_MAX,
  openSocketPair,
  receiveFds,
  selfTestFdPassing,
  sendFds,
} from '../../../src/sys/fd-passing.ts';
import { openFilesLimit, setOpenFilesLimit } from '../../../src/sys/limits.ts';
import { readPeerCredentials } from '../../../src/sys/peer.ts';

const openCount = (): number => readdirSync('/proc/self/fd').length;

describe('passing descriptors', () => {
  it.each([0, 1, 2, 3, 199, FDS_PER_MESSAGE_MAX])('carries %i in one message', (count) => {
    const before = openCount();
    const [left, right] = openSocketPair();
    const file = openSync('/dev/null', 'r');
    expect(
      sendFds(
        left,
        Buffer.from(`n=${count}`),
        Array.from({ length: count }, () => file),
      ),
    ).toBe('sent');
    const got = receiveFds(right);
    if (got.kind !== 'message') throw new Error(got.kind);
    expect(got.payload.toString()).toBe(`n=${count}`);
    expect(got.fds).toHaveLength(count);
    for (const fd of got.fds) {
      expect(isCloseOnExec(fd)).toBe(true);
      expect(fstatSync(fd).ino).toBe(fstatSync(file).ino);
      closeSync(fd);
    }
    for (const fd of [left, right, file]) closeSync(fd);
    expect(openCount()).toBe(before);
  });

  it('never waits: empty, then full, then in order', () => {
    const [left, right] = openSocketPair();
    expect(receiveFds(right)).toEqual({ kind: 'empty' });
    let sent = 0;
    while (sendFds(left, Buffer.from(String(sent)), []) === 'sent') sent++;
    expect(sent).toBeGreaterThan(1);
    for (let index = 0; index < sent; index++) {
      const got = receiveFds(right);
      expect(got.kind === 'message' && got.payload.toString()).toBe(String(index));
    }
    expect(receiveFds(right)).toEqual({ kind: 'empty' });
    closeSync(left);
    closeSync(right);
  });

  it('tells a closed peer from an empty one, and EPIPE on sending', () => {
    const [left, right] = openSocketPair();
    closeSync(left);
    expect(receiveFds(right)).toEqual({ kind: 'closed' });
    expect(() => sendFds(right, Buffer.from('x'), [])).toThrow(
      expect.objectContaining({ code: 'EPIPE' }),
    );
    closeSync(right);
  });

  it('refuses what the kernel would refuse or cut', () => {
    const [left, right] = openSocketPair();
    const many = Array.from({ length: 201 }, () => left);
    expect(() => sendFds(left, Buffer.from('x'), many)).toThrow(RangeError);
    expect(() => sendFds(left, Buffer.alloc(0), [])).toThrow(RangeError);
    expect(() => sendFds(left, Buffer.alloc(5000), [])).toThrow(RangeError);
    closeSync(left);
    closeSync(right);
  });

  it('closes what arrived when a message had to be cut for want of descriptors', () => {
    const [left, right] = openSocketPair();
    const pipe = openPipe();
    sendFds(left, Buffer.from('x'), [pipe.read, pipe.read, pipe.read, pipe.read]);
    const before = openCount();
    const limit = openFilesLimit();
    // Room for exactly one more descriptor.
    const free = openSync('/dev/null', 'r');
    closeSync(free);
    setOpenFilesLimit({ soft: free + 1, hard: limit.hard });
    try {
      expect(() => receiveFds(right)).toThrow(/cut by the kernel|EMFILE/);
    } finally {
      setOpenFilesLimit(limit);
    }
    expect(openCount()).toBe(before);
    for (const fd of [left, right, pipe.read, pipe.write]) closeSync(fd);
  });

  it('passes its own self-test', () => {
    expect(selfTestFdPassing).not.toThrow();
  });
});

describe('peer credentials', () => {
  it('name this process on its own pair', () => {
    const [left, right] = openSocketPair();
    expect(readPeerCredentials(left)).toEqual({ pid: process.pid, uid: process.getuid?.() });
    closeSync(left);
    closeSync(right);
  });
});
