import { describe, expect, it } from 'vitest';
import {
  judgeIncarnation,
  judgeKeepingPin,
  type ObservedFacts,
  type PinAttempt,
  type ProcessIncarnation,
  ProcessIncarnationSchema,
  type ProcessObserver,
  type Standpoint,
  sameIncarnation,
} from '../../../src/ownership/process-incarnation.ts';

const record: ProcessIncarnation = {
  v: 1,
  pid: 4242,
  startTicks: 8000,
  bootId: 'boot-a',
  pidNs: '4026531836',
  timeNs: '4026531834',
  pidfsIno: '777',
  uid: 1000,
  hostId: 'machine-a',
  nonce: 'n'.repeat(12),
};

interface World {
  standpoint?: Partial<Standpoint> | Error;
  pin?: 'ok' | Exclude<PinAttempt, { kind: 'pinned' }>;
  inode?: string | undefined;
  ended?: boolean | Error;
  facts?: ObservedFacts | undefined;
  threadGroup?: number | undefined;
}

/** A machine on which `record` is alive unless `world` says otherwise. */
function observe(world: World): ProcessObserver & { closed: number; opened: number } {
  const observer = {
    closed: 0,
    opened: 0,
    standpoint: (): Standpoint => {
      if (world.standpoint instanceof Error) throw world.standpoint;
      const { hostId, bootId, pidNs, timeNs } = record;
      return { hostId, bootId, pidNs, timeNs, ...world.standpoint };
    },
    pin: (): PinAttempt => {
      if (world.pin !== undefined && world.pin !== 'ok') return world.pin;
      observer.opened++;
      return {
        kind: 'pinned',
        pin: {
          inode: () => ('inode' in world ? world.inode : record.pidfsIno),
          hasEnded: () => {
            if (world.ended instanceof Error) throw world.ended;
            return world.ended ?? false;
          },
          close: () => {
            observer.closed++;
          },
        },
      };
    },
    facts: (): ObservedFacts | undefined =>
      'facts' in world ? world.facts : { startTicks: record.startTicks, state: 'S' },
    threadGroup: (): number | undefined => world.threadGroup,
  };
  return observer;
}

const failed = (code: string): Exclude<World['pin'], undefined> => ({ kind: 'failed', code });
const byNumber = (present: 'there' | 'ESRCH' | 'EPERM'): Exclude<World['pin'], undefined> => ({
  kind: 'unavailable',
  present,
});

