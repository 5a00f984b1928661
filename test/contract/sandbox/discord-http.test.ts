// Conformance of the sandbox's Discord REST: points 26 to 37 of the list, by raw HTTP.

import { request } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Answer, DiscordBox, idOf } from '../../support/discord-box.ts';

let box: DiscordBox;

beforeEach(async () => {
  box = await DiscordBox.start();
  // Limits have their own test; the others may be quick.
  await box.control('settings', {
    limits: Object.fromEntries(
      [
        'POST /channels/:id/messages',
        'PATCH /channels/:id/messages/:id',
        'GET /channels/:id/messages',
        'PATCH /channels/:id',
        'PUT /channels/:id/messages/:id/reactions/:reaction',
        'POST /webhooks/:id/:token',
        'default',
      ].map((route) => [route, { limit: 1_000, windowMs: 1_000 }]),
    ),
    global: { limit: 1_000, windowMs: 1_000 },
  });
});

afterEach(async () => {
  await box.close();
});

const post = (body: unknown, channel = box.ops): Promise<Answer> =>
  box.call('POST', `/channels/${channel}/messages`, body);

async function makeThread(name = 'one'): Promise<string> {
  const root = await post({ content: 'root' });
  const path = `/channels/${box.ops}/messages/${idOf(root.json)}/threads`;
  return idOf((await box.call('POST', path, { name })).json);
}

function upload(parts: readonly (readonly [string, string | Blob, string?])[]): FormData {
  const form = new FormData();
  for (const [name, value, filename] of parts) {
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, value, filename);
  }
  return form;
}

test('point 26: v10 only, Bot authorisation, User-Agent checked, monotonic snowflakes of 18 to 19 digits', async () => {
  expect((await box.call('GET', '/users/@me')).status).toBe(200);
  const other = await fetch(`${box.info.apiUrl}/v7/users/@me`);
  expect([other.status, await other.json()]).toEqual([
    400,
    { message: 'Invalid API version', code: 50041 },
  ]);
  for (const authorization of ['', box.info.token, `Bearer ${box.info.token}`, 'Bot nonsense']) {
    const refused = await box.call('GET', '/users/@me', undefined, { authorization });
    expect([refused.status, refused.json]).toEqual([
      401,
      { message: '401: Unauthorized', code: 0 },
    ]);
  }
  expect((await box.call('GET', '/nowhere')).status).toBe(404);
  expect((await box.call('PUT', '/users/@me')).status).toBe(405);
  await box.call('GET', '/users/@me', undefined, { 'user-agent': 'curl/8' });
  expect(box.rules()).toContain('user-agent');
  const ids = [];
  for (let n = 0; n < 5; n += 1) ids.push(idOf((await post({ content: `${n}` })).json));
  expect(ids.every((id) => /^\d{18,19}$/.test(id))).toBe(true);
  expect([...ids].sort()).toEqual(ids);
  const at = Number(BigInt(ids[0] ?? '0') >> 22n) + 1_420_070_400_000;
  expect(Math.abs(at - Date.now())).toBeLessThan(60_000);
});

test('point 27: buckets per route and channel, with headers on every response and 429 that says how long', async () => {
  const thread = await makeThread();
  await box.control('resetLimits');
  await box.control('settings', {
    limits: { 'POST /channels/:id/messages': { limit: 5, windowMs: 5_000 } },
  });
  const answers: Answer[] = [];
  for (let n = 0; n < 6; n += 1) answers.push(await post({ content: `${n}` }));
  expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200, 429]);
  expect(answers.map((answer) => answer.headers.get('x-ratelimit-remaining'))).toEqual([
    '4',
    '3',
    '2',
    '1',
    '0',
    '0',
  ]);
  const limited = answers[5] as Answer;
  expect(limited.json).toMatchObject({ message: 'You are being rate limited.', global: false });
  expect((limited.json as { retry_after: number }).retry_after).toBeLessThanOrEqual(5);
  expect(Number(limited.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(limited.headers.get('x-ratelimit-scope')).toBe('user');
  const threadPost = await post({ content: 'other channel' }, thread);
  expect(threadPost.status).toBe(200);
  expect(threadPost.headers.get('x-ratelimit-bucket')).toBe(
    limited.headers.get('x-ratelimit-bucket'),
  );
  const bad = await post({ content: 'x'.repeat(2_001) }, thread);
  expect(bad.headers.get('x-ratelimit-limit')).toBe('5');
  await post({ content: 'impatient' });
  expect(box.rules()).toContain('ignored-retry-after');
}, 60_000);

