import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/system-clock.ts';
import { pinIncarnation } from '../../../src/ownership/pinned-process.ts';
import {
  judgeIncarnation,
  type ProcessIncarnation,
  type ProcessObserver,
} from '../../../src/ownership/process-incarnation.ts';
import {
  incarnationOfChild,
  ownIncarnation,
  systemObserver,
} from '../../../src/ownership/process-observer.ts';
import { spawnProcess } from '../../../src/sys/spawn.ts';
import { reap } from '../../../src/sys/wait.ts';
import { mayChoosePids, runPidReuse } from '../../support/pid-reuse.ts';
import { eventually, killAfterTest, startProcess, stateOf } from '../../support/processes.ts';

const uid = process.getuid?.() ?? 0;

function recordOf(pid: number): ProcessIncarnation {
  return incarnationOfChild(pid, uid, 'nonce-of-child');
}

function startUnreaped(script: string): number {
  const result = spawnProcess({ file: '/bin/sh', argv: ['sh', '-c', script], environment: {} });
  if (result.kind !== 'started') throw new Error(result.code);
  return killAfterTest(result.pid);
}

describe('the incarnation of a real process', () => {
  it('is alive for ourselves, from our own record', () => {
    const self = ownIncarnation({ pid: process.pid, uid, nonce: 'nonce-of-self' });
    expect(judgeIncarnation(self, systemObserver)).toMatchObject({ verdict: 'alive' });
  });

  it('is alive while stopped, dead as a zombie, dead when reaped', async () => {
    const pid = startUnreaped('while :; do sleep 60; done');
    const record = recordOf(pid);
    process.kill(pid, 'SIGSTOP');
    await eventually(() => stateOf(pid) === 'T', 'stop');
    expect(judgeIncarnation(record, systemObserver).verdict).toBe('alive');
    process.kill(pid, 'SIGKILL');
    await eventually(() => stateOf(pid) === 'Z', 'zombie');
    expect(judgeIncarnation(record, systemObserver)).toEqual({
      verdict: 'dead',
      because: 'it has ended',
    });
    reap(pid);
    expect(judgeIncarnation(record, systemObserver)).toEqual({
      verdict: 'dead',
      because: 'no process has this pid',
    });
  });

  it('is dead when the number is a thread of ours now', () => {
    const self = ownIncarnation({ pid: process.pid, uid, nonce: 'nonce-of-self' });
    const tid = readdirSync('/proc/self/task')
      .map(Number)
      .find((id) => id !== process.pid);
    expect(judgeIncarnation({ ...self, pid: tid ?? 0 }, systemObserver)).toEqual({
      verdict: 'dead',
      because: 'the pid is a thread id now',
    });
  });

  it('costs no descriptor, however often it is judged', () => {
    const record = recordOf(startProcess('sleep', ['60']).pid);
    const before = readdirSync('/proc/self/fd').length;
    for (let round = 0; round < 200; round++) judgeIncarnation(record, systemObserver);
    expect(readdirSync('/proc/self/fd').length).toBe(before);
  });

  it('is unknown when descriptors have run out', () => {
    const record = recordOf(startProcess('sleep', ['60']).pid);
    const starved: ProcessObserver = {
      ...systemObserver,
      pin: () => ({ kind: 'failed', code: 'EMFILE' }),
    };
    expect(judgeIncarnation(record, starved).verdict).toBe('unknown');
    expect(pinIncarnation(record, starved)).toMatchObject({ kind: 'unknown' });
  });
});

describe('I3: a signal reaches the process of the record, or nobody', () => {
  it('is sent to the one that is alive', async () => {
    const child = startProcess('sleep', ['60']);
    const pinned = pinIncarnation(recordOf(child.pid), systemObserver);
    if (pinned.kind !== 'pinned') throw new Error(pinned.because);
    expect(await pinned.process.waitForDeath(systemClock, 20)).toBe('still-running');
    expect(pinned.process.judge().verdict).toBe('alive');
    expect(pinned.process.signal('SIGTERM')).toEqual({ kind: 'sent' });
    expect(await pinned.process.waitForDeath(systemClock, 30_000)).toBe('ended');
    expect(pinned.process.judge().verdict).toBe('dead');
    expect(pinned.process.signal('SIGKILL')).toEqual({ kind: 'ended' });
    pinned.process.close();
    pinned.process.close();
  });

  it('is not sent to a zombie, which kill would accept', async () => {
    const pid = startUnreaped('read x < /dev/zero');
    const pinned = pinIncarnation(recordOf(pid), systemObserver);
    if (pinned.kind !== 'pinned') throw new Error(pinned.because);
    process.kill(pid, 'SIGKILL');
    await eventually(() => stateOf(pid) === 'Z', 'zombie');
    expect(pinned.process.signal('SIGTERM')).toEqual({ kind: 'ended' });
    expect(await pinned.process.waitForDeath(systemClock, 0)).toBe('ended');
    reap(pid);
    pinned.process.close();
  });

  it.each([
    [
      'start ticks',
      (record: ProcessIncarnation) => ({ ...record, startTicks: record.startTicks + 1 }),
    ],
    ['pidfd inode', (record: ProcessIncarnation) => ({ ...record, pidfsIno: '1' })],
    ['boot', (record: ProcessIncarnation) => ({ ...record, bootId: 'another-boot' })],
  ])('is not sent when the record differs in its %s', async (_what, change) => {
    const child = startProcess('sleep', ['60']);
    expect(pinIncarnation(change(recordOf(child.pid)), systemObserver)).toMatchObject({
      kind: 'dead',
    });
    expect(stateOf(child.pid)).toMatch(/[SRD]/);
  });

  it.each([
    ['another machine', { hostId: 'elsewhere' }],
    ['another pid namespace', { pidNs: '1' }],
    ['another time namespace', { timeNs: '1' }],
  ])('is not sent to a process of %s', (_where, change) => {
    const child = startProcess('sleep', ['60']);
    expect(pinIncarnation({ ...recordOf(child.pid), ...change }, systemObserver)).toMatchObject({
      kind: 'unknown',
    });
  });
});

describe.runIf(mayChoosePids())('race 11: pid reuse, forced through ns_last_pid', () => {
  it('signals no process that was given the number of another', () => {
    const counts = runPidReuse(60);
    if (counts === 'not permitted') throw new Error(counts);
    // The oracle has to have been reached: others start processes too, so not every round hits.
    expect(counts.reused).toBeGreaterThan(10);
    // Before pidfs two incarnations within one tick (10 ms) cannot be told apart.
    const pidfs = ownIncarnation({ pid: process.pid, uid, nonce: 'n' }).pidfsIno !== undefined;
    if (pidfs) expect(counts.wrongSignals).toBe(0);
  });
});
