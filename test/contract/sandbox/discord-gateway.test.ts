// Conformance of the sandbox's Discord gateway: points 37 to 42 of the list, by raw WebSocket.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { DiscordBox, type Frame, idOf, type RawGateway, until } from '../../support/discord-box.ts';

const INTENTS = 1 + 512 + 1_024 + 32_768;

let box: DiscordBox;

beforeEach(async () => {
  box = await DiscordBox.start();
  await box.control('settings', { identifySpacingMs: 0 });
});

afterEach(async () => {
  await box.close();
});

async function ready(intents = INTENTS): Promise<{ gateway: RawGateway; session: string }> {
  const gateway = await box.gateway();
  await gateway.op(10);
  gateway.identify(box.info.token, intents);
  const { d } = await gateway.event('READY');
  if ((intents & 1) !== 0) await gateway.event('GUILD_CREATE');
  return { gateway, session: (d as { session_id: string }).session_id };
}

const texts = (gateway: RawGateway): readonly string[] =>
  gateway.frames
    .filter((frame) => frame.t === 'MESSAGE_CREATE')
    .map((frame) => (frame.d as { content: string }).content);

const heard = (gateway: RawGateway, text: string): Promise<true> =>
  until(() => texts(gateway).includes(text) || undefined, `message ${text}`) as Promise<true>;

test('point 38: hello, identify, READY, then the guild with @everyone and the bot in it', async () => {
  const { gateway } = await ready();
  expect(gateway.frames[0]).toMatchObject({ op: 10, d: { heartbeat_interval: 41_250 } });
  expect((await gateway.event('READY')).d).toMatchObject({
    v: 10,
    guilds: [{ id: box.info.guildId, unavailable: true }],
    application: { id: box.info.applicationId },
    shard: [0, 1],
  });
  const guild = (await gateway.event('GUILD_CREATE')).d as Record<string, unknown>;
  expect(guild).toMatchObject({ id: box.info.guildId, threads: [], unavailable: false });
  expect(guild['roles']).toContainEqual(
    expect.objectContaining({ id: box.info.guildId, name: '@everyone' }),
  );
  expect(guild['members']).toMatchObject([{ user: { id: box.info.applicationId, bot: true } }]);
  gateway.send(1, null);
  await gateway.op(11);
  await box.control('gateway', { action: 'heartbeat' });
  await until(() => gateway.frames.find((frame) => frame.op === 1), 'heartbeat request');
});

test('point 38: a bad token is 4004, disallowed intents 4014, unknown bits 4013, a bad shard 4010', async () => {
  const codes: number[] = [];
  const tries = [
    { token: 'no', intents: 1 },
    { token: box.info.token, intents: 1 | 2 },
    { token: box.info.token, intents: 1 << 27 },
    { token: box.info.token, intents: 1, shard: [1, 1] },
  ];
  for (const identify of tries) {
    const gateway = await box.gateway();
    gateway.send(2, { properties: {}, ...identify });
    codes.push(await gateway.closed());
  }
  expect(codes).toEqual([4004, 4014, 4013, 4010]);
  await box.control('settings', { messageContent: false });
  const blind = await box.gateway();
  blind.identify(box.info.token);
  expect(await blind.closed()).toBe(4014);
});

test('point 38: speaking before identify, identifying twice, big frames and unknown ops close the socket', async () => {
  const early = await box.gateway();
  early.send(3, {});
  expect(await early.closed()).toBe(4003);
  const { gateway } = await ready();
  gateway.identify(box.info.token);
  expect(await gateway.closed()).toBe(4005);
  const big = await box.gateway();
  big.send(1, 'x'.repeat(4_097));
  expect(await big.closed()).toBe(4002);
  const garbage = await box.gateway();
  garbage.socket.send('not json');
  expect(await garbage.closed()).toBe(4002);
  const odd = await box.gateway();
  odd.send(42, {});
  expect(await odd.closed()).toBe(4001);
  const chatty = await box.gateway();
  for (let n = 0; n < 121; n += 1) chatty.send(1, null);
  expect(await chatty.closed()).toBe(4008);
});

test('point 38: a second identify within 5 s is an invalid session; the budget of a day ends in a new token', async () => {
  await box.control('settings', { identifySpacingMs: 5_000 });
  await ready();
  const quick = await box.gateway();
  quick.identify(box.info.token);
  expect((await quick.op(9)).d).toBe(false);
  box.sandbox.core.clock.advance(5_001);
  quick.identify(box.info.token);
  await quick.event('READY');
  expect(await box.control('counters')).toMatchObject({ identifiesLeft: 998 });
  const limit = (await box.call('GET', '/gateway/bot')).json;
  expect(limit).toMatchObject({
    shards: 1,
    session_start_limit: { total: 1_000, remaining: 998, max_concurrency: 1 },
  });

  await box.control('settings', { identifySpacingMs: 0, identifyBudget: 3 });
  await ready();
  const last = await box.gateway();
  last.identify(box.info.token);
  expect(await last.closed()).toBe(4004);
  expect(await quick.closed()).toBe(4004);
  expect((await box.call('GET', '/users/@me')).status).toBe(401);
  expect(box.rules()).toContain('identify-budget');
});

