// The Slack half of the control API: reads the calls' fields, finds who and where, and lets people.ts
// and interactions.ts do it.

import {
  type Fields,
  fieldsOf,
  isFields,
  optionalFlag,
  optionalText,
  textField,
} from '../fields.ts';
import { ControlError, type ControlHandler } from '../module.ts';
import { type SlackApp, textArg } from './api-call.ts';
import { isEmojiName } from './emoji.ts';
import {
  clickElement,
  closeView,
  messageShortcut,
  slashCommand,
  submitView,
} from './interactions.ts';
import type { EphemeralNote, SlackChannel, SlackMessage, SlackUser, SlackView } from './model.ts';
import { editMessage, sendFile, typeMessage } from './people.ts';
import { channelView, messageView, noteView, threadView } from './read-back.ts';
import { userShape } from './shapes.ts';
import { BOT_USER } from './workspace.ts';

/** @throws {ControlError} when there is no such person. */
export function personOf(app: SlackApp, fields: Fields, name = 'user'): SlackUser {
  const user = app.workspace.findUser(textField(fields, name));
  if (user === undefined) throw new ControlError(`there is no user ${textField(fields, name)}`);
  return user;
}

/** @throws {ControlError} when there is no such channel. */
export function placeOf(app: SlackApp, fields: Fields): SlackChannel {
  const channel = app.workspace.findChannel(textField(fields, 'channel'));
  if (channel === undefined)
    throw new ControlError(`there is no channel ${textField(fields, 'channel')}`);
  return channel;
}

/** @throws {ControlError} when there is no such message. */
export function messageAt(channel: SlackChannel, fields: Fields): SlackMessage {
  const message = channel.messages.get(textField(fields, 'ts'));
  if (message === undefined) throw new ControlError(`no message has ts ${textField(fields, 'ts')}`);
  return message;
}

/** People click "Join Channel" before they type; private channels need an invitation. */
function present(app: SlackApp, user: SlackUser, channel: SlackChannel): void {
  if (channel.members.has(user.id)) return;
  if (channel.kind !== 'public')
    throw new ControlError(`${user.name} cannot see that channel: invite them first`);
  app.workspace.join(channel, user.id);
}

export function peopleControl(
  app: SlackApp,
  commands: readonly string[],
): Readonly<Record<string, ControlHandler>> {
  return {
    'slack/type': async (body) => typed(app, commands, fieldsOf(body)),
    'slack/command': async (body) => commanded(app, fieldsOf(body)),
    'slack/edit': async (body) => {
      const fields = fieldsOf(body);
      const message = ownMessage(app, fields);
      editMessage(app, message, personOf(app, fields), textField(fields, 'text'));
      return messageView(app, message);
    },
    'slack/delete': async (body) => {
      const fields = fieldsOf(body);
      app.workspace.remove(ownMessage(app, fields), personOf(app, fields).id);
    },
    'slack/react': async (body) => reacted(app, fieldsOf(body)),
    'slack/click': async (body) => clicked(app, fieldsOf(body)),
    'slack/submit': async (body) => {
      const fields = fieldsOf(body);
      const user = personOf(app, fields);
      const values = isFields(fields['values']) ? fields['values'] : {};
      const texts = Object.entries(values).map(([key, value]) => [key, String(value)] as const);
      return submitView(app, user, viewOf(app, user, fields), Object.fromEntries(texts));
    },
    'slack/close-view': async (body) => {
      const fields = fieldsOf(body);
      const user = personOf(app, fields);
      return closeView(app, user, viewOf(app, user, fields));
    },
    'slack/shortcut': async (body) => {
      const fields = fieldsOf(body);
      const channel = placeOf(app, fields);
      return messageShortcut(app, {
        user: personOf(app, fields),
        channel,
        message: messageAt(channel, fields),
        callbackId: textField(fields, 'callback_id'),
      });
    },
    'slack/upload': async (body) => uploaded(app, fieldsOf(body)),
    'slack/stop-stream': async (body) => {
      const fields = fieldsOf(body);
      const { stream } = messageAt(placeOf(app, fields), fields);
      if (stream !== undefined) stream.state = 'stopped-by-user';
    },
  };
}

function typed(app: SlackApp, commands: readonly string[], fields: Fields): unknown {
  const user = personOf(app, fields);
  const channel = placeOf(app, fields);
  present(app, user, channel);
  const result = typeMessage(
    app,
    {
      user,
      channel,
      threadTs: optionalText(fields, 'thread_ts'),
      text: textField(fields, 'text'),
      isBroadcast: optionalFlag(fields, 'broadcast') ?? false,
      smartQuotes: optionalFlag(fields, 'smart_quotes') ?? false,
    },
    commands,
  );
  if (result.kind !== 'command') return result;
  return slashCommand(app, { user, channel, command: result.command, text: result.text });
}

