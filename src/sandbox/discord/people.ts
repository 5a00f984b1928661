// People at their Discord clients: what they may type, press and see. Their client refuses what the
// real one refuses (a slash command in an archived thread, a button on a vanished message).

import { type Fields, optionalText, textField } from '../fields.ts';
import { ControlError } from '../module.ts';
import { KIND, modalInputs, walk } from './components.ts';
import { ApiError } from './errors.ts';
import { INTERACTION, type InteractionRecord, type OpenModal } from './interactions.ts';
import { type Json, numberOf, recordOf, recordsOf, stringOf } from './json.ts';
import { readMessageForm } from './message-form.ts';
import {
  CHANNEL,
  type ChannelRecord,
  INTENT,
  type MessageRecord,
  type UserRecord,
} from './records.ts';
import { directChannel, type Services } from './routes.ts';
import { isSnowflake } from './snowflake.ts';
import { previewedLink } from './text.ts';
import { memberWithUserJson } from './wire.ts';

export class People {
  readonly #services: Services;

  constructor(services: Services) {
    this.#services = services;
  }

  /** By id or by name. @throws {ControlError}. */
  user(value: string): UserRecord {
    const { guild } = this.#services;
    const found =
      guild.user(value) ??
      [...guild.users.values()].find((user) => user.username === value.replace(/^@/, ''));
    if (found === undefined) throw new ControlError(`there is nobody called ${value}`);
    return found;
  }

  person(fields: Fields): UserRecord {
    const user = this.user(textField(fields, 'user'));
    if (user.bot) throw new ControlError('a bot is no person');
    return user;
  }

  /** By id, by name, or `dm` for the person's talk with the bot. @throws {ControlError}. */
  channel(fields: Fields, userId?: string): ChannelRecord {
    const value = (optionalText(fields, 'channel') ?? textField(fields, 'thread')).replace(
      /^#/,
      '',
    );
    const { guild } = this.#services;
    if (value === 'dm' && userId !== undefined) return directChannel(guild, userId);
    const found = isSnowflake(value)
      ? guild.channels.get(value)
      : [...guild.channels.values()].findLast((channel) => channel.name === value);
    if (found === undefined) throw new ControlError(`there is no channel or thread ${value}`);
    return found;
  }

  /** A message by id, wherever it is. @throws {ControlError}. */
  message(fields: Fields): MessageRecord {
    const id = textField(fields, 'messageId');
    const { guild } = this.#services;
    for (const channel of guild.channels.values()) {
      const message = guild.findMessage(channel.id, id);
      if (message !== undefined) return message;
    }
    throw new ControlError(`there is no message ${id}`);
  }