test('point 27: the global limit, a rename limit the headers hide, and the knobs for stranger 429s', async () => {
  const thread = await makeThread();
  const rename = (name: string): Promise<Answer> =>
    box.call('PATCH', `/channels/${thread}`, { name });
  expect((await rename('a')).status).toBe(200);
  expect((await rename('b')).status).toBe(200);
  const third = await rename('c');
  expect(third.status).toBe(429);
  expect(Number(third.headers.get('retry-after'))).toBeGreaterThan(500);
  expect((await box.call('PATCH', `/channels/${thread}`, { archived: true })).status).toBe(200);
  expect(box.rules()).toContain('rename-limit');

  box.sandbox.core.faults.add({ on: 'discord:GET /users/@me', fault: { kind: 'rate-limit' } });
  const bare = await box.call('GET', '/users/@me');
  expect([bare.status, bare.headers.get('retry-after')]).toEqual([429, null]);
  box.sandbox.core.faults.add({
    on: 'discord:GET /users/@me',
    fault: { kind: 'rate-limit', html: true },
  });
  const html = await box.call('GET', '/users/@me');
  expect([html.status, html.headers.get('content-type')]).toEqual([
    429,
    'text/html; charset=UTF-8',
  ]);
  const shared = {
    status: 429,
    body: '{"message":"The resource is being rate limited.","retry_after":1,"global":false}',
  };
  box.sandbox.core.faults.add({
    on: 'discord:GET /users/@me',
    fault: {
      kind: 'reply',
      ...shared,
      headers: {
        'content-type': 'application/json',
        'x-ratelimit-scope': 'shared',
        'retry-after': '1',
      },
    },
  });
  expect((await box.call('GET', '/users/@me')).headers.get('x-ratelimit-scope')).toBe('shared');

  await box.control('settings', { global: { limit: 2, windowMs: 1_000 } });
  await box.control('resetLimits');
  const burst = [];
  for (let n = 0; n < 3; n += 1) burst.push(await box.call('GET', '/users/@me'));
  const last = burst.at(-1);
  expect(last?.status).toBe(429);
  expect(last?.headers.get('x-ratelimit-global')).toBe('true');
  expect(last?.json).toMatchObject({ global: true });
});

test('point 27: edits of messages older than an hour get 30046 as 429 after three in six seconds', async () => {
  const id = idOf((await post({ content: 'old' })).json);
  box.sandbox.core.clock.advance(3_700_000);
  const edits = [];
  for (let n = 0; n < 4; n += 1)
    edits.push(
      await box.call('PATCH', `/channels/${box.ops}/messages/${id}`, { content: `edit ${n}` }),
    );
  expect(edits.map((answer) => answer.status)).toEqual([200, 200, 200, 429]);
  expect(edits[3]?.json).toMatchObject({ code: 30046 });
  expect(edits[3]?.headers.get('retry-after')).toBe(null);
  expect(box.rules()).toContain('old-edit');
});

test('point 28: too many invalid requests and the proxy answers everybody in HTML', async () => {
  await box.control('settings', { invalid: { limit: 3, windowMs: 600_000 } });
  for (let n = 0; n < 3; n += 1)
    await box.call('GET', '/users/@me', undefined, { authorization: 'Bot no' });
  const banned = await box.call('GET', '/users/@me');
  expect(banned.status).toBe(429);
  expect(banned.text).toContain('<!DOCTYPE html>');
  expect(banned.headers.get('x-ratelimit-bucket')).toBe(null);
  expect(box.rules()).toContain('invalid-request-budget');
  box.sandbox.core.clock.advance(600_001);
  expect((await box.call('GET', '/users/@me')).status).toBe(200);
});

