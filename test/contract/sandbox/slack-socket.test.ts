// PLATFORM §5, points 17 to 25: Socket Mode on the wire and what a Slack client lets people do.

import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import type { Violation } from '../../../src/sandbox/violations.ts';
import {
  callApi,
  type Envelope,
  RawSocket,
  SlackBench,
  until,
} from '../../support/slack-sandbox.ts';

// Sandbox seconds per second: windows pass when a test says so, however slow the machine is.
const STILL = 0.001;
const bench = new SlackBench();
afterEach(() => bench.close());

async function calm(slack: object = {}): Promise<Sandbox> {
  return bench.sandbox({ timeScale: STILL, slack: { rateLimits: 'off', ...slack } });
}

async function type(sandbox: Sandbox, text: string, more: object = {}): Promise<string> {
  const sent = await sandbox.control('slack/type', {
    user: 'alice',
    channel: '#ops',
    text,
    ...more,
  });
  return (sent as { ts: string }).ts;
}

async function rules(sandbox: Sandbox): Promise<string[]> {
  return ((await sandbox.control('violations')) as Violation[]).map((one) => one.rule);
}

const eventId = (frame: Envelope | undefined): unknown => frame?.payload?.['event_id'];

describe('point 17: opening', () => {
  test('the app token counts in the header only, and a ticket admits once', async () => {
    const sandbox = await calm();
    const { apiUrl, appToken } = sandbox.slack;
    const body = new URLSearchParams({ token: appToken });
    const asArgument = await fetch(`${apiUrl}apps.connections.open`, { method: 'POST', body });
    expect(await asArgument.json()).toMatchObject({ ok: false, error: 'invalid_auth' });
    const opened = await callApi(sandbox, 'apps.connections.open', {}, appToken);
    const url = String(opened.body['url']);
    expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/link\/\?ticket=/);
    const outcome = (socket: WebSocket): Promise<string> =>
      new Promise((resolve) => {
        bench.after(() => socket.terminate());
        socket.on('open', () => resolve('open'));
        socket.on('unexpected-response', (_request, response) =>
          resolve(String(response.statusCode)),
        );
        socket.on('error', () => resolve('error'));
      });
    expect(await outcome(new WebSocket(url))).toBe('open');
    expect(await outcome(new WebSocket(url))).toBe('404');
    const late = await callApi(sandbox, 'apps.connections.open', {}, appToken);
    await sandbox.control('time/advance', { ms: 30_001 });
    expect(await outcome(new WebSocket(String(late.body['url'])))).toBe('404');
  });

  test('ten sockets are counted in hello, the eleventh is told too_many_websockets', async () => {
    const sandbox = await calm();
    const sockets: RawSocket[] = [];
    for (let i = 0; i < 10; i += 1) sockets.push(await RawSocket.ready(bench, sandbox));
    expect(sockets.map((one) => one.frames[0]?.num_connections)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ]);
    const eleventh = await RawSocket.open(bench, sandbox);
    await until('the refusal', () => eleventh.closed !== undefined);
    expect(eleventh.frames).toEqual([{ type: 'disconnect', reason: 'too_many_websockets' }]);
    expect(await rules(sandbox)).toEqual(['too-many-websockets']);
    sockets[0]?.socket.close();
    await until('one less', async () => {
      const { open } = (await sandbox.control('slack/sockets')) as { open: unknown[] };
      return open.length === 9;
    });
    const next = await RawSocket.ready(bench, sandbox);
    expect(next.frames[0]?.num_connections).toBe(10);
  });
});

