// PLATFORM §5, points 1 to 16: the Web API as raw HTTP and as the real SDK see it.

import { request as httpRequest } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import type { MessageView } from '../../../src/sandbox/slack/read-back.ts';
import type { Violation } from '../../../src/sandbox/violations.ts';
import { callApi, RawSocket, SlackBench, until } from '../../support/slack-sandbox.ts';

// Sandbox seconds per second: windows pass when a test says so, however slow the machine is.
const STILL = 0.001;
const bench = new SlackBench();
afterEach(() => bench.close());

async function calm(): Promise<Sandbox> {
  return bench.sandbox({ timeScale: STILL, slack: { rateLimits: 'off' } });
}

async function rules(sandbox: Sandbox): Promise<string[]> {
  return ((await sandbox.control('violations')) as Violation[]).map((one) => one.rule);
}

async function messages(sandbox: Sandbox, ts: string): Promise<MessageView[]> {
  const read = await sandbox.control('slack/thread', { channel: '#ops', ts });
  return (read as { messages: MessageView[] }).messages;
}

async function top(sandbox: Sandbox): Promise<MessageView[]> {
  const read = await sandbox.control('slack/channel', { channel: '#ops' });
  return (read as { messages: MessageView[] }).messages;
}

async function root(sandbox: Sandbox, text = 'root'): Promise<string> {
  const sent = await sandbox.control('slack/type', { user: 'alice', channel: '#ops', text });
  return (sent as { ts: string }).ts;
}

async function post(
  sandbox: Sandbox,
  args: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const { body } = await callApi(sandbox, 'chat.postMessage', {
    channel: sandbox.slack.channel,
    unfurl_links: false,
    unfurl_media: false,
    ...args,
  });
  return body;
}