test('point 29: content, embeds, files and nonces are validated as Discord validates them', async () => {
  const long = await post({ content: 'x'.repeat(2_001) });
  expect([long.status, long.json]).toEqual([
    400,
    {
      message: 'Invalid Form Body',
      code: 50035,
      errors: {
        content: {
          _errors: [{ code: 'BASE_TYPE_MAX_LENGTH', message: 'Must be 2000 or fewer in length.' }],
        },
      },
    },
  ]);
  expect((await post({ content: 'x'.repeat(2_000) })).status).toBe(200);
  // An emoji of two UTF-16 units counts as two: the stricter of the two readings.
  expect((await post({ content: '🟢'.repeat(1_001) })).status).toBe(400);
  for (const content of ['', ' \n\t ', null])
    expect((await post({ content })).json).toMatchObject({ code: 50006 });
  expect((await post({ embeds: [{ title: 'x'.repeat(257) }] })).json).toMatchObject({
    errors: { embeds: { 0: { title: {} } } },
  });
  expect((await post({ content: 'x', nonce: 'n'.repeat(26) })).json).toMatchObject({
    errors: { nonce: {} },
  });
  const buttons = (count: number) =>
    Array.from({ length: count }, (_, n) => ({
      type: 2,
      style: 2,
      label: 'b',
      custom_id: `b${n}`,
    }));
  expect(
    (await post({ content: 'x', components: [{ type: 1, components: buttons(6) }] })).status,
  ).toBe(400);
  const twins = [{ type: 1, components: [...buttons(1), ...buttons(1)] }];
  expect((await post({ content: 'x', components: twins })).text).toContain(
    'COMPONENT_CUSTOM_ID_DUPLICATED',
  );
  const broken = await box.call(
    'POST',
    `/channels/${box.ops}/messages`,
    upload([['files[0]', 'no file']]),
  );
  expect(broken.status).toBe(400);
});

test('point 29: eleven files, a file over 10 MiB and a request over 25 MiB are refused each in its way', async () => {
  const many = upload(
    Array.from({ length: 11 }, (_, n) => [`files[${n}]`, new Blob(['x']), `f${n}`] as const),
  );
  expect((await post(many)).json).toMatchObject({ code: 30015 });
  const big = upload([['files[0]', new Blob([new Uint8Array(10 * 1024 * 1024 + 1)]), 'big.bin']]);
  const tooBig = await post(big);
  expect([tooBig.status, tooBig.json]).toMatchObject([413, { code: 50045 }]);
  const huge = upload(
    [0, 1, 2].map(
      (n) => [`files[${n}]`, new Blob([new Uint8Array(9 * 1024 * 1024)]), `${n}`] as const,
    ),
  );
  const tooHuge = await post(huge);
  expect([tooHuge.status, tooHuge.json]).toMatchObject([413, { code: 40005 }]);
});

test('point 29: an enforced nonce gives the first message back, for minutes, and no read returns it', async () => {
  const first = await post({ content: 'once', nonce: 'n1', enforce_nonce: true });
  const again = await post({ content: 'twice', nonce: 'n1', enforce_nonce: true });
  expect(idOf(again.json)).toBe(idOf(first.json));
  expect(first.json).toMatchObject({ nonce: 'n1', content: 'once' });
  expect(idOf((await post({ content: 'free', nonce: 'n1' })).json)).not.toBe(idOf(first.json));
  const thread = await makeThread();
  expect(
    idOf((await post({ content: 'elsewhere', nonce: 'n1', enforce_nonce: true }, thread)).json),
  ).not.toBe(idOf(first.json));
  const read = await box.call('GET', `/channels/${box.ops}/messages/${idOf(first.json)}`);
  expect(read.json).not.toHaveProperty('nonce');
  const list = await box.call('GET', `/channels/${box.ops}/messages?limit=100`);
  expect(list.text).not.toContain('"nonce"');
  box.sandbox.core.clock.advance(200_000);
  const late = await post({ content: 'late', nonce: 'n1', enforce_nonce: true });
  expect(idOf(late.json)).not.toBe(idOf(first.json));
});

test('point 30: content is trimmed and stripped, and mentions are what allowed_mentions lets through', async () => {
  const sent = await post({ content: '\n  a\u0000b\r\n\u202ec\ud800  \n' });
  expect(sent.json).toMatchObject({ content: 'ab\nc' });
  expect(box.rules()).toContain('content-changed');
  const [alice, bob] = [box.user('alice'), box.user('bob')];
  const text = `<@${alice}> <@!${bob}> @everyone`;
  const none = await post({ content: text, allowed_mentions: { parse: [] } });
  expect(none.json).toMatchObject({ mentions: [], mention_everyone: false });
  const one = await post({ content: text, allowed_mentions: { parse: [], users: [alice] } });
  expect((one.json as { mentions: { id: string }[] }).mentions.map((user) => user.id)).toEqual([
    alice,
  ]);
  expect(box.rules().filter((rule) => rule === 'mention')).toEqual([]);
  const all = await post({ content: text });
  expect((all.json as { mentions: unknown[] }).mentions).toHaveLength(2);
  // Without the right to mention everyone it stays text; the try is a violation all the same.
  expect(all.json).toMatchObject({ mention_everyone: false });
  expect(box.rules().filter((rule) => rule === 'mention')).not.toEqual([]);
  const edited = await box.call('PATCH', `/channels/${box.ops}/messages/${idOf(one.json)}`, {
    content: `now <@${bob}>`,
  });
  expect((edited.json as { mentions: { id: string }[] }).mentions.map((user) => user.id)).toEqual([
    bob,
  ]);
  const exclusive = await post({
    content: 'x',
    allowed_mentions: { parse: ['users'], users: [alice] },
  });
  expect(exclusive.status).toBe(400);
});