test('point 18: hello can be late or missing, and debug_reconnects shortens a life to 360 s', async () => {
  const sandbox = await calm();
  await sandbox.control('faults/add', {
    on: 'slack:socket',
    fault: { kind: 'no-hello', delayMs: 20_000 },
  });
  const late = await RawSocket.open(bench, sandbox);
  await until('the connection', () => late.socket.readyState === WebSocket.OPEN);
  await type(sandbox, 'before hello');
  await sandbox.control('time/advance', { ms: 20_000 });
  await until('hello, then the event', () => late.frames.length >= 2);
  expect(late.frames.map((one) => one.type)).toEqual(['hello', 'events_api']);
  late.socket.close();
  await sandbox.control('faults/add', { on: 'slack:socket', fault: { kind: 'no-hello' } });
  const silent = await RawSocket.open(bench, sandbox);
  await until('the connection', () => silent.socket.readyState === WebSocket.OPEN);
  await sandbox.control('time/advance', { ms: 60_000 });
  expect(silent.frames).toEqual([]);
  silent.socket.close();
  const debug = await RawSocket.ready(bench, sandbox, '&debug_reconnects=true');
  expect(debug.frames[0]).toMatchObject({ debug_info: { approximate_connection_time: 360 } });
  await sandbox.control('time/advance', { ms: 351_000 });
  await until('the warning', () => debug.frames.some((one) => one.reason === 'warning'));
  await sandbox.control('time/advance', { ms: 10_000 });
  await until('the end', () => debug.closed !== undefined);
  expect(debug.frames.at(-1)).toMatchObject({ type: 'disconnect', reason: 'refresh_requested' });
});

describe('point 19: delivery', () => {
  test('an envelope goes to one of the open sockets, not always the same', async () => {
    const sandbox = await calm();
    const sockets = [await RawSocket.ready(bench, sandbox), await RawSocket.ready(bench, sandbox)];
    for (let i = 0; i < 20; i += 1) await type(sandbox, `${i}`);
    await until(
      'all events',
      () => sockets.reduce((sum, one) => sum + one.events.length, 0) === 20,
    );
    for (const socket of sockets) expect(socket.events.length).toBeGreaterThan(0);
  });

  test('what is not acknowledged comes again with the same event_id after 1 s, 1 min and 5 min, then never', async () => {
    const sandbox = await calm();
    const socket = await RawSocket.ready(bench, sandbox);
    socket.ackAll = false;
    await type(sandbox, 'ls');
    await until('the first', () => socket.envelopes.length === 1);
    const waits = [4_000, 63_000, 303_000];
    for (const [index, ms] of waits.entries()) {
      await sandbox.control('time/advance', { ms: 3_000 });
      await until(
        'the window to have passed',
        async () => (await rules(sandbox)).length === index + 1,
      );
      await sandbox.control('time/advance', { ms: ms - 3_000 });
      await until(`delivery ${index + 2}`, () => socket.envelopes.length === index + 2);
    }
    const [first, ...again] = socket.envelopes;
    expect(first).toMatchObject({
      retry_attempt: 0,
      retry_reason: '',
      accepts_response_payload: false,
    });
    expect(again.map((one) => [one.retry_attempt, one.retry_reason])).toEqual([
      [1, 'timeout'],
      [2, 'timeout'],
      [3, 'timeout'],
    ]);
    expect(new Set(socket.envelopes.map(eventId)).size).toBe(1);
    expect(new Set(socket.envelopes.map((one) => one.envelope_id)).size).toBe(4);
    await sandbox.control('time/advance', { ms: 3_600_000 });
    await type(sandbox, 'next');
    await until('the next event', () => socket.envelopes.length === 5);
    expect(eventId(socket.envelopes[4])).not.toBe(eventId(first));
    expect(new Set(await rules(sandbox))).toEqual(new Set(['ack-too-late']));
  });

  test('the same envelope can come twice, and a late acknowledgement stops the repeats', async () => {
    const sandbox = await calm();
    const socket = await RawSocket.ready(bench, sandbox);
    socket.ackAll = false;
    await sandbox.control('faults/add', { on: 'slack:event', fault: { kind: 'duplicate' } });
    await type(sandbox, 'ls');
    await until('both copies', () => socket.envelopes.length === 2);
    const [first, second] = socket.envelopes;
    expect(second).toEqual(first);
    await sandbox.control('time/advance', { ms: 3_500 });
    if (first !== undefined) socket.ack(first);
    socket.ackAll = true;
    await type(sandbox, 'after');
    await until('the next', () => socket.envelopes.length === 3);
    await sandbox.control('time/advance', { ms: 400_000 });
    await type(sandbox, 'last');
    await until('the last', () => socket.envelopes.length === 4);
  });
});