describe('point 1: how a method may be called', () => {
  test('forms, JSON, multipart and GET, token in header or argument', async () => {
    const sandbox = await calm();
    const { apiUrl, botToken, channel } = sandbox.slack;
    const args = { channel, text: 'hi' };
    const multipart = new FormData();
    for (const [name, value] of Object.entries({ ...args, token: botToken }))
      multipart.set(name, value);
    const bearer = { authorization: `Bearer ${botToken}` };
    const json = { ...bearer, 'content-type': 'application/json; charset=utf-8' };
    const url = `${apiUrl}chat.postMessage`;
    const answers = await Promise.all([
      fetch(url, { method: 'POST', body: new URLSearchParams({ ...args, token: botToken }) }),
      fetch(url, { method: 'POST', headers: bearer, body: new URLSearchParams(args) }),
      fetch(url, { method: 'POST', headers: json, body: JSON.stringify(args) }),
      fetch(url, { method: 'POST', body: multipart }),
      fetch(`${url}?${new URLSearchParams(args).toString()}`, { headers: bearer }),
    ]);
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({ ok: true, channel });
    }
    expect(await top(sandbox)).toHaveLength(5);
    const noCharset = await fetch(url, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json' },
      body: JSON.stringify(args),
    });
    expect(await noCharset.json()).toMatchObject({
      ok: true,
      warning: 'missing_charset',
      response_metadata: { warnings: ['missing_charset'] },
    });
  });

  test('broken bodies and unknown content types are named', async () => {
    const sandbox = await calm();
    const url = `${sandbox.slack.apiUrl}chat.postMessage`;
    const headers = { authorization: `Bearer ${sandbox.slack.botToken}` };
    const send = async (type: string, body: string): Promise<unknown> => {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': type },
        body,
      });
      return answer.json();
    };
    expect(await send('application/json', '{')).toMatchObject({ error: 'invalid_json' });
    expect(await send('application/json', '[]')).toMatchObject({ error: 'json_not_object' });
    expect(await send('text/plain', 'x')).toMatchObject({ error: 'invalid_post_type' });
    expect(await send('multipart/form-data', 'x')).toMatchObject({ error: 'invalid_form_data' });
  });

  test('a form-only method does not see a JSON body', async () => {
    const sandbox = await calm();
    const answer = await fetch(`${sandbox.slack.apiUrl}users.info`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${sandbox.slack.botToken}`,
        'content-type': 'application/json; charset=utf-8',
      },
      body: JSON.stringify({ user: sandbox.slack.users['alice'] }),
    });
    expect(await answer.json()).toMatchObject({ ok: false, error: 'invalid_arguments' });
  });
});

test('point 2: unknown methods and bad tokens are answered with 200 and a code', async () => {
  const sandbox = await calm();
  const codeOf = async (method: string, token: string | null): Promise<unknown> => {
    const answer = await callApi(sandbox, method, {}, token);
    expect(answer.status).toBe(200);
    return answer.body['error'];
  };
  const { appToken, botToken } = sandbox.slack;
  expect(await codeOf('no.such', botToken)).toBe('unknown_method');
  expect(await codeOf('auth.test', null)).toBe('not_authed');
  expect(await codeOf('auth.test', 'xoxb-other')).toBe('invalid_auth');
  expect(await codeOf('auth.test', appToken)).toBe('not_allowed_token_type');
  expect(await codeOf('apps.connections.open', botToken)).toBe('not_allowed_token_type');
  await sandbox.control('slack/kill-token', { token: 'bot' });
  expect(await codeOf('auth.test', botToken)).toBe('token_revoked');
  await sandbox.control('slack/kill-token', { token: 'bot', error: 'account_inactive' });
  expect(await codeOf('auth.test', botToken)).toBe('account_inactive');
  await sandbox.control('slack/revive-token', { token: 'bot' });
  expect(await codeOf('auth.test', botToken)).toBeUndefined();
});

test('point 3: a missing scope is named, by the kind of the channel; granted ones are in the headers', async () => {
  const sandbox = await bench.sandbox({
    timeScale: STILL,
    slack: { rateLimits: 'off', scopes: ['chat:write', 'channels:history'] },
  });
  const secret = (await sandbox.control('slack/create-channel', {
    name: 'secret',
    private: true,
    members: ['alice'],
  })) as { id: string };
  const ok = await callApi(sandbox, 'conversations.history', { channel: sandbox.slack.channel });
  expect(ok.body['ok']).toBe(true);
  expect(ok.headers.get('x-oauth-scopes')).toBe('chat:write,channels:history');
  expect(ok.headers.get('x-accepted-oauth-scopes')).toBe('channels:history');
  const refused = await callApi(sandbox, 'conversations.history', { channel: secret.id });
  expect(refused.body).toMatchObject({
    ok: false,
    error: 'missing_scope',
    needed: 'groups:history',
    provided: 'chat:write,channels:history',
  });
  const client = bench.client(sandbox);
  await expect(client.users.info({ user: 'U0ALICE001' })).rejects.toMatchObject({
    data: { error: 'missing_scope', needed: 'users:read' },
  });
  expect(await rules(sandbox)).toContain('missing-scope');
});

test('point 4: blocks are JSON in a form, checked against every limit, with JSON pointers', async () => {
  const sandbox = await calm();
  const codeOf = async (blocks: unknown): Promise<unknown> =>
    (await post(sandbox, { text: 'x', blocks }))['error'];
  const plain = (text: string) => ({ type: 'plain_text', text });
  const section = (text: string) => ({ type: 'section', text: { type: 'mrkdwn', text } });
  expect(await codeOf('[{')).toBe('invalid_blocks_format');
  expect(await codeOf({ type: 'section' })).toBe('invalid_blocks_format');
  const long = await post(sandbox, { text: 'x', blocks: [section('a'.repeat(3_001))] });
  expect(long).toMatchObject({
    error: 'invalid_blocks',
    response_metadata: {
      messages: ['[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]'],
    },
  });
  const button = (more: object) => ({
    type: 'actions',
    elements: [{ type: 'button', action_id: 'a', text: plain('A'), ...more }],
  });
  const bad = [
    { type: 'nonsense' },
    { type: 'header', text: plain('h'.repeat(151)) },
    { type: 'section' },
    { type: 'section', fields: Array.from({ length: 11 }, () => plain('f')) },
    { type: 'context', elements: Array.from({ length: 11 }, () => plain('c')) },
    {
      type: 'actions',
      elements: Array.from({ length: 26 }, (_, i) => ({
        type: 'button',
        action_id: `${i}`,
        text: plain('b'),
      })),
    },
    button({ text: plain('b'.repeat(76)) }),
    button({ value: 'v'.repeat(2_001) }),
    button({ action_id: 'i'.repeat(256) }),
    button({ style: 'green' }),
    { type: 'markdown', text: 'm'.repeat(12_001) },
    {
      type: 'rich_text',
      elements: [{ type: 'rich_text_preformatted', elements: [{ type: 'text', text: '' }] }],
    },
    { ...section('a'), block_id: 'i'.repeat(256) },
  ];
  for (const block of bad)
    expect([block, await codeOf([block])]).toEqual([block, 'invalid_blocks']);
  expect(
    await codeOf([
      { ...section('a'), block_id: 'x' },
      { ...section('b'), block_id: 'x' },
    ]),
  ).toBe('invalid_blocks');
  expect(await codeOf([section('a'.repeat(3_000)), button({})])).toBeUndefined();
});

describe('point 5: what a post may hold', () => {
  test('a long text becomes several messages, each with its own ts; fences are not re-opened', async () => {
    const sandbox = await calm();
    const line = `${'x'.repeat(99)}\n`;
    const text = `\`\`\`\n${line.repeat(90)}\`\`\``;
    const answer = await post(sandbox, { text });
    const shown = await top(sandbox);
    expect(shown).toHaveLength(3);
    expect(answer['ts']).toBe(shown[0]?.ts);
    expect(new Set(shown.map((one) => one.ts)).size).toBe(3);
    for (const one of shown) expect(one.text.length).toBeLessThanOrEqual(4_000);
    expect(shown.map((one) => one.text).join('\n')).toBe(text);
    expect(shown[1]?.pre).toEqual([]);
    expect(await rules(sandbox)).toContain('text-split');
  });

  test('over 40,000 is cut with a warning; nothing at all is no_text', async () => {
    const sandbox = await calm();
    const answer = await post(sandbox, { text: 'y'.repeat(40_100) });
    expect(answer).toMatchObject({ ok: true, warning: 'message_truncated' });
    expect((await top(sandbox)).map((one) => one.text).join('')).toHaveLength(40_000);
    expect(await post(sandbox, { text: '' })).toMatchObject({ error: 'no_text' });
    expect(await post(sandbox, {})).toMatchObject({ error: 'no_text' });
  });

  test('blocks have a total of 13,200 units and a count of 50', async () => {
    const sandbox = await calm();
    const pre = (units: number) => ({
      type: 'rich_text',
      elements: [
        { type: 'rich_text_preformatted', elements: [{ type: 'text', text: 'z'.repeat(units) }] },
      ],
    });
    expect(await post(sandbox, { text: 'x', blocks: [pre(13_200)] })).toMatchObject({ ok: true });
    expect(await post(sandbox, { text: 'x', blocks: [pre(7_000), pre(6_201)] })).toMatchObject({
      error: 'msg_blocks_too_long',
    });
    const many = Array.from({ length: 51 }, () => ({ type: 'divider' }));
    expect(await post(sandbox, { text: 'x', blocks: many })).toMatchObject({
      error: 'invalid_blocks',
    });
  });
});