test('point 30: what would show as garbage is a violation: open fences, stray escapes, colours nobody has', async () => {
  await post({ content: '```\nopen', allowed_mentions: { parse: [] } });
  await post({ content: '```ansi\n\u001b[91mbright\n```', allowed_mentions: { parse: [] } });
  await post({ content: '```ansi\n\u001b[2Jclear\n```', allowed_mentions: { parse: [] } });
  await post({ content: '\u001b[1mbold', allowed_mentions: { parse: [] } });
  expect(box.rules()).toEqual([
    'unclosed-fence',
    'unsupported-sgr',
    'control-sequence',
    'control-sequence',
  ]);
});

test('point 31: multipart in both part orders; attachments are kept, dropped and added as listed', async () => {
  const json = JSON.stringify({
    content: 'files',
    attachments: [{ id: '0', description: 'first' }],
  });
  const file = new Blob(['hello']);
  const after = await post(
    upload([
      ['files[0]', file, 'a b.txt'],
      ['payload_json', json],
    ]),
  );
  const before = await post(
    upload([
      ['payload_json', json],
      ['files[0]', file, 'a b.txt'],
    ]),
  );
  for (const answer of [after, before])
    expect(answer.json).toMatchObject({
      attachments: [{ filename: 'a_b.txt', size: 5, description: 'first' }],
    });
  const id = idOf(before.json);
  const kept = (before.json as { attachments: { id: string }[] }).attachments[0]?.id;
  const path = `/channels/${box.ops}/messages/${id}`;
  const added = await box.call(
    'PATCH',
    path,
    upload([
      ['payload_json', '{}'],
      ['files[0]', file, 'b.txt'],
    ]),
  );
  expect((added.json as { attachments: unknown[] }).attachments).toHaveLength(2);
  const listed = upload([
    [
      'payload_json',
      JSON.stringify({ attachments: [{ id: kept }, { id: '0', filename: 'c.txt' }] }),
    ],
    ['files[0]', file, 'c.txt'],
  ]);
  const names = (await box.call('PATCH', path, listed)).json as {
    attachments: { filename: string }[];
  };
  expect(names.attachments.map((entry) => entry.filename)).toEqual(['a_b.txt', 'c.txt']);
  const dropped = await box.call('PATCH', path, { attachments: [] });
  expect((dropped.json as { attachments: unknown[] }).attachments).toEqual([]);
});

test('point 31: attachment addresses are signed and expire; a read gives a fresh one', async () => {
  const sent = await post(upload([['files[0]', new Blob(['hello']), 'a.txt']]));
  const url = (sent.json as { attachments: { url: string }[] }).attachments[0]?.url ?? '';
  const expires = Number.parseInt(new URL(url).searchParams.get('ex') ?? '0', 16) * 1000;
  expect(expires).toBeGreaterThan(Date.now());
  expect(await (await fetch(url)).text()).toBe('hello');
  expect((await fetch(url.replace('a.txt', 'b.txt'))).status).toBe(404);
  await fetch(url, { headers: { authorization: `Bot ${box.info.token}` } });
  expect(box.rules()).toContain('token-to-cdn');
  box.sandbox.core.clock.advance(86_400_001);
  expect((await fetch(url)).status).toBe(404);
  const again = await box.call('GET', `/channels/${box.ops}/messages/${idOf(sent.json)}`);
  const fresh = (again.json as { attachments: { url: string }[] }).attachments[0]?.url ?? '';
  expect((await fetch(fresh)).status).toBe(200);
});

