// The Discord adapter on the sandbox: the common contract, then what only Discord has.

import { afterAll, describe, expect, it } from 'vitest';
import type { ThreadRoot } from '../../../src/bots/chat-platform.ts';
import type { DiscordConfig } from '../../../src/bots/discord/platform.ts';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import {
  BOT_PERMISSIONS,
  type DiscordHarness,
  type Info,
  platformOf,
  quietSandbox,
  startDiscord,
} from '../../support/discord-harness.ts';
import { PlatformRecorder, until } from '../../support/platform-recorder.ts';
import { chatPlatformContract } from './chat-platform.contract.ts';

chatPlatformContract('discord', startDiscord);

describe.concurrent('what only Discord has', () => {
  const open: { close(): Promise<void> }[] = [];

  afterAll(async () => {
    for (const one of open.splice(0).reverse()) await one.close();
  });

  async function harness(): Promise<DiscordHarness> {
    const started = await startDiscord();
    open.push(started);
    return started;
  }

  async function sandboxAlone(): Promise<{ sandbox: Sandbox; info: Info }> {
    const made = await quietSandbox();
    open.push(made.sandbox);
    return made;
  }

  async function startOn(info: Info, changed: Partial<DiscordConfig> = {}) {
    const platform = platformOf(info, changed);
    const recorder = new PlatformRecorder();
    open.push({ close: () => platform.stop() });
    await platform.start(recorder);
    return { platform, recorder };
  }

  function rootRequest(channel: ThreadRoot, s: number) {
    return { place: channel, row: { b: 'broot', s }, content: { head: 'session one' } };
  }

  it('calls a refused token fatal and sends nothing more with it', async () => {
    const { sandbox, info } = await sandboxAlone();
    const { platform, recorder } = await startOn(info, { token: `${info.token}x` });
    await until('fatal', () => recorder.fatalReason);
    expect(recorder.healthy).toBe(false);
    const before = ((await sandbox.control('requests')) as unknown[]).length;
    const place = { space: info.guildId, channel: info.channels['ops'] ?? '', root: '' };
    const outcomes = [
      await platform.post(rootRequest(place, 0)),
      await platform.post(rootRequest(place, 1)),
    ];
    expect(outcomes[1]).toMatchObject({ kind: 'refused', because: 'credentials' });
    const after = ((await sandbox.control('requests')) as unknown[]).length;
    expect(after - before).toBeLessThanOrEqual(2);
  });

  it('calls another application than the configured one fatal', async () => {
    const { info } = await sandboxAlone();
    const { recorder } = await startOn(info, { applicationId: '123456789012345678' });
    expect(await until('fatal', () => recorder.fatalReason)).toContain('wrong account');
  });

  it('says how to switch the message content intent on when Discord refuses it', async () => {
    const { sandbox, info } = await sandboxAlone();
    await sandbox.control('discord/settings', { messageContent: false });
    const { recorder } = await startOn(info);
    expect(await until('fatal', () => recorder.fatalReason)).toContain('Message Content Intent');
  });

  it('comes to one root with one thread when opening the thread was in doubt', async () => {
    const { platform, channel, sandbox } = await harness();
    await sandbox.control('faults/add', {
      on: 'discord:POST /channels/:id/messages/:id/threads',
      fault: { kind: 'reset', processed: true },
    });
    const request = rootRequest(channel, 0);
    expect((await platform.postRoot(request, 'one')).kind).toBe('in-doubt');
    const again = await platform.postRoot(request, 'one');
    if (again.kind !== 'ok') throw new Error(again.detail);
    expect(await platform.proveRoot(again.value.root)).toMatchObject({ kind: 'ok' });
  });

  it('opens the thread of a root that it finds without one', async () => {
    const { platform, channel, sandbox } = await harness();
    await sandbox.control('faults/add', {
      on: 'discord:POST /channels/:id/messages/:id/threads',
      fault: { kind: 'reset' },
    });
    const request = rootRequest(channel, 0);
    expect((await platform.postRoot(request, 'one')).kind).toBe('in-doubt');
    const found = await platform.findPosted({
      place: channel,
      row: request.row,
      anchor: undefined,
      sentAtPlatformMs: Date.now(),
      knownIds: new Set(),
    });
    if (found.kind !== 'found') throw new Error(found.kind);
    const root = { ...channel, root: found.messageId };
    expect(await platform.proveRoot(root)).toMatchObject({ kind: 'ok', value: { root } });
  });

  it('leaves no message behind when a thread may not be opened', async () => {
    const { platform, channel, sandbox, read } = await harness();
    const withoutThreads = BOT_PERMISSIONS & ~(1n << 35n);
    await sandbox.control('discord/botPermissions', {
      permissions: String(withoutThreads),
      everyone: String(1n << 10n),
    });
    expect(await platform.postRoot(rootRequest(channel, 0), 'one')).toMatchObject({
      kind: 'refused',
      because: 'not-permitted',
    });
    expect((await read(channel)).filter((message) => message.mine)).toEqual([]);
  });

  it('names the permission that is missing for a thread', async () => {
    const { platform, channel, sandbox } = await harness();
    const posted = await platform.postRoot(rootRequest(channel, 0), 'one');
    if (posted.kind !== 'ok') throw new Error(posted.detail);
    await sandbox.control('discord/botPermissions', {
      permissions: String(BOT_PERMISSIONS & ~(1n << 38n)),
      everyone: String((1n << 10n) | (1n << 16n)),
    });
    const outcome = await platform.proveRoot(posted.value.root);
    expect(outcome).toMatchObject({ kind: 'refused', because: 'not-permitted' });
    expect(JSON.stringify(outcome)).toContain('SEND_MESSAGES_IN_THREADS');
  });

  it('brings messages of a thread that a person opened', async () => {
    const { channel, recorder, sandbox, say, info } = await harness();
    const starter = await say(channel, 'look');
    const thread = (await sandbox.control('discord/startThread', {
      user: 'alice',
      channel: channel.channel,
      messageId: starter,
      name: 'mine',
    })) as { id: string };
    const place = { space: info.guildId, channel: channel.channel, root: thread.id };
    const id = await say(place, '@chatd run');
    const act = await recorder.act('message', (one) => one.messageId === id);
    expect(act).toMatchObject({ place, text: 'run', mentionsUs: true });
  });

  it('takes a block of code verbatim and makes smart quotes plain elsewhere', async () => {
    const { channel, recorder, say } = await harness();
    const code = await say(channel, '```sh\necho \u201cx\u201d\n```');
    expect(await recorder.act('message', (one) => one.messageId === code)).toMatchObject({
      text: 'echo \u201cx\u201d',
      verbatim: true,
    });
    const plain = await say(channel, 'echo \u201cx\u201d');
    expect(await recorder.act('message', (one) => one.messageId === plain)).toMatchObject({
      text: 'echo "x"',
      asWritten: 'echo \u201cx\u201d',
    });
  });

  it('registers its command once, not at every start', async () => {
    const { sandbox, info } = await sandboxAlone();
    const target = 'discord:POST /applications/:id/guilds/:id/commands';
    const registered = async () =>
      ((await sandbox.control('requests')) as { target: string }[]).filter((request) =>
        /POST .*\/commands$/.test(request.target),
      ).length;
    const first = await startOn(info);
    await until('registered', async () => (await registered()) === 1);
    await first.platform.stop();
    const second = await startOn(info);
    await until('connected', () => second.recorder.connectedCount > 0);
    await until(
      'asked',
      async () =>
        ((await sandbox.control('requests')) as { target: string }[]).filter((request) =>
          /GET .*\/commands$/.test(request.target),
        ).length >= 2,
    );
    expect(await registered(), target).toBe(1);
  });

  it('starts a new session when Discord ends the old one, and says it is connected', async () => {
    const { recorder, sandbox, say, channel } = await harness();
    const before = recorder.connectedCount;
    await sandbox.control('discord/settings', { identifySpacingMs: 0 });
    await sandbox.control('discord/gateway', { action: 'invalid-session' });
    await until('connected again', () => recorder.connectedCount > before);
    const id = await say(channel, 'back');
    await recorder.act('message', (one) => one.messageId === id);
  });

  it('takes heartbeats for traffic, so that a quiet guild is not a dead connection', async () => {
    const { sandbox, info } = await sandboxAlone();
    await sandbox.control('discord/settings', { heartbeatMs: 500 });
    const { recorder } = await startOn(info);
    await until('connected', () => recorder.connectedCount > 0);
    const first = recorder.healths.at(-1)?.lastEventAtMonotonicMs ?? 0;
    await until('a later sign of life', () => {
      const last = recorder.healths.at(-1)?.lastEventAtMonotonicMs ?? 0;
      return last > first + 1_000;
    });
  });

  it('comes back after Discord could not be reached for a while', async () => {
    const { recorder, sandbox, say, channel } = await harness();
    const before = recorder.connectedCount;
    await sandbox.control('discord/settings', { identifySpacingMs: 0 });
    await sandbox.control('faults/add', {
      on: 'discord:GET /gateway/bot',
      fault: { kind: 'reply', status: 502, body: '<html>' },
      count: 2,
    });
    await sandbox.control('discord/gateway', { action: 'close', code: 4_000 });
    await until('connected again', () => recorder.connectedCount > before);
    const id = await say(channel, 'back');
    await recorder.act('message', (one) => one.messageId === id);
    expect(recorder.fatalReason).toBeUndefined();
  });

  it('stops for good when the token is reset while it runs', async () => {
    const { platform, recorder, sandbox, channel } = await harness();
    await sandbox.control('discord/resetToken');
    expect(await until('fatal', () => recorder.fatalReason)).toContain('token');
    await platform.post(rootRequest(channel, 0));
    expect(await platform.post(rootRequest(channel, 1))).toMatchObject({
      kind: 'refused',
      because: 'credentials',
    });
  });

  it('acknowledges a button by itself when the claim takes for ever', async () => {
    const { platform, channel, recorder, sandbox, press } = await harness();
    const posted = await platform.post({
      ...rootRequest(channel, 0),
      content: { head: 'x', buttons: [[{ label: 'Esc', action: 'key:esc' }]] },
    });
    if (posted.kind !== 'ok') throw new Error(posted.detail);
    recorder.claim = () => new Promise(() => undefined);
    await press(channel, posted.value.messageId, 'Esc');
    const callback = await until('the acknowledgement', async () =>
      ((await sandbox.control('requests')) as { target: string; status?: number }[]).find(
        (request) => request.target.includes('callback'),
      ),
    );
    expect(callback.status).toBe(204);
  });
});