describe('point 6: chat.update', () => {
  test('is never split, removes blocks when only text is sent, and marks text edits only', async () => {
    const sandbox = await calm();
    const { channel } = sandbox.slack;
    const blocks = [{ type: 'section', text: { type: 'plain_text', text: 'b' } }];
    const metadata = { event_type: 'chatd', event_payload: { b: 'x', s: 1 } };
    const { ts } = await post(sandbox, { text: 'one', blocks, metadata });
    const update = async (args: Record<string, unknown>) =>
      (await callApi(sandbox, 'chat.update', { channel, ts, ...args })).body;
    expect(await update({ text: 'u'.repeat(4_001) })).toMatchObject({ error: 'msg_too_long' });
    expect(await update({ blocks, metadata })).toMatchObject({ ok: true });
    expect((await top(sandbox))[0]).toMatchObject({ text: 'one', edited: false, metadata });
    expect(await update({ text: 'two' })).toMatchObject({
      ok: true,
      text: 'two',
      message: { edited: { user: 'B0CHATD001' } },
    });
    // Metadata that was not sent again is gone.
    expect((await top(sandbox))[0]).toMatchObject({
      text: 'two',
      blocks: undefined,
      edited: true,
      metadata: undefined,
    });
    const foreign = await root(sandbox);
    expect(await update({ ts: foreign, text: 'mine' })).toMatchObject({
      error: 'cant_update_message',
    });
    expect(await update({ ts: '1700000000.000000', text: 'x' })).toMatchObject({
      error: 'message_not_found',
    });
  });

  test('the app hears its own update as a hidden message_changed, which Bolt does not filter', async () => {
    const sandbox = await calm();
    const app = bench.bolt(sandbox);
    const heard: Record<string, unknown>[] = [];
    app.event('message', async ({ event }) => {
      heard.push(event as unknown as Record<string, unknown>);
    });
    await app.start();
    const { ts } = await post(sandbox, { text: 'one' });
    await callApi(sandbox, 'chat.update', { channel: sandbox.slack.channel, ts, text: 'two' });
    const changed = await until('message_changed', () =>
      heard.find((one) => one['subtype'] === 'message_changed'),
    );
    expect(changed).toMatchObject({
      hidden: true,
      message: { ts, text: 'two', bot_id: sandbox.slack.botId },
      previous_message: { text: 'one' },
    });
  });
});

test('point 7: ts are unique and rising per channel, and replies are filed under the root', async () => {
  const sandbox = await calm();
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, i) => post(sandbox, { text: `${i}` })),
  );
  const stamps = (await top(sandbox)).map((one) => one.ts);
  expect(new Set(stamps).size).toBe(30);
  expect([...stamps].sort()).toEqual(stamps);
  for (const one of answers) expect(one['ts']).toMatch(/^\d{10}\.\d{6}$/);
  const rootTs = stamps[0] ?? '';
  const reply = await post(sandbox, { text: 'reply', thread_ts: rootTs });
  const nested = await post(sandbox, { text: 'nested', thread_ts: reply['ts'] });
  expect(nested['message']).toMatchObject({ thread_ts: rootTs, parent_user_id: 'U0CHATDBOT' });
  expect(await rules(sandbox)).toEqual(['thread-ts-not-root']);
  expect(await messages(sandbox, rootTs)).toHaveLength(3);
  expect(await post(sandbox, { text: 'x', thread_ts: '1700000000.000000' })).toMatchObject({
    error: 'thread_not_found',
  });
});