test('point 32: a thread has the id of its message, once; without a type it is private', async () => {
  const root = idOf((await post({ content: 'root' })).json);
  const path = `/channels/${box.ops}/messages/${root}/threads`;
  expect((await box.call('POST', path, { name: '' })).json).toMatchObject({ code: 50035 });
  expect(
    (await box.call('POST', path, { name: 'x', auto_archive_duration: 5 })).json,
  ).toMatchObject({ code: 50035 });
  const made = await box.call('POST', path, { name: 'one', auto_archive_duration: 60 });
  expect(made.json).toMatchObject({
    id: root,
    type: 11,
    parent_id: box.ops,
    thread_metadata: { archived: false, auto_archive_duration: 60 },
  });
  expect((await box.call('POST', path, { name: 'two' })).json).toMatchObject({ code: 160004 });
  const starter = await box.call('GET', `/channels/${root}/messages`);
  expect(starter.json).toMatchObject([
    { type: 21, content: '', message_reference: { message_id: root, channel_id: box.ops } },
  ]);
  const lone = await box.call('POST', `/channels/${box.ops}/threads`, { name: 'private' });
  expect(lone.json).toMatchObject({ type: 12 });
  await box.control('settings', { activeThreadsMax: 2 });
  expect(
    (await box.call('POST', `/channels/${box.ops}/threads`, { name: 'third', type: 11 })).json,
  ).toMatchObject({ code: 160006 });
});

test('point 32: quiet archives a thread, edits do not keep it, a post revives it and an edit does not', async () => {
  const thread = await makeThread();
  const message = idOf((await post({ content: 'screen' }, thread)).json);
  const archived = async (): Promise<unknown> =>
    (
      (await box.call('GET', `/channels/${thread}`)).json as {
        thread_metadata: { archived: boolean };
      }
    ).thread_metadata.archived;
  await box.call('PATCH', `/channels/${thread}`, { auto_archive_duration: 60 });
  box.sandbox.core.clock.advance(50 * 60_000);
  const edit = (): Promise<Answer> =>
    box.call('PATCH', `/channels/${thread}/messages/${message}`, { content: 'edited' });
  expect((await edit()).status).toBe(200);
  expect(await archived()).toBe(false);
  box.sandbox.core.clock.advance(11 * 60_000);
  await expect.poll(archived).toBe(true);
  expect((await edit()).json).toMatchObject({ code: 50083 });
  expect(
    (await box.call('PUT', `/channels/${thread}/messages/${message}/reactions/%F0%9F%91%80/@me`))
      .json,
  ).toMatchObject({ code: 50083 });
  expect((await post({ content: 'wake up' }, thread)).status).toBe(200);
  expect(await archived()).toBe(false);
  expect((await edit()).status).toBe(200);
});

test('point 32: a locked thread refuses who does not moderate; deletes still work; forums have their rules', async () => {
  const thread = await makeThread();
  const message = idOf((await post({ content: 'x' }, thread)).json);
  const without = 2_252_194_950_794_304n & ~(1n << 34n);
  await box.control('botPermissions', { permissions: String(without) });
  await box.control('lock', { user: 'olga', thread });
  expect((await post({ content: 'y' }, thread)).json).toMatchObject({ code: 160005 });
  expect(
    (await box.call('PATCH', `/channels/${thread}/messages/${message}`, { content: 'z' })).json,
  ).toMatchObject({ code: 160005 });
  expect((await box.call('DELETE', `/channels/${thread}/messages/${message}`)).status).toBe(204);
  await expect(box.control('type', { user: 'alice', thread, text: 'hi' })).rejects.toThrow(
    '160005',
  );

  const forum = (await box.control('addChannel', {
    name: 'sessions',
    kind: 'forum',
    tags: [{ name: 'build' }],
    requiresTag: true,
  })) as {
    id: string;
    tags: { id: string }[];
  };
  expect((await post({ content: 'x' }, forum.id)).json).toMatchObject({ code: 50008 });
  const start = (tags: readonly string[]): Promise<Answer> =>
    box.call('POST', `/channels/${forum.id}/threads`, {
      name: 'p',
      applied_tags: tags,
      message: { content: 'first' },
    });
  expect((await start([])).json).toMatchObject({ code: 40067 });
  expect((await start(['123456789012345678'])).json).toMatchObject({ code: 40066 });
  const made = await start([forum.tags[0]?.id ?? '']);
  expect(made.json).toMatchObject({ message: { id: idOf(made.json), content: 'first' } });
});

