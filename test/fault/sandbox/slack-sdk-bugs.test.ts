// The SDK behaviours PLATFORM §4.1 marks as reproduced, reproduced against the sandbox with the
// unmodified SDKs: what chatd's own supervisors have to survive.

import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import { callApi, RawSocket, SlackBench, until } from '../../support/slack-sandbox.ts';

const bench = new SlackBench();
afterEach(() => bench.close());

interface Said {
  readonly what: string;
  readonly [more: string]: unknown;
}

class Probe {
  readonly said: Said[] = [];
  readonly child: ChildProcess;
  exitCode: number | null | undefined;

  constructor(sandbox: Sandbox, scenario: string, pingTimeoutMs = 1_000) {
    const script = fileURLToPath(new URL('../../support/slack-sdk-probe.mjs', import.meta.url));
    this.child = spawn(
      process.execPath,
      [script, scenario, JSON.stringify(sandbox.slack), String(pingTimeoutMs)],
      {
        stdio: ['pipe', 'pipe', 'ignore'],
      },
    );
    let rest = '';
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.said.push(JSON.parse(line) as Said);
    });
    this.child.on('exit', (code) => {
      this.exitCode = code;
    });
    bench.after(() => this.child.kill('SIGKILL'));
  }

  tell(command: string): void {
    this.child.stdin?.write(`${command}\n`);
  }

  has(what: string): boolean {
    return this.said.some((one) => one.what === what);
  }

  async saw(what: string): Promise<Said> {
    return until(what, () => this.said.find((one) => one.what === what), 60_000);
  }
}

async function calm(): Promise<Sandbox> {
  return bench.sandbox({ slack: { rateLimits: 'off' } });
}

async function countOf(sandbox: Sandbox, target: string): Promise<number> {
  return ((await sandbox.control('requests', { target })) as unknown[]).length;
}

test('S1: disconnect() during a pending reconnect kills the process with a rejection of undefined', async () => {
  const sandbox = await calm();
  // The reconnect stays pending for 5 s, time enough for a slow machine.
  const probe = new Probe(sandbox, 'socket', 5_000);
  await probe.saw('connected');
  await sandbox.control('slack/sockets/disconnect', { reason: 'refresh_requested' });
  await probe.saw('reconnecting');
  probe.tell('disconnect');
  expect(await probe.saw('unhandled')).toMatchObject({ reason: 'undefined' });
  await until('the end', () => probe.exitCode === 1);
});

test('S5: app_rate_limited, which has no event, kills the process', async () => {
  const sandbox = await calm();
  const probe = new Probe(sandbox, 'socket');
  await probe.saw('connected');
  await sandbox.control('slack/app-rate-limited');
  expect((await probe.saw('unhandled'))['reason']).toMatch(/undefined/);
  await until('the end', () => probe.exitCode === 1);
});

test('S6: too_many_websockets makes the client try again and again at once', async () => {
  const sandbox = await calm();
  for (let i = 0; i < 10; i += 1) await RawSocket.ready(bench, sandbox);
  const probe = new Probe(sandbox, 'socket');
  await until(
    'three openings of the client',
    async () => (await countOf(sandbox, 'apps.connections.open')) >= 13,
    60_000,
  );
  expect(probe.has('connected')).toBe(false);
});

test('S9, S10: a reconnect that meets invalid_auth or a 5xx kills the process', async () => {
  for (const strike of ['token', '503'] as const) {
    const sandbox = await calm();
    const probe = new Probe(sandbox, 'socket');
    await probe.saw('connected');
    if (strike === 'token')
      await sandbox.control('slack/kill-token', { token: 'app', error: 'invalid_auth' });
    else
      await sandbox.control('faults/add', {
        on: 'slack:apps.connections.open',
        fault: { kind: 'reply', status: 503 },
        count: 0,
      });
    await sandbox.control('slack/sockets/drop');
    await probe.saw('unhandled');
    await until('the end', () => probe.exitCode === 1);
  }
});

