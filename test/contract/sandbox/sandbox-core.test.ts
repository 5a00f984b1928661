// The server both halves live in: control API, change feed, files, the process, and its end.

import { type ChildProcess, spawn } from 'node:child_process';
import { request as httpRequest } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import { bundleForChild } from '../../support/bundle.ts';
import { callApi, RawSocket, SlackBench, until } from '../../support/slack-sandbox.ts';

const bench = new SlackBench();
afterEach(() => bench.close());

async function control(
  sandbox: Sandbox,
  name: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; json: unknown }> {
  const answer = await fetch(`${sandbox.url}/control/${name}`, { method: 'POST', body, headers });
  return { status: answer.status, json: await answer.json() };
}

test('control calls answer JSON, name what is wrong, and are closed to other origins', async () => {
  const sandbox = await bench.sandbox();
  const typed = JSON.stringify({ user: 'alice', channel: '#ops', text: 'hi' });
  expect(await control(sandbox, 'slack/type', typed)).toMatchObject({
    status: 200,
    json: { ok: true, result: { kind: 'sent' } },
  });
  const wrong: [string, string, number, string][] = [
    ['slack/type', '{', 400, 'not JSON'],
    ['slack/type', '[]', 400, 'JSON object'],
    ['slack/type', '{}', 400, 'user must be a text'],
    ['slack/type', '{"user":"nobody","channel":"#ops","text":"x"}', 400, 'no user nobody'],
    ['slack/type', '{"user":"alice","channel":"#none","text":"x"}', 400, 'no channel #none'],
    ['faults/add', '{"on":"*","fault":{"kind":"delay"}}', 400, 'its numbers'],
    [
      'faults/add',
      '{"on":"*","fault":{"kind":"reset"},"count":"x"}',
      400,
      'count must be a number',
    ],
    ['time/scale', '{"scale":0}', 400, 'above 0'],
    ['no/such', '{}', 404, 'no control call'],
    ['toString', '{}', 404, 'no control call'],
  ];
  for (const [name, body, status, says] of wrong) {
    const answer = await control(sandbox, name, body);
    expect([name, answer.status]).toEqual([name, status]);
    expect((answer.json as { error: string }).error).toContain(says);
  }
  const foreign = await control(sandbox, 'slack/type', typed, { origin: 'https://evil.example' });
  expect(foreign.status).toBe(403);
  const own = await control(sandbox, 'slack/type', typed, { origin: sandbox.url });
  expect(own.status).toBe(200);
  expect(await sandbox.control('state')).toMatchObject({
    url: sandbox.url,
    slack: { channels: [{ name: 'ops', messages: [{}, {}] }, { name: 'general' }] },
    discord: {},
  });
  expect(await sandbox.control('facts')).toMatchObject({
    slack: { channel: 'C0OPS00001' },
    discord: {},
  });
});

test('only files of the page are served, whatever the path says', async () => {
  const sandbox = await bench.sandbox();
  const status = (path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      // Not fetch: it would tidy the path.
      const { port } = new URL(sandbox.url);
      httpRequest({ port, path, host: '127.0.0.1' }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on('error', reject)
        .end();
    });
  expect(await status('/')).toBe(200);
  for (const path of [
    '/../sandbox.ts',
    '/%2e%2e/sandbox.ts',
    '//etc/passwd',
    '/..%2f..%2fpackage.json',
    '/nothing.js',
  ])
    expect([path, await status(path)]).toEqual([path, 404]);
});

class Feed {
  text = '';
  readonly #controller = new AbortController();