test('point 33: components v2 exclude content, count 40 and 4,000, and fail with 500 over 10,170 bytes', async () => {
  const v2 = (components: unknown[], more: object = {}): Promise<Answer> =>
    post({ flags: 32_768, components, ...more });
  const display = (content: string): object => ({ type: 10, content });
  expect((await v2([display('hello')])).json).toMatchObject({ flags: 32_768, content: '' });
  expect((await v2([display('hello')], { content: 'x' })).status).toBe(400);
  expect((await v2([display('x'.repeat(4_001))])).status).toBe(400);
  expect((await v2(Array.from({ length: 41 }, () => display('x')))).status).toBe(400);
  expect((await v2([display('x'.repeat(2_001)), display('x'.repeat(2_000))])).status).toBe(400);
  expect((await v2([display('─'.repeat(3_386))])).status).toBe(200);
  const over = await v2([display('─'.repeat(3_387))]);
  expect(over.status).toBe(500);
  expect((await post({ components: [display('needs the flag')] })).status).toBe(400);
  const plain = idOf((await post({ content: 'plain' })).json);
  const path = `/channels/${box.ops}/messages/${plain}`;
  expect(
    (
      await box.call('PATCH', path, {
        flags: 32_768,
        content: null,
        components: [display('now v2')],
      })
    ).status,
  ).toBe(200);
  expect((await box.call('PATCH', path, { content: 'back' })).status).toBe(400);
});

interface Act {
  readonly id: string;
  readonly token: string;
}

async function commandAct(): Promise<Act> {
  await box.call(
    'PUT',
    `/applications/${box.info.applicationId}/guilds/${box.info.guildId}/commands`,
    [{ name: 'term', description: 'Terminals' }],
  );
  const gateway = await box.gateway();
  await gateway.op(10);
  gateway.identify(box.info.token);
  await gateway.event('GUILD_CREATE');
  await box.control('command', { user: 'alice', channel: 'ops', name: 'term' });
  return (await gateway.event('INTERACTION_CREATE')).d as Act;
}

const answer = (act: Act, body: object, query = ''): Promise<Answer> =>
  box.call('POST', `/interactions/${act.id}/${act.token}/callback${query}`, body, {
    authorization: '',
  });
const hook = (act: Act, method: string, path = '', body?: object): Promise<Answer> =>
  box.call(method, `/webhooks/${box.info.applicationId}/${act.token}${path}`, body, {
    authorization: '',
  });

test('point 34: an interaction is answered once within 3 s; later it is unknown', async () => {
  const act = await commandAct();
  expect((await hook(act, 'POST', '', { content: 'early' })).json).toMatchObject({ code: 10015 });
  const first = await answer(
    act,
    { type: 4, data: { content: 'hi', flags: 64 } },
    '?with_response=true',
  );
  expect([first.status, first.json]).toMatchObject([
    200,
    {
      interaction: { response_message_ephemeral: true },
      resource: { type: 4, message: { content: 'hi' } },
    },
  ]);
  expect((await answer(act, { type: 4, data: { content: 'again' } })).json).toMatchObject({
    code: 40060,
  });
  expect(
    (await hook(act, 'PATCH', '/messages/@original', { content: 'edited' })).json,
  ).toMatchObject({ content: 'edited' });
  expect((await hook(act, 'GET', '/messages/@original')).json).toMatchObject({ content: 'edited' });
  expect((await hook(act, 'POST', '', { content: 'more' })).status).toBe(200);
  expect((await hook(act, 'DELETE', '/messages/@original')).status).toBe(204);
  box.sandbox.core.clock.advance(900_001);
  expect((await hook(act, 'POST', '', { content: 'late' })).json).toMatchObject({ code: 50027 });

  await box.control('command', { user: 'alice', channel: 'ops', name: 'term' });
  const requests = box.sandbox.core.requests.list();
  expect(requests.some((entry) => JSON.stringify(entry).includes(act.token))).toBe(false);
});

test('point 34: after 3 s the person reads that nobody answered, and the callback is 10062', async () => {
  const act = await commandAct();
  box.sandbox.core.clock.advance(3_001);
  expect((await answer(act, { type: 4, data: { content: 'hi' } })).json).toMatchObject({
    code: 10062,
  });
  await expect
    .poll(() => box.control('dialogs'))
    .toMatchObject({ notes: [{ user: 'alice', text: 'The application did not respond' }] });
  expect(box.rules()).toContain('interaction-unanswered');
});