describe('the judgement of a process incarnation (OWNERSHIP 3.1)', () => {
  it.each<[string, World, string]>([
    ['same pid, ticks, boot, pidfd inode', {}, 'alive'],
    ['stopped', { facts: { startTicks: 8000, state: 'T' } }, 'alive'],
    ['traced', { facts: { startTicks: 8000, state: 't' } }, 'alive'],
    ['a zombie: its pidfd polls readable', { ended: true }, 'dead'],
    ['another boot of the same machine', { standpoint: { bootId: 'boot-b' } }, 'dead'],
    ['another machine', { standpoint: { hostId: 'machine-b' } }, 'unknown'],
    [
      'another machine, although its boot differs too',
      { standpoint: { hostId: 'machine-b', bootId: 'boot-b' } },
      'unknown',
    ],
    ['another pid namespace', { standpoint: { pidNs: '1' } }, 'unknown'],
    [
      'another pid namespace of an older boot',
      { standpoint: { pidNs: '1', bootId: 'boot-b' } },
      'dead',
    ],
    ['another time namespace', { standpoint: { timeNs: '1' } }, 'unknown'],
    [
      'another time namespace with other ticks',
      { standpoint: { timeNs: '1' }, facts: { startTicks: 1, state: 'S' } },
      'unknown',
    ],
    ['another time namespace, ended', { standpoint: { timeNs: '1' }, ended: true }, 'dead'],
    ['another time namespace, other inode', { standpoint: { timeNs: '1' }, inode: '8' }, 'dead'],
    ['no such process', { pin: failed('ESRCH') }, 'dead'],
    ['the pid is a thread id now (ENOENT)', { pin: failed('ENOENT'), threadGroup: 4000 }, 'dead'],
    ['the pid is a thread id now (EINVAL)', { pin: failed('EINVAL'), threadGroup: 4000 }, 'dead'],
    ['EINVAL for a process', { pin: failed('EINVAL'), threadGroup: 4242 }, 'unknown'],
    ['ENOENT, thread group unreadable', { pin: failed('ENOENT') }, 'unknown'],
    ['EPERM on pinning', { pin: failed('EPERM') }, 'unknown'],
    ['ENOSYS: no pidfd on this kernel', { pin: failed('ENOSYS') }, 'unknown'],
    ['EMFILE', { pin: failed('EMFILE') }, 'unknown'],
    ['seccomp says EACCES', { pin: failed('EACCES') }, 'unknown'],
    ['other start ticks', { facts: { startTicks: 8001, state: 'S' } }, 'dead'],
    ['same tick, other pidfd inode', { inode: '778' }, 'dead'],
    ['hidepid: /proc unreadable', { facts: undefined }, 'unknown'],
    ['hidepid, but other inode', { facts: undefined, inode: '778' }, 'dead'],
    ['hidepid, but ended', { facts: undefined, ended: true }, 'dead'],
    ['inode unreadable', { inode: undefined }, 'unknown'],
    ['poll fails', { ended: new Error('EMFILE') }, 'unknown'],
    ['our own standpoint is unreadable', { standpoint: new Error('EACCES') }, 'unknown'],
    ['without pins: none', { pin: byNumber('ESRCH') }, 'dead'],
    ['without pins: same start', { pin: byNumber('there') }, 'alive'],
    ['without pins: EPERM and unreadable', { pin: byNumber('EPERM'), facts: undefined }, 'unknown'],
    [
      'without pins: zombie',
      { pin: byNumber('there'), facts: { startTicks: 8000, state: 'Z' } },
      'dead',
    ],
    [
      'without pins: stopped',
      { pin: byNumber('there'), facts: { startTicks: 8000, state: 'T' } },
      'alive',
    ],
    [
      'without pins: other start',
      { pin: byNumber('there'), facts: { startTicks: 9, state: 'S' } },
      'dead',
    ],
  ])('%s', (_row, world, verdict) => {
    expect(judgeIncarnation(record, observe(world)).verdict).toBe(verdict);
  });

  it('compares ticks alone where the record has no pidfd inode', () => {
    const { pidfsIno: _, ...older } = record;
    expect(judgeIncarnation(older, observe({ inode: '999' })).verdict).toBe('alive');
  });

  it('closes the pin unless it hands it out with alive', () => {
    const live = observe({});
    judgeIncarnation(record, live);
    expect([live.opened, live.closed]).toEqual([1, 1]);
    const kept = observe({});
    expect(judgeKeepingPin(record, kept).pin).toBeDefined();
    expect([kept.opened, kept.closed]).toEqual([1, 0]);
    for (const world of [{ ended: true }, { facts: undefined }, { ended: new Error('x') }]) {
      const observer = observe(world);
      expect(judgeKeepingPin(record, observer).pin).toBeUndefined();
      expect([observer.opened, observer.closed]).toEqual([1, 1]);
    }
  });
});

describe('the record', () => {
  it('survives a round trip and drops unknown keys', () => {
    const text = JSON.stringify({ ...record, future: { x: 1 } });
    expect(ProcessIncarnationSchema.parse(JSON.parse(text))).toEqual(record);
  });

  it.each([
    ['pid', 0],
    ['pid', -1],
    ['pid', '4242'],
    ['startTicks', 1.5],
    ['startTicks', 1e300],
    ['bootId', ''],
    ['bootId', 'x'.repeat(129)],
    ['v', 2],
    ['nonce', null],
  ])('refuses %s = %j', (key, value) => {
    expect(ProcessIncarnationSchema.safeParse({ ...record, [key]: value }).success).toBe(false);
  });

  it('names the same process only when everything that identifies it agrees', () => {
    expect(sameIncarnation(record, { ...record })).toBe(true);
    for (const key of ['pid', 'startTicks'] as const) {
      expect(sameIncarnation(record, { ...record, [key]: record[key] + 1 })).toBe(false);
    }
    for (const key of ['bootId', 'pidNs', 'hostId', 'nonce'] as const) {
      expect(sameIncarnation(record, { ...record, [key]: 'other' })).toBe(false);
    }
  });
});
