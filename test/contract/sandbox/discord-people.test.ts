// People at their Discord clients: what the simulator lets them do, and what their client refuses.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { DiscordBox, idOf, type RawGateway, until } from '../../support/discord-box.ts';

let box: DiscordBox;
let gateway: RawGateway;

beforeEach(async () => {
  box = await DiscordBox.start();
  gateway = await box.gateway();
  await gateway.op(10);
  gateway.identify(box.info.token);
  await gateway.event('GUILD_CREATE');
});

afterEach(async () => {
  await box.close();
});

interface Act {
  readonly id: string;
  readonly token: string;
  readonly type: number;
}

const acts = (): readonly Act[] =>
  gateway.frames.filter((frame) => frame.t === 'INTERACTION_CREATE').map((frame) => frame.d as Act);

async function register(options: readonly object[], more: object = {}): Promise<void> {
  const path = `/applications/${box.info.applicationId}/guilds/${box.info.guildId}/commands`;
  const answer = await box.call('PUT', path, [
    { name: 'term', description: 'Terminals', options, ...more },
  ]);
  expect(answer.status).toBe(200);
}

const NAME = { type: 3, name: 'name', description: 'Which', required: true, autocomplete: true };

test('autocomplete asks the bot while a person types, and shows what it suggests', async () => {
  await register([NAME]);
  const asked = box.control('autocomplete', {
    user: 'alice',
    channel: 'ops',
    name: 'term',
    options: { name: 'bu' },
    focused: 'name',
  });
  const act = await until(() => acts()[0], 'interaction');
  expect(act).toMatchObject({
    type: 4,
    data: { options: [{ name: 'name', value: 'bu', focused: true }] },
  });
  await box.call('POST', `/interactions/${act.id}/${act.token}/callback`, {
    type: 8,
    data: { choices: [{ name: 'build-7', value: '7' }] },
  });
  expect(await asked).toMatchObject({ choices: [{ name: 'build-7', value: '7' }] });
});

test('a select gives its values, a disabled button cannot be pressed, an unknown one is named', async () => {
  const options = [
    { label: 'One', value: '1' },
    { label: 'Two', value: '2' },
  ];
  const sent = await box.call('POST', `/channels/${box.ops}/messages`, {
    content: 'choose',
    components: [
      { type: 1, components: [{ type: 3, custom_id: 'pick', options }] },
      {
        type: 1,
        components: [{ type: 2, style: 2, label: 'Off', custom_id: 'off', disabled: true }],
      },
    ],
  });
  const messageId = idOf(sent.json);
  await box.control('click', { user: 'alice', messageId, customId: 'pick', values: ['2'] });
  expect(await until(() => acts()[0], 'interaction')).toMatchObject({
    type: 3,
    data: { custom_id: 'pick', component_type: 3, values: ['2'] },
    message: { id: messageId },
  });
  await expect(box.control('click', { user: 'alice', messageId, label: 'Off' })).rejects.toThrow(
    'disabled',
  );
  await expect(box.control('click', { user: 'alice', messageId, label: 'Nope' })).rejects.toThrow(
    'it has pick, Off',
  );
});

test('commands are offered by rights, options and places: not in archived or locked threads', async () => {
  await register([{ ...NAME, autocomplete: false }], { default_member_permissions: '8' });
  const use = (user: string, more: object = {}): Promise<unknown> =>
    box.control('command', { user, channel: 'ops', name: 'term', options: { name: 'x' }, ...more });
  await expect(use('alice')).rejects.toThrow('does not see /term');
  await use('olga');
  await register([{ ...NAME, autocomplete: false }]);
  await expect(use('alice', { options: {} })).rejects.toThrow('name must be given');
  await expect(use('alice', { options: { name: 'x', y: 1 } })).rejects.toThrow('no option y');
  await expect(use('alice', { name: 'other' })).rejects.toThrow('no command /other');
  const thread = idOf(
    await box.control('startThread', { user: 'alice', channel: 'ops', name: 't' }),
  );
  await use('alice', { channel: thread });
  await box.control('archive', { user: 'alice', thread });
  await expect(use('alice', { channel: thread })).rejects.toThrow('archived');
  await box.control('archive', { user: 'alice', thread, archived: false });
  await expect(box.control('lock', { user: 'alice', thread })).rejects.toThrow('50013');
  await box.control('lock', { user: 'olga', thread });
  await expect(use('alice', { channel: thread })).rejects.toThrow('locked');
});