test('point 20: without a socket events wait, hours if need be, and too old ones are dropped', async () => {
  const sandbox = await calm();
  await type(sandbox, 'too old');
  await sandbox.control('time/advance', { ms: 3_600_000 });
  const kept = await type(sandbox, 'an hour old when it arrives');
  await sandbox.control('time/advance', { ms: 3_600_001 });
  const socket = await RawSocket.ready(bench, sandbox);
  await until('the kept one', () => socket.events.length === 1);
  expect(socket.events[0]).toMatchObject({ ts: kept, text: 'an hour old when it arrives' });
  await sandbox.control('faults/add', {
    on: 'slack:event',
    fault: { kind: 'late', ms: 20 * 3_600_000 },
  });
  await type(sandbox, 'twenty hours late');
  await type(sandbox, 'now');
  await until('the prompt one', () => socket.events.length === 2);
  await sandbox.control('time/advance', { ms: 20 * 3_600_000 });
  // Sockets are refreshed about hourly: the first one did not live that long.
  await until('the refresh', () => socket.closed !== undefined);
  const next = await RawSocket.ready(bench, sandbox);
  await until('the late one', () => next.events.length === 1);
  expect(next.events[0]).toMatchObject({ text: 'twenty hours late' });
  await sandbox.control('faults/add', { on: 'slack:event', fault: { kind: 'lose' } });
  await type(sandbox, 'lost');
  await type(sandbox, 'not lost');
  await until('only the second', () => next.events.length === 2);
  expect(next.events[1]).toMatchObject({ text: 'not lost' });
});

describe('point 21: going away', () => {
  test('warning leaves the socket open, refresh_requested and link_disabled end it', async () => {
    const sandbox = await calm();
    const socket = await RawSocket.ready(bench, sandbox);
    await sandbox.control('slack/sockets/disconnect', { reason: 'warning' });
    await type(sandbox, 'still here');
    await until('warning and event', () => socket.frames.length === 3);
    await sandbox.control('slack/sockets/disconnect', { reason: 'refresh_requested' });
    await until('the end', () => socket.closed !== undefined);
    const second = await RawSocket.ready(bench, sandbox);
    await sandbox.control('slack/sockets/disconnect', { reason: 'link_disabled' });
    await until('the end', () => second.closed !== undefined);
    const refused = await callApi(sandbox, 'apps.connections.open', {}, sandbox.slack.appToken);
    expect(refused.body).toMatchObject({ ok: false, error: 'link_disabled' });
    await sandbox.control('slack/sockets/enable');
    await RawSocket.ready(bench, sandbox);
  });

  test('drop resets, half-open hears and says nothing but counts as open, pongs can be missing', async () => {
    const sandbox = await calm({ pingIntervalMs: 10_000 });
    const dropped = await RawSocket.ready(bench, sandbox);
    await sandbox.control('slack/sockets/drop');
    await until('the reset', () => dropped.closed !== undefined);
    expect(dropped.closed).toEqual({ code: 1006 });
    const half = await RawSocket.ready(bench, sandbox);
    half.socket.ping('one');
    await until('a pong', () => half.pongs.includes('one'));
    await sandbox.control('time/advance', { ms: 10_000 });
    await until('a ping of the server', () => half.pings.length === 1);
    await sandbox.control('slack/sockets/suppress-pongs');
    half.socket.ping('two');
    await sandbox.control('slack/sockets/half-open');
    half.socket.ping('three');
    await sandbox.control('time/advance', { ms: 10_000 });
    await type(sandbox, 'unheard');
    const second = await RawSocket.ready(bench, sandbox);
    expect(second.frames[0]?.num_connections).toBe(2);
    await sandbox.control('time/advance', { ms: 4_000 });
    expect(half.events).toEqual([]);
    expect([half.pongs, half.pings.length]).toEqual([['one'], 1]);
    expect(await rules(sandbox)).toEqual([]);
  });

  test('after the close handshake the TCP connection stays, when told so', async () => {
    const sandbox = await calm({ lingerAfterClose: true });
    const socket = await RawSocket.ready(bench, sandbox);
    let ended = false;
    const transport = (socket.socket as unknown as { _socket: NodeJS.EventEmitter })._socket;
    transport.on('end', () => {
      ended = true;
    });
    socket.socket.close(1000);
    await until('the count to fall', async () => {
      const { open } = (await sandbox.control('slack/sockets')) as { open: unknown[] };
      return open.length === 0 || socket.socket.readyState === WebSocket.CLOSING;
    });
    await type(sandbox, 'a round trip through the server');
    expect([ended, socket.closed]).toEqual([false, undefined]);
  });

  test('the upgrade can be refused with any status', async () => {
    const sandbox = await calm();
    await sandbox.control('faults/add', {
      on: 'slack:socket',
      fault: { kind: 'refuse-upgrade', status: 409 },
    });
    const { body } = await callApi(sandbox, 'apps.connections.open', {}, sandbox.slack.appToken);
    const status = await new Promise((resolve) => {
      const socket = new WebSocket(String(body['url']));
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
      socket.on('error', () => undefined);
    });
    expect(status).toBe(409);
  });
});

