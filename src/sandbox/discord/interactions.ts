// Interactions: a command, click or modal by a person, and the one answer a bot owes within 3
// seconds. Tokens live 15 minutes; what each answer type may do is checked here.

import type { Timer } from '../../base/clock.ts';
import { checkModal } from './components.ts';
import {
  ApiError,
  alreadyAcknowledged,
  FormErrors,
  unknownInteraction,
  unknownMessage,
  unknownWebhook,
} from './errors.ts';
import type { Guild } from './guild.ts';
import { type Json, numberOf, recordOf, recordsOf } from './json.ts';
import { readMessageForm, refuseEmpty, type UploadedFile } from './message-form.ts';
import type { Messages } from './messages.ts';
import { type ChannelRecord, FLAG, MESSAGE, type MessageRecord } from './records.ts';
import { channelJson, memberWithUserJson, messageJson } from './wire.ts';

const ANSWER_WINDOW_MS = 3_000;
const TOKEN_LIFE_MS = 900_000;
const KEPT_MAX = 1_000;

export const INTERACTION = { COMMAND: 2, COMPONENT: 3, AUTOCOMPLETE: 4, MODAL: 5 } as const;

export const CALLBACK = {
  MESSAGE: 4,
  DEFER: 5,
  DEFER_UPDATE: 6,
  UPDATE: 7,
  AUTOCOMPLETE: 8,
  MODAL: 9,
} as const;

export interface InteractionRecord {
  readonly id: string;
  readonly token: string;
  readonly type: number;
  readonly userId: string;
  readonly channelId: string;
  readonly createdMs: number;
  /** The message a component sits on, or a modal came from. */
  readonly messageId: string | undefined;
  readonly commandName: string | undefined;
  /** Callback type of the answer. */
  answer: number | undefined;
  ephemeral: boolean;
  /** The message `@original` names. */
  originalId: string | undefined;
  /** A deferred answer still shows "thinking". */
  isLoading: boolean;
  choices: readonly Json[];
  expired: boolean;
}

export interface OpenModal {
  readonly id: string;
  readonly userId: string;
  readonly channelId: string;
  readonly messageId: string | undefined;
  readonly form: Json;
}

export class Interactions {
  readonly #guild: Guild;
  readonly #messages: Messages;
  readonly #byId = new Map<string, InteractionRecord>();
  readonly #byToken = new Map<string, InteractionRecord>();
  readonly #timers = new Set<Timer>();
  readonly modals = new Map<string, OpenModal>();
  /** What a person's client says about an interaction that failed. */
  readonly notes: {
    readonly userId: string;
    readonly channelId: string;
    readonly text: string;
    readonly atMs: number;
  }[] = [];
  /** Who hears events now. An interaction nobody heard to its end is no fault of a bot. */
  listeners: () => ReadonlySet<string> = () => new Set();

  constructor(guild: Guild, messages: Messages) {
    this.#guild = guild;
    this.#messages = messages;
  }

  find(id: string): InteractionRecord | undefined {
    return this.#byId.get(id);
  }

  /** A person acts: mints id and token, dispatches INTERACTION_CREATE, starts the 3 s window. */
  create(act: {
    readonly type: number;
    readonly userId: string;
    readonly channel: ChannelRecord;
    readonly data: Json;
    readonly message?: MessageRecord | undefined;
    readonly commandName?: string;
  }): InteractionRecord {
    const guild = this.#guild;
    const id = guild.mint.mint();
    const secret = Buffer.from(guild.core.random.bytes(48)).toString('base64url');
    const record: InteractionRecord = {
      id,
      token: `aW50ZXJhY3Rpb246${Buffer.from(id).toString('base64url')}${secret}`,
      type: act.type,
      userId: act.userId,
      channelId: act.channel.id,
      createdMs: guild.core.clock.wallMs(),
      messageId: act.message?.id,
      commandName: act.commandName,
      answer: undefined,
      ephemeral: false,
      originalId: undefined,
      isLoading: false,
      choices: [],
      expired: false,
    };
    this.#keep(record);
    guild.dispatch({
      name: 'INTERACTION_CREATE',
      intents: 0,
      data: () => this.#eventJson(record, act.channel, act.data, act.message),
    });
    this.#startWindow(record);
    return record;
  }

  #keep(record: InteractionRecord): void {
    this.#byId.set(record.id, record);
    this.#byToken.set(record.token, record);
    if (this.#byId.size <= KEPT_MAX) return;
    const oldest = this.#byId.values().next();
    if (oldest.done === true) return;
    this.#byId.delete(oldest.value.id);
    this.#byToken.delete(oldest.value.token);
  }

