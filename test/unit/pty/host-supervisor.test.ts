import { beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import {
  type HostEvents,
  type HostProcess,
  HostSupervisor,
} from '../../../src/pty/keeper/host-supervisor.ts';
import type { KeeperAnswer, ToHost } from '../../../src/pty/keeper-protocol.ts';
import { FakeClock } from '../../support/fake-clock.ts';

class FakeHost implements HostProcess {
  readonly pid: number;
  readonly events: HostEvents;
  readonly entry: string;
  readonly sent: ToHost[] = [];
  killed = false;

  constructor(pid: number, entry: string, events: HostEvents) {
    this.pid = pid;
    this.entry = entry;
    this.events = events;
  }

  send(message: ToHost): void {
    this.sent.push(message);
  }

  kill(): void {
    this.killed = true;
  }

  stderrTail(): string {
    return 'last words';
  }

  dispose(): void {
    // No descriptors here.
  }

  get hasInventory(): boolean {
    return this.sent.some((message) => message.t === 'inventory');
  }

  becomeReady(): void {
    this.events.message({ t: 'hello', version: 1, pid: this.pid });
    this.events.message({ t: 'ready' });
  }
}

let clock: FakeClock;
let hosts: FakeHost[];
let finished: number;
let sessions: number;
let supervisor: HostSupervisor;
let answers: KeeperAnswer[];

beforeEach(() => {
  clock = new FakeClock();
  hosts = [];
  finished = 0;
  sessions = 1;
  answers = [];
  supervisor = new HostSupervisor(
    {
      clock,
      log: silentLog,
      start: (entry, events) => {
        const host = new FakeHost(100 + hosts.length, entry.entry, events);
        hosts.push(host);
        return host;
      },
      checkEntry: (entry) => {
        if (entry.entry === 'untrusted') throw new Error('not to be trusted');
      },
      sendInventory: (host) => host.send({ t: 'inventory', sessions: [], last: true }),
      handle: () => undefined,
      sessions: () => sessions,
      finished: () => {
        finished += 1;
      },
    },
    { interpreter: 'node', entry: 'first' },
  );
});

function at(index: number): FakeHost {
  const host = hosts[index];
  if (host === undefined) throw new Error(`no host ${index}`);
  return host;
}

async function startFirst(): Promise<FakeHost> {
  supervisor.requestStart((answer) => answers.push(answer));
  at(0).becomeReady();
  await clock.advance(0);
  return at(0);
}

/** The keeper's own second, as often as said. */
async function seconds(count: number): Promise<void> {
  for (let second = 0; second < count; second += 1) {
    await clock.advance(1_000);
    supervisor.tick();
  }
}

test('a host is given the inventory after its hello, and a starter is answered when it is ready', async () => {
  supervisor.requestStart((answer) => answers.push(answer));
  expect(at(0).hasInventory).toBe(false);
  at(0).events.message({ t: 'hello', version: 1, pid: 100 });
  expect(at(0).hasInventory).toBe(true);
  expect(answers).toEqual([]);
  at(0).events.message({ t: 'ready' });
  expect(answers).toEqual([{ t: 'started', hostPid: 100 }]);
});

test('a host that died is replaced at once, five times in a minute, then every half minute for ever', async () => {
  await startFirst();
  for (let death = 0; death < 4; death += 1) {
    at(death).events.exited(1);
    await clock.advance(0);
    expect(hosts).toHaveLength(death + 2);
    at(death + 1).becomeReady();
  }
  at(4).events.exited(1);
  await clock.advance(29_000);
  expect(hosts).toHaveLength(5);
  expect(supervisor.status()).toMatchObject({ host: 'waiting' });
  expect(supervisor.status().reason).toContain('last words');
  await clock.advance(1_000);
  expect(hosts).toHaveLength(6);
});

test('a request of a person is tried at once, whatever the budget says', async () => {
  await startFirst();
  for (let death = 0; death < 5; death += 1) {
    at(hosts.length - 1).events.exited(1);
    await clock.advance(0);
  }
  const before = hosts.length;
  supervisor.requestStart((answer) => answers.push(answer));
  expect(hosts).toHaveLength(before + 1);
});

test('a silent host is named after 11 s and killed after 30 s of watched time', async () => {
  const host = await startFirst();
  await seconds(13);
  expect(supervisor.status().host).toBe('not-answering');
  expect(host.killed).toBe(false);
  await seconds(20);
  expect(host.killed).toBe(true);
  expect(hosts).toHaveLength(1);
  host.events.exited(undefined);
  await clock.advance(0);
  expect(hosts).toHaveLength(2);
  expect(at(1).hasInventory).toBe(false);
});

test('time in which the keeper itself slept is no silence of the host', async () => {
  const host = await startFirst();
  await seconds(2);
  await clock.advance(600_000);
  supervisor.tick();
  expect(host.killed).toBe(false);
  expect(supervisor.status().silentMs).toBeLessThan(11_000);
});

test('an answer ends the silence', async () => {
  const host = await startFirst();
  await seconds(20);
  host.events.message({ t: 'pong', seq: 1 });
  await seconds(20);
  expect(host.killed).toBe(false);
});

test('a swap: the next host loads first, the old one lets go, and only then masters move', async () => {
  const old = await startFirst();
  old.events.message({ t: 'reload', id: 9, interpreter: 'node', entry: 'second' });
  expect(old.sent.some((message) => message.t === 'stop-reading')).toBe(false);
  at(1).events.message({ t: 'hello', version: 1, pid: 101 });
  expect(old.sent.at(-1)).toEqual({ t: 'stop-reading' });
  expect(at(1).hasInventory).toBe(false);
  old.events.exited(0);
  expect(at(1).hasInventory).toBe(true);
  at(1).events.message({ t: 'ready' });
  expect(supervisor.status()).toMatchObject({ host: 'running', hostPid: 101 });
});

test('a successor gets the masters as soon as the old host says that it reads no more', async () => {
  const old = await startFirst();
  old.events.message({ t: 'reload', id: 9, interpreter: 'node', entry: 'second' });
  at(1).events.message({ t: 'hello', version: 1, pid: 101 });
  old.events.message({ t: 'stopped-reading' });
  expect(at(1).hasInventory).toBe(true);
  at(1).events.message({ t: 'ready' });
  await clock.advance(10_000);
  expect(old.killed).toBe(true);
  expect(at(1).killed).toBe(false);
});

test('a next host that fails in preflight changes nothing but the answer', async () => {
  const old = await startFirst();
  old.events.message({ t: 'reload', id: 9, interpreter: 'node', entry: 'broken' });
  at(1).events.exited(1);
  expect(old.sent.at(-1)).toMatchObject({ t: 'failed', id: 9 });
  expect(old.sent.some((message) => message.t === 'stop-reading')).toBe(false);
  expect(supervisor.status()).toMatchObject({ host: 'running', hostPid: 100 });
  old.events.message({ t: 'reload', id: 10, interpreter: 'node', entry: 'untrusted' });
  expect(old.sent.at(-1)).toMatchObject({ t: 'failed', id: 10 });
  expect(hosts).toHaveLength(2);
});

test('a swapped-in host that never becomes ready is rolled back to the proven one', async () => {
  const old = await startFirst();
  old.events.message({ t: 'reload', id: 9, interpreter: 'node', entry: 'second' });
  at(1).events.message({ t: 'hello', version: 1, pid: 101 });
  old.events.exited(0);
  at(1).events.exited(1);
  await clock.advance(0);
  expect(at(2).entry).toBe('first');
});

test('an old host that does not let go is killed, and reaped before its successor gets a master', async () => {
  const old = await startFirst();
  old.events.message({ t: 'reload', id: 9, interpreter: 'node', entry: 'second' });
  at(1).events.message({ t: 'hello', version: 1, pid: 101 });
  await clock.advance(10_000);
  expect(old.killed).toBe(true);
  expect(at(1).hasInventory).toBe(false);
  old.events.exited(undefined);
  expect(at(1).hasInventory).toBe(true);
});

test('a host that was told to stop is not replaced; the keeper ends when nothing is left', async () => {
  const host = await startFirst();
  sessions = 0;
  host.events.message({ t: 'shutdown', reason: 'stopped' });
  host.events.exited(0);
  await clock.advance(60_000);
  expect(finished).toBe(1);
  expect(hosts).toHaveLength(1);
});

test('a host whose link broke is ended: only its end proves that it reads no more', async () => {
  const host = await startFirst();
  host.events.linkLost('nonsense');
  expect(host.killed).toBe(true);
  expect(hosts).toHaveLength(1);
  host.events.exited(undefined);
  await clock.advance(0);
  expect(hosts).toHaveLength(2);
});