test('point 22: a payload without an event, binary frames, garbage and unknown envelopes', async () => {
  const sandbox = await calm();
  const socket = await RawSocket.ready(bench, sandbox);
  await sandbox.control('slack/app-rate-limited');
  await until('the payload', () => socket.envelopes.length === 1);
  expect(socket.envelopes[0]).toMatchObject({
    type: 'events_api',
    payload: { type: 'app_rate_limited' },
  });
  expect(socket.envelopes[0]?.payload).not.toHaveProperty('event');
  const raw: [Buffer, boolean][] = [];
  socket.socket.removeAllListeners('message');
  socket.socket.on('message', (data: Buffer, isBinary) => raw.push([data, isBinary]));
  await sandbox.control('slack/sockets/raw', { text: 'not json' });
  await sandbox.control('slack/sockets/raw', { base64: Buffer.from([0, 1, 2]).toString('base64') });
  await sandbox.control('slack/sockets/raw', {
    text: '{"envelope_id":"e","type":"never_heard_of","payload":{}}',
  });
  await until('all frames', () => raw.length === 3);
  expect(raw.map(([data, isBinary]) => [data.toString('latin1'), isBinary])).toEqual([
    ['not json', false],
    ['\u0000\u0001\u0002', true],
    ['{"envelope_id":"e","type":"never_heard_of","payload":{}}', false],
  ]);
});

