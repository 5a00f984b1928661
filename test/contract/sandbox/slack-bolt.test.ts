// An unmodified Bolt 5 app against the sandbox: the whole way from login to read-back.

import { afterEach, expect, test } from 'vitest';
import type { MessageView } from '../../../src/sandbox/slack/read-back.ts';
import { SlackBench, until } from '../../support/slack-sandbox.ts';

const bench = new SlackBench();
afterEach(() => bench.close());

async function thread(sandbox: Awaited<ReturnType<SlackBench['sandbox']>>, ts: string) {
  const read = await sandbox.control('slack/thread', { channel: '#ops', ts });
  return (read as { messages: MessageView[] }).messages;
}

test('a Bolt app logs in, hears a typed message with rich_text, posts, updates, reacts and uploads', async () => {
  const sandbox = await bench.sandbox({ timeScale: 0.05, slack: { fileShareDelayMs: [5, 10] } });
  const app = bench.bolt(sandbox);
  const heard: Record<string, unknown>[] = [];
  app.message(async ({ message }) => {
    heard.push(message as unknown as Record<string, unknown>);
  });
  await app.start();

  const sent = (await sandbox.control('slack/type', {
    user: 'alice',
    channel: '#ops',
    text: 'see www.google.com && `ls -la` :smile: @bob',
  })) as { kind: string; ts: string };
  expect(sent.kind).toBe('sent');
  const event = await until('the typed message', () => heard.find((one) => one['ts'] === sent.ts));
  expect(event['text']).toBe(
    'see <http://www.google.com|www.google.com> &amp;&amp; `ls -la` :smile: <@U0BOB00001>',
  );
  expect(event['blocks']).toMatchObject([
    {
      type: 'rich_text',
      elements: [
        {
          type: 'rich_text_section',
          elements: [
            { type: 'text', text: 'see ' },
            { type: 'link', url: 'http://www.google.com', text: 'www.google.com', unsafe: true },
            { type: 'text', text: ' && ' },
            { type: 'text', text: 'ls -la', style: { code: true } },
            { type: 'text', text: ' ' },
            { type: 'emoji', name: 'smile', unicode: '1f604' },
            { type: 'text', text: ' ' },
            { type: 'user', user_id: 'U0BOB00001' },
          ],
        },
      ],
    },
  ]);

  const { client } = app;
  const channel = sandbox.slack.channel;
  const posted = await client.chat.postMessage({
    channel,
    thread_ts: sent.ts,
    text: 'one',
    blocks: [
      {
        type: 'rich_text',
        elements: [
          { type: 'rich_text_preformatted', elements: [{ type: 'text', text: 'a < b & c' }] },
        ],
      },
      {
        type: 'actions',
        elements: [
          {
            type: 'button',
            action_id: 'ctrl_c',
            value: 's1',
            text: { type: 'plain_text', text: '^C' },
          },
        ],
      },
    ],
  });
  await client.chat.update({ channel, ts: posted.ts ?? '', text: 'two &lt;3' });
  await client.reactions.add({ channel, timestamp: sent.ts, name: 'eyes' });
  const file = Buffer.from('hello file');
  await client.filesUploadV2({
    channel_id: channel,
    thread_ts: sent.ts,
    filename: 'out.log',
    file,
  } as Parameters<typeof client.filesUploadV2>[0]);

  const messages = await until('the shared file', async () => {
    const read = await thread(sandbox, sent.ts);
    return read.length === 3 ? read : undefined;
  });
  expect(messages[0]).toMatchObject({
    user_name: 'alice',
    reactions: [{ name: 'eyes', count: 1 }],
  });
  expect(messages[1]).toMatchObject({
    is_bot: true,
    text: 'two &lt;3',
    shown: 'two <3',
    edited: true,
    blocks: undefined,
  });
  expect(messages[2]).toMatchObject({
    subtype: 'file_share',
    files: [{ name: 'out.log', size: 10 }],
  });
  const download = await fetch(messages[2]?.files[0]?.viewUrl ?? '');
  expect(await download.text()).toBe('hello file');
  expect(await sandbox.control('violations')).toEqual([]);
});

