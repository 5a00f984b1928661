// Messages in channels and threads: post, edit, delete, react, by the bot and by people. Every
// effect on them passes here, so that events and the page's feed agree with what is stored.

import {
  ApiError,
  missingAccess,
  missingPermissions,
  notOwnMessage,
  unknownEmoji,
} from './errors.ts';
import type { Guild } from './guild.ts';
import { type Json, stringOf } from './json.ts';
import { type MessageDraft, readMessageForm, refuseEmpty } from './message-form.ts';
import {
  type AttachmentRecord,
  CHANNEL,
  type ChannelRecord,
  FLAG,
  INTENT,
  MESSAGE,
  type MessageRecord,
} from './records.ts';
import { pingsOf, previewedLink, textFaults } from './text.ts';
import type { Threads } from './threads.ts';
import { emojiJson, memberWithUserJson, messageJson } from './wire.ts';

/** "The past few minutes" of enforce_nonce; undocumented, so the shorter reading. */
const NONCE_WINDOW_MS = 180_000;
/** How long the platform takes to look at a link; undocumented. */
const PREVIEW_MS = 700;
const NONCES_MAX = 5_000;

export interface PostOptions {
  readonly authorId: string;
  readonly target: string;
  readonly type?: number;
  /** An ephemeral answer: who sees it. */
  readonly onlyFor?: string;
  readonly interaction?: MessageRecord['interaction'];
  readonly id?: string;
  /** Of a message that stands in another channel. */
  readonly reference?: { readonly id: string | undefined; readonly channelId: string };
}

export interface Posted {
  readonly message: MessageRecord;
  /** The nonce was known: this is the message of the first request. */
  readonly isRepeat: boolean;
}

export class Messages {
  readonly #guild: Guild;
  readonly #threads: Threads;
  readonly #nonces = new Map<string, { readonly id: string; readonly atMs: number }>();

  constructor(guild: Guild, threads: Threads) {
    this.#guild = guild;
    this.#threads = threads;
  }

  /**
   * Posts as a member with the rights they have.
   * @throws {ApiError}
   */
  post(channel: ChannelRecord, draft: MessageDraft, options: PostOptions): Posted {
    this.#refusePost(channel, draft, options.authorId);
    const repeat = this.#repeated(channel, draft, options.authorId);
    if (repeat !== undefined) return { message: repeat, isRepeat: true };
    this.#refuseEmptyDraft(draft);
    this.#threads.beforePost(channel, options.authorId);
    const message = this.add(channel, draft, options);
    this.#rememberNonce(channel, draft, message);
    return { message, isRepeat: false };
  }

