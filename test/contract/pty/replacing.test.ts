import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HostControl } from '../../../src/pty/client.ts';
import { allLines, TestHost, targetOf, until } from '../../support/test-host.ts';

let host: TestHost;
let client: HostControl;
afterEach(() => host.stop());

beforeEach(() => {
  host = new TestHost();
  client = host.client();
});

test('a reload to code that does not load is refused, and the old host goes on', async () => {
  const info = await client.create(host.request(['cat']));
  const before = client.instance;
  const broken = join(host.state, 'broken');
  mkdirSync(broken);
  writeFileSync(join(broken, 'host.mjs'), 'throw new Error("does not load");\n', { mode: 0o600 });
  const reload = client.reload(process.execPath, join(broken, 'host.mjs'), 'test');
  await expect(reload).rejects.toMatchObject({ code: 'refused' });
  writeFileSync(join(broken, 'open.mjs'), '\n', { mode: 0o666 });
  const { chmodSync } = await import('node:fs');
  chmodSync(join(broken, 'open.mjs'), 0o666);
  const open = client.reload(process.execPath, join(broken, 'open.mjs'), 'test');
  await expect(open).rejects.toThrow(/writable by others/);
  expect(client.instance).toBe(before);
  const input = { ...targetOf(info), messageId: 'x', actor: 't', bytes: Buffer.from('still\n') };
  expect((await client.input(input)).kind).toBe('written');
});

test('the same lines and numbers come from a rebuilt model, at any place it is killed', async () => {
  const script =
    'i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf "\\033[3%dmcolour $i\\033[0m\\n" $((i%8)); sleep 0.004; done; sleep 100';
  const info = await client.create(host.request(['sh', '-c', script]));
  const feed = await client.followLines(targetOf(info));
  for (const count of [40, 120, 200]) {
    await until('progress', () => (feed.view?.finalCount ?? 0) >= count);
    const early = await feed.readLines(0, count);
    const pid = host.hostPid();
    process.kill(pid, 'SIGKILL');
    await until('another host', () => host.hostPid() !== pid);
    expect(await feed.readLines(0, count)).toEqual(early);
  }
  await until('all', async () => (await allLines(feed)).includes('colour 300'));
  const lines = (await allLines(feed)).filter((line) => line !== '');
  expect(lines).toEqual(Array.from({ length: 300 }, (_, index) => `colour ${index + 1}`));
});

test('an exit nobody was attached to is in the answer of the next attach, after a restart too', async () => {
  const info = await client.create(host.request(['sh', '-c', 'echo all; exit 9']));
  await until('exit', async () => (await client.list())[0]?.state.kind === 'exited');
  const pid = host.hostPid();
  process.kill(pid, 'SIGKILL');
  await until('another host', () => host.hostPid() !== pid);
  const feed = await client.followLines(targetOf(info));
  const state = await until('state', () => (feed.state.kind === 'exited' ? feed.state : undefined));
  expect(state).toMatchObject({ code: 9 });
  expect(await allLines(feed)).toContain('all');
});

test('keeper and host dead together: the end is proven, told as unknown, and nothing is started again', async () => {
  const info = await client.create(host.request(['sh', '-c', 'echo kept; sleep 1000']));
  const feed = await client.followLines(targetOf(info));
  await until('output', async () => (await allLines(feed)).includes('kept'));
  const { pid } = await host.keeperStatus();
  process.kill(pid, 'SIGSTOP');
  process.kill(host.hostPid(), 'SIGKILL');
  process.kill(pid, 'SIGKILL');
  const state = await until('state', () => (feed.state.kind === 'exited' ? feed.state : undefined));
  expect(state).toMatchObject({ terminalOpen: false, cause: 'keeper and host ended together' });
  expect(state).not.toHaveProperty('code');
  expect(await allLines(feed)).toContain('kept');
  expect(await client.list()).toHaveLength(1);
});

test('stop refuses while a session runs, ends it when told to, and then host and keeper end', async () => {
  const info = await client.create(host.request(['sleep', '1000']));
  await expect(client.shutdown('refuse', 'test')).rejects.toMatchObject({ code: 'refused' });
  const keeper = (await host.keeperStatus()).pid;
  const pid = host.hostPid();
  await client.shutdown('end', 'test');
  await until('both gone', () => !existsSync(`/proc/${pid}`) && !existsSync(`/proc/${keeper}`));
  const again = host.client();
  const [known] = await again.list();
  expect(known).toMatchObject({
    sessionId: info.sessionId,
    state: { kind: 'exited', cause: 'ended by test' },
  });
});

test('a host on demand ends by itself when nothing needs it, keeper too', async () => {
  await host.stop();
  host = new TestHost({ idleExitSecs: 1 });
  client = host.client();
  await client.list();
  const keeper = (await host.keeperStatus()).pid;
  client.close();
  await until('keeper gone', () => !existsSync(`/proc/${keeper}`));
});

test('with starting on demand off, nothing starts and the way out is said', async () => {
  const quiet = host.client({ autostart: false, patienceMs: 200 });
  await expect(quiet.list()).rejects.toThrow(/chatd host run/);
  expect(existsSync(host.paths.keeperSocket)).toBe(false);
});

test('many clients that start at once get one keeper and one host', async () => {
  const clients = Array.from({ length: 8 }, () => host.client());
  await Promise.all(clients.map((one) => one.list()));
  expect(new Set(clients.map((one) => one.instance)).size).toBe(1);
  expect(await host.keeperStatus()).toMatchObject({ hostStarts: 1, host: 'running' });
});
