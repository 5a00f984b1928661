import { describe, expect, it } from 'vitest';
import { type Log, silentLog } from '../../../src/base/log.ts';
import { requireCapabilities } from '../../../src/ownership/capabilities.ts';
import type { Capabilities, Capability } from '../../../src/sys/self-test.ts';

const ALL: readonly Capability[] = [
  'flock',
  'ofd-lock',
  'pidfd',
  'pidfd-inode',
  'process-facts',
  'peer-credentials',
  'peer-pidfd',
  'fd-passing',
  'splice',
  'rename-noreplace',
  'boot-clock',
  'spawn-chdir',
  'spawn-closefrom',
];

function without(...missing: Capability[]): Capabilities {
  const states = ALL.map((name) => [
    name,
    missing.includes(name) ? { present: false, because: 'ENOSYS' } : { present: true },
  ]);
  return Object.fromEntries(states) as Capabilities;
}

function recordingLog(): { log: Log; warned: unknown[] } {
  const warned: unknown[] = [];
  return {
    warned,
    log: { ...silentLog, warn: (event, fields) => warned.push({ event, ...fields }) },
  };
}

describe('the self-test at start', () => {
  it('says nothing when all is there', () => {
    const { log, warned } = recordingLog();
    requireCapabilities(log, 1, 2, () => without());
    expect(warned).toEqual([]);
  });

  it('says what a missing one costs, and goes on', () => {
    const { log, warned } = recordingLog();
    requireCapabilities(log, 1, 2, () => without('pidfd', 'splice'));
    expect(warned).toMatchObject([
      {
        event: 'capability.missing',
        capability: 'pidfd',
        costs: expect.stringMatching(/unknown/) as string,
      },
      { event: 'capability.missing', capability: 'splice' },
    ]);
  });

  it.each(['flock', 'ofd-lock', 'process-facts', 'boot-clock'] as const)(
    'refuses to start without %s',
    (name) => {
      expect(() => requireCapabilities(silentLog, 1, 2, () => without(name))).toThrow(
        expect.objectContaining({ code: 'capability-missing' }),
      );
    },
  );

  it('goes on, saying so, where it could not be run', () => {
    const { log, warned } = recordingLog();
    requireCapabilities(log, 1, 2, () => {
      throw new Error('ENOENT: no temporary directory');
    });
    expect(warned).toMatchObject([{ event: 'capabilities.not-tested' }]);
  });

  it('passes on this machine', () => {
    expect(() => requireCapabilities(silentLog, process.pid, process.ppid)).not.toThrow();
  });
});