  /** Types a message and presses Enter. */
  type(fields: Fields): MessageRecord {
    const user = this.person(fields);
    const channel = this.channel(fields, user.id);
    const text = textField(fields, 'text');
    const replyTo = optionalText(fields, 'replyTo');
    const form: Json = {
      content: this.#mentioned(text),
      ...(replyTo === undefined ? {} : { message_reference: { message_id: replyTo } }),
    };
    const files = uploadsOf(fields);
    return this.#asClient(() => {
      const draft = readMessageForm(form, files, { action: 'create' });
      return this.#services.messages.post(channel, draft, { authorId: user.id, target: 'person' })
        .message;
    });
  }

  /** `@name` picked from the client's list becomes a mention; unknown names stay text. */
  #mentioned(text: string): string {
    return text.replaceAll(/(^|\s)@([a-z0-9_.]+)/g, (whole, before: string, name: string) => {
      const user = [...this.#services.guild.users.values()].find(
        (entry) => entry.username === name,
      );
      return user === undefined ? whole : `${before}<@${user.id}>`;
    });
  }

  edit(fields: Fields): MessageRecord {
    const user = this.person(fields);
    const message = this.message(fields);
    if (message.authorId !== user.id) throw new ControlError('only the author can edit a message');
    this.#asClient(() => {
      const channel = this.#services.guild.channel(message.channelId);
      this.#services.threads.refuseArchived(channel);
      this.#services.messages.editByPerson(
        message,
        this.#mentioned(textField(fields, 'text')).trim(),
      );
    });
    return message;
  }

  remove(fields: Fields): void {
    const user = this.person(fields);
    const message = this.message(fields);
    this.#asClient(() =>
      this.#services.messages.remove(
        this.#services.guild.channel(message.channelId),
        message,
        user.id,
      ),
    );
  }

  react(fields: Fields): void {
    const user = this.person(fields);
    const message = this.message(fields);
    const emoji = textField(fields, 'emoji');
    const channel = this.#services.guild.channel(message.channelId);
    this.#asClient(() => {
      if (message.reactions.get(emoji)?.has(user.id) === true)
        this.#services.messages.unreact(message, emoji, user.id);
      else this.#services.messages.react(channel, message, emoji, user.id);
    });
  }

  typing(fields: Fields): void {
    const user = this.person(fields);
    const channel = this.channel(fields, user.id);
    const { guild } = this.#services;
    guild.dispatch({
      name: 'TYPING_START',
      intents: INTENT.GUILD_MESSAGE_TYPING,
      channelId: channel.id,
      data: () => ({
        channel_id: channel.id,
        guild_id: guild.id,
        user_id: user.id,
        timestamp: Math.floor(guild.core.clock.wallMs() / 1000),
        member: memberWithUserJson(guild, user.id),
      }),
    });
  }

  /** The preview arrives now, whether there is a link or not. */
  unfurl(fields: Fields): void {
    const message = this.message(fields);
    this.#services.messages.preview(
      message,
      previewedLink(message.content) ?? 'https://example.com/',
    );
  }

  // Threads.

  patchThread(fields: Fields, form: Json): ChannelRecord {
    const user = this.person(fields);
    const thread = this.channel(fields);
    if (thread.thread === undefined) throw new ControlError('that is no thread');
    this.#asClient(() => this.#services.threads.patch(thread, form, user.id));
    return thread;
  }

  deleteThread(fields: Fields): void {
    const thread = this.channel(fields);
    const user = this.person(fields);
    if (!this.#services.guild.may(user.id, 'MANAGE_THREADS', thread))
      throw new ControlError(`${user.username} may not delete threads`);
    this.#services.threads.remove(thread);
  }

  /** A thread begun by a person, on a message or alone. */
  startThread(fields: Fields): ChannelRecord {
    const user = this.person(fields);
    const name = textField(fields, 'name');
    if (optionalText(fields, 'messageId') === undefined) {
      const parent = this.channel(fields);
      const form: Json = { name, type: CHANNEL.PUBLIC_THREAD };
      return this.#asClient(() =>
        parent.type === CHANNEL.FORUM
          ? this.#forumPost(parent, fields, user)
          : this.#services.messages.startLoneThread(parent, form, user.id),
      );
    }
    const message = this.message(fields);
    const parent = this.#services.guild.channel(message.channelId);
    return this.#asClient(() =>
      this.#services.messages.startThread(parent, message, { name }, user.id),
    );
  }

  #forumPost(parent: ChannelRecord, fields: Fields, user: UserRecord): ChannelRecord {
    const tags = parent.requiresTag ? parent.tags.slice(0, 1).map((tag) => tag.id) : [];
    const thread = this.#services.threads.inForum(
      parent,
      { name: textField(fields, 'name'), applied_tags: tags },
      user.id,
    );
    const draft = readMessageForm({ content: this.#mentioned(textField(fields, 'text')) }, [], {
      action: 'create',
    });
    this.#services.messages.add(thread, draft, {
      authorId: user.id,
      target: 'person',
      id: thread.id,
    });
    return thread;
  }

  // Interactions.

  /** A slash command: `name` may name subcommands ("term run"), `options` by name. */
  command(fields: Fields): InteractionRecord {
    const user = this.person(fields);
    const channel = this.#commandChannel(fields, user);
    const [name = '', ...path] = textField(fields, 'name').replace(/^\//, '').split(/\s+/);
    const command = this.#services.commands
      .all()
      .find((entry) => entry['name'] === name && (entry['type'] ?? 1) === 1);
    if (command === undefined) throw new ControlError(`there is no command /${name}`);
    const needed = stringOf(command['default_member_permissions']);
    const has = this.#services.guild.permissions(user.id, channel);
    if (
      needed !== undefined &&
      (needed === '0' ? user.id !== this.#services.guild.ownerId : (has & BigInt(needed)) === 0n)
    )
      throw new ControlError(`${user.username} does not see /${name}`);
    const options = commandOptions(
      command,
      path,
      recordOf(fields['options']),
      optionalText(fields, 'focused'),
    );
    const focused = optionalText(fields, 'focused');
    return this.#services.interactions.create({
      type: focused === undefined ? INTERACTION.COMMAND : INTERACTION.AUTOCOMPLETE,
      userId: user.id,
      channel,
      commandName: [name, ...path].join(' '),
      data: {
        id: command['id'],
        name,
        type: 1,
        guild_id: this.#services.guild.id,
        options,
        resolved: {},
      },
    });
  }

  /** The client offers commands only where they can be used. */
  #commandChannel(fields: Fields, user: UserRecord): ChannelRecord {
    const channel = this.channel(fields, user.id);
    const { guild } = this.#services;
    if (!guild.may(user.id, 'VIEW_CHANNEL', channel))
      throw new ControlError(`${user.username} does not see that channel`);
    if (!guild.may(user.id, 'USE_APPLICATION_COMMANDS', channel))
      throw new ControlError(`${user.username} may not use commands there`);
    if (channel.thread?.archived === true)
      throw new ControlError('commands cannot be used in an archived thread');
    if (channel.thread?.locked === true && !guild.may(user.id, 'MANAGE_THREADS', channel))
      throw new ControlError('commands cannot be used in a locked thread');
    return channel;
  }

  /** Presses a button by custom id or label, or picks `values` of a select. */
  click(fields: Fields): InteractionRecord {
    const user = this.person(fields);
    const message = this.message(fields);
    if (message.onlyFor !== undefined && message.onlyFor !== user.id)
      throw new ControlError(`${user.username} does not see that message`);
    const channel = this.#services.guild.channel(message.channelId);
    if (!this.#services.guild.may(user.id, 'VIEW_CHANNEL', channel))
      throw new ControlError(`${user.username} does not see that channel`);
    const component = findComponent(message, fields);
    if (component['disabled'] === true) throw new ControlError('that button is disabled');
    const values = Array.isArray(fields['values']) ? { values: fields['values'] } : {};
    return this.#services.interactions.create({
      type: INTERACTION.COMPONENT,
      userId: user.id,
      channel,
      message,
      data: {
        custom_id: component['custom_id'],
        component_type: component['type'],
        id: component['id'] ?? 0,
        ...values,
      },
    });
  }

  /** Sends a modal the bot opened: `modal` is its id, `values` by custom id. */
  submit(fields: Fields): InteractionRecord {
    const { interactions, guild } = this.#services;
    const modal = this.#modal(fields);
    const values = recordOf(fields['values']);
    const components = recordsOf(modal.form['components']).map((part, index) =>
      filled(part, values, index),
    );
    checkValues(modal, values);
    interactions.modals.delete(modal.id);
    guild.changed('modal', { id: modal.id, user: modal.userId });
    return interactions.create({
      type: INTERACTION.MODAL,
      userId: modal.userId,
      channel: guild.channel(modal.channelId),
      message:
        modal.messageId === undefined
          ? undefined
          : guild.findMessage(modal.channelId, modal.messageId),
      data: { custom_id: modal.form['custom_id'], components, resolved: {} },
    });
  }

  dismiss(fields: Fields): void {
    const modal = this.#modal(fields);
    this.#services.interactions.modals.delete(modal.id);
    this.#services.guild.changed('modal', { id: modal.id, user: modal.userId });
  }

  /** By id; without one the newest modal of `user`. */
  #modal(fields: Fields): OpenModal {
    const { modals } = this.#services.interactions;
    const id = optionalText(fields, 'modal');
    const userName = optionalText(fields, 'user');
    const user = userName === undefined ? undefined : this.user(userName);
    const found =
      id === undefined
        ? [...modals.values()].findLast((modal) => modal.userId === user?.id)
        : modals.get(id);
    if (found === undefined) throw new ControlError('no such modal is open');
    if (user !== undefined && found.userId !== user.id)
      throw new ControlError('that modal is open for somebody else');
    return found;
  }

  /** What the server refuses a person, their client says in its own words. */
  #asClient<T>(act: () => T): T {
    try {
      return act();
    } catch (error) {
      if (error instanceof ApiError)
        throw new ControlError(`Discord refuses: ${error.message} (${error.code})`);
      throw error;
    }
  }
}

