import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HostControl } from '../../../src/pty/client.ts';
import { journalBytes } from '../../storm/host-storm.ts';
import {
  allLines,
  ByteSink,
  TestHost,
  targetOf,
  until,
  whenExited,
} from '../../support/test-host.ts';

let host: TestHost;
let client: HostControl;
beforeEach(() => {
  host = new TestHost();
  client = host.client();
});
afterEach(() => host.stop());

const numbers = (count: number): string =>
  Array.from({ length: count }, (_, index) => `${index + 1}\r\n`).join('');

test('programs that exit at once lose no byte and no status, however slow their reader is', async () => {
  for (const [count, rounds] of [
    [20_000, 10],
    [2_000, 30],
  ] as const) {
    const wanted = numbers(count);
    for (let round = 0; round < rounds; round += 1) {
      const code = round % 7;
      const info = await client.create(host.request(['sh', '-c', `seq 1 ${count}; exit ${code}`]));
      const sink = new ByteSink();
      const slow = round % 2 === 1;
      const listener = sink.listener();
      const bytes = async (offset: number, chunk: Uint8Array): Promise<void> => {
        listener.bytes(offset, chunk);
        if (slow) await new Promise((resolve) => setTimeout(resolve, 5));
      };
      await client.followBytes({ ...targetOf(info), sinceOffset: 0 }, { ...listener, bytes });
      await until('exit', () => sink.exited !== undefined);
      expect(sink.exited).toMatchObject({ kind: 'exited', code, terminalOpen: false });
      expect(sink.text() === wanted).toBe(true);
      expect(journalBytes(host, info.sessionId).toString() === wanted).toBe(true);
    }
  }
});

test('death by a signal is told by name, and who caused it', async () => {
  const info = await client.create(host.request(['sleep', '1000']));
  expect(await client.kill(targetOf(info), 'slack:U1')).toMatchObject({
    kind: 'exited',
    signal: 'SIGKILL',
    cause: 'killed by slack:U1',
  });
  const stubborn = await client.create(
    host.request(['sh', '-c', "trap '' HUP TERM; echo ready; while :; do sleep 0.1; done"]),
  );
  const feed = await client.followLines(targetOf(stubborn));
  await until('ready', async () => (await allLines(feed)).includes('ready'));
  expect(await client.end(targetOf(stubborn), 'operator')).toMatchObject({ signal: 'SIGKILL' });
});

test('a background process that keeps the terminal: exited, terminal still open, later output served', async () => {
  const script = "trap '' HUP; (trap '' HUP; sleep 1.5; echo late) & echo early; exit 4";
  const info = await client.create(host.request(['bash', '-c', script]));
  const sink = new ByteSink();
  await client.followBytes({ ...targetOf(info), sinceOffset: 0 }, sink.listener());
  await until('exit', () => sink.exited !== undefined);
  expect(sink.exited).toMatchObject({ code: 4, terminalOpen: true });
  expect(sink.text()).toContain('early');
  await until('late output', () => sink.text().includes('late'));
  await until('closed', () => sink.exited?.kind === 'exited' && !sink.exited.terminalOpen);
});

test('input queued for a dead session reaches no other', async () => {
  for (let round = 0; round < 20; round += 1) {
    const script = 'stty raw -echo; echo ready; exec sleep 100';
    const deaf = await client.create(host.request(['sh', '-c', script]));
    const feed = await client.followLines(targetOf(deaf));
    await until('ready', async () => (await allLines(feed)).includes('ready'));
    const bytes = Buffer.from('POISON'.repeat(40_000));
    const queued = client.input({ ...targetOf(deaf), messageId: 'm', actor: 'test', bytes });
    const killed = client.kill(targetOf(deaf), 'test');
    const next = await client.create(
      host.request(['sh', '-c', 'stty raw -echo; exec timeout --foreground 0.1 cat']),
    );
    const sink = new ByteSink();
    await client.followBytes({ ...targetOf(next), sinceOffset: 0 }, sink.listener());
    await killed;
    expect(['unknown', 'refused']).toContain((await queued).kind);
    await until('exit', () => sink.exited !== undefined);
    expect(sink.text()).not.toContain('POISON');
    feed.close();
  }
});

test('a shell sees no descriptor, no variable and no raised limit of chatd', async () => {
  await client.create(host.request(['sleep', '100']));
  const script = 'ls -l /proc/self/fd | grep -o "[0-9]* -> .*"; env; ulimit -Sn; umask; echo end';
  const info = await client.create(host.request(['sh', '-c', script]));
  const feed = await client.followLines(targetOf(info));
  expect(await whenExited(feed)).toMatchObject({ code: 0 });
  const lines = await allLines(feed);
  const descriptors = lines.filter((line) => line.includes(' -> '));
  expect(
    descriptors.every((line) => /-> (\/dev\/pts\/\d+|\/proc\/\d+\/fd|pipe:\[\d+\])$/.test(line)),
  ).toBe(true);
  expect(descriptors.filter((line) => line.includes('/dev/pts'))).not.toHaveLength(0);
  expect(lines.filter((line) => /^CHATD_|NODE|VITEST/.test(line))).toEqual([]);
  expect(lines).toContain('TERM=xterm-256color');
  expect(lines).toContain('1024');
});

test('churn leaves no descriptor behind in keeper and host', async () => {
  const count = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
  const churn = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round += 1) {
      const info = await client.create(host.request(['true']));
      const sink = new ByteSink();
      const feed = await client.followBytes({ ...targetOf(info), sinceOffset: 0 }, sink.listener());
      await until('exit', () => sink.exited !== undefined);
      feed.close();
    }
  };
  await churn(5);
  const keeperPid = (await host.keeperStatus()).pid;
  const masters = (pid: number): number =>
    readdirSync(`/proc/${pid}/fd`).filter((fd) => {
      try {
        return readlinkSync(join(`/proc/${pid}/fd`, fd)).includes('ptmx');
      } catch {
        return false;
      }
    }).length;
  await until('masters closed', () => masters(host.hostPid()) === 0 && masters(keeperPid) === 0);
  const before = count(keeperPid);
  await churn(20);
  await until('masters closed', () => masters(host.hostPid()) === 0 && masters(keeperPid) === 0);
  await until('as before', () => count(keeperPid) <= before);
});

test('what is missing is said before anything is recorded', async () => {
  await client.list();
  const create = (command: string[], cwd = host.state) =>
    client.create(host.request(command, { cwd }));
  await expect(create(['no-such-program-x'])).rejects.toMatchObject({ code: 'command-not-found' });
  await expect(create(['/etc/passwd'])).rejects.toMatchObject({ code: 'command-not-executable' });
  await expect(create(['true'], '/no/such/dir')).rejects.toMatchObject({
    code: 'directory-not-found',
  });
  expect(await client.list()).toEqual([]);
  expect(readdirSync(host.paths.sessions)).toEqual([]);
});