test('point 8: text is stored escaped, and what people type passes a client', async () => {
  const sandbox = await bench.sandbox({ timeScale: STILL, slack: { rateLimits: 'off' } });
  const type = async (text: string, more: object = {}) => {
    const sent = await sandbox.control('slack/type', {
      user: 'alice',
      channel: '#ops',
      text,
      ...more,
    });
    const ts = (sent as { ts: string }).ts;
    return (await sandbox.control('slack/message', { channel: '#ops', ts })) as MessageView;
  };
  const table: [string, string, object?][] = [
    ['a && b > c', 'a &amp;&amp; b &gt; c'],
    ['ping www.google.com', 'ping <http://www.google.com|www.google.com>'],
    ['curl https://x.y/z?a=1&b=2.', 'curl <https://x.y/z?a=1&amp;b=2>.'],
    ['a@b.co', '<mailto:a@b.co|a@b.co>'],
    ['@bob #ops @here', '<@U0BOB00001> <#C0OPS00001|ops> <!here>'],
    ['hi 🙂', 'hi :slightly_smiling_face:'],
    ['hi :)', 'hi :slightly_smiling_face:'],
    ['echo "x" --all', 'echo “x” —all', { smart_quotes: true }],
    ['`echo "x" www.google.com`', '`echo "x" www.google.com`', { smart_quotes: true }],
    ['```\na < b\n```', '```a &lt; b```'],
    ['- one\n- two', '• one\n• two'],
  ];
  for (const [typed, text, more] of table) expect((await type(typed, more)).text).toBe(text);
  const shown = await type('a && b > c');
  expect(shown.shown).toBe('a && b > c');
  const answer = await post(sandbox, { text: 'raw < and & here' });
  expect(answer['ok']).toBe(true);
  expect(await rules(sandbox)).toContain('text-unescaped');
  await sandbox.control('violations/clear');
  await post(sandbox, { text: 'a &lt; b &amp; <https://x.y|link> <@U0ALICE001>\n> quote' });
  expect(await rules(sandbox)).toEqual([]);
  await post(sandbox, { text: '<!channel> look' });
  expect(await rules(sandbox)).toEqual(['broadcast-ping']);
});