describe('point 23: events', () => {
  test('order can be turned round', async () => {
    const sandbox = await calm();
    const socket = await RawSocket.ready(bench, sandbox);
    await sandbox.control('faults/add', { on: 'slack:event', fault: { kind: 'reorder' } });
    await type(sandbox, 'first');
    await type(sandbox, 'second');
    await until('both', () => socket.events.length === 2);
    expect(socket.events.map((one) => one['text'])).toEqual(['second', 'first']);
  });

  test('a mention comes as message and as app_mention, same ts, different event_id', async () => {
    const sandbox = await calm();
    const socket = await RawSocket.ready(bench, sandbox);
    const ts = await type(sandbox, '@chatd run');
    await until('both', () => socket.events.length === 2);
    expect(socket.events).toMatchObject([
      {
        type: 'message',
        ts,
        text: '<@U0CHATDBOT> run',
        channel_type: 'channel',
      },
      { type: 'app_mention', ts, text: '<@U0CHATDBOT> run' },
    ]);
    expect(new Set(socket.envelopes.map(eventId)).size).toBe(2);
    expect(socket.envelopes[0]?.payload).toMatchObject({
      type: 'event_callback',
      team_id: sandbox.slack.teamId,
      api_app_id: sandbox.slack.appId,
      is_ext_shared_channel: false,
      authorizations: [{ user_id: sandbox.slack.botUserId, is_bot: true }],
    });
  });

  test('edits, deletions, tombstones, unfurls, broadcasts and reply counts', async () => {
    const sandbox = await calm();
    const socket = await RawSocket.ready(bench, sandbox);
    const root = await type(sandbox, 'root');
    const reply = await type(sandbox, 'reply', { thread_ts: root });
    await type(sandbox, 'told all', { thread_ts: root, broadcast: true });
    await sandbox.control('slack/edit', {
      user: 'alice',
      channel: '#ops',
      ts: reply,
      text: 'changed',
    });
    await sandbox.control('slack/unfurl', { channel: '#ops', ts: reply });
    await sandbox.control('slack/delete', { user: 'alice', channel: '#ops', ts: root });
    await sandbox.control('slack/delete', { user: 'alice', channel: '#ops', ts: reply });
    const seen = await until('all', () => {
      const messages = socket.events.filter((one) => one['type'] === 'message');
      return messages.length === 9 ? messages : undefined;
    });
    const of = (subtype: string) => seen.filter((one) => one['subtype'] === subtype);
    expect(of('thread_broadcast')).toMatchObject([
      { thread_ts: root, root: { ts: root, text: 'root' } },
    ]);
    const changed = of('message_changed').map((one) => one['message'] as Record<string, unknown>);
    // Two reply counts on the root, the edit, the unfurl, the tombstone.
    expect(changed).toMatchObject([
      { ts: root, reply_count: 1 },
      { ts: root, reply_count: 2 },
      { ts: reply, text: 'changed', edited: { user: 'U0ALICE001' } },
      { ts: reply, text: 'changed', attachments: [{}] },
      { ts: root, subtype: 'tombstone', user: 'USLACKBOT' },
    ]);
    expect(changed[0]).not.toHaveProperty('edited');
    expect(of('message_deleted')).toMatchObject([
      { hidden: true, deleted_ts: reply, previous_message: { text: 'changed' } },
    ]);
  });

  test('people of another workspace are marked, and so is the channel they share', async () => {
    const sandbox = await calm();
    const socket = await RawSocket.ready(bench, sandbox);
    await type(sandbox, 'hello', { user: 'mallory' });
    const frame = await until('the message', () =>
      socket.envelopes.find((one) => one.payload?.event?.['type'] === 'message'),
    );
    expect(frame.payload).toMatchObject({
      team_id: sandbox.slack.teamId,
      is_ext_shared_channel: true,
      event: {
        user: 'U0MALLORY1',
        user_team: 'T0OTHER001',
        source_team: 'T0OTHER001',
        team: 'T0OTHER001',
      },
    });
    await expect(
      sandbox.control('slack/command', { user: 'mallory', channel: '#ops', command: '/chatd' }),
    ).rejects.toThrow('no commands');
  });

  test('reactions, places that change, and only what was subscribed to where the bot is', async () => {
    const sandbox = await calm({
      botEvents: ['reaction_added', 'channel_archive', 'channel_rename', 'channel_id_changed'],
    });
    const socket = await RawSocket.ready(bench, sandbox);
    const ts = await type(sandbox, 'unheard: message.channels is not subscribed');
    await sandbox.control('slack/react', { user: 'bob', channel: '#ops', ts, name: ':eyes:' });
    await type(sandbox, 'x', { channel: '#general' });
    await sandbox.control('slack/archive', { channel: '#general' });
    await sandbox.control('slack/archive', { channel: '#ops' });
    await sandbox.control('slack/rename', { channel: '#ops', name: 'ops2' });
    const moved = (await sandbox.control('slack/change-channel-id', { channel: '#ops2' })) as {
      id: string;
    };
    await until('four events', () => socket.events.length === 4);
    expect(socket.events).toMatchObject([
      {
        type: 'reaction_added',
        user: 'U0BOB00001',
        reaction: 'eyes',
        item: { type: 'message', ts },
      },
      { type: 'channel_archive', channel: 'C0OPS00001' },
      { type: 'channel_rename', channel: { id: 'C0OPS00001', name: 'ops2' } },
      { type: 'channel_id_changed', old_channel_id: 'C0OPS00001', new_channel_id: moved.id },
    ]);
  });
});