  constructor(url: string) {
    bench.after(() => this.#controller.abort());
    fetch(url, { signal: this.#controller.signal })
      .then(
        async (response) => {
          const decoder = new TextDecoder();
          for await (const part of response.body ?? [])
            this.text += decoder.decode(part as Uint8Array);
        },
        () => undefined,
      )
      .catch(() => undefined);
  }

  get ids(): readonly number[] {
    return [...this.text.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]));
  }
}

test('the feed numbers every change, resumes after a number, and says when it cannot', async () => {
  const sandbox = await bench.sandbox({ slack: { rateLimits: 'off' } });
  const live = new Feed(`${sandbox.url}/control/events`);
  await until('the connection', () => live.text.includes(': connected'));
  await sandbox.control('slack/type', { user: 'alice', channel: '#ops', text: 'one' });
  await callApi(sandbox, 'auth.test');
  await until('both changes', () => live.text.includes('"one"') && live.text.includes('auth.test'));
  const last = sandbox.core.changes.lastSeq;
  const resumed = new Feed(`${sandbox.url}/control/events?after=${last - 1}`);
  await until('the missed change', () => resumed.ids.includes(last));
  expect(resumed.ids).toEqual([last]);
  for (let i = 0; i < 2_100; i += 1)
    sandbox.core.changes.push({ platform: 'sandbox', type: 'test', data: i });
  const late = new Feed(`${sandbox.url}/control/events?after=0`);
  await until('reset', () => late.text.includes('event: reset'));
  await sandbox.control('slack/type', { user: 'alice', channel: '#ops', text: 'two' });
  await until('what comes after', () => late.text.includes('"two"'));
  expect(live.ids).toEqual([...live.ids].sort((a, b) => a - b));
});

test('closing ends sockets, feeds, hanging requests and timers at once', async () => {
  const sandbox = await bench.sandbox({ slack: { rateLimits: 'off' } });
  const socket = await RawSocket.ready(bench, sandbox);
  const feed = new Feed(`${sandbox.url}/control/events`);
  await until('the feed', () => feed.text !== '');
  await sandbox.control('faults/add', { on: 'slack:auth.test', fault: { kind: 'hang' } });
  const hanging = callApi(sandbox, 'auth.test').then(
    () => 'answered',
    () => 'ended',
  );
  await until('the hang', () => sandbox.core.requests.totalCount > 1);
  await sandbox.close();
  expect(await hanging).toBe('ended');
  await until('the socket', () => socket.closed !== undefined);
  expect(sandbox.core.clock.pendingCount).toBe(0);
  await expect(callApi(sandbox, 'auth.test')).rejects.toThrow();
  await sandbox.close();
});

interface Run {
  readonly child: ChildProcess;
  out: string;
  error: string;
  code: number | null | undefined;
}

async function run(argv: readonly string[]): Promise<Run> {
  const entry = await bundleForChild('src/sandbox/sandbox-main.ts');
  const child = spawn(process.execPath, [entry, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] });
  const state: Run = { child, out: '', error: '', code: undefined };
  child.stdout.on('data', (part: Buffer) => {
    state.out += part.toString();
  });
  child.stderr.on('data', (part: Buffer) => {
    state.error += part.toString();
  });
  child.on('exit', (code) => {
    state.code = code;
  });
  bench.after(() => child.kill('SIGKILL'));
  return state;
}

test('as a process it prints one ready line, serves, and ends with 0 on SIGTERM', async () => {
  const started = await run(['--json', '--rate-limits', 'off', '--seed', '1']);
  const line = await until('the ready line', () => started.out.endsWith('\n') && started.out);
  const facts = JSON.parse(line) as { url: string; slack: { apiUrl: string; botToken: string } };
  const answer = await fetch(`${facts.slack.apiUrl}auth.test`, {
    headers: { authorization: `Bearer ${facts.slack.botToken}` },
  });
  expect(await answer.json()).toMatchObject({ ok: true, team_id: 'T0CHATD001' });
  started.child.kill('SIGTERM');
  await until('the end', () => started.code !== undefined);
  expect(started.code).toBe(0);
  expect(started.out.trim().split('\n')).toHaveLength(1);
});

test('a wrong option, or a port in use, is one line and exit code 2', async () => {
  const sandbox = await bench.sandbox();
  for (const argv of [['--nonsense'], ['--port', 'x'], ['--port', new URL(sandbox.url).port]]) {
    const started = await run(argv);
    await until('the end', () => started.code !== undefined);
    expect([argv, started.code]).toEqual([argv, 2]);
    expect(started.error.trim().split('\n')).toHaveLength(1);
  }
});