describe('point 9: rate limits', () => {
  test('a channel takes a burst, then one post a second, others are not affected', async () => {
    const sandbox = await bench.sandbox({ timeScale: STILL, slack: { postBurst: 3 } });
    const answers = [];
    for (let i = 0; i < 4; i += 1)
      answers.push(
        await callApi(sandbox, 'chat.postMessage', { channel: sandbox.slack.channel, text: 'x' }),
      );
    expect(answers.map((one) => one.status)).toEqual([200, 200, 200, 429]);
    const limited = answers[3];
    expect(limited?.body).toEqual({ ok: false, error: 'ratelimited' });
    expect(limited?.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect((await callApi(sandbox, 'auth.test')).body['ok']).toBe(true);
    expect(await rules(sandbox)).toEqual(['rate-limited']);
    await callApi(sandbox, 'chat.postMessage', { channel: sandbox.slack.channel, text: 'x' });
    expect(await rules(sandbox)).toContain('retry-after-ignored');
    await sandbox.control('time/advance', { ms: 1_100 });
    const later = await callApi(sandbox, 'chat.postMessage', {
      channel: sandbox.slack.channel,
      text: 'x',
    });
    expect(later.status).toBe(200);
  });

  test('chat.update is tier 3 for the whole workspace, whatever the channel', async () => {
    const sandbox = await bench.sandbox({ timeScale: STILL });
    const posted = await callApi(sandbox, 'chat.postMessage', {
      channel: sandbox.slack.channel,
      text: 'x',
    });
    const statuses = [];
    for (let i = 0; i < 51; i += 1) {
      const { status } = await callApi(sandbox, 'chat.update', {
        channel: sandbox.slack.channel,
        ts: posted.body['ts'],
        text: `${i}`,
      });
      statuses.push(status);
    }
    expect(statuses.filter((status) => status === 200).length).toBe(50);
    expect(statuses.at(-1)).toBe(429);
  });

  test('knobs: 429 without a header, as HTML, and 200 rate_limited', async () => {
    const sandbox = await calm();
    const on = 'slack:chat.postMessage';
    await sandbox.control('faults/add', { on, fault: { kind: 'rate-limit' } });
    await sandbox.control('faults/add', {
      on,
      fault: { kind: 'rate-limit', retryAfterSec: 7, html: true },
    });
    await sandbox.control('faults/add', { on, fault: { kind: 'error', code: 'rate_limited' } });
    const call = () =>
      callApi(sandbox, 'chat.postMessage', { channel: sandbox.slack.channel, text: 'x' });
    const bare = await call();
    expect([bare.status, bare.headers.get('retry-after')]).toEqual([429, null]);
    const html = await call();
    expect([html.status, html.headers.get('retry-after')]).toEqual([429, '7']);
    expect(html.headers.get('content-type')).toContain('text/html');
    const late = await call();
    expect([late.status, late.body]).toEqual([200, { ok: false, error: 'rate_limited' }]);
    expect((await call()).body['ok']).toBe(true);
    expect(await top(sandbox)).toHaveLength(1);
  });
});

describe('point 10: faults of one method', () => {
  test('5xx, HTML, errors after success, resets before and after, truncated bodies', async () => {
    const sandbox = await calm();
    const on = 'slack:chat.postMessage';
    const call = () => post(sandbox, { text: 'x' });
    const count = async () => (await top(sandbox)).length;
    const fault = (value: object) => sandbox.control('faults/add', { on, fault: value });
    await fault({
      kind: 'reply',
      status: 503,
      body: '<html>',
      headers: { 'content-type': 'text/html' },
    });
    expect(await call()).toEqual({ unparsed: '<html>' });
    expect(await count()).toBe(0);
    await fault({ kind: 'error', code: 'internal_error', processed: true });
    expect(await call()).toMatchObject({ error: 'internal_error' });
    expect(await count()).toBe(1);
    await fault({ kind: 'error', code: 'fatal_error' });
    expect(await call()).toMatchObject({ error: 'fatal_error' });
    expect(await count()).toBe(1);
    await fault({ kind: 'reset' });
    await expect(call()).rejects.toThrow();
    expect(await count()).toBe(1);
    await fault({ kind: 'reset', processed: true });
    await expect(call()).rejects.toThrow();
    expect(await count()).toBe(2);
    await fault({ kind: 'truncate' });
    await expect(call()).rejects.toThrow();
    expect(await count()).toBe(3);
    const recorded = (await sandbox.control('requests', { target: 'chat.postMessage' })) as {
      fault?: string;
      processed: boolean;
      args: Record<string, unknown>;
    }[];
    expect(recorded.map((one) => [one.fault, one.processed])).toEqual([
      ['reply', false],
      ['error', true],
      ['error', false],
      ['reset', false],
      ['reset', true],
      ['truncate', true],
    ]);
    expect(JSON.stringify(recorded)).not.toContain(sandbox.slack.botToken);
  });

  test('a request lands although its sender has gone, and a hang answers nobody', async () => {
    const sandbox = await bench.sandbox({ timeScale: STILL, slack: { rateLimits: 'off' } });
    const on = 'slack:chat.postMessage';
    await sandbox.control('faults/add', { on, fault: { kind: 'delay', ms: 8_000 } });
    await sandbox.control('faults/add', { on, fault: { kind: 'hang' } });
    const abandoned = (text: string): Promise<void> =>
      new Promise((resolve) => {
        const sent = httpRequest(`${sandbox.slack.apiUrl}chat.postMessage`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${sandbox.slack.botToken}`,
            'content-type': 'application/x-www-form-urlencoded',
          },
        });
        sent.on('error', () => resolve());
        sent.end(new URLSearchParams({ channel: sandbox.slack.channel, text }).toString());
        until('the struck fault', async () => {
          const list = (await sandbox.control('faults/list')) as { struck: number }[];
          return list[text === 'late' ? 0 : 1]?.struck === 1;
        }).then(
          () => sent.destroy(),
          () => sent.destroy(),
        );
      });
    await abandoned('late');
    await abandoned('never');
    expect(await top(sandbox)).toHaveLength(0);
    await sandbox.control('time/advance', { ms: 8_000 });
    await until('the late post', async () => (await top(sandbox)).length === 1);
    expect((await top(sandbox)).map((one) => one.text)).toEqual(['late']);
  });

  test('probability with a seed repeats exactly; skip and count are kept', async () => {
    const run = async (): Promise<string> => {
      const sandbox = await calm();
      await sandbox.control('faults/add', {
        on: 'slack:auth.*',
        fault: { kind: 'error', code: 'fatal_error' },
        count: 0,
        skip: 2,
        probability: 0.5,
        seed: 42,
      });
      let pattern = '';
      for (let i = 0; i < 20; i += 1) {
        const { body } = await callApi(sandbox, 'auth.test');
        pattern += body['ok'] === true ? '.' : 'x';
      }
      return pattern;
    };
    const pattern = await run();
    expect(pattern).toMatch(/x/);
    expect(pattern).toMatch(/^\.\./);
    expect(await run()).toBe(pattern);
  });
});

describe('point 11: files', () => {
  test('three steps, an answer before the message, shares filled in later, both events', async () => {
    const sandbox = await bench.sandbox({
      timeScale: STILL,
      slack: { rateLimits: 'off', fileShareDelayMs: [5_000, 5_000] },
    });
    const socket = await RawSocket.ready(bench, sandbox);
    const ts = await root(sandbox);
    const bytes = Buffer.from('screen');
    const begun = await callApi(sandbox, 'files.getUploadURLExternal', {
      filename: 'a.png',
      length: bytes.length,
    });
    const id = String(begun.body['file_id']);
    const sent = await fetch(String(begun.body['upload_url']), { method: 'POST', body: bytes });
    expect([sent.status, await sent.text()]).toEqual([200, 'OK - 6']);
    const done = await callApi(sandbox, 'files.completeUploadExternal', {
      files: [{ id, title: 'A' }],
      channel_id: sandbox.slack.channel,
      thread_ts: ts,
    });
    expect(done.body).toMatchObject({
      ok: true,
      files: [{ id, title: 'A', mimetype: '', shares: {} }],
    });
    await post(sandbox, { text: 'posted after', thread_ts: ts });
    expect((await messages(sandbox, ts)).map((one) => one.text)).toEqual(['root', 'posted after']);
    await sandbox.control('time/advance', { ms: 5_000 });
    const info = await until('the share', async () => {
      const { body } = await callApi(sandbox, 'files.info', { file: id });
      const file = body['file'] as { shares: { public?: Record<string, { ts: string }[]> } };
      return file.shares.public?.[sandbox.slack.channel]?.[0];
    });
    const shown = await messages(sandbox, ts);
    expect(shown.map((one) => one.subtype)).toEqual([undefined, undefined, 'file_share']);
    expect(info).toEqual({ ts: shown[2]?.ts, thread_ts: ts });
    expect(shown[2]?.metadata).toBeUndefined();
    await until('both events', () => {
      const types = socket.events.map((one) => one['subtype'] ?? one['type']);
      return types.includes('file_share') && types.includes('file_shared');
    });
  });

  test('empty files, unknown uploads, names for ids and files that never appear', async () => {
    const sandbox = await calm();
    expect(
      (await callApi(sandbox, 'files.getUploadURLExternal', { filename: 'a', length: 0 })).body[
        'error'
      ],
    ).toBe('missing_argument');
    const complete = (args: object) =>
      callApi(sandbox, 'files.completeUploadExternal', { files: [{ id: 'F0NONE' }], ...args });
    expect((await complete({})).body['error']).toBe('file_not_found');
    expect((await complete({ channel_id: 'ops' })).body['error']).toBe('channel_not_found');
    expect(
      (await fetch(`${sandbox.url}/upload/v1/none`, { method: 'POST', body: 'x' })).status,
    ).toBe(404);
    await sandbox.control('slack/knobs', { never_share_files: true });
    const client = bench.client(sandbox);
    await client.filesUploadV2({
      channel_id: sandbox.slack.channel,
      filename: 'a.txt',
      file: Buffer.from('x'),
    } as Parameters<typeof client.filesUploadV2>[0]);
    await sandbox.control('time/advance', { ms: 60_000 });
    expect(await top(sandbox)).toHaveLength(0);
  });

  test('a private download needs the token, else it is a login page; a stranger file says check_file_info', async () => {
    const sandbox = await calm();
    const sent = (await sandbox.control('slack/upload', {
      user: 'alice',
      channel: '#ops',
      name: 'a.log',
      text: 'secret',
      comment: 'see',
    })) as { ts: string; fileId: string };
    const { body } = await callApi(sandbox, 'files.info', { file: sent.fileId });
    const url = (body['file'] as { url_private_download: string }).url_private_download;
    const without = await fetch(url);
    expect([without.status, without.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    const withToken = await fetch(url, {
      headers: { authorization: `Bearer ${sandbox.slack.botToken}` },
    });
    expect(await withToken.text()).toBe('secret');
    await sandbox.control('slack/knobs', { files_need_info: true });
    const foreign = (await sandbox.control('slack/upload', {
      user: 'mallory',
      channel: '#ops',
      name: 'b',
      text: 'x',
    })) as { ts: string; fileId: string };
    const history = await callApi(sandbox, 'conversations.history', {
      channel: sandbox.slack.channel,
    });
    const [newest] = history.body['messages'] as { files: unknown[] }[];
    expect(newest?.files).toEqual([
      { id: foreign.fileId, mode: 'file_access', file_access: 'check_file_info' },
    ]);
    const full = await callApi(sandbox, 'files.info', { file: foreign.fileId });
    expect(full.body).toMatchObject({ file: { name: 'b', mode: 'hosted' } });
    expect((await callApi(sandbox, 'files.delete', { file: foreign.fileId })).body['error']).toBe(
      'cant_delete_file',
    );
  });
});

describe('point 12: modals', () => {
  const view = (more: object = {}) => ({
    type: 'modal',
    title: { type: 'plain_text', text: 'T' },
    submit: { type: 'plain_text', text: 'S' },
    blocks: [
      {
        type: 'input',
        block_id: 'b',
        label: { type: 'plain_text', text: 'L' },
        element: { type: 'plain_text_input', action_id: 'a' },
      },
    ],
    ...more,
  });

  async function trigger(sandbox: Sandbox): Promise<() => Promise<string>> {
    const app = bench.bolt(sandbox);
    const seen: string[] = [];
    app.command('/chatd', async ({ ack, command }) => {
      seen.push(command.trigger_id);
      await ack();
    });
    await app.start();
    return async () => {
      await sandbox.control('slack/command', { user: 'alice', channel: '#ops', command: '/chatd' });
      return seen.at(-1) ?? '';
    };
  }

  test('a trigger works once and for three seconds', async () => {
    const sandbox = await calm();
    const pull = await trigger(sandbox);
    const open = async (trigger_id: string) =>
      (await callApi(sandbox, 'views.open', { trigger_id, view: view() })).body;
    const first = await pull();
    expect(await open(first)).toMatchObject({
      ok: true,
      view: { type: 'modal', state: { values: {} } },
    });
    expect(await open(first)).toMatchObject({ error: 'exchanged_trigger_id' });
    const second = await pull();
    await sandbox.control('time/advance', { ms: 3_001 });
    expect(await open(second)).toMatchObject({ error: 'expired_trigger_id' });
    expect(await open('1.2.3')).toMatchObject({ error: 'invalid_trigger_id' });
  });

  test('hashes conflict, sizes are limited, three views lie on each other', async () => {
    const sandbox = await calm();
    const pull = await trigger(sandbox);
    const call = async (method: string, args: Record<string, unknown>) =>
      (await callApi(sandbox, method, args)).body;
    const opened = await call('views.open', { trigger_id: await pull(), view: view() });
    const { hash, id } = opened['view'] as { id: string; hash: string };
    expect(await call('views.update', { view_id: id, hash, view: view() })).toMatchObject({
      ok: true,
    });
    expect(await call('views.update', { view_id: id, hash, view: view() })).toMatchObject({
      error: 'hash_conflict',
    });
    expect(await call('views.update', { view_id: 'V0', view: view() })).toMatchObject({
      error: 'not_found',
    });
    for (let i = 0; i < 2; i += 1)
      expect(await call('views.push', { trigger_id: await pull(), view: view() })).toMatchObject({
        ok: true,
      });
    expect(await call('views.push', { trigger_id: await pull(), view: view() })).toMatchObject({
      error: 'push_limit_reached',
    });
    const refused = async (more: object) =>
      (await call('views.open', { trigger_id: await pull(), view: view(more) }))['error'];
    expect(await refused({ title: { type: 'plain_text', text: 't'.repeat(25) } })).toBe(
      'invalid_arguments',
    );
    expect(await refused({ submit: undefined })).toBe('invalid_arguments');
    expect(await refused({ private_metadata: 'p'.repeat(3_001) })).toBe('invalid_arguments');
    expect(await refused({ private_metadata: 'p'.repeat(250_001) })).toBe('view_too_large');
  });
});

describe('point 13: reading threads', () => {
  test('pages repeat the root, cursors survive new messages, bounds are exclusive unless asked', async () => {
    const sandbox = await calm();
    const { channel } = sandbox.slack;
    const ts = await root(sandbox);
    const stamps: string[] = [];
    for (let i = 0; i < 5; i += 1)
      stamps.push(String((await post(sandbox, { text: `${i}`, thread_ts: ts }))['ts']));
    const replies = async (args: Record<string, unknown>) =>
      (await callApi(sandbox, 'conversations.replies', { channel, ts, ...args })).body as {
        messages: { text: string }[];
        has_more: boolean;
        response_metadata: { next_cursor: string };
      };
    const textsOf = (page: { messages: { text: string }[] }) =>
      page.messages.map((one) => one.text);
    const first = await replies({ limit: 2 });
    expect(textsOf(first)).toEqual(['root', '0', '1']);
    expect(first).toMatchObject({
      has_more: true,
      messages: [{ reply_count: 5, latest_reply: stamps[4] }, {}, {}],
    });
    await post(sandbox, { text: 'new', thread_ts: ts });
    const second = await replies({ limit: 3, cursor: first.response_metadata.next_cursor });
    expect(textsOf(second)).toEqual(['root', '2', '3', '4']);
    const third = await replies({ limit: 3, cursor: second.response_metadata.next_cursor });
    expect(textsOf(third)).toEqual(['root', 'new']);
    expect(third.has_more).toBe(false);
    expect(textsOf(await replies({ oldest: stamps[3] }))).toEqual(['root', '4', 'new']);
    expect(textsOf(await replies({ oldest: stamps[3], inclusive: true }))).toEqual([
      'root',
      '3',
      '4',
      'new',
    ]);
    expect(
      (await callApi(sandbox, 'conversations.replies', { channel, ts: '1700000000.000000' })).body[
        'error'
      ],
    ).toBe('thread_not_found');
    expect(
      (await callApi(sandbox, 'conversations.replies', { channel, ts, cursor: 'xx' })).body[
        'error'
      ],
    ).toBe('invalid_cursor');
  });

  test('metadata comes without its payload unless all of it is asked for', async () => {
    const sandbox = await calm();
    const { channel } = sandbox.slack;
    const metadata = { event_type: 'chatd', event_payload: { b: 'bind', s: 3 } };
    const { ts } = await post(sandbox, { text: 'x', metadata });
    const read = async (args: object) =>
      (
        (await callApi(sandbox, 'conversations.history', { channel, ...args })).body[
          'messages'
        ] as { metadata: unknown }[]
      )[0]?.metadata;
    expect(await read({})).toEqual({ event_type: 'chatd', event_payload: {} });
    expect(await read({ include_all_metadata: true })).toEqual(metadata);
    const replies = await callApi(sandbox, 'conversations.replies', {
      channel,
      ts,
      include_all_metadata: true,
    });
    expect(replies.body).toMatchObject({ messages: [{ metadata }] });
    expect(
      await post(sandbox, { text: 'x', metadata: { event_type: 'a.b', event_payload: {} } }),
    ).toMatchObject({ error: 'invalid_metadata_format' });
    expect(
      await post(sandbox, {
        text: 'x',
        metadata: { event_type: 'a', event_payload: { x: 'y'.repeat(9_000) } },
      }),
    ).toMatchObject({ error: 'metadata_too_large' });
  });
});

test('point 14: a stream grows, needs a recipient, expires after five minutes and can be stopped', async () => {
  const sandbox = await calm();
  const { channel, teamId, users } = sandbox.slack;
  const call = async (method: string, args: Record<string, unknown>) =>
    (await callApi(sandbox, method, { channel, ...args })).body;
  const thread_ts = await root(sandbox);
  const recipient = { recipient_user_id: users['alice'], recipient_team_id: teamId };
  expect(await call('chat.startStream', { thread_ts })).toMatchObject({
    error: 'missing_recipient_user_id',
  });
  const started = await call('chat.startStream', { thread_ts, ...recipient, markdown_text: 'a' });
  const { ts } = started;
  expect(await call('chat.appendStream', { ts, markdown_text: 'b' })).toMatchObject({ ok: true });
  expect(await call('chat.update', { ts, text: 'no' })).toMatchObject({
    error: 'streaming_state_conflict',
  });
  await sandbox.control('time/advance', { ms: 300_001 });
  expect(await call('chat.appendStream', { ts, markdown_text: 'c' })).toMatchObject({
    error: 'message_not_in_streaming_state',
  });
  expect(await call('chat.update', { ts, text: 'yes' })).toMatchObject({ ok: true });
  const second = await call('chat.startStream', { thread_ts, ...recipient });
  await sandbox.control('slack/stop-stream', { user: 'alice', channel, ts: second['ts'] });
  expect(await call('chat.appendStream', { ts: second['ts'], markdown_text: 'd' })).toMatchObject({
    error: 'stopped_by_user',
  });
  const third = await call('chat.startStream', { thread_ts, ...recipient });
  await call('chat.appendStream', {
    ts: third['ts'],
    chunks: [{ type: 'markdown_text', text: 'e' }],
  });
  expect(await call('chat.stopStream', { ts: third['ts'], markdown_text: 'f' })).toMatchObject({
    ok: true,
    message: { text: 'ef' },
  });
});

test('point 15: a response URL works five times in thirty minutes: ephemeral, in channel, replace, delete', async () => {
  const sandbox = await calm();
  const app = bench.bolt(sandbox);
  const urls: string[] = [];
  app.action('go', async ({ ack, body }) => {
    urls.push((body as { response_url: string }).response_url);
    await ack();
  });
  await app.start();
  const button = {
    type: 'actions',
    elements: [{ type: 'button', action_id: 'go', text: { type: 'plain_text', text: 'Go' } }],
  };
  const { ts } = await post(sandbox, { text: 'original', blocks: [button] });
  const click = async () => {
    await sandbox.control('slack/click', { user: 'alice', channel: '#ops', ts, label: 'Go' });
    return urls.at(-1) ?? '';
  };
  const use = async (url: string, body: object) =>
    (
      await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).status;
  const url = await click();
  expect(await use(url, { text: 'only you' })).toBe(200);
  expect(await use(url, { text: 'all', response_type: 'in_channel' })).toBe(200);
  expect(await use(url, { text: 'replaced', blocks: [button], replace_original: true })).toBe(200);
  const read = (await sandbox.control('slack/channel', { channel: '#ops' })) as {
    messages: MessageView[];
    ephemeral: { text: string }[];
  };
  expect(read.messages.map((one) => one.text)).toEqual(['replaced', 'all']);
  expect(read.ephemeral.map((one) => one.text)).toEqual(['only you']);
  expect(await use(url, { text: 'four' })).toBe(200);
  expect(await use(url, { delete_original: true })).toBe(200);
  expect((await top(sandbox)).map((one) => one.text)).toEqual(['all']);
  expect(await use(url, { text: 'six' })).toBe(404);
  expect(await rules(sandbox)).toEqual(['response-url-spent']);
  const again = await post(sandbox, { text: 'original', blocks: [button] });
  await sandbox.control('slack/click', {
    user: 'alice',
    channel: '#ops',
    ts: again['ts'],
    label: 'Go',
  });
  await sandbox.control('time/advance', { ms: 30 * 60_000 + 1 });
  expect(await use(urls.at(-1) ?? '', { text: 'late' })).toBe(404);
});

test('point 16: membership, archives, locks and posting rules', async () => {
  const sandbox = await calm();
  const { channel } = sandbox.slack;
  const general = 'C0GENERAL1';
  expect(await post(sandbox, { channel: general, text: 'x' })).toMatchObject({
    error: 'not_in_channel',
  });
  expect(
    (await callApi(sandbox, 'conversations.history', { channel: general })).body['error'],
  ).toBe('not_in_channel');
  expect((await callApi(sandbox, 'conversations.join', { channel: general })).body['error']).toBe(
    'missing_scope',
  );
  await sandbox.control('slack/invite', { channel: 'general', user: 'bot' });
  expect(await post(sandbox, { channel: general, text: 'x' })).toMatchObject({ ok: true });
  const hidden = (await sandbox.control('slack/create-channel', {
    name: 'p',
    private: true,
    members: ['bob'],
    bot: false,
  })) as { id: string };
  expect(await post(sandbox, { channel: hidden.id, text: 'x' })).toMatchObject({
    error: 'channel_not_found',
  });
  const ts = await root(sandbox);
  await sandbox.control('slack/archive', { channel });
  for (const method of ['chat.postMessage', 'chat.update', 'reactions.add'])
    expect(
      (
        await callApi(sandbox, method, {
          channel,
          ts: (await top(sandbox))[0]?.ts,
          timestamp: ts,
          name: 'eyes',
          text: 'x',
        })
      ).body['error'],
    ).toMatch(/is_archived|cant_update_message/);
  expect(await sandbox.control('slack/type', { user: 'alice', channel, text: 'x' })).toMatchObject({
    kind: 'refused',
  });
  await sandbox.control('slack/unarchive', { channel });
  const restricted = async (posting: string, args: object) => {
    await sandbox.control('slack/posting', { channel, posting });
    return (await post(sandbox, { text: 'x', ...args }))['error'];
  };
  expect(await restricted('read-only', {})).toBe('restricted_action_read_only_channel');
  expect(await restricted('thread-only', {})).toBe('restricted_action_thread_only_channel');
  expect(await restricted('no-threads', { thread_ts: ts })).toBe(
    'restricted_action_non_threadable_channel',
  );
  expect(await restricted('open', {})).toBeUndefined();
  await sandbox.control('slack/lock-thread', { channel, ts });
  expect(await post(sandbox, { text: 'x', thread_ts: ts })).toMatchObject({
    error: 'restricted_action_thread_locked',
  });
  expect(
    (await callApi(sandbox, 'users.info', { user: sandbox.slack.users['mallory'] })).body,
  ).toMatchObject({
    user: { is_stranger: true, team_id: 'T0OTHER001' },
  });
});