function commanded(app: SlackApp, fields: Fields): unknown {
  if (optionalText(fields, 'thread_ts') !== undefined)
    throw new ControlError('slash commands are not supported in threads');
  const user = personOf(app, fields);
  const channel = placeOf(app, fields);
  // A stranger's client does not offer the commands of a foreign workspace.
  if (user.isStranger) throw new ControlError(`${user.name} has no commands of this workspace`);
  return slashCommand(app, {
    user,
    channel,
    command: textField(fields, 'command'),
    text: optionalText(fields, 'text') ?? '',
  });
}

function ownMessage(app: SlackApp, fields: Fields): SlackMessage {
  const message = messageAt(placeOf(app, fields), fields);
  if (message.user !== personOf(app, fields).id)
    throw new ControlError('people may change only what they wrote');
  return message;
}

function reacted(app: SlackApp, fields: Fields): unknown {
  const name = textField(fields, 'name').replaceAll(':', '');
  if (!isEmojiName(name)) throw new ControlError(`there is no emoji ${name}`);
  const message = messageAt(placeOf(app, fields), fields);
  const isOn = optionalFlag(fields, 'remove') !== true;
  return { changed: app.workspace.react(message, name, personOf(app, fields).id, isOn) };
}

function clicked(app: SlackApp, fields: Fields): unknown {
  const user = personOf(app, fields);
  const channel = placeOf(app, fields);
  const ts = textField(fields, 'ts');
  const note = app.workspace.notes.find(
    (one) => one.ts === ts && one.channel === channel.id && one.user === user.id,
  );
  const on: { kind: 'note'; note: EphemeralNote } | { kind: 'message'; message: SlackMessage } =
    note === undefined
      ? { kind: 'message', message: messageAt(channel, fields) }
      : { kind: 'note', note };
  const blocks = on.kind === 'note' ? on.note.blocks : on.message.blocks;
  const found = findElement(blocks ?? [], fields);
  if (found === undefined)
    throw new ControlError('that message shows no such button; name its action_id or label');
  const option = optionalText(fields, 'value');
  return clickElement(app, {
    user,
    channel,
    on,
    ...found,
    ...(option === undefined ? {} : { option }),
  });
}

function findElement(
  blocks: readonly Fields[],
  fields: Fields,
): { element: Fields; blockId: string } | undefined {
  const actionId = optionalText(fields, 'action_id');
  const label = optionalText(fields, 'label');
  for (const block of blocks) {
    const elements: readonly unknown[] = Array.isArray(block['elements'])
      ? block['elements']
      : [block['accessory']];
    const element = elements.filter(isFields).find((one) => {
      const text = isFields(one['text']) ? one['text']['text'] : undefined;
      return actionId === undefined
        ? text === label && label !== undefined
        : one['action_id'] === actionId;
    });
    if (element !== undefined) return { element, blockId: textArg(block, 'block_id') ?? '' };
  }
  return undefined;
}

function viewOf(app: SlackApp, user: SlackUser, fields: Fields): SlackView {
  const id = optionalText(fields, 'view');
  const stack = app.interactivity.stackOf(user.id);
  const view = id === undefined ? stack.at(-1) : stack.find((one) => one.id === id);
  if (view === undefined) throw new ControlError(`${user.name} has no such modal open`);
  return view;
}

function uploaded(app: SlackApp, fields: Fields): unknown {
  const user = personOf(app, fields);
  const channel = placeOf(app, fields);
  present(app, user, channel);
  const base64 = optionalText(fields, 'base64');
  const bytes =
    base64 === undefined
      ? Buffer.from(optionalText(fields, 'text') ?? '')
      : Buffer.from(base64, 'base64');
  return sendFile(app, {
    user,
    channel,
    threadTs: optionalText(fields, 'thread_ts'),
    name: textField(fields, 'name'),
    bytes,
    comment: optionalText(fields, 'comment') ?? '',
  });
}