test('a button pressed by a person reaches the app, which opens a modal, which is submitted', async () => {
  const sandbox = await bench.sandbox({ timeScale: 0.05, slack: { fileShareDelayMs: [5, 10] } });
  const app = bench.bolt(sandbox);
  const submitted: unknown[] = [];
  app.action('ask', async ({ ack, body, client }) => {
    await ack();
    await client.views.open({
      trigger_id: (body as { trigger_id: string }).trigger_id,
      view: {
        type: 'modal',
        callback_id: 'secret',
        title: { type: 'plain_text', text: 'Secret' },
        submit: { type: 'plain_text', text: 'Send' },
        blocks: [
          {
            type: 'input',
            block_id: 'secret',
            label: { type: 'plain_text', text: 'Password' },
            element: { type: 'plain_text_input', action_id: 'value' },
          },
        ],
      },
    });
  });
  app.view('secret', async ({ ack, view }) => {
    submitted.push(view.state.values['secret']?.['value']?.value);
    if (submitted.length === 1)
      await ack({ response_action: 'errors', errors: { secret: 'again' } });
    else await ack();
  });
  await app.start();
  const channel = sandbox.slack.channel;
  const root = await app.client.chat.postMessage({
    channel,
    text: 'root',
    blocks: [
      {
        type: 'actions',
        elements: [{ type: 'button', action_id: 'ask', text: { type: 'plain_text', text: 'Ask' } }],
      },
    ],
  });
  const clicked = await sandbox.control('slack/click', {
    user: 'alice',
    channel,
    ts: root.ts,
    label: 'Ask',
  });
  expect(clicked).toEqual({ kind: 'acked' });
  await until('the modal', async () => {
    const views = (await sandbox.control('slack/views', { user: 'alice' })) as unknown[];
    return views.length === 1;
  });
  const submit = (text: string) =>
    sandbox.control('slack/submit', { user: 'alice', values: { Password: text } });
  expect(await submit('')).toMatchObject({ kind: 'errors' });
  expect(await submit('first')).toEqual({ kind: 'errors', errors: { secret: 'again' } });
  expect(await submit('second')).toEqual({ kind: 'acked' });
  expect(await sandbox.control('slack/views', { user: 'alice' })).toEqual([]);
  expect(submitted).toEqual(['first', 'second']);
});

test('a slash command typed in a channel reaches the app; in a thread the client refuses it', async () => {
  const sandbox = await bench.sandbox({ timeScale: 0.05, slack: { fileShareDelayMs: [5, 10] } });
  const app = bench.bolt(sandbox);
  const commands: Record<string, unknown>[] = [];
  app.command('/chatd', async ({ ack, command }) => {
    commands.push({ ...command });
    await ack('started');
  });
  await app.start();
  const inChannel = { user: 'alice', channel: '#ops', text: '/chatd run -- ls' };
  expect(await sandbox.control('slack/type', inChannel)).toEqual({ kind: 'acked' });
  expect(commands).toMatchObject([{ command: '/chatd', text: 'run -- ls', channel_name: 'ops' }]);
  expect(commands[0]).not.toHaveProperty('thread_ts');
  const root = (await sandbox.control('slack/type', { ...inChannel, text: 'root' })) as {
    ts: string;
  };
  const inThread = { ...inChannel, thread_ts: root.ts };
  expect(await sandbox.control('slack/type', inThread)).toEqual({
    kind: 'refused',
    says: '/chatd is not supported in threads. Sorry!',
  });
  expect(await sandbox.control('slack/type', { ...inChannel, text: '/usr/bin/ls' })).toMatchObject({
    kind: 'refused',
  });
  expect(commands).toHaveLength(1);
  const read = (await sandbox.control('slack/channel', { channel: '#ops' })) as {
    ephemeral: { text: string; from: string }[];
  };
  expect(read.ephemeral.map((note) => note.text)).toContain('started');
});
