import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HostControl, SessionInfo } from '../../../src/pty/client.ts';
import { ByteSink, TestHost, targetOf, until } from '../../support/test-host.ts';

let host: TestHost;
let client: HostControl;
beforeEach(() => {
  host = new TestHost();
  client = host.client();
});
afterEach(() => host.stop());

let messages = 0;
async function type(info: SessionInfo, text: string): Promise<void> {
  messages += 1;
  const bytes = Buffer.from(text);
  const outcome = await client.input({
    ...targetOf(info),
    messageId: `k${messages}`,
    actor: 'test',
    bytes,
  });
  expect(outcome.kind).toBe('written');
}

async function sinkOf(info: SessionInfo): Promise<ByteSink> {
  const sink = new ByteSink();
  await client.followBytes({ ...targetOf(info), sinceOffset: 0 }, sink.listener());
  return sink;
}

/** A session whose program is `chatd attach` of another one: a real terminal around it. */
async function attachTo(info: SessionInfo): Promise<SessionInfo> {
  const cli = [process.execPath, join(host.start.dist, 'cli.js'), 'attach', info.sessionId];
  const size = { cols: 90, rows: 33 };
  return await client.create(host.request(cli, { env: { CHATD_STATE: host.state }, ...size }));
}

test('attach shows the screen, types, takes the size, survives a killed host and detaches', async () => {
  const shell = await client.create(
    host.request(['sh', '-c', 'echo before; stty -echo; exec cat'], {}),
  );
  const inner = await sinkOf(shell);
  await until('the first line', () => inner.text().includes('before'));
  const attached = await attachTo(shell);
  const outer = await sinkOf(attached);
  await until('the screen', () => outer.text().includes('before'));
  await until('the size', async () => {
    const [first] = (await client.list()).filter((item) => item.sessionId === shell.sessionId);
    return first?.cols === 90 && first.rows === 33;
  });
  await type(attached, 'one\r');
  await until('the echo', () => outer.text().includes('one'));

  const pid = host.hostPid();
  process.kill(pid, 'SIGKILL');
  await until('another host', () => host.hostPid() !== pid);
  await type(attached, 'two\r');
  await until('the echo after', () => outer.text().includes('two'));
  expect(inner.text().match(/two/g)).toHaveLength(1);

  // A terminal that answers a query: dropped, for the host has answered.
  await type(attached, '\x1b[?62;c\x1b[0nthree\r');
  await until('what was typed', () => inner.text().includes('three'));
  expect(inner.text()).not.toContain('62;c');

  await type(attached, '\x1d');
  await until('detached', () => outer.exited !== undefined);
  expect(outer.exited).toMatchObject({ code: 0 });
  expect(outer.text()).toContain('detached');
  const states = (await client.list()).filter((item) => item.sessionId === shell.sessionId);
  expect(states[0]?.state.kind).toBe('running');
});

test('attach to a session nobody knows says so and creates nothing', async () => {
  await client.list();
  const cli = [process.execPath, join(host.start.dist, 'cli.js'), 'attach', 'nobody'];
  const info = await client.create(host.request(cli, { env: { CHATD_STATE: host.state } }));
  const sink = await sinkOf(info);
  await until('exit', () => sink.exited !== undefined);
  expect(sink.exited).toMatchObject({ code: 1 });
  expect(sink.text()).toContain('not known here');
  expect(await client.list()).toHaveLength(1);
});