  #startWindow(record: InteractionRecord): void {
    const guild = this.#guild;
    const heardBy = this.listeners();
    const timer = guild.core.clock.timer(ANSWER_WINDOW_MS, () => {
      this.#timers.delete(timer);
      if (record.answer !== undefined) return;
      record.expired = true;
      if (record.type !== INTERACTION.AUTOCOMPLETE)
        this.note(record.userId, record.channelId, 'The application did not respond');
      const stillThere = [...this.listeners()].some((session) => heardBy.has(session));
      if (stillThere)
        guild.violation(
          'interaction-unanswered',
          'refused',
          'INTERACTION_CREATE',
          `type ${record.type} got no answer within 3 s`,
        );
    });
    timer.unref();
    this.#timers.add(timer);
  }

  /** A line only this person's client shows. */
  note(userId: string, channelId: string, text: string): void {
    this.notes.push({ userId, channelId, text, atMs: this.#guild.core.clock.wallMs() });
    if (this.notes.length > 500) this.notes.shift();
    this.#guild.changed('note', { user: userId, channel: channelId });
  }

  #eventJson(
    record: InteractionRecord,
    channel: ChannelRecord,
    data: Json,
    message: MessageRecord | undefined,
  ): Json {
    const guild = this.#guild;
    return {
      id: record.id,
      application_id: guild.botId,
      type: record.type,
      token: record.token,
      version: 1,
      guild_id: guild.id,
      guild: { id: guild.id, locale: 'en-US', features: [] },
      guild_locale: 'en-US',
      locale: 'en-US',
      channel_id: channel.id,
      channel: {
        ...channelJson(guild, channel),
        permissions: guild.permissions(record.userId, channel).toString(),
      },
      member: {
        ...memberWithUserJson(guild, record.userId),
        permissions: guild.permissions(record.userId, channel).toString(),
      },
      app_permissions: guild.permissions(guild.botId, channel).toString(),
      entitlements: [],
      authorizing_integration_owners: { 0: guild.id },
      context: 0,
      attachment_size_limit: 10_485_760,
      data,
      ...(message === undefined
        ? {}
        : { message: messageJson(guild, message, { messageContent: true }) }),
    };
  }

  /**
   * POST /interactions/{id}/{token}/callback.
   * @throws {ApiError} 10062, 40060, 50035, …
   */
  callback(
    id: string,
    token: string,
    body: Json,
    files: readonly UploadedFile[],
  ): { readonly record: InteractionRecord; readonly message: MessageRecord | undefined } {
    const record = this.#byId.get(id);
    if (record === undefined || record.token !== token) throw unknownInteraction();
    if (record.answer !== undefined) throw alreadyAcknowledged();
    if (record.expired || this.#guild.core.clock.wallMs() - record.createdMs > ANSWER_WINDOW_MS) {
      record.expired = true;
      throw unknownInteraction();
    }
    const type = numberOf(body['type']);
    refuseAnswerType(record, type);
    const message = this.#answer(record, type ?? 0, recordOf(body['data']), files);
    record.answer = type;
    this.#guild.changed('interaction', { id: record.id, user: record.userId });
    return { record, message };
  }

  #answer(
    record: InteractionRecord,
    type: number,
    data: Json,
    files: readonly UploadedFile[],
  ): MessageRecord | undefined {
    switch (type) {
      case CALLBACK.MESSAGE:
        return this.#firstMessage(record, data, files);
      case CALLBACK.DEFER:
        return this.#defer(record, data);
      case CALLBACK.DEFER_UPDATE:
        record.originalId = record.messageId;
        return undefined;
      case CALLBACK.UPDATE:
        return this.#updateSource(record, data, files);
      case CALLBACK.MODAL:
        this.#openModal(record, data);
        return undefined;
      default:
        record.choices = recordsOf(data['choices']).slice(0, 25);
        return undefined;
    }
  }

  #firstMessage(
    record: InteractionRecord,
    data: Json,
    files: readonly UploadedFile[],
  ): MessageRecord {
    const message = this.#post(record, data, files, 'POST /interactions/:id/:token/callback');
    record.ephemeral = message.onlyFor !== undefined;
    record.originalId = message.id;
    return message;
  }

  #post(
    record: InteractionRecord,
    data: Json,
    files: readonly UploadedFile[],
    target: string,
  ): MessageRecord {
    const draft = readMessageForm(data, files, { action: 'answer' });
    refuseEmpty({
      content: draft.content ?? '',
      embeds: draft.embeds?.length ?? 0,
      components: draft.components?.length ?? 0,
      attachments: draft.files.length,
    });
    const ephemeral = ((draft.flags ?? 0) & FLAG.EPHEMERAL) !== 0;
    return this.#add(record, draft, ephemeral, target);
  }

  #add(
    record: InteractionRecord,
    draft: ReturnType<typeof readMessageForm>,
    ephemeral: boolean,
    target: string,
  ): MessageRecord {
    const { id, type, userId, commandName } = record;
    return this.#messages.add(this.#guild.channel(record.channelId), draft, {
      authorId: this.#guild.botId,
      target,
      type: type === INTERACTION.COMMAND ? MESSAGE.CHAT_INPUT_COMMAND : MESSAGE.DEFAULT,
      interaction: {
        id,
        type,
        userId,
        ...(commandName === undefined ? {} : { name: commandName }),
      },
      ...(ephemeral ? { onlyFor: userId } : {}),
    });
  }

  #defer(record: InteractionRecord, data: Json): MessageRecord {
    const flags = numberOf(data['flags']) ?? 0;
    const ephemeral = (flags & FLAG.EPHEMERAL) !== 0;
    const draft = readMessageForm({}, [], { action: 'answer' });
    const message = this.#add(
      record,
      { ...draft, flags: FLAG.LOADING },
      ephemeral,
      'POST /interactions/:id/:token/callback',
    );
    record.ephemeral = ephemeral;
    record.originalId = message.id;
    record.isLoading = true;
    return message;
  }

  #updateSource(
    record: InteractionRecord,
    data: Json,
    files: readonly UploadedFile[],
  ): MessageRecord {
    const source = this.#source(record);
    record.originalId = source.id;
    return this.#edit(source, data, files, 'POST /interactions/:id/:token/callback');
  }

  #source(record: InteractionRecord): MessageRecord {
    return this.#guild.message(record.channelId, record.messageId ?? '');
  }

  #edit(
    message: MessageRecord,
    data: Json,
    files: readonly UploadedFile[],
    target: string,
  ): MessageRecord {
    const draft = readMessageForm(data, files, { action: 'edit', currentFlags: message.flags });
    const channel = this.#guild.channel(message.channelId);
    return this.#messages.applyEdit(channel, message, draft, target);
  }

  #openModal(record: InteractionRecord, data: Json): void {
    const errors = new FormErrors();
    checkModal(data, errors);
    errors.throwIfAny();
    this.modals.set(record.id, {
      id: record.id,
      userId: record.userId,
      channelId: record.channelId,
      messageId: record.messageId,
      form: data,
    });
    this.#guild.changed('modal', { id: record.id, user: record.userId });
  }

  /** POST /webhooks/{app}/{token}. The first one after a type 5 answer becomes that answer. */
  followUp(token: string, body: Json, files: readonly UploadedFile[]): MessageRecord {
    const record = this.byToken(token);
    const original = this.#loading(record);
    if (original !== undefined)
      return this.#finish(record, original, body, files, 'POST /webhooks/:id/:token');
    return this.#post(record, body, files, 'POST /webhooks/:id/:token');
  }

  #loading(record: InteractionRecord): MessageRecord | undefined {
    if (!record.isLoading || record.originalId === undefined) return undefined;
    return this.#guild.findMessage(record.channelId, record.originalId);
  }

  #finish(
    record: InteractionRecord,
    message: MessageRecord,
    body: Json,
    files: readonly UploadedFile[],
    target: string,
  ): MessageRecord {
    const edited = this.#edit(message, body, files, target);
    record.isLoading = false;
    edited.flags &= ~FLAG.LOADING;
    edited.editedMs = null;
    this.#messages.announceUpdate(edited);
    return edited;
  }

  /** PATCH /webhooks/{app}/{token}/messages/{id or @original}. */
  editMessage(
    token: string,
    id: string,
    body: Json,
    files: readonly UploadedFile[],
  ): MessageRecord {
    const record = this.byToken(token);
    const message = this.messageOf(record, id);
    const target = 'PATCH /webhooks/:id/:token/messages/:id';
    return record.isLoading && message.id === record.originalId
      ? this.#finish(record, message, body, files, target)
      : this.#edit(message, body, files, target);
  }

  /** The record of a live token. @throws {ApiError} 10015 before an answer, 50027 after 15 minutes. */
  byToken(token: string): InteractionRecord {
    const record = this.#byToken.get(token);
    if (record === undefined || record.answer === undefined) throw unknownWebhook();
    if (this.#guild.core.clock.wallMs() - record.createdMs > TOKEN_LIFE_MS)
      throw new ApiError(401, 50027, 'Invalid Webhook Token');
    return record;
  }

  /** @throws {ApiError} 10008 unless the interaction made the message or sits on it. */
  messageOf(record: InteractionRecord, id: string): MessageRecord {
    const wanted = id === '@original' ? record.originalId : id;
    const message =
      wanted === undefined ? undefined : this.#guild.findMessage(record.channelId, wanted);
    if (message === undefined) throw unknownMessage();
    const own = message.interaction?.id === record.id || message.id === record.originalId;
    if (!own) throw unknownMessage();
    return message;
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}

/** @throws {ApiError} 50035 for an answer type this interaction may not get. */
function refuseAnswerType(record: InteractionRecord, type: number | undefined): void {
  const onMessage =
    record.type === INTERACTION.COMPONENT ||
    (record.type === INTERACTION.MODAL && record.messageId !== undefined);
  const allowed: readonly number[] =
    record.type === INTERACTION.AUTOCOMPLETE
      ? [CALLBACK.AUTOCOMPLETE]
      : [
          CALLBACK.MESSAGE,
          CALLBACK.DEFER,
          ...(onMessage ? [CALLBACK.DEFER_UPDATE, CALLBACK.UPDATE] : []),
          ...(record.type === INTERACTION.MODAL ? [] : [CALLBACK.MODAL]),
        ];
  if (type !== undefined && allowed.includes(type)) return;
  const errors = new FormErrors();
  errors.choices('type', type);
  errors.throwIfAny();
}