function uploadsOf(
  fields: Fields,
): { index: string; filename: string; contentType: undefined; bytes: Buffer }[] {
  return recordsOf(fields['files']).map((file, index) => ({
    index: String(index),
    filename: stringOf(file['name']) ?? 'file',
    contentType: undefined,
    bytes: Buffer.from(stringOf(file['base64']) ?? '', 'base64'),
  }));
}

function findComponent(message: MessageRecord, fields: Fields): Json {
  const customId = optionalText(fields, 'customId');
  const label = optionalText(fields, 'label');
  const all = walk(message.components).filter(
    (component) => stringOf(component['custom_id']) !== undefined,
  );
  const found = all.find(
    (component) =>
      component['custom_id'] === customId || (label !== undefined && component['label'] === label),
  );
  if (found === undefined)
    throw new ControlError(
      `that message has no such component; it has ${all.map((component) => stringOf(component['label']) ?? String(component['custom_id'])).join(', ') || 'none'}`,
    );
  return found;
}

function filled(part: Json, values: Json, index: number): Json {
  const value = (input: Json): Json => ({
    type: input['type'],
    id: numberOf(input['id']) ?? index * 10 + 2,
    custom_id: input['custom_id'],
    ...(input['type'] === KIND.TEXT_INPUT
      ? { value: stringOf(values[String(input['custom_id'])]) ?? stringOf(input['value']) ?? '' }
      : { values: values[String(input['custom_id'])] ?? [] }),
  });
  const id = numberOf(part['id']) ?? index * 10 + 1;
  if (part['type'] === KIND.LABEL)
    return { type: part['type'], id, component: value(recordOf(part['component'])) };
  if (part['type'] === KIND.ROW)
    return { type: part['type'], id, components: recordsOf(part['components']).map(value) };
  return { type: part['type'], id };
}