  #refuseEmptyDraft(draft: MessageDraft): void {
    refuseEmpty({
      content: draft.content ?? '',
      embeds: draft.embeds?.length ?? 0,
      components: draft.components?.length ?? 0,
      attachments: draft.files.length,
    });
  }

  /** Stores and announces a message; rights and emptiness are the caller's matter. */
  add(channel: ChannelRecord, draft: MessageDraft, options: PostOptions): MessageRecord {
    const guild = this.#guild;
    const reply =
      draft.replyTo === undefined ? undefined : guild.findMessage(channel.id, draft.replyTo);
    const id = options.id ?? guild.mint.mint();
    const message: MessageRecord = {
      id,
      channelId: channel.id,
      type: options.type ?? (draft.replyTo === undefined ? MESSAGE.DEFAULT : MESSAGE.REPLY),
      authorId: options.authorId,
      createdMs: guild.core.clock.wallMs(),
      content: draft.content ?? '',
      editedMs: null,
      flags: (draft.flags ?? 0) | (options.onlyFor === undefined ? 0 : FLAG.EPHEMERAL),
      tts: draft.tts,
      mentionEveryone: false,
      mentionIds: [],
      mentionRoleIds: [],
      attachments: this.#attachments(channel, draft, options.onlyFor !== undefined),
      embeds: (draft.embeds ?? []).map((embed) => ({ type: 'rich', ...embed })),
      components: numbered(draft.components ?? []),
      reactions: new Map(),
      pinned: false,
      nonce: draft.nonce,
      referenceId: options.reference?.id ?? draft.replyTo,
      referenceChannelId: options.reference?.channelId,
      interaction: options.interaction,
      fromApplication: options.interaction !== undefined,
      onlyFor: options.onlyFor,
      earlier: [],
    };
    this.#mention(message, draft, reply?.authorId, options.target);
    guild.addMessage(message);
    if (options.onlyFor === undefined) {
      channel.lastMessageId = id;
      channel.messageCount += 1;
      this.#threads.touched(channel, options.authorId);
    }
    this.#announce('MESSAGE_CREATE', message);
    this.#previewLater(message);
    return message;
  }

  /** A link's preview comes after its message, as an update that is no edit. */
  #previewLater(message: MessageRecord): void {
    const guild = this.#guild;
    const { content } = message;
    const url = previewedLink(content);
    const suppressed = (message.flags & FLAG.SUPPRESS_EMBEDS) !== 0;
    const channel = guild.channels.get(message.channelId);
    if (url === undefined || suppressed || !guild.may(message.authorId, 'EMBED_LINKS', channel))
      return;
    const timer = guild.core.clock.timer(PREVIEW_MS, () => {
      // Gone, or edited since: the edit asked for its own preview.
      if (guild.findMessage(message.channelId, message.id)?.content !== content) return;
      this.preview(message, url);
    });
    timer.unref();
  }

  preview(message: MessageRecord, url: string): void {
    const others = message.embeds.filter((embed) => embed['type'] !== 'link');
    const card = { type: 'link', url, title: 'Example', description: 'A page' };
    message.embeds = [...others, card];
    this.#announce('MESSAGE_UPDATE', message);
  }

  /**
   * A thread from a message, whose first message (type 21) only points to that one.
   * @throws {ApiError}
   */
  startThread(
    parent: ChannelRecord,
    message: MessageRecord,
    form: Json,
    userId: string,
  ): ChannelRecord {
    const thread = this.#threads.fromMessage(parent, message, form, userId);
    this.announceUpdate(message);
    this.#addSystem(thread, MESSAGE.THREAD_STARTER, message.authorId, {
      content: '',
      reference: { id: message.id, channelId: parent.id },
    });
    return thread;
  }

  /**
   * A thread of its own; a public one leaves a message (type 18) in its parent.
   * @throws {ApiError}
   */
  startLoneThread(parent: ChannelRecord, form: Json, userId: string): ChannelRecord {
    const thread = this.#threads.alone(parent, form, userId);
    if (thread.type === CHANNEL.PUBLIC_THREAD)
      this.#addSystem(parent, MESSAGE.THREAD_CREATED, userId, {
        content: thread.name,
        reference: { id: undefined, channelId: thread.id },
      });
    return thread;
  }

  #addSystem(
    channel: ChannelRecord,
    type: number,
    authorId: string,
    said: {
      readonly content: string;
      readonly reference: { readonly id: string | undefined; readonly channelId: string };
    },
  ): void {
    const draft = readMessageForm({ content: said.content, allowed_mentions: {} }, [], {
      action: 'create',
    });
    const target = 'system message';
    this.add(channel, draft, { authorId, target, type, reference: said.reference });
  }

  #announce(name: 'MESSAGE_CREATE' | 'MESSAGE_UPDATE', message: MessageRecord): void {
    const guild = this.#guild;
    const channel = guild.channels.get(message.channelId);
    const direct = channel?.type === CHANNEL.DM || message.onlyFor !== undefined;
    guild.dispatch({
      name,
      intents: direct ? INTENT.DIRECT_MESSAGES : INTENT.GUILD_MESSAGES,
      ...(direct ? {} : { channelId: message.channelId }),
      data: (view) => ({
        ...messageJson(guild, message, {
          messageContent: view.messageContent,
          event: true,
          withNonce: name === 'MESSAGE_CREATE',
        }),
        channel_type: channel?.type ?? CHANNEL.TEXT,
      }),
    });
    guild.changed(name === 'MESSAGE_CREATE' ? 'message' : 'message-updated', {
      channel: message.channelId,
      id: message.id,
    });
  }

  /** Announces a change that is no edit: an embed that resolved, a thread begun. */
  announceUpdate(message: MessageRecord): void {
    this.#announce('MESSAGE_UPDATE', message);
  }

  #refusePost(channel: ChannelRecord, draft: MessageDraft, authorId: string): void {
    const guild = this.#guild;
    if (!guild.may(authorId, 'VIEW_CHANNEL', channel)) throw missingAccess();
    if (channel.type === CHANNEL.FORUM)
      throw new ApiError(400, 50008, 'Cannot send messages in a non-text channel');
    const right = channel.thread === undefined ? 'SEND_MESSAGES' : 'SEND_MESSAGES_IN_THREADS';
    if (!guild.may(authorId, right, channel)) throw missingPermissions();
    if (draft.files.length > 0 && !guild.may(authorId, 'ATTACH_FILES', channel))
      throw missingPermissions();
    if (draft.replyTo === undefined) return;
    if (!guild.may(authorId, 'READ_MESSAGE_HISTORY', channel))
      throw new ApiError(
        400,
        160002,
        'You cannot reply without permission to read message history',
      );
    if (draft.replyMustExist && guild.findMessage(channel.id, draft.replyTo) === undefined)
      throw new ApiError(400, 50035, 'Invalid Form Body', {
        message_reference: {
          _errors: [{ code: 'REPLIES_UNKNOWN_MESSAGE', message: 'Unknown message' }],
        },
      });
  }

  #nonceKey(channelId: string, authorId: string, nonce: string | number): string {
    return `${authorId} ${channelId} ${String(nonce)}`;
  }

  #repeated(
    channel: ChannelRecord,
    draft: MessageDraft,
    authorId: string,
  ): MessageRecord | undefined {
    if (!draft.enforceNonce || draft.nonce === undefined) return undefined;
    const known = this.#nonces.get(this.#nonceKey(channel.id, authorId, draft.nonce));
    if (known === undefined || this.#guild.core.clock.wallMs() - known.atMs > NONCE_WINDOW_MS)
      return undefined;
    return this.#guild.findMessage(channel.id, known.id);
  }

  #rememberNonce(channel: ChannelRecord, draft: MessageDraft, message: MessageRecord): void {
    if (draft.nonce === undefined) return;
    const key = this.#nonceKey(channel.id, message.authorId, draft.nonce);
    this.#nonces.delete(key);
    this.#nonces.set(key, { id: message.id, atMs: message.createdMs });
    if (this.#nonces.size > NONCES_MAX) {
      const oldest = this.#nonces.keys().next();
      if (oldest.done !== true) this.#nonces.delete(oldest.value);
    }
  }

  #attachments(
    channel: ChannelRecord,
    draft: MessageDraft,
    ephemeral: boolean,
  ): readonly AttachmentRecord[] {
    return draft.files.map((file) => {
      const described = draft.attachments?.find((entry) => String(entry['id']) === file.index);
      const attachment = {
        id: this.#guild.mint.mint(),
        filename: cleanFilename(stringOf(described?.['filename']) ?? file.filename),
        contentType: mediaType(file.filename, file.contentType),
        bytes: file.bytes,
        size: file.bytes.length,
        dimensions: imageSize(file.bytes),
        description: stringOf(described?.['description']),
        channelId: channel.id,
        ephemeral,
      };
      this.#guild.keepFile(attachment);
      return attachment;
    });
  }

  #mention(
    message: MessageRecord,
    draft: MessageDraft,
    repliedTo: string | undefined,
    target: string,
  ): void {
    const guild = this.#guild;
    const channel = guild.channels.get(message.channelId);
    const pings = pingsOf(message.content, draft.allowedMentions);
    const mayEveryone = guild.may(message.authorId, 'MENTION_EVERYONE', channel);
    const replied = repliedTo !== undefined && draft.allowedMentions.repliedUser ? [repliedTo] : [];
    message.mentionEveryone = pings.everyone && mayEveryone;
    message.mentionIds = [
      ...new Set([...pings.users.filter((id) => guild.users.has(id)), ...replied]),
    ];
    message.mentionRoleIds = pings.roles.filter((id) => guild.roles.has(id));
    if (message.authorId === guild.botId) this.#judge(message, draft, target);
  }

  /** What Discord accepts from a bot and people suffer from. */
  #judge(message: MessageRecord, draft: MessageDraft, target: string): void {
    const guild = this.#guild;
    const parsed = draft.allowedMentions;
    const pinged = pingsOf(message.content, parsed);
    if (pinged.everyone)
      guild.violation('mention', 'warned', target, 'the text says @everyone or @here and may ping');
    if (parsed.users === 'all' && message.mentionIds.length > 0)
      guild.violation(
        'mention',
        'warned',
        target,
        `pings ${message.mentionIds.length} people found in the text`,
      );
    if (parsed.roles === 'all' && pinged.roles.length > 0)
      guild.violation('mention', 'warned', target, 'pings roles found in the text');
    const raw = draft.rawContent;
    if (raw !== undefined && raw !== message.content)
      guild.violation(
        'content-changed',
        'mangled',
        target,
        `${raw.length} characters sent, ${message.content.length} stored`,
      );
    for (const fault of textFaults(message.content))
      guild.violation(fault.rule, 'mangled', target, fault.detail);
  }

  /**
   * Edits the bot's own message.
   * @throws {ApiError}
   */
  edit(
    channel: ChannelRecord,
    message: MessageRecord,
    draft: MessageDraft,
    options: { readonly userId: string; readonly target: string },
  ): MessageRecord {
    const guild = this.#guild;
    if (!guild.may(options.userId, 'VIEW_CHANNEL', channel)) throw missingAccess();
    if (message.authorId !== options.userId) throw notOwnMessage();
    this.#threads.refuseArchived(channel);
    this.#threads.refuseLocked(channel, options.userId);
    return this.applyEdit(channel, message, draft, options.target);
  }

  /** Applies a checked edit; rights are the caller's matter. @throws {ApiError} 50006, 30015. */
  applyEdit(
    channel: ChannelRecord,
    message: MessageRecord,
    draft: MessageDraft,
    target: string,
  ): MessageRecord {
    const attachments = this.#editedAttachments(channel, message, draft);
    const next = {
      content: draft.content ?? message.content,
      embeds: draft.embeds ?? message.embeds,
      components: draft.components === undefined ? message.components : numbered(draft.components),
    };
    refuseEmpty({
      content: next.content,
      embeds: next.embeds.length,
      components: next.components.length,
      attachments: attachments.length,
    });
    if (next.content !== message.content) remember(message);
    Object.assign(message, next, { attachments });
    if (draft.flags !== undefined) {
      const settable = FLAG.SUPPRESS_EMBEDS | FLAG.COMPONENTS_V2;
      // V2 can be switched on, never off.
      const kept = message.flags & ~(settable & ~FLAG.COMPONENTS_V2);
      message.flags = kept | (draft.flags & settable);
    }
    message.editedMs = this.#guild.core.clock.wallMs();
    if (draft.content !== undefined) this.#mention(message, draft, undefined, target);
    this.#announce('MESSAGE_UPDATE', message);
    this.#previewLater(message);
    return message;
  }

  #editedAttachments(
    channel: ChannelRecord,
    message: MessageRecord,
    draft: MessageDraft,
  ): readonly AttachmentRecord[] {
    const kept =
      draft.attachments === undefined
        ? message.attachments
        : message.attachments.filter((old) =>
            draft.attachments?.some((entry) => String(entry['id']) === old.id),
          );
    const all = [...kept, ...this.#attachments(channel, draft, message.onlyFor !== undefined)];
    if (all.length > 10)
      throw new ApiError(400, 30015, 'Maximum number of attachments in a message reached (10)');
    return all;
  }

  /** A person edits their own message. */
  editByPerson(message: MessageRecord, content: string): void {
    remember(message);
    message.content = content;
    message.editedMs = this.#guild.core.clock.wallMs();
    const pings = pingsOf(content, {
      everyone: true,
      users: 'all',
      roles: 'all',
      repliedUser: false,
    });
    message.mentionIds = pings.users.filter((id) => this.#guild.users.has(id));
    message.embeds = message.embeds.filter((embed) => embed['type'] !== 'link');
    this.#announce('MESSAGE_UPDATE', message);
    this.#previewLater(message);
  }

  /** @throws {ApiError} 50001, 50013. */
  remove(channel: ChannelRecord, message: MessageRecord, userId: string): void {
    const guild = this.#guild;
    if (!guild.may(userId, 'VIEW_CHANNEL', channel)) throw missingAccess();
    if (message.authorId !== userId && !guild.may(userId, 'MANAGE_MESSAGES', channel))
      throw missingPermissions();
    this.erase(message);
  }

  erase(message: MessageRecord): void {
    const guild = this.#guild;
    guild.removeMessage(message.channelId, message.id);
    const direct = message.onlyFor !== undefined;
    guild.dispatch({
      name: 'MESSAGE_DELETE',
      intents: direct ? INTENT.DIRECT_MESSAGES : INTENT.GUILD_MESSAGES,
      ...(direct ? {} : { channelId: message.channelId }),
      data: () => ({
        id: message.id,
        channel_id: message.channelId,
        ...(direct ? {} : { guild_id: guild.id }),
      }),
    });
    guild.changed('message-deleted', { channel: message.channelId, id: message.id });
  }

  /** @throws {ApiError} 10014, 30010, 50013, 50083. */
  react(channel: ChannelRecord, message: MessageRecord, emoji: string, userId: string): void {
    const guild = this.#guild;
    if (!guild.may(userId, 'READ_MESSAGE_HISTORY', channel)) throw missingAccess();
    if (!isKnownEmoji(emoji)) throw unknownEmoji();
    this.#threads.refuseArchived(channel);
    const users = message.reactions.get(emoji);
    if (users === undefined) {
      if (!guild.may(userId, 'ADD_REACTIONS', channel)) throw missingPermissions();
      if (message.reactions.size >= 20)
        throw new ApiError(400, 30010, 'Maximum number of reactions reached (20)');
    }
    if (users?.has(userId) === true) return;
    message.reactions.set(emoji, new Set([...(users ?? []), userId]));
    this.#reacted('MESSAGE_REACTION_ADD', message, emoji, userId);
  }

  unreact(message: MessageRecord, emoji: string, userId: string): void {
    const users = message.reactions.get(emoji);
    if (users?.delete(userId) !== true) return;
    if (users.size === 0) message.reactions.delete(emoji);
    this.#reacted('MESSAGE_REACTION_REMOVE', message, emoji, userId);
  }

  #reacted(name: string, message: MessageRecord, emoji: string, userId: string): void {
    const guild = this.#guild;
    guild.dispatch({
      name,
      intents: INTENT.GUILD_MESSAGE_REACTIONS,
      channelId: message.channelId,
      data: (): Json => ({
        user_id: userId,
        channel_id: message.channelId,
        message_id: message.id,
        guild_id: guild.id,
        emoji: emojiJson(emoji),
        burst: false,
        type: 0,
        ...(name === 'MESSAGE_REACTION_ADD'
          ? { member: memberWithUserJson(guild, userId), message_author_id: message.authorId }
          : {}),
      }),
    });
    guild.changed('message-updated', { channel: message.channelId, id: message.id });
  }
}