test('point 34: a deferral keeps its ephemerality, its first followup becomes the answer, 204 without a body', async () => {
  const act = await commandAct();
  const deferred = await answer(act, { type: 5, data: { flags: 64 } });
  expect([deferred.status, deferred.text]).toEqual([204, '']);
  const loading = (await box.messages(box.ops, 'alice')).at(-1);
  expect(loading).toMatchObject({ loading: true, onlyFor: 'alice' });
  const first = await hook(act, 'POST', '', { content: 'done' });
  expect(idOf(first.json)).toBe(loading?.id);
  expect((await box.messages(box.ops, 'alice')).at(-1)).toMatchObject({
    shown: 'done',
    loading: false,
    onlyFor: 'alice',
  });
  expect(await box.messages(box.ops, 'bob')).toEqual([]);
  // Nor does any read of the channel know it.
  expect(
    (await box.call('GET', `/channels/${box.ops}/messages/${loading?.id ?? ''}`)).json,
  ).toMatchObject({ code: 10008 });
  expect((await box.call('GET', `/channels/${box.ops}`)).json).toMatchObject({
    last_message_id: null,
  });
});

test('point 34: a modal cannot answer a modal, and a command has no message to update', async () => {
  const modal = {
    type: 9,
    data: {
      title: 'T',
      custom_id: 'm',
      components: [{ type: 1, components: [{ type: 4, custom_id: 'l', label: 'Line', style: 1 }] }],
    },
  };
  const gateway = await box.gateway();
  await gateway.op(10);
  gateway.identify(box.info.token);
  await gateway.event('GUILD_CREATE');
  await box.call(
    'PUT',
    `/applications/${box.info.applicationId}/guilds/${box.info.guildId}/commands`,
    [{ name: 'term', description: 'T' }],
  );
  await box.control('command', { user: 'alice', channel: 'ops', name: 'term' });
  const act = (await gateway.event('INTERACTION_CREATE')).d as Act;
  for (const type of [6, 7, 8, 99])
    expect((await answer(act, { type, data: {} })).json).toMatchObject({ code: 50035 });
  expect(
    (await answer(act, { ...modal, data: { ...modal.data, title: 'x'.repeat(46) } })).json,
  ).toMatchObject({ code: 50035 });
  expect((await answer(act, modal)).status).toBe(204);
  await box.control('submit', { user: 'alice', values: { l: 'text' } });
  await expect
    .poll(() => gateway.frames.filter((frame) => frame.t === 'INTERACTION_CREATE').length)
    .toBe(2);
  const submit = gateway.frames.filter((frame) => frame.t === 'INTERACTION_CREATE').at(-1)
    ?.d as Act;
  expect(submit).toMatchObject({
    type: 5,
    data: { custom_id: 'm', components: [{ components: [{ custom_id: 'l', value: 'text' }] }] },
  });
  expect((await answer(submit, modal)).json).toMatchObject({ code: 50035 });
});

test('point 35: missing permissions and missing access, in threads and channels', async () => {
  const thread = await makeThread();
  const all = 2_252_194_950_794_304n;
  const everyone = String((1n << 10n) | (1n << 16n));
  const grant = (minus: bigint): Promise<unknown> =>
    box.control('botPermissions', { permissions: String(all & ~minus), everyone });
  await grant(1n << 38n);
  expect((await post({ content: 'x' }, thread)).json).toMatchObject({ code: 50013 });
  expect((await post({ content: 'x' })).status).toBe(200);
  await grant(1n << 11n);
  expect((await post({ content: 'x' }, thread)).status).toBe(200);
  expect((await post({ content: 'x' })).json).toMatchObject({ code: 50013 });
  await grant(1n << 15n);
  expect((await post(upload([['files[0]', new Blob(['x']), 'a']]))).json).toMatchObject({
    code: 50013,
  });
  await grant(0n);
  await box.control('overwrite', { channel: 'ops', user: 'chatd', deny: String(1n << 10n) });
  for (const path of [
    `/channels/${box.ops}`,
    `/channels/${box.ops}/messages`,
    `/channels/${thread}/messages`,
  ])
    expect((await box.call('GET', path)).json).toMatchObject({ code: 50001 });
  expect((await post({ content: 'x' }, thread)).json).toMatchObject({ code: 50001 });
});

