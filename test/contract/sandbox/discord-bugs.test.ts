// What the real discord.js 14.28 does when things go wrong, reproduced on the sandbox. These are
// facts about the library: chatd's supervisor is built around them, and an upgrade that changes one
// shows up here.

import { type Client, Events, type TextChannel } from 'discord.js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DiscordBox, idOf, until } from '../../support/discord-box.ts';

const DEFAULT_REST = { timeout: 15_000, retries: 3, rejectOnRateLimit: null } as const;

let box: DiscordBox;

beforeEach(async () => {
  box = await DiscordBox.start();
  await box.control('settings', { identifySpacingMs: 0 });
});

afterEach(async () => {
  await box.close();
});

const posts = (): number =>
  box.sandbox.core.requests.list({ target: 'POST /channels/:id/messages' }).length;

/** discord.js with the REST options most bots run with. */
async function withDefaults(changes: object = {}): Promise<Client<true>> {
  return box.loggedIn({ rest: { ...DEFAULT_REST, api: box.info.apiUrl, ...changes } });
}

const ops = async (client: Client): Promise<TextChannel> =>
  (await client.channels.fetch(box.ops)) as TextChannel;

test('D3, D22: one 500 ends a login for good; the same client logs in again but never says it is ready', async () => {
  const { faults } = box.sandbox.core;
  faults.add({ on: 'discord:GET /gateway/bot', fault: { kind: 'reply', status: 500 } });
  const client = box.client();
  await expect(client.login(box.info.token)).rejects.toThrow();
  await client.login(box.info.token);
  await until(
    () =>
      (client as unknown as { ws: { shards: Map<number, unknown> } }).ws.shards.size > 0
        ? true
        : undefined,
    'shard',
  );
  await until(
    async () =>
      ((await box.control('counters')) as { connections: number }).connections > 0 || undefined,
    'socket',
  );
  expect(client.isReady()).toBe(false);
  const fresh = await box.loggedIn();
  expect(fresh.isReady()).toBe(true);
});

test('D8: a post that times out is sent again: two messages, but one with an enforced nonce', async () => {
  const { faults } = box.sandbox.core;
  const late = { kind: 'delay', ms: 3_000, processedFirst: true } as const;
  const on = 'discord:POST /channels/:id/messages';
  const plain = await box.loggedIn({
    enforceNonce: false,
    rest: { ...DEFAULT_REST, api: box.info.apiUrl, timeout: 500 },
  });
  const plainChannel = await ops(plain);
  faults.add({ on, fault: late });
  await plainChannel.send('once');
  expect((await box.messages(box.ops)).map((message) => message.content)).toEqual(['once', 'once']);
  const careful = await withDefaults({ timeout: 500 });
  const carefulChannel = await ops(careful);
  faults.add({ on, fault: late });
  await carefulChannel.send('only');
  const only = (await box.messages(box.ops)).filter((message) => message.content === 'only');
  expect(only).toHaveLength(1);
});

test('D10: a token reset while running ends the gateway with 4004; no error event, still "ready"', async () => {
  const client = await box.loggedIn();
  const closes: number[] = [];
  const errors: unknown[] = [];
  client.on(Events.ShardDisconnect, (event) => closes.push(event.code));
  client.on('error', (error) => errors.push(error));
  await box.control('resetToken');
  await until(() => closes.includes(4004) || undefined, 'shardDisconnect');
  expect(errors).toEqual([]);
  expect(client.isReady()).toBe(true);
});

test('D11: destroy closes the socket at once', async () => {
  const client = await box.loggedIn();
  await client.destroy();
  await until(
    async () =>
      ((await box.control('counters')) as { connections: number }).connections === 0 || undefined,
    'closed',
  );
});

test('D18: a 429 without Retry-After is retried without a pause until the ban, unless rejected', async () => {
  const channel = await ops(await withDefaults());
  const { faults } = box.sandbox.core;
  faults.add({
    on: 'discord:POST /channels/:id/messages',
    fault: { kind: 'rate-limit' },
    count: 60,
  });
  await channel.send('at last');
  // Sixty refusals and the success: the client asked as fast as it could.
  expect(posts()).toBe(61);
  const careful = await ops(await box.loggedIn());
  faults.add({
    on: 'discord:POST /channels/:id/messages',
    fault: { kind: 'rate-limit' },
    count: 60,
  });
  const before = posts();
  await expect(careful.send('no')).rejects.toThrow();
  expect(posts() - before).toBe(1);
});

test('D19: after one 401 every call fails without being sent, while the gateway lives and isReady is true', async () => {
  const client = await box.loggedIn();
  const channel = await ops(client);
  box.sandbox.core.faults.add({
    on: 'discord:POST /channels/:id/messages',
    fault: { kind: 'error', code: '0' },
  });
  await expect(channel.send('x')).rejects.toThrow();
  const before = posts();
  await expect(channel.send('y')).rejects.toThrow('Expected token to be set for this request');
  expect(posts()).toBe(before);
  expect(client.isReady()).toBe(true);
  const heard = new Promise<string>((resolve) =>
    client.once('messageCreate', (message) => resolve(message.content)),
  );
  await box.typed('alice', 'ops', 'still heard');
  expect(await heard).toBe('still heard');
});