export function readControl(app: SlackApp): Readonly<Record<string, ControlHandler>> {
  return {
    'slack/thread': async (body) => {
      const fields = fieldsOf(body);
      const channel = placeOf(app, fields);
      const user = optionalText(fields, 'user');
      const rootTs = textField(fields, 'ts');
      return {
        messages: threadView(app, channel, rootTs),
        ephemeral: app.workspace.notes
          .filter((note) => note.channel === channel.id && note.threadTs === rootTs)
          .filter((note) => user === undefined || note.user === app.workspace.findUser(user)?.id)
          .map((note) => noteView(app, note)),
      };
    },
    'slack/channel': async (body) => {
      const channel = placeOf(app, fieldsOf(body));
      const top = [...channel.messages.values()].filter(
        (message) =>
          message.threadTs === undefined || message.threadTs === message.ts || message.isBroadcast,
      );
      return {
        ...channelView(app, channel),
        messages: top.map((message) => messageView(app, message)),
        ephemeral: app.workspace.notes
          .filter((note) => note.channel === channel.id && note.threadTs === undefined)
          .map((note) => noteView(app, note)),
      };
    },
    'slack/channels': async () =>
      [...app.workspace.channels.values()].map((channel) => channelView(app, channel)),
    'slack/users': async () => [...app.workspace.users.values()].map(userShape),
    'slack/message': async (body) => {
      const fields = fieldsOf(body);
      return messageView(app, messageAt(placeOf(app, fields), fields));
    },
    'slack/views': async (body) =>
      app.interactivity.stackOf(personOf(app, fieldsOf(body)).id).map((view) => ({
        id: view.id,
        view: view.view,
        errors: view.errors,
      })),
    'slack/file': async (body) => {
      const file = app.workspace.files.get(textField(fieldsOf(body), 'id'));
      if (file === undefined) throw new ControlError('there is no such file');
      return { name: file.name, mimetype: file.mimetype, base64: file.bytes.toString('base64') };
    },
  };
}

export function placeControl(app: SlackApp): Readonly<Record<string, ControlHandler>> {
  const simple =
    (event: string, edit: (channel: SlackChannel, fields: Fields) => void): ControlHandler =>
    async (body) => {
      const fields = fieldsOf(body);
      const channel = placeOf(app, fields);
      app.workspace.changeChannel(channel, event, (stored) => edit(stored, fields));
      return channelView(app, channel);
    };
  return {
    'slack/create-channel': async (body) => created(app, fieldsOf(body)),
    'slack/invite': async (body) => {
      const fields = fieldsOf(body);
      const user = fields['user'] === 'bot' ? BOT_USER : personOf(app, fields).id;
      return { joined: app.workspace.join(placeOf(app, fields), user) };
    },
    'slack/leave': async (body) => {
      const fields = fieldsOf(body);
      const user = fields['user'] === 'bot' ? BOT_USER : personOf(app, fields).id;
      return { left: app.workspace.leave(placeOf(app, fields), user) };
    },
    'slack/archive': simple('channel_archive', (channel) => {
      channel.isArchived = true;
    }),
    'slack/unarchive': simple('channel_unarchive', (channel) => {
      channel.isArchived = false;
    }),
    'slack/rename': simple('channel_rename', (channel, fields) => {
      channel.name = textField(fields, 'name');
    }),
    'slack/change-channel-id': simple('channel_id_changed', (channel) => {
      channel.id = app.workspace.mint('C');
    }),
    'slack/posting': async (body) => {
      const fields = fieldsOf(body);
      const modes = ['open', 'read-only', 'thread-only', 'no-threads'] as const;
      const mode = modes.find((one) => one === fields['posting']);
      if (mode === undefined) throw new ControlError(`posting must be one of ${modes.join(', ')}`);
      placeOf(app, fields).posting = mode;
    },
    'slack/lock-thread': async (body) => {
      const fields = fieldsOf(body);
      messageAt(placeOf(app, fields), fields).isThreadLocked =
        optionalFlag(fields, 'locked') ?? true;
    },
    'slack/unfurl': async (body) => {
      const fields = fieldsOf(body);
      const message = messageAt(placeOf(app, fields), fields);
      app.workspace.change(
        message,
        (stored) => {
          stored.attachments = [{ id: 1, title: 'A page', from_url: 'https://example.com/' }];
        },
        'touched',
      );
    },
  };
}

function created(app: SlackApp, fields: Fields): unknown {
  const asked = fields['members'];
  const names: readonly unknown[] = Array.isArray(asked) ? asked : [];
  const members = names.map((name) => personOf(app, { user: name }).id);
  if (optionalFlag(fields, 'bot') !== false) members.push(BOT_USER);
  const kind = optionalFlag(fields, 'private') === true ? 'private' : 'public';
  const channel = app.workspace.addChannel(textField(fields, 'name'), kind, members);
  app.workspace.changeChannel(channel, 'channel_created', () => undefined);
  return channelView(app, channel);
}