test('point 36: bulk commands are validated as a whole and creates are counted by the day', async () => {
  const path = `/applications/${box.info.applicationId}/guilds/${box.info.guildId}/commands`;
  const put = (commands: unknown): Promise<Answer> => box.call('PUT', path, commands);
  expect((await put([{ name: 'Term', description: 'x' }])).json).toMatchObject({
    errors: { 0: { name: {} } },
  });
  expect((await put([{ name: 'term', description: '' }])).status).toBe(400);
  expect(
    (
      await put([
        { name: 'a', description: 'x' },
        { name: 'a', description: 'y' },
      ])
    ).status,
  ).toBe(400);
  const option = (name: string, required: boolean): object => ({
    type: 3,
    name,
    description: 'x',
    required,
  });
  expect(
    (await put([{ name: 'a', description: 'x', options: [option('o', false), option('r', true)] }]))
      .status,
  ).toBe(400);
  expect(
    (await put(Array.from({ length: 101 }, (_, n) => ({ name: `c${n}`, description: 'x' }))))
      .status,
  ).toBe(400);
  expect((await put({ name: 'a' })).status).toBe(400);
  const made = await put([{ name: 'term', description: 'Terminals' }]);
  expect(made.json).toMatchObject([{ name: 'term', guild_id: box.info.guildId, type: 1 }]);
  expect((await put([{ name: 'term', description: 'Other' }])).json).toMatchObject([
    { id: (made.json as { id: string }[])[0]?.id },
  ]);
  for (let n = 0; n < 2; n += 1)
    expect(
      (await put(Array.from({ length: 99 }, (_, m) => ({ name: `n${n}-${m}`, description: 'x' }))))
        .status,
    ).toBe(200);
  expect(
    (await put(Array.from({ length: 5 }, (_, m) => ({ name: `z${m}`, description: 'x' })))).json,
  ).toMatchObject({ code: 30034 });
});

test('point 37: without the content intent reads are blank, except own messages, mentions and talks with the bot', async () => {
  await box.control('settings', { messageContent: false });
  await box.typed('alice', 'ops', 'secret');
  await box.typed('alice', 'ops', '@chatd hello');
  await box.typed('alice', 'dm', 'direct');
  await post({ content: 'own' });
  const list = (await box.call('GET', `/channels/${box.ops}/messages`)).json as {
    content: string;
  }[];
  expect(list.map((message) => message.content)).toEqual([
    'own',
    expect.stringContaining('hello'),
    '',
  ]);
  const direct = await box.call('POST', '/users/@me/channels', { recipient_id: box.user('alice') });
  const talk = (await box.call('GET', `/channels/${idOf(direct.json)}/messages`)).json as {
    content: string;
  }[];
  expect(talk.map((message) => message.content)).toEqual(['direct']);
});

test('reads page by before and after, newest first, and history needs its right', async () => {
  const ids = [];
  for (let n = 0; n < 5; n += 1) ids.push(await box.typed('alice', 'ops', `m${n}`));
  const read = async (query: string): Promise<string[]> =>
    (
      (await box.call('GET', `/channels/${box.ops}/messages${query}`)).json as { content: string }[]
    ).map((m) => m.content);
  expect(await read('?limit=2')).toEqual(['m4', 'm3']);
  expect(await read(`?limit=2&before=${ids[3]}`)).toEqual(['m2', 'm1']);
  expect(await read(`?limit=2&after=${ids[1]}`)).toEqual(['m3', 'm2']);
  expect((await box.call('GET', `/channels/${box.ops}/messages?limit=101`)).status).toBe(400);
});

test('a request whose sender died still lands, seconds later', async () => {
  box.sandbox.core.faults.add({
    on: 'discord:POST /channels/:id/messages',
    fault: { kind: 'delay', ms: 300 },
  });
  const url = new URL(`${box.info.apiUrl}/v10/channels/${box.ops}/messages`);
  await new Promise<void>((resolve) => {
    const sent = request(url, {
      method: 'POST',
      headers: {
        authorization: `Bot ${box.info.token}`,
        'user-agent': 'DiscordBot (x, 1)',
        'content-type': 'application/json',
      },
    });
    sent.on('error', () => undefined);
    sent.on('close', () => resolve());
    sent.end('{"content":"late"}', () => setTimeout(() => sent.destroy(), 50));
  });
  expect(await box.messages(box.ops)).toEqual([]);
  await expect
    .poll(async () => (await box.messages(box.ops)).map((message) => message.content), {
      timeout: 10_000,
    })
    .toEqual(['late']);
});