test('D20: when the reconnect itself is refused the session is dropped, and what was said meanwhile is lost', async () => {
  await box.control('settings', { resumeUrl: 'ws://127.0.0.1:1' });
  const client = await box.loggedIn();
  const heard: string[] = [];
  let identifies = 0;
  client.on('messageCreate', (message) => {
    heard.push(message.content);
  });
  client.on(Events.ShardReady, () => {
    identifies += 1;
  });
  await box.control('gateway', { action: 'reset' });
  await box.typed('alice', 'ops', 'said in the gap');
  await until(() => identifies > 0 || undefined, 'identified again');
  await box.typed('alice', 'ops', 'said after');
  await until(() => heard.includes('said after') || undefined, 'later message');
  expect(heard).toEqual(['said after']);
  const missed = await (await ops(client)).messages.fetch({ limit: 10 });
  expect(missed.map((message) => message.content)).toContain('said in the gap');
});

test('the same drop with a reachable address resumes, and nothing is lost', async () => {
  const client = await box.loggedIn();
  const heard: string[] = [];
  client.on('messageCreate', (message) => {
    heard.push(message.content);
  });
  await box.control('gateway', { action: 'reset' });
  await box.typed('alice', 'ops', 'said in the gap');
  await until(() => heard.includes('said in the gap') || undefined, 'replayed message');
});

test('D21: a name that does not resolve gives an error every half second, for ever', async () => {
  await box.control('settings', { resumeUrl: 'ws://gateway.invalid' });
  const client = await box.loggedIn();
  let errors = 0;
  client.on(Events.ShardError, () => {
    errors += 1;
  });
  await box.control('gateway', { action: 'reset' });
  await until(() => errors >= 4 || undefined, 'four errors');
  expect(client.isReady()).toBe(true);
});

test('D23: an intent taken away while running shows as shardDisconnect 4014 and nothing else', async () => {
  const client = await box.loggedIn();
  const closes: number[] = [];
  const errors: unknown[] = [];
  client.on(Events.ShardDisconnect, (event) => closes.push(event.code));
  client.on('error', (error) => errors.push(error));
  await box.control('settings', { messageContent: false });
  await box.control('gateway', { action: 'invalid-session', resumable: false });
  await until(() => closes.includes(4014) || undefined, 'shardDisconnect');
  expect(errors).toEqual([]);
  expect(client.isReady()).toBe(true);
});

test('D23: asking for it at login rejects with words and no code', async () => {
  await box.control('settings', { messageContent: false });
  await expect(box.client().login(box.info.token)).rejects.toThrow('disallowed intents');
});

test('D24: components over the byte limit get 500, and the library tries three times more at once', async () => {
  const channel = await ops(await withDefaults());
  const before = posts();
  await expect(
    channel.send({ flags: 32_768, components: [{ type: 10, content: '─'.repeat(3_600) }] }),
  ).rejects.toThrow();
  expect(posts() - before).toBe(4);
});

test('D25: a message in a thread the client never saw is dropped, though the gateway delivered it', async () => {
  const root = await box.typed('alice', 'ops', 'root');
  const thread = idOf(
    (await box.call('POST', `/channels/${box.ops}/messages/${root}/threads`, { name: 't' })).json,
  );
  await box.control('archive', { user: 'olga', thread });
  const client = await box.loggedIn();
  const raw: unknown[] = [];
  const heard: string[] = [];
  client.on('raw', (packet: { t: string | null }) => {
    if (packet.t === 'MESSAGE_CREATE') raw.push(packet);
  });
  client.on('messageCreate', (message) => {
    heard.push(message.content);
  });
  // The update that would have told of the thread gets lost.
  box.sandbox.core.faults.add({ on: 'discord:event THREAD_UPDATE', fault: { kind: 'lose' } });
  await box.typed('alice', thread, 'into the void');
  await box.typed('alice', 'ops', 'heard');
  await until(() => heard.includes('heard') || undefined, 'other message');
  expect(raw).toHaveLength(2);
  expect(heard).toEqual(['heard']);
});

test('a rename beyond the hidden limit never settles, while other calls in the thread go on', async () => {
  const client = await withDefaults();
  const root = await (await ops(client)).send('root');
  const thread = await root.startThread({ name: 'a' });
  await thread.setName('b');
  await thread.setName('c');
  let settled = false;
  const third = thread.setName('d').finally(() => {
    settled = true;
  });
  third.catch(() => undefined);
  await thread.send('goes on');
  expect(settled).toBe(false);
});
