// The Slack adapter on the sandbox: the common contract, then what only Slack has.

import { afterAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/random.ts';
import { systemClock } from '../../../src/base/system-clock.ts';
import type { ThreadRoot } from '../../../src/bots/chat-platform.ts';
import { openSocket } from '../../../src/bots/slack/socket.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import type { SlackOptions as SlackSandboxOptions } from '../../../src/sandbox/slack/options.ts';
import { PlatformRecorder, until } from '../../support/platform-recorder.ts';
import { platformOn, type SlackHarness, startSlack } from '../../support/slack-harness.ts';
import { chatPlatformContract } from './chat-platform.contract.ts';

chatPlatformContract('slack', () => startSlack());

describe.concurrent('what only Slack has', () => {
  const open: { close(): Promise<void> }[] = [];

  afterAll(async () => {
    for (const one of open.splice(0).reverse()) await one.close();
  });

  async function harness(options: SlackSandboxOptions = {}): Promise<SlackHarness> {
    const started = await startSlack(options);
    open.push(started);
    return started;
  }

  async function root(slack: SlackHarness): Promise<ThreadRoot> {
    const request = { place: slack.channel, row: { b: 'broot', s: 0 }, content: { head: 'x' } };
    const posted = await slack.platform.postRoot(request, 'x');
    if (posted.kind !== 'ok') throw new Error(posted.detail);
    return posted.value.root;
  }

  it('acknowledges an event only after it was claimed', async () => {
    const slack = await harness();
    let refusals = 0;
    slack.recorder.claim = async () => {
      refusals += 1;
      if (refusals === 1) throw new Error('the store is busy');
    };
    const id = await slack.say(slack.channel, 'ls');
    // Not acknowledged, so Slack delivers it again; the second claim is the one that counts.
    await until('a second delivery', () => refusals >= 2);
    const keys = slack.recorder.acts
      .filter((act) => act.kind === 'message' && act.messageId === id)
      .map((act) => (act.kind === 'message' ? act.dedupeKeys[0] : ''));
    expect(new Set(keys).size).toBe(1);
    expect(keys.length).toBeGreaterThanOrEqual(2);
  });

  it('gives a mention and its message one key, and takes the name off', async () => {
    const slack = await harness();
    const id = await slack.say(slack.channel, '@chatd run -- top');
    const acts = await until('both events', () => {
      const found = slack.recorder.acts.flatMap((act) =>
        act.kind === 'message' && act.messageId === id ? [act] : [],
      );
      return found.length >= 2 && found;
    });
    expect(acts[0]).toMatchObject({ text: 'run -- top', mentionsUs: true });
    expect(acts[0]?.dedupeKeys[0]).toBe(acts[1]?.dedupeKeys[0]);
  });

  async function sockets(slack: SlackHarness): Promise<readonly { id: string }[]> {
    const { open: list } = (await slack.sandbox.control('slack/sockets')) as {
      open: readonly { id: string; ready: boolean }[];
    };
    return list.filter((socket) => socket.ready);
  }

  it('opens the next socket before one that is about to be closed ends', async () => {
    const slack = await harness();
    const place = await root(slack);
    const [first] = await until('two sockets', async () => {
      const list = await sockets(slack);
      return list.length === 2 && list;
    });
    await slack.sandbox.control('slack/sockets/disconnect', { reason: 'warning', id: first?.id });
    await until('its successor', async () => {
      const list = await sockets(slack);
      return list.length === 2 && list.every((socket) => socket.id !== first?.id);
    });
    const id = await slack.say(place, 'no gap');
    await slack.recorder.act('message', (one) => one.messageId === id);
    expect(slack.recorder.connectedCount).toBe(1);
    expect(slack.recorder.healthy).toBe(true);
  });

  it('lives through payloads without an event, frames that are no JSON, and unknown envelopes', async () => {
    const slack = await harness();
    await slack.sandbox.control('slack/app-rate-limited');
    await slack.sandbox.control('slack/sockets/raw', { text: 'not json' });
    await slack.sandbox.control('slack/sockets/raw', { base64: 'AAEC' });
    await slack.sandbox.control('slack/sockets/raw', {
      text: '{"envelope_id":"e1","type":"tomorrow","payload":{}}',
    });
    const id = await slack.say(slack.channel, 'still here');
    await slack.recorder.act('message', (one) => one.messageId === id);
    expect(slack.recorder.connectedCount).toBe(1);
  });

  it('makes no act of edits, unfurled links and its own edits', async () => {
    const slack = await harness();
    const place = await root(slack);
    const id = await slack.say(place, 'ls');
    await slack.recorder.act('message', (one) => one.messageId === id);
    const channel = place.channel;
    await slack.sandbox.control('slack/edit', { user: 'alice', channel, ts: id, text: 'rm x' });
    await slack.sandbox.control('slack/unfurl', { channel, ts: id });
    const posted = await slack.platform.post({
      place,
      row: { b: 'broot', s: 1 },
      content: { lines: [{ text: 'a' }] },
    });
    if (posted.kind !== 'ok') throw new Error(posted.detail);
    await slack.platform.edit({
      place,
      row: { b: 'broot', s: 1 },
      messageId: posted.value.messageId,
      content: { lines: [{ text: 'b' }] },
    });
    const last = await slack.say(place, 'last');
    await slack.recorder.act('message', (one) => one.messageId === last);
    const typed = slack.recorder.acts.filter((act) => act.kind === 'message');
    expect(typed.map((act) => act.text)).toEqual(['ls', 'last']);
  });

  it('calls people of other workspaces what they are', async () => {
    const slack = await harness();
    await slack.sandbox.control('slack/type', {
      user: 'mallory',
      channel: slack.channel.channel,
      text: 'ls',
    });
    const act = await slack.recorder.act('message');
    expect(act.author.space).not.toBe(slack.platform.identity);
  });

  it('tells of a channel that got another id', async () => {
    const slack = await harness();
    await slack.sandbox.control('slack/change-channel-id', { channel: slack.channel.channel });
    const act = await slack.recorder.act('channel-id-changed');
    expect(act.from).toBe(slack.channel.channel);
  });

  it('calls a revoked bot token fatal and sends nothing more with it', async () => {
    const slack = await harness();
    await slack.sandbox.control('slack/kill-token', { token: 'bot' });
    const request = { place: slack.channel, row: { b: 'b', s: 0 }, content: { head: 'x' } };
    expect(await slack.platform.post(request)).toMatchObject({
      kind: 'refused',
      because: 'credentials',
    });
    expect(slack.recorder.fatalReason).toContain('token_revoked');
    const before = ((await slack.sandbox.control('requests')) as unknown[]).length;
    await slack.platform.post(request);
    expect(((await slack.sandbox.control('requests')) as unknown[]).length).toBe(before);
  });

  it('calls another team, app or kind of token fatal', async () => {
    const sandbox = await startSandbox({ clock: systemClock, random: seededRandom(3) });
    open.push(sandbox);
    for (const changed of [{ teamId: 'T0WRONG' }, { appId: 'A0WRONG' }, { appToken: 'xapp-no' }]) {
      const platform = platformOn(sandbox, changed);
      const recorder = new PlatformRecorder();
      open.push({ close: () => platform.stop() });
      await platform.start(recorder);
      await until('fatal', () => recorder.fatalReason);
      await platform.stop();
    }
  });

  it('gives up on an answer that never comes within its bound, as in doubt', async () => {
    const slack = await harness();
    await slack.sandbox.control('faults/add', {
      on: 'slack:chat.postMessage',
      fault: { kind: 'hang' },
    });
    const request = { place: slack.channel, row: { b: 'b', s: 0 }, content: { head: 'x' } };
    expect((await slack.platform.post(request)).kind).toBe('in-doubt');
  });

  it('calls a 429 without a number a rate limit', async () => {
    const slack = await harness();
    await slack.sandbox.control('faults/add', {
      on: 'slack:chat.update',
      fault: { kind: 'rate-limit' },
    });
    const outcome = await slack.platform.edit({
      place: slack.channel,
      row: { b: 'b', s: 0 },
      messageId: '1.000001',
      content: { head: 'x' },
    });
    expect(outcome).toMatchObject({ kind: 'refused', because: 'rate-limited', scope: 'method' });
  });

  it('knows the id of a file before it is visible, and can take it back', async () => {
    const slack = await harness();
    const place = await root(slack);
    await slack.sandbox.control('slack/knobs', { never_share_files: true });
    let fileId = '';
    const outcome = await slack.platform.upload(
      {
        place,
        row: { b: 'b', s: 1 },
        fileName: 'a.txt',
        mediaType: 'text/plain',
        bytes: Buffer.from('x'),
      },
      async (id) => {
        fileId = id;
      },
    );
    expect(outcome.kind).toBe('in-doubt');
    expect(await slack.platform.findUpload(place, fileId)).toEqual({ kind: 'none' });
    expect((await slack.platform.discardUpload(fileId)).kind).toBe('ok');
    expect((await slack.platform.discardUpload(fileId)).kind).toBe('ok');
  });

  it('brings back the bytes of a file a person sent', async () => {
    const slack = await harness();
    await slack.sandbox.control('slack/upload', {
      user: 'alice',
      channel: slack.channel.channel,
      name: 'in.txt',
      text: 'hello',
    });
    const act = await slack.recorder.act('message', (one) => one.files.length > 0);
    const [file] = act.files;
    if (file === undefined) throw new Error('no file');
    const bytes = await slack.platform.download(file, 100);
    if (bytes.kind !== 'ok') throw new Error(bytes.detail);
    expect(Buffer.from(bytes.value).toString()).toBe('hello');
    expect(await slack.platform.download(file, 3)).toMatchObject({ kind: 'refused' });
  });

  it('holds two sockets and not more, however often they break', async () => {
    const slack = await harness();
    await until('two sockets', async () => (await sockets(slack)).length === 2);
    const before = (await sockets(slack)).map((socket) => socket.id);
    await slack.sandbox.control('slack/sockets/drop');
    await until('two new sockets', async () => {
      const list = await sockets(slack);
      return list.length === 2 && list.every((socket) => !before.includes(socket.id));
    });
    expect(slack.recorder.healths.at(-1)?.connectionsSeen).toBeLessThanOrEqual(2);
    expect(slack.recorder.connectedCount).toBe(2);
  });

  it('opens no socket any more when it was stopped while it asked for one', async () => {
    const sandbox = await startSandbox({ clock: systemClock, random: seededRandom(3) });
    open.push(sandbox);
    await sandbox.control('faults/add', {
      on: 'slack:apps.connections.open',
      fault: { kind: 'delay', ms: 500 },
    });
    const platform = platformOn(sandbox);
    await platform.start(new PlatformRecorder());
    await until('the question', async () => {
      const [rule] = (await sandbox.control('faults/list')) as { struck: number }[];
      return rule?.struck === 1;
    });
    await platform.stop();
    const waiting = sandbox.core.clock.wallMs() + 1_500;
    await until('the answer', () => sandbox.core.clock.wallMs() > waiting);
    expect(await sandbox.control('slack/sockets')).toMatchObject({ open: [] });
  });

  it('takes pings for traffic, so that a quiet channel is not a dead one', async () => {
    const sandbox = await startSandbox({
      clock: systemClock,
      random: seededRandom(3),
      slack: { pingIntervalMs: 100 },
    });
    open.push(sandbox);
    let traffic = 0;
    let ready = 0;
    const connection = openSocket(
      {
        appToken: sandbox.slack.appToken,
        apiUrl: sandbox.slack.apiUrl,
        fetch,
        clock: systemClock,
        onEnvelope: () => undefined,
        onHello: () => undefined,
      },
      {
        ready: () => {
          ready += 1;
        },
        traffic: () => {
          traffic += 1;
        },
        unsettled: () => undefined,
        down: () => undefined,
      },
    );
    open.push({ close: async () => connection.discard() });
    await until('hello', () => ready === 1);
    const atHello = traffic;
    await until('five pings', () => traffic >= atHello + 5);
  });

  it('gives an event that comes twice, late or out of order the keys it had', async () => {
    const slack = await harness();
    for (const fault of [{ kind: 'duplicate' }, { kind: 'late', ms: 500 }, { kind: 'reorder' }]) {
      await slack.sandbox.control('faults/add', { on: 'slack:event', fault });
    }
    const ids: string[] = [];
    for (let turn = 0; turn < 6; turn += 1) ids.push(await slack.say(slack.channel, `n ${turn}`));
    const typed = await until('all of them', () => {
      const acts = slack.recorder.acts.flatMap((act) => (act.kind === 'message' ? [act] : []));
      return new Set(acts.map((act) => act.messageId)).size === ids.length && acts;
    });
    const keys = new Set(typed.map((act) => act.dedupeKeys.join(' ')));
    expect(keys.size).toBe(ids.length);
    expect(typed.length).toBeGreaterThanOrEqual(ids.length);
  });

  it('acknowledges a button by itself when the claim takes for ever, and goes on', async () => {
    const slack = await harness();
    const posted = await slack.platform.post({
      place: slack.channel,
      row: { b: 'b', s: 0 },
      content: { head: 'x', buttons: [[{ label: 'Esc', action: 'key:esc' }]] },
    });
    if (posted.kind !== 'ok') throw new Error(posted.detail);
    slack.recorder.claim = (act) =>
      act.kind === 'action' ? new Promise(() => undefined) : Promise.resolve();
    await slack.press(slack.channel, posted.value.messageId, 'Esc');
    const id = await slack.say(slack.channel, 'next');
    await slack.recorder.act('message', (one) => one.messageId === id);
  });

  it('comes back after Slack answered nothing but errors for a while', async () => {
    const slack = await harness();
    await slack.sandbox.control('faults/add', {
      on: 'slack:apps.connections.open',
      fault: { kind: 'reply', status: 503, body: '<html>' },
      count: 2,
    });
    await slack.sandbox.control('slack/sockets/drop');
    await until('connected again', () => slack.recorder.connectedCount === 2);
    expect(slack.recorder.fatalReason).toBeUndefined();
    const id = await slack.say(slack.channel, 'back');
    await slack.recorder.act('message', (one) => one.messageId === id);
  });

  it('breaks no rule of Slack in all of this', async () => {
    const slack = await harness();
    const place = await root(slack);
    await slack.platform.post({
      place,
      row: { b: 'b', s: 1 },
      content: { lines: [{ text: '<!here> & "x"' }], buttons: [[{ label: 'a', action: 'a' }]] },
    });
    await slack.platform.whisper(place, slack.personId, 'psst');
    expect(await slack.sandbox.control('violations')).toEqual([]);
  });
});