function remember(message: MessageRecord): void {
  message.earlier.push(message.content);
  // The page shows that there were earlier versions; a live screen has thousands.
  if (message.earlier.length > 20) message.earlier.shift();
}

/** Components get ids in order when the client gave none. */
function numbered(components: readonly Json[]): readonly Json[] {
  let next = 1;
  const number = (component: Json): Json => {
    const id = component['id'] ?? next;
    next += 1;
    const children = component['components'];
    const accessory = component['accessory'];
    return {
      ...component,
      id,
      ...(Array.isArray(children)
        ? { components: children.map((child) => number(child as Json)) }
        : {}),
      ...(typeof accessory === 'object' && accessory !== null
        ? { accessory: number(accessory as Json) }
        : {}),
    };
  };
  return components.map(number);
}

function isKnownEmoji(emoji: string): boolean {
  return /^[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Regional_Indicator}\p{Emoji_Component}]+$/u.test(
    emoji,
  );
}

/** Discord keeps letters, digits, `_`, `-`, `.`; the rest becomes `_`. */
function cleanFilename(name: string): string {
  const base = name.split(/[/\\]/).at(-1) ?? name;
  const cleaned = base.replaceAll(/[^\p{L}\p{N}_.-]+/gu, '_');
  return cleaned === '' ? 'unknown' : cleaned;
}

/** Width and height of a PNG, as the platform measures them for its previews. */
function imageSize(
  bytes: Uint8Array,
): { readonly width: number; readonly height: number } | undefined {
  if (bytes.length < 24 || bytes[0] !== 0x89 || bytes[1] !== 0x50) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  txt: 'text/plain; charset=utf-8',
  log: 'text/plain; charset=utf-8',
  json: 'application/json; charset=utf-8',
};

function mediaType(filename: string, sent: string | undefined): string | undefined {
  return MEDIA_TYPES[filename.split('.').at(-1)?.toLowerCase() ?? ''] ?? sent;
}