test('point 38: two silent heartbeat intervals end the session with 4009', async () => {
  await box.control('settings', { heartbeatMs: 100 });
  const { gateway } = await ready();
  expect(await gateway.closed()).toBe(4009);
});

async function resume(session: string, seq: number): Promise<RawGateway> {
  const gateway = await box.gateway('/discord-gateway-resume/?v=10&encoding=json');
  await gateway.op(10);
  gateway.send(6, { token: box.info.token, session_id: session, seq });
  return gateway;
}

const lastSeq = (gateway: RawGateway): number =>
  Math.max(...gateway.frames.map((frame) => frame.s ?? 0));

test('point 39: a broken connection resumes with everything missed, in order, then RESUMED', async () => {
  const { gateway, session } = await ready();
  await box.typed('alice', 'ops', 'before');
  await heard(gateway, 'before');
  const seen = lastSeq(gateway);
  await box.control('gateway', { action: 'reset' });
  await gateway.closed();
  for (let n = 0; n < 3; n += 1) await box.typed('alice', 'ops', `missed ${n}`);
  const again = await resume(session, seen);
  await again.event('RESUMED');
  const events = again.frames.filter((frame) => frame.op === 0);
  expect(texts(again)).toEqual(['missed 0', 'missed 1', 'missed 2']);
  expect(events.at(-1)?.t).toBe('RESUMED');
  expect(events.map((frame) => frame.s)).toEqual(events.map((_, index) => seen + 1 + index));
  await box.typed('alice', 'ops', 'after');
  await heard(again, 'after');
});

test('point 39: a wrong number is 4007, an unknown or expired session op 9 false, a wrong token 4004', async () => {
  const { gateway, session } = await ready();
  await box.control('gateway', { action: 'reset' });
  await gateway.closed();
  const ahead = await resume(session, 999);
  expect(await ahead.closed()).toBe(4007);
  const unknown = await resume('nothing', 1);
  expect((await unknown.op(9)).d).toBe(false);
  const other = await ready();
  await box.control('gateway', { action: 'reset' });
  await other.gateway.closed();
  box.sandbox.core.clock.advance(120_001);
  const late = await resume(other.session, 2);
  expect((await late.op(9)).d).toBe(false);
  const thief = await box.gateway();
  thief.send(6, { token: 'no', session_id: 'x', seq: 1 });
  expect(await thief.closed()).toBe(4004);
});

test('point 39: a client that closes with 1000 or 1001 loses its session, with 4000 it keeps it', async () => {
  for (const [code, kept] of [
    [1000, false],
    [1001, false],
    [4000, true],
  ] as const) {
    const { gateway, session } = await ready();
    gateway.socket.close(code);
    await gateway.closed();
    const again = await resume(session, lastSeq(gateway));
    if (kept) await again.event('RESUMED');
    else expect((await again.op(9)).d).toBe(false);
  }
});

test('point 39: op 7, op 9 of both kinds and every close code can be sent; the resume address is another', async () => {
  const { gateway } = await ready();
  const url = ((await gateway.event('READY')).d as { resume_gateway_url: string })
    .resume_gateway_url;
  expect(url).not.toBe(((await box.call('GET', '/gateway/bot')).json as { url: string }).url);
  await box.control('gateway', { action: 'reconnect' });
  await gateway.op(7);
  await box.control('gateway', { action: 'invalid-session', resumable: true });
  expect((await gateway.op(9)).d).toBe(true);
  for (const code of [1000, 1001, 4000, 4001, 4008, 4009, 4011, 4012]) {
    const fresh = await ready();
    await box.control('gateway', { action: 'close', code });
    expect(await fresh.gateway.closed()).toBe(code);
  }
});

test('point 40: a zombie neither acks nor closes; acks can be dropped; an upgrade refused; no hello given', async () => {
  const { gateway } = await ready();
  await box.control('gateway', { action: 'zombie' });
  gateway.send(1, null);
  await box.typed('alice', 'ops', 'nobody hears');
  const { faults } = box.sandbox.core;
  const other = await ready();
  faults.add({ on: 'discord:heartbeat', fault: { kind: 'ignore-ack' } });
  other.gateway.send(1, null);
  other.gateway.send(1, null);
  await other.gateway.op(11);
  expect(other.gateway.frames.filter((frame) => frame.op === 11)).toHaveLength(1);
  expect(gateway.frames.filter((frame) => frame.op === 11)).toEqual([]);
  expect(texts(gateway)).toEqual([]);
  expect(gateway.closeCode).toBe(undefined);
  faults.add({ on: 'discord:gateway', fault: { kind: 'refuse-upgrade', status: 503 } });
  await expect(box.gateway()).rejects.toThrow('503');
  faults.add({ on: 'discord:gateway', fault: { kind: 'no-hello', delayMs: 200 } });
  const late = await box.gateway();
  expect(late.frames).toEqual([]);
  await late.op(10);
  faults.add({ on: 'discord:gateway', fault: { kind: 'no-hello' } });
  const silent = await box.gateway();
  box.sandbox.core.clock.advance(60_000);
  await box.typed('alice', 'ops', 'still nothing');
  await heard(other.gateway, 'still nothing');
  expect(silent.frames).toEqual([]);
});