test('people reply, edit and delete their own; others may not; the bot hears each', async () => {
  const first = await box.typed('alice', 'ops', 'first');
  const reply = idOf(await box.control('reply', { user: 'bob', messageId: first, text: 'yes' }));
  await until(
    () => gateway.frames.find((frame) => (frame.d as { id?: string } | null)?.id === reply),
    'reply',
  );
  const heard = gateway.frames.find(
    (frame) => (frame.d as { id?: string } | null)?.id === reply,
  )?.d;
  expect(heard).toMatchObject({
    type: 19,
    message_reference: { message_id: first },
    referenced_message: { id: first },
    mentions: [{ username: 'alice' }],
  });
  await expect(
    box.control('edit', { user: 'bob', messageId: first, text: 'mine' }),
  ).rejects.toThrow('author');
  await box.control('edit', { user: 'alice', messageId: first, text: 'better' });
  expect((await box.messages(box.ops))[0]).toMatchObject({ content: 'better', edited: true });
  await expect(box.control('delete', { user: 'bob', messageId: first })).rejects.toThrow('50013');
  await box.control('delete', { user: 'alice', messageId: first });
  expect((await gateway.event('MESSAGE_DELETE')).d).toMatchObject({
    id: first,
    guild_id: box.info.guildId,
  });
});

test('roles, renames, forum posts and deleted threads reach the bot as Discord tells them', async () => {
  const forum = idOf(await box.control('addChannel', { name: 'ideas', kind: 'forum' }));
  const made = idOf(
    await box.control('startThread', {
      user: 'alice',
      channel: forum,
      name: 'p',
      text: 'first post',
    }),
  );
  const messages = await box.messages(made);
  expect(messages.map((message) => [message.id, message.content])).toEqual([[made, 'first post']]);
  await box.control('rename', { user: 'alice', thread: made, name: 'better name' });
  expect((await gateway.event('THREAD_UPDATE')).d).toMatchObject({ id: made, name: 'better name' });
  await box.control('deleteThread', { user: 'olga', thread: made });
  expect((await gateway.event('THREAD_DELETE')).d).toMatchObject({ id: made, parent_id: forum });
  await box.control('role', { user: 'chatd', role: 'extra' });
  expect((await gateway.event('GUILD_MEMBER_UPDATE')).d).toMatchObject({
    user: { username: 'chatd' },
  });
  await box.control('role', { user: 'alice', role: 'extra' });
  const typed = await box.typed('alice', 'ops', 'with a role');
  const event = await until(
    () => gateway.frames.find((frame) => (frame.d as { id?: string } | null)?.id === typed),
    'message',
  );
  expect((event.d as { member: { roles: unknown[] } }).member.roles).toHaveLength(1);
});

test('a person cannot write where they have no right, and says so in the words of the client', async () => {
  await box.control('overwrite', { channel: 'ops', user: 'bob', deny: String(1n << 11n) });
  await expect(box.typed('bob', 'ops', 'hello')).rejects.toThrow('Missing Permissions (50013)');
  await expect(box.typed('alice', 'ops', 'x'.repeat(2_001))).rejects.toThrow('50035');
  await expect(box.typed('nobody', 'ops', 'x')).rejects.toThrow('nobody called nobody');
  await expect(box.typed('alice', 'nowhere', 'x')).rejects.toThrow('no channel or thread nowhere');
});

test('a modal is filled by its own rules and belongs to the person it opened for', async () => {
  await register([]);
  await box.control('command', { user: 'alice', channel: 'ops', name: 'term' });
  const act = await until(() => acts()[0], 'interaction');
  await box.call('POST', `/interactions/${act.id}/${act.token}/callback`, {
    type: 9,
    data: {
      title: 'Secret',
      custom_id: 'secret',
      components: [
        {
          type: 18,
          label: 'Line',
          component: { type: 4, custom_id: 'line', style: 1, max_length: 5 },
        },
      ],
    },
  });
  await expect(box.control('submit', { user: 'bob', values: { line: 'x' } })).rejects.toThrow(
    'no such modal',
  );
  await expect(
    box.control('submit', { user: 'alice', values: { line: 'too long' } }),
  ).rejects.toThrow('1 to 5');
  await expect(box.control('submit', { user: 'alice', values: {} })).rejects.toThrow('1 to 5');
  await expect(
    box.control('submit', { user: 'alice', values: { line: 'x', other: 'y' } }),
  ).rejects.toThrow('no other');
  await box.control('submit', { user: 'alice', values: { line: 'x' } });
  expect(await until(() => acts()[1], 'submit')).toMatchObject({
    type: 5,
    data: {
      custom_id: 'secret',
      components: [{ type: 18, component: { custom_id: 'line', value: 'x' } }],
    },
  });
});