test('§2.2: at each refresh there is a time without any socket', async () => {
  const sandbox = await calm();
  const probe = new Probe(sandbox, 'socket');
  await probe.saw('connected');
  const counts: number[] = [];
  sandbox.core.changes.subscribe((change) => {
    if (change.value.type === 'sockets') counts.push((change.value.data as unknown[]).length);
  });
  await sandbox.control('slack/sockets/disconnect', { reason: 'refresh_requested' });
  await until('the next socket', () => counts.at(-1) === 1, 60_000);
  expect(counts).toEqual([0, 1]);
});

test('§2.2: a half-open peer is replaced while the server still counts it', async () => {
  const sandbox = await calm();
  const probe = new Probe(sandbox, 'socket');
  await probe.saw('connected');
  await sandbox.control('slack/sockets/half-open');
  const both = await until(
    'two sockets on the server side',
    async () => {
      const { open } = (await sandbox.control('slack/sockets')) as {
        open: { half_open: boolean }[];
      };
      return open.length === 2 ? open : undefined;
    },
    60_000,
  );
  expect(both.map((one) => one.half_open)).toEqual([true, false]);
});

test('S17: when auth.test fails at start every event is acknowledged and none is handled', async () => {
  const sandbox = await calm();
  await sandbox.control('faults/add', {
    on: 'slack:auth.test',
    fault: { kind: 'reply', status: 503 },
  });
  const probe = new Probe(sandbox, 'bolt-auth');
  await probe.saw('started');
  await sandbox.control('slack/type', { user: 'alice', channel: '#ops', text: 'ls' });
  await sandbox.control('time/advance', { ms: 3_000 });
  await sandbox.control('slack/type', { user: 'alice', channel: '#ops', text: 'again' });
  await until(
    'both failures',
    () => probe.said.filter((one) => one.what === 'failed').length === 2,
  );
  await sandbox.control('time/advance', { ms: 600_000 });
  expect(probe.has('handled')).toBe(false);
});

test('S18: one 429 stalls every other method of the client', async () => {
  const sandbox = await calm();
  await sandbox.control('faults/add', {
    on: 'slack:chat.postMessage',
    fault: { kind: 'rate-limit', retryAfterSec: 1 },
  });
  const probe = new Probe(sandbox, 'post-and-test');
  await probe.saw('tested');
  const log = (await sandbox.control('requests')) as { target: string; atMs: number }[];
  const limited = log.find((one) => one.target === 'chat.postMessage')?.atMs ?? 0;
  const tested = log.find((one) => one.target === 'auth.test')?.atMs ?? 0;
  expect(tested - limited).toBeGreaterThan(900);
});

test('S19: a reset after processing makes the SDK post twice', async () => {
  const sandbox = await calm();
  await sandbox.control('faults/add', {
    on: 'slack:chat.postMessage',
    fault: { kind: 'reset', processed: true },
  });
  const probe = new Probe(sandbox, 'post-once');
  await probe.saw('posted');
  const { body } = await callApi(sandbox, 'conversations.history', {
    channel: sandbox.slack.channel,
  });
  expect((body['messages'] as { text: string }[]).map((one) => one.text)).toEqual(['once', 'once']);
});

test('S26: shared client options lose the app token to headers and gain 100 retries', async () => {
  const sandbox = await calm();
  new Probe(sandbox, 'shared-headers');
  const refused = await until('the opening', async () => {
    const log = await sandbox.control('requests', { target: 'apps.connections.open' });
    return (log as { error?: string }[])[0];
  });
  expect(refused.error).toBe('not_allowed_token_type');
  const options = new Probe(sandbox, 'shared-options');
  expect(await options.saw('options')).toMatchObject({ retries: 100 });
});

test('S28: a peer that never says hello leaves start() pending', async () => {
  const sandbox = await calm();
  await sandbox.control('faults/add', { on: 'slack:socket', fault: { kind: 'no-hello' } });
  const probe = new Probe(sandbox, 'socket');
  await until('the silent socket', async () => {
    const { open } = (await sandbox.control('slack/sockets')) as { open: unknown[] };
    return open.length === 1;
  });
  await sandbox.control('time/advance', { ms: 60_000 });
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect([probe.has('started'), probe.has('refused')]).toEqual([false, false]);
});
