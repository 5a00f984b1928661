// The unmodified discord.js 14 lives in the sandbox: the main job through the real SDK.

import {
  ActionRowBuilder,
  ButtonBuilder,
  type ButtonInteraction,
  ButtonStyle,
  type ChatInputCommandInteraction,
  type Interaction,
  type Message,
  ModalBuilder,
  type ModalSubmitInteraction,
  SlashCommandBuilder,
  type TextChannel,
  TextInputBuilder,
  TextInputStyle,
  type ThreadChannel,
} from 'discord.js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DiscordBox, until } from '../../support/discord-box.ts';

let box: DiscordBox;

beforeEach(async () => {
  box = await DiscordBox.start();
});

afterEach(async () => {
  await box.close();
});

test('a real client logs in, hears what a person types, posts, edits, opens a thread, reacts and uploads', async () => {
  const client = await box.loggedIn();
  const heard: Message[] = [];
  client.on('messageCreate', (message) => {
    heard.push(message);
  });
  expect(client.user.id).toBe(box.info.applicationId);
  expect(client.guilds.cache.get(box.info.guildId)?.name).toBe('Sandbox');

  await box.control('type', { user: 'alice', channel: 'ops', text: 'run `ls`' });
  const typed = await until(
    () => heard.find((message) => message.author.username === 'alice'),
    'typed message',
  );
  expect(typed.content).toBe('run `ls`');

  const channel = (await client.channels.fetch(box.ops)) as TextChannel;
  const root = await channel.send({ content: 'session **one**' });
  const thread = await root.startThread({ name: 'one', autoArchiveDuration: 60 });
  expect(thread.id).toBe(root.id);
  const posted = await thread.send({ content: '```\na\n```' });
  await posted.edit({ content: '```\na\nb\n```' });
  await typed.react('👀');
  await thread.send({
    content: 'file',
    files: [{ attachment: Buffer.from('hello'), name: 'log.txt' }],
  });

  const texts = (await box.messages(thread.id)).filter((message) => message.type === 0);
  expect(texts[0]).toMatchObject({ shown: 'a\nb', edited: true });
  const attachment = texts[1]?.attachments[0];
  expect(attachment?.['filename']).toBe('log.txt');
  const file = await fetch(String(attachment?.['url']));
  expect(await file.text()).toBe('hello');
  const ops = await box.messages(box.ops);
  expect(ops.map((message) => message.shown)).toContain('session one');
  expect(ops[0]?.reactions).toEqual([{ emoji: '👀', users: ['chatd'] }]);
  expect(box.rules()).toEqual([]);
});

test('slash commands, buttons and modals reach a real client, and their answers reach the person', async () => {
  const client = await box.loggedIn();
  const acted: Interaction[] = [];
  client.on('interactionCreate', (interaction) => {
    acted.push(interaction);
  });
  const command = new SlashCommandBuilder()
    .setName('term')
    .setDescription('Terminals')
    .addSubcommand((sub) =>
      sub
        .setName('run')
        .setDescription('Run')
        .addStringOption((option) =>
          option.setName('command').setDescription('What').setRequired(true),
        ),
    );
  await client.application.commands.set([command.toJSON()], box.info.guildId);
  await box.control('command', {
    user: 'alice',
    channel: 'ops',
    name: 'term run',
    options: { command: 'top' },
  });
  const run = (await until(
    () => acted.find((entry) => entry.isChatInputCommand()),
    'command',
  )) as ChatInputCommandInteraction;
  expect(run.options.getSubcommand()).toBe('run');
  expect(run.options.getString('command')).toBe('top');
  await run.deferReply({ flags: 64 });
  await run.editReply({
    content: 'started',
    components: [
      new ActionRowBuilder<ButtonBuilder>().addComponents(
        new ButtonBuilder().setCustomId('line').setLabel('Line').setStyle(ButtonStyle.Primary),
      ),
    ],
  });
  const seen = (await box.messages(box.ops, 'alice')).at(-1);
  expect(seen).toMatchObject({ shown: 'started', onlyFor: 'alice', loading: false });
  expect(await box.messages(box.ops, 'bob')).toEqual([]);

  await box.control('click', { user: 'alice', messageId: seen?.id, label: 'Line' });
  const click = (await until(
    () => acted.find((entry) => entry.isButton()),
    'click',
  )) as ButtonInteraction;
  await click.showModal(
    new ModalBuilder()
      .setCustomId('send')
      .setTitle('Send a line')
      .addComponents(
        new ActionRowBuilder<TextInputBuilder>().addComponents(
          new TextInputBuilder()
            .setCustomId('line')
            .setLabel('Line')
            .setStyle(TextInputStyle.Short),
        ),
      ),
  );
  expect(await box.control('dialogs')).toMatchObject({
    modals: [{ user: 'alice', form: { title: 'Send a line' } }],
  });
  await box.control('submit', { user: 'alice', values: { line: 'q' } });
  const submit = (await until(
    () => acted.find((entry) => entry.isModalSubmit()),
    'submit',
  )) as ModalSubmitInteraction;
  expect(submit.fields.getTextInputValue('line')).toBe('q');
  await submit.reply({ content: 'sent', flags: 64 });
  await submit.followUp({ content: 'and more', flags: 64 });
  const all = await box.messages(box.ops, 'alice');
  expect(all.map((message) => message.shown)).toEqual(['started', 'sent', 'and more']);
  expect(box.rules()).toEqual([]);
});

test('a real client sees a thread archived by a person revived by a post, THREAD_UPDATE first', async () => {
  const client = await box.loggedIn();
  const channel = (await client.channels.fetch(box.ops)) as TextChannel;
  const root = await channel.send('root');
  const thread: ThreadChannel = await root.startThread({ name: 'one' });
  const order: string[] = [];
  client.on('raw', (packet: { t: string | null }) => {
    if (packet.t !== null) order.push(packet.t);
  });
  await box.control('archive', { user: 'olga', thread: thread.id });
  await box.control('type', { user: 'alice', thread: thread.id, text: 'hello' });
  await until(() => order.includes('MESSAGE_CREATE') || undefined, 'message');
  expect(order.filter((name) => name === 'THREAD_UPDATE' || name === 'MESSAGE_CREATE')).toEqual([
    'THREAD_UPDATE',
    'THREAD_UPDATE',
    'MESSAGE_CREATE',
  ]);
  expect(thread.archived).toBe(false);
});