/** The client does not send a modal whose fields break their own rules. */
function checkValues(modal: OpenModal, values: Json): void {
  for (const input of modalInputs(modal.form)) {
    const name = String(input['custom_id']);
    const text = stringOf(values[name]) ?? stringOf(input['value']) ?? '';
    const min = numberOf(input['min_length']) ?? (input['required'] === false ? 0 : 1);
    const max = numberOf(input['max_length']) ?? 4_000;
    if (
      input['type'] === KIND.TEXT_INPUT &&
      (text.length < min || text.length > max) &&
      !(text === '' && input['required'] === false)
    )
      throw new ControlError(`${name} must be ${min} to ${max} characters`);
  }
  const unknown = Object.keys(values).filter(
    (key) => !modalInputs(modal.form).some((input) => input['custom_id'] === key),
  );
  if (unknown.length > 0) throw new ControlError(`the modal has no ${unknown.join(', ')}`);
}

/** Options as the client sends them: typed by the command's own declaration. */
function commandOptions(
  declared: Json,
  path: readonly string[],
  given: Json,
  focused: string | undefined,
): readonly Json[] {
  const options = recordsOf(declared['options']);
  const [next, ...rest] = path;
  const nested = options.filter((option) => option['type'] === 1 || option['type'] === 2);
  if (nested.length > 0 || next !== undefined) {
    const chosen = nested.find((option) => option['name'] === next);
    if (chosen === undefined)
      throw new ControlError(
        `choose one of: ${nested.map((option) => String(option['name'])).join(', ')}`,
      );
    return [
      {
        name: chosen['name'],
        type: chosen['type'],
        options: commandOptions(chosen, rest, given, focused),
      },
    ];
  }
  refuseOptions(options, given, focused);
  return options.flatMap((option) => {
    const name = String(option['name']);
    const value = given[name];
    if (value === undefined) return [];
    return [{ name, type: option['type'], value, ...(focused === name ? { focused: true } : {}) }];
  });
}

function refuseOptions(options: readonly Json[], given: Json, focused: string | undefined): void {
  const unknown = Object.keys(given).filter(
    (key) => !options.some((option) => option['name'] === key),
  );
  if (unknown.length > 0) throw new ControlError(`the command has no option ${unknown.join(', ')}`);
  const missing = options.filter(
    (option) => option['required'] === true && given[String(option['name'])] === undefined,
  );
  if (missing.length > 0 && focused === undefined)
    throw new ControlError(
      `${missing.map((option) => String(option['name'])).join(', ')} must be given`,
    );
  for (const option of options) checkOption(option, given[String(option['name'])]);
}

function checkOption(option: Json, value: unknown): void {
  if (value === undefined) return;
  const name = String(option['name']);
  const wanted =
    option['type'] === 3
      ? 'string'
      : option['type'] === 5
        ? 'boolean'
        : option['type'] === 4 || option['type'] === 10
          ? 'number'
          : undefined;
  if (wanted !== undefined && typeof value !== wanted)
    throw new ControlError(`${name} must be a ${wanted}`);
  const choices = recordsOf(option['choices']);
  if (choices.length > 0 && !choices.some((choice) => choice['value'] === value))
    throw new ControlError(`${name} must be one of the choices`);
  const max = numberOf(option['max_length']);
  if (max !== undefined && typeof value === 'string' && value.length > max)
    throw new ControlError(`${name} is too long`);
}