test('point 24: no way leads a slash command out of a thread', async () => {
  const sandbox = await calm();
  const socket = await RawSocket.ready(bench, sandbox);
  const thread_ts = await type(sandbox, 'root');
  const typed = await sandbox.control('slack/type', {
    user: 'alice',
    channel: '#ops',
    text: '/chatd run',
    thread_ts,
  });
  expect(typed).toMatchObject({
    kind: 'refused',
    says: '/chatd is not supported in threads. Sorry!',
  });
  const path = { user: 'alice', channel: '#ops', text: '/usr/bin/ls' };
  expect(await sandbox.control('slack/type', path)).toMatchObject({ kind: 'refused' });
  await expect(
    sandbox.control('slack/command', { ...path, command: '/chatd', thread_ts }),
  ).rejects.toThrow('not supported in threads');
  await sandbox.control('slack/command', {
    user: 'alice',
    channel: '#ops',
    command: '/chatd',
    text: 'run',
  });
  const commands = socket.envelopes.filter((one) => one.type === 'slash_commands');
  expect(commands).toHaveLength(1);
  expect(Object.keys(commands[0]?.payload ?? {})).not.toContain('thread_ts');
  expect(socket.events).toHaveLength(1);
});

describe('point 25: answers in acknowledgements', () => {
  test('a command may be answered in its ack; a button may not', async () => {
    const sandbox = await calm();
    const socket = await RawSocket.ready(bench, sandbox);
    socket.ackAll = false;
    const command = sandbox.control('slack/command', {
      user: 'alice',
      channel: '#ops',
      command: '/chatd',
      text: 'x',
    });
    const frame = await until('the command', () => socket.envelopes[0]);
    expect(frame).toMatchObject({
      accepts_response_payload: true,
      payload: { command: '/chatd', text: 'x', is_enterprise_install: 'false' },
    });
    expect(frame).not.toHaveProperty('retry_attempt');
    socket.ack(frame, { response_type: 'ephemeral', text: 'hi' });
    expect(await command).toEqual({ kind: 'acked' });
    const read = (await sandbox.control('slack/channel', { channel: '#ops' })) as {
      ephemeral: { text: string; user_name: string }[];
    };
    expect(read.ephemeral).toMatchObject([{ text: 'hi', user_name: 'alice', from: 'app' }]);
    const { body } = await callApi(sandbox, 'chat.postMessage', {
      channel: sandbox.slack.channel,
      text: 'a &amp; b',
      blocks: [
        { type: 'section', text: { type: 'mrkdwn', text: 'a &amp; b' } },
        {
          type: 'actions',
          block_id: 'keys',
          elements: [
            {
              type: 'button',
              action_id: 'c',
              value: 'v',
              text: { type: 'plain_text', text: '^C' },
            },
          ],
        },
      ],
    });
    const click = sandbox.control('slack/click', {
      user: 'alice',
      channel: '#ops',
      ts: body['ts'],
      action_id: 'c',
    });
    const pressed = await until('the press', () =>
      socket.envelopes.find((one) => one.type === 'interactive'),
    );
    expect(pressed).toMatchObject({
      accepts_response_payload: false,
      payload: {
        type: 'block_actions',
        user: { id: 'U0ALICE001', team_id: sandbox.slack.teamId },
        container: { message_ts: body['ts'], is_ephemeral: false },
        // The echo is escaped once more.
        message: { text: 'a &amp;amp; b' },
        actions: [
          { type: 'button', action_id: 'c', block_id: 'keys', value: 'v', text: { text: '^C' } },
        ],
      },
    });
    socket.ack(pressed, { text: 'ignored' });
    expect(await click).toEqual({ kind: 'acked' });
    expect(await rules(sandbox)).toEqual(['ack-payload-ignored']);
  });

  test('without an ack in 3 s, or without a socket, the person is told', async () => {
    const sandbox = await calm();
    const call = { user: 'alice', channel: '#ops', command: '/chatd' };
    expect(await sandbox.control('slack/command', call)).toEqual({
      kind: 'failed',
      says: '/chatd failed because the app did not respond',
    });
    const socket = await RawSocket.ready(bench, sandbox);
    socket.ackAll = false;
    const command = sandbox.control('slack/command', call);
    await until('the command', () => socket.envelopes.length === 1);
    await sandbox.control('time/advance', { ms: 3_000 });
    expect(await command).toEqual({
      kind: 'failed',
      says: '/chatd failed with the error "operation_timeout"',
    });
    await sandbox.control('time/advance', { ms: 600_000 });
    socket.ackAll = true;
    await type(sandbox, 'x');
    await until('the message', () => socket.events.length === 1);
    expect(socket.envelopes).toHaveLength(2);
  });
});
