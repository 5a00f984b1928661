// The guild as tests and the page read it: what is stored, and what a person sees of it.

import { isoTime } from '../dates.ts';
import { displayText } from './components.ts';
import type { Guild } from './guild.ts';
import type { Interactions } from './interactions.ts';
import type { Json } from './json.ts';
import { CHANNEL, type ChannelRecord, FLAG, MESSAGE, type MessageRecord } from './records.ts';
import { compareIds } from './snowflake.ts';
import { blocksOf, shownText, type TextBlock } from './text.ts';
import { attachmentJson } from './wire.ts';

export interface ShownMessage {
  readonly id: string;
  readonly channel: string;
  readonly author: { readonly id: string; readonly name: string; readonly bot: boolean };
  readonly at: string;
  readonly atMs: number;
  /** As stored. */
  readonly content: string;
  /** As a person reads it: no markup, no colours. */
  readonly shown: string;
  readonly blocks: readonly TextBlock[];
  readonly edited: boolean;
  readonly edits: number;
  readonly type: number;
  readonly flags: number;
  readonly loading: boolean;
  readonly embeds: readonly Json[];
  readonly components: readonly Json[];
  readonly attachments: readonly Json[];
  readonly reactions: readonly { readonly emoji: string; readonly users: readonly string[] }[];
  readonly mentions: readonly string[];
  readonly replyTo: string | null;
  /** What it answers, or what its thread began with. */
  readonly quote: { readonly author: string; readonly shown: string } | null;
  /** Only this person sees it. */
  readonly onlyFor: string | null;
  readonly threadId: string | null;
}

export function shownMessage(guild: Guild, message: MessageRecord): ShownMessage {
  const author = guild.user(message.authorId);
  const v2 = (message.flags & FLAG.COMPONENTS_V2) !== 0;
  const names = (id: string): string | undefined =>
    guild.user(id)?.username ?? guild.roles.get(id)?.name ?? guild.channels.get(id)?.name;
  const text = v2 ? displayText(message.components) : message.content;
  return {
    id: message.id,
    channel: message.channelId,
    author: {
      id: message.authorId,
      name: author?.username ?? 'unknown',
      bot: author?.bot === true,
    },
    at: isoTime(message.createdMs),
    atMs: message.createdMs,
    content: message.content,
    shown: shownText(
      text,
      (id) => guild.user(id)?.username ?? guild.roles.get(id)?.name ?? guild.channels.get(id)?.name,
    ),
    blocks: blocksOf(text),
    edited: message.editedMs !== null,
    edits: message.earlier.length,
    type: message.type,
    flags: message.flags,
    loading: (message.flags & FLAG.LOADING) !== 0,
    embeds: message.embeds,
    components: message.components,
    attachments: message.attachments.map((entry) => attachmentJson(guild, entry)),
    reactions: [...message.reactions].map(([emoji, users]) => ({
      emoji,
      users: [...users].map((id) => guild.user(id)?.username ?? id),
    })),
    mentions: message.mentionIds.map((id) => guild.user(id)?.username ?? id),
    replyTo: message.referenceId ?? null,
    quote: quoteOf(guild, message, names),
    onlyFor:
      message.onlyFor === undefined
        ? null
        : (guild.user(message.onlyFor)?.username ?? message.onlyFor),
    threadId: (message.flags & FLAG.HAS_THREAD) === 0 ? null : message.id,
  };
}

function quoteOf(
  guild: Guild,
  message: MessageRecord,
  names: (id: string) => string | undefined,
): ShownMessage['quote'] {
  if (message.referenceId === undefined) return null;
  const channelId = message.referenceChannelId ?? message.channelId;
  const target = guild.findMessage(channelId, message.referenceId);
  if (target === undefined) return null;
  return {
    author: guild.user(target.authorId)?.username ?? target.authorId,
    shown: shownText(target.content, names),
  };
}

const SPOKEN: readonly number[] = [MESSAGE.DEFAULT, MESSAGE.REPLY, MESSAGE.CHAT_INPUT_COMMAND];

export interface Look {
  /** As this person sees it; everything without one. */
  readonly viewer: string | undefined;
  readonly limit: number;
  /** Also what Discord itself says (a thread was started). */
  readonly system: boolean;
}

/** The messages of a channel or thread, oldest first. */
export function shownMessages(
  guild: Guild,
  channel: ChannelRecord,
  look: Look,
): readonly ShownMessage[] {
  const isSeen = (message: MessageRecord): boolean =>
    (look.viewer === undefined ||
      message.onlyFor === undefined ||
      message.onlyFor === look.viewer) &&
    (look.system || SPOKEN.includes(message.type));
  return guild
    .messages(channel.id)
    .filter(isSeen)
    .slice(-look.limit)
    .map((message) => shownMessage(guild, message));
}

export function shownChannel(guild: Guild, channel: ChannelRecord): Json {
  const state = channel.thread;
  return {
    id: channel.id,
    name:
      channel.type === CHANNEL.DM
        ? (guild.user(channel.recipientId ?? '')?.username ?? '')
        : channel.name,
    type: channel.type,
    kind: kindOf(channel),
    parentId: channel.parentId ?? null,
    topic: channel.topic,
    lastMessageId: channel.lastMessageId,
    messageCount: channel.messageCount,
    ...(state === undefined
      ? {}
      : {
          archived: state.archived,
          locked: state.locked,
          owner: guild.user(state.ownerId)?.username ?? state.ownerId,
          members: [...state.members].map((id) => guild.user(id)?.username ?? id),
          autoArchiveMinutes: state.autoArchiveMinutes,
        }),
  };
}

function kindOf(channel: ChannelRecord): string {
  if (channel.thread !== undefined) return 'thread';
  if (channel.type === CHANNEL.DM) return 'dm';
  return channel.type === CHANNEL.FORUM ? 'forum' : 'text';
}

export function shownChannels(guild: Guild): readonly Json[] {
  return [...guild.channels.values()]
    .sort((a, b) => compareIds(a.id, b.id))
    .map((channel) => shownChannel(guild, channel));
}

export function shownPeople(guild: Guild): readonly Json[] {
  return [...guild.users.values()].map((user) => ({
    id: user.id,
    name: user.username,
    bot: user.bot,
    owner: user.id === guild.ownerId,
    roles: [...(guild.members.get(user.id)?.roleIds ?? [])].map(
      (id) => guild.roles.get(id)?.name ?? id,
    ),
  }));
}

/** Open modals and client notes. */
export function shownDialogs(guild: Guild, interactions: Interactions): Json {
  return {
    modals: [...interactions.modals.values()].map((modal) => ({
      id: modal.id,
      user: guild.user(modal.userId)?.username ?? modal.userId,
      channel: modal.channelId,
      form: modal.form,
    })),
    notes: interactions.notes.map((note) => ({
      user: guild.user(note.userId)?.username ?? note.userId,
      channel: note.channelId,
      text: note.text,
      atMs: note.atMs,
    })),
  };
}