test('point 40: the addresses given to the client may lead nowhere: a dead port, an unknown name', async () => {
  await box.control('settings', { url: 'ws://127.0.0.1:1', resumeUrl: 'ws://gateway.invalid' });
  expect((await box.call('GET', '/gateway/bot')).json).toMatchObject({ url: 'ws://127.0.0.1:1' });
  const { gateway } = await ready();
  expect((await gateway.event('READY')).d).toMatchObject({
    resume_gateway_url: 'ws://gateway.invalid',
  });
});

test('point 41: events come twice, out of order, late or never', async () => {
  const { gateway } = await ready();
  const { faults } = box.sandbox.core;
  const on = 'discord:event MESSAGE_CREATE';
  faults.add({ on, fault: { kind: 'duplicate' } });
  await box.typed('alice', 'ops', 'twice');
  faults.add({ on, fault: { kind: 'reorder' } });
  await box.typed('alice', 'ops', 'second');
  await box.typed('alice', 'ops', 'first');
  faults.add({ on, fault: { kind: 'lose' } });
  await box.typed('alice', 'ops', 'never');
  faults.add({ on, fault: { kind: 'late', ms: 3_600_000 } });
  await box.typed('alice', 'ops', 'an hour late');
  await box.typed('alice', 'ops', 'end');
  await heard(gateway, 'end');
  expect(texts(gateway)).toEqual(['twice', 'twice', 'first', 'second', 'end']);
  box.sandbox.core.clock.advance(3_600_001);
  await heard(gateway, 'an hour late');
});

test('point 41: a resolved embed is an update without an edit; a revived thread is updated before its message', async () => {
  const { gateway } = await ready();
  await box.typed(
    'alice',
    'ops',
    'no preview of `https://example.com/c` nor <https://example.com/d>',
  );
  const id = await box.typed('alice', 'ops', 'see https://example.com/a');
  const update = (await gateway.event('MESSAGE_UPDATE')).d;
  expect(update).toMatchObject({ id, edited_timestamp: null, embeds: [{ type: 'link' }] });
  await box.control('edit', { user: 'alice', messageId: id, text: 'edited' });
  await until(
    () =>
      gateway.frames.find(
        (frame) =>
          frame.t === 'MESSAGE_UPDATE' &&
          (frame.d as { edited_timestamp: unknown }).edited_timestamp !== null,
      ),
    'real edit',
  );
  const root = await box.typed('alice', 'ops', 'root');
  const thread = idOf(
    (await box.call('POST', `/channels/${box.ops}/messages/${root}/threads`, { name: 't' })).json,
  );
  await box.control('archive', { user: 'olga', thread });
  // A client that connects now does not know the thread: only active ones are told.
  const fresh = await ready();
  expect((await fresh.gateway.event('GUILD_CREATE')).d).toMatchObject({ threads: [] });
  await box.typed('alice', thread, 'revived');
  await heard(fresh.gateway, 'revived');
  const names = fresh.gateway.frames.map((frame: Frame) => frame.t);
  expect(names.indexOf('THREAD_UPDATE')).toBeLessThan(names.indexOf('MESSAGE_CREATE'));
  expect(names).toContain('THREAD_UPDATE');
});

test('point 42 and 37: events follow the intents, and content is blank without its privileged one', async () => {
  const blind = await ready(1 + 512);
  const deaf = await ready(1);
  const full = await ready(INTENTS);
  await box.typed('alice', 'ops', 'secret');
  await box.typed('alice', 'ops', '@chatd open');
  const thread = (await box.control('startThread', {
    user: 'alice',
    channel: 'ops',
    name: 't',
  })) as { id: string };
  await heard(full.gateway, 'secret');
  await full.gateway.event('THREAD_CREATE');
  await deaf.gateway.event('THREAD_CREATE');
  await until(() => texts(blind.gateway).length >= 2 || undefined, 'both messages');
  expect(texts(blind.gateway).slice(0, 2)).toEqual(['', expect.stringContaining('open')]);
  expect(texts(deaf.gateway)).toEqual([]);
  expect(thread.id).not.toBe('');
});

test('the nonce comes with MESSAGE_CREATE, and an ephemeral answer without its guild', async () => {
  const { gateway } = await ready(INTENTS + 4_096);
  await box.call('POST', `/channels/${box.ops}/messages`, {
    content: 'x',
    nonce: 'abc',
    enforce_nonce: true,
  });
  expect((await gateway.event('MESSAGE_CREATE')).d).toMatchObject({
    nonce: 'abc',
    guild_id: box.info.guildId,
  });
});
