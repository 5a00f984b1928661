import { spawn } from 'node:child_process';
import { closeSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isCloseOnExec } from '../../../src/sys/fd.ts';
import {
  hasEnded,
  openPidfd,
  pidfdInode,
  probeByNumber,
  signalGroup,
  signalPidfd,
  watchEnd,
} from '../../../src/sys/pidfd.ts';
import { readProcessFacts } from '../../../src/sys/process-facts.ts';
import { spawnProcess } from '../../../src/sys/spawn.ts';
import { peekEnded, reap } from '../../../src/sys/wait.ts';
import { eventually, killAfterTest, startProcess, stateOf } from '../../support/processes.ts';

function startUnreaped(script: string): number {
  const result = spawnProcess({
    file: '/bin/sh',
    argv: ['sh', '-c', script],
    environment: { PATH: '/usr/bin:/bin' },
  });
  if (result.kind !== 'started') throw new Error(result.code);
  return killAfterTest(result.pid);
}

describe('a pidfd', () => {
  it('is close-on-exec, and signals only its own process', async () => {
    const child = startProcess('sleep', ['60']);
    const other = startProcess('sleep', ['60']);
    const fd = openPidfd(child.pid);
    expect(isCloseOnExec(fd)).toBe(true);
    const ended = new Promise<string | null>((resolve) => {
      child.once('exit', (_code, signal) => resolve(signal));
    });
    signalPidfd(fd, 'SIGTERM');
    expect(await ended).toBe('SIGTERM');
    expect(stateOf(other.pid)).toMatch(/[SRD]/);
    closeSync(fd);
  });

  it('says that a zombie has ended, which kill(pid, 0) does not', async () => {
    const pid = startUnreaped('exit 3');
    const fd = openPidfd(pid);
    await eventually(() => hasEnded(fd), 'end of the child');
    expect(stateOf(pid)).toBe('Z');
    expect(probeByNumber(pid)).toBe('there');
    expect(() => signalPidfd(fd, 0)).not.toThrow();
    reap(pid);
    expect(() => signalPidfd(fd, 'SIGTERM')).toThrow(expect.objectContaining({ code: 'ESRCH' }));
    expect(hasEnded(fd)).toBe(true);
    closeSync(fd);
  });

  it('says that a stopped process has not ended', async () => {
    const child = startProcess('sleep', ['60']);
    const fd = openPidfd(child.pid);
    signalPidfd(fd, 'SIGSTOP');
    await eventually(() => stateOf(child.pid) === 'T', 'stop');
    expect(hasEnded(fd)).toBe(false);
    closeSync(fd);
  });

  it('announces the end on the event loop', async () => {
    const pid = startUnreaped('exit 0');
    const fd = openPidfd(pid);
    await new Promise<void>((resolve) => {
      watchEnd(fd, resolve);
    });
    expect(peekEnded(pid)).toBe('ended');
    reap(pid);
    closeSync(fd);
  });

  it('cannot be opened for a process that does not exist', () => {
    const pid = startUnreaped('exit 0');
    return eventually(() => reap(pid).kind === 'ended', 'end').then(() => {
      expect(() => openPidfd(pid)).toThrow(expect.objectContaining({ code: 'ESRCH' }));
    });
  });

  it('cannot be opened for a thread id, which kill(tid, 0) answers', () => {
    const tid = readThreadOfSelf();
    expect(probeByNumber(tid)).toBe('there');
    expect(() => openPidfd(tid)).toThrow(/ENOENT|EINVAL/);
    expect(readProcessFacts(tid).pid).toBe(tid);
  });

  it('has an inode of its own per process where the kernel has pidfs', () => {
    const self = openPidfd(process.pid);
    const again = openPidfd(process.pid);
    expect(pidfdInode(self)).toBe(pidfdInode(again));
    closeSync(self);
    closeSync(again);
  });
});

describe('signals to a group', () => {
  it('reach every member', async () => {
    const child = spawn('sh', ['-c', 'sleep 60 & sleep 60'], { detached: true, stdio: 'ignore' });
    const pid = child.pid ?? 0;
    killAfterTest(pid);
    const childrenOf = (): string =>
      readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    const members = await eventually(() => {
      const found = childrenOf().split(' ').filter(Boolean).map(Number);
      return found.length === 2 && found;
    }, 'two members');
    signalGroup(pid, 'SIGKILL');
    for (const member of members) {
      await eventually(() => [undefined, 'Z'].includes(stateOf(member)), 'end of the member');
    }
  });
});

function readThreadOfSelf(): number {
  // Node always has libuv and V8 worker threads.
  const tids = readdirSync('/proc/self/task').map(Number);
  return tids.find((tid) => tid !== process.pid) ?? 0;
}
