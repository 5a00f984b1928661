// Records as Discord's JSON. What a reader may not see (a nonce read back, content without the
// intent) is left out here and nowhere else.

import { isoTime } from '../dates.ts';
import { signedUrl } from './cdn.ts';
import type { Guild } from './guild.ts';
import type { Json } from './json.ts';
import {
  type AttachmentRecord,
  CHANNEL,
  type ChannelRecord,
  FLAG,
  type MessageRecord,
  type RoleRecord,
  type UserRecord,
} from './records.ts';

export interface MessageView {
  /** The reader gets content of other people's messages. */
  readonly messageContent: boolean;
  /** As an event: with guild, member and nonce. */
  readonly event?: boolean;
  /** The create reply carries the nonce; a read does not. */
  readonly withNonce?: boolean;
}

export function userJson(user: UserRecord): Json {
  return {
    id: user.id,
    username: user.username,
    discriminator: '0',
    global_name: user.globalName,
    avatar: null,
    bot: user.bot,
    public_flags: 0,
    flags: 0,
  };
}

export function memberJson(guild: Guild, userId: string): Json {
  const member = guild.member(userId);
  return {
    roles: [...member.roleIds],
    joined_at: isoTime(member.joinedMs),
    nick: null,
    avatar: null,
    premium_since: null,
    deaf: false,
    mute: false,
    pending: false,
    flags: 0,
    communication_disabled_until: null,
  };
}

export function memberWithUserJson(guild: Guild, userId: string): Json {
  const user = guild.user(userId);
  return { ...memberJson(guild, userId), user: user === undefined ? null : userJson(user) };
}

export function roleJson(role: RoleRecord): Json {
  return {
    id: role.id,
    name: role.name,
    permissions: role.permissions.toString(),
    position: role.position,
    color: 0,
    colors: { primary_color: 0, secondary_color: null, tertiary_color: null },
    hoist: false,
    managed: role.name === 'chatd',
    mentionable: false,
    icon: null,
    unicode_emoji: null,
    flags: 0,
  };
}

export function channelJson(guild: Guild, channel: ChannelRecord): Json {
  if (channel.type === CHANNEL.DM) {
    const person = guild.user(channel.recipientId ?? '');
    return {
      id: channel.id,
      type: channel.type,
      last_message_id: channel.lastMessageId,
      flags: 0,
      recipients: person === undefined ? [] : [userJson(person)],
    };
  }
  if (channel.thread !== undefined) return threadJson(guild, channel);
  return {
    id: channel.id,
    type: channel.type,
    guild_id: channel.guildId,
    name: channel.name,
    topic: channel.topic,
    position: channel.position,
    parent_id: channel.parentId ?? null,
    nsfw: false,
    flags: channel.requiresTag ? 1 << 4 : 0,
    rate_limit_per_user: channel.slowmodeSecs,
    last_message_id: channel.lastMessageId,
    ...(channel.type === CHANNEL.FORUM
      ? {
          available_tags: channel.tags.map((tag) => ({
            ...tag,
            moderated: false,
            emoji_id: null,
            emoji_name: null,
          })),
        }
      : {}),
    permission_overwrites: channel.overwrites.map((entry) => ({
      id: entry.id,
      type: entry.type,
      allow: entry.allow.toString(),
      deny: entry.deny.toString(),
    })),
  };
}

function threadJson(guild: Guild, channel: ChannelRecord): Json {
  const thread = channel.thread;
  if (thread === undefined) return {};
  return {
    id: channel.id,
    type: channel.type,
    guild_id: channel.guildId,
    name: channel.name,
    parent_id: channel.parentId,
    owner_id: thread.ownerId,
    last_message_id: channel.lastMessageId,
    message_count: channel.messageCount,
    total_message_sent: channel.messageCount,
    member_count: Math.min(50, thread.members.size),
    rate_limit_per_user: channel.slowmodeSecs,
    flags: 0,
    ...(thread.appliedTags.length > 0 ? { applied_tags: thread.appliedTags } : {}),
    thread_metadata: {
      archived: thread.archived,
      auto_archive_duration: thread.autoArchiveMinutes,
      archive_timestamp: isoTime(thread.archiveChangedMs),
      locked: thread.locked,
      create_timestamp: isoTime(thread.createdMs),
      ...(channel.type === CHANNEL.PRIVATE_THREAD ? { invitable: true } : {}),
    },
    ...(thread.members.has(guild.botId) ? { member: threadMemberJson(channel, guild.botId) } : {}),
  };
}

export function threadMemberJson(channel: ChannelRecord, userId: string): Json {
  return {
    id: channel.id,
    user_id: userId,
    join_timestamp: isoTime(channel.thread?.createdMs ?? 0),
    flags: 0,
  };
}

export function attachmentJson(guild: Guild, attachment: AttachmentRecord): Json {
  const url = signedUrl(guild.core, attachment);
  return {
    id: attachment.id,
    filename: attachment.filename,
    size: attachment.size,
    url,
    proxy_url: url,
    ...(attachment.contentType === undefined ? {} : { content_type: attachment.contentType }),
    ...(attachment.description === undefined ? {} : { description: attachment.description }),
    ...(attachment.ephemeral ? { ephemeral: true } : {}),
    ...(attachment.dimensions ?? {}),
  };
}

/** Own messages, direct messages and messages that mention the bot are never blanked. */
function isReadable(guild: Guild, message: MessageRecord, view: MessageView): boolean {
  return (
    view.messageContent ||
    message.authorId === guild.botId ||
    message.mentionIds.includes(guild.botId) ||
    guild.channels.get(message.channelId)?.type === CHANNEL.DM
  );
}

export function messageJson(guild: Guild, message: MessageRecord, view: MessageView): Json {
  const author = guild.user(message.authorId);
  const readable = isReadable(guild, message, view);
  const inGuild = guild.channels.get(message.channelId)?.guildId !== undefined;
  const asEvent = view.event === true && inGuild && message.onlyFor === undefined;
  return {
    id: message.id,
    channel_id: message.channelId,
    ...(asEvent ? { guild_id: guild.id, member: memberJson(guild, message.authorId) } : {}),
    type: message.type,
    author: author === undefined ? null : userJson(author),
    content: readable ? message.content : '',
    timestamp: isoTime(message.createdMs),
    edited_timestamp: message.editedMs === null ? null : isoTime(message.editedMs),
    tts: message.tts,
    mention_everyone: message.mentionEveryone,
    mentions: mentionsJson(guild, message, asEvent),
    mention_roles: message.mentionRoleIds,
    attachments: readable ? message.attachments.map((entry) => attachmentJson(guild, entry)) : [],
    embeds: readable ? message.embeds : [],
    components: readable ? message.components : [],
    pinned: message.pinned,
    flags: message.flags,
    ...reactionsJson(guild, message),
    ...(view.withNonce === true && message.nonce !== undefined ? { nonce: message.nonce } : {}),
    ...(message.fromApplication ? { application_id: guild.botId } : {}),
    ...referenceJson(guild, message, view),
    ...interactionJson(guild, message),
    ...startedThreadJson(guild, message),
  };
}

function mentionsJson(guild: Guild, message: MessageRecord, asEvent: boolean): readonly Json[] {
  return message.mentionIds.flatMap((id) => {
    const user = guild.user(id);
    if (user === undefined) return [];
    return [asEvent ? { ...userJson(user), member: memberJson(guild, id) } : userJson(user)];
  });
}

function reactionsJson(guild: Guild, message: MessageRecord): Json {
  if (message.reactions.size === 0) return {};
  return {
    reactions: [...message.reactions].map(([key, users]) => ({
      emoji: emojiJson(key),
      count: users.size,
      count_details: { burst: 0, normal: users.size },
      me: users.has(guild.botId),
      me_burst: false,
      burst_colors: [],
    })),
  };
}

export function emojiJson(key: string): Json {
  const custom = /^(.+):(\d{17,20})$/.exec(key);
  return custom === null ? { id: null, name: key } : { id: custom[2], name: custom[1] };
}

function referenceJson(guild: Guild, message: MessageRecord, view: MessageView): Json {
  const { referenceId, referenceChannelId } = message;
  if (referenceId === undefined && referenceChannelId === undefined) return {};
  const channelId = referenceChannelId ?? message.channelId;
  const reference = {
    type: 0,
    ...(referenceId === undefined ? {} : { message_id: referenceId }),
    channel_id: channelId,
    guild_id: guild.id,
  };
  if (referenceId === undefined) return { message_reference: reference };
  const target = guild.findMessage(channelId, referenceId);
  const flat =
    target === undefined
      ? undefined
      : { ...target, referenceId: undefined, referenceChannelId: undefined };
  return {
    message_reference: reference,
    referenced_message:
      flat === undefined ? null : messageJson(guild, flat, { messageContent: view.messageContent }),
  };
}

function interactionJson(guild: Guild, message: MessageRecord): Json {
  if (message.interaction === undefined) return {};
  const { id, type, userId, name } = message.interaction;
  const user = guild.user(userId);
  return {
    interaction_metadata: {
      id,
      type,
      user: user === undefined ? null : userJson(user),
      authorizing_integration_owners: { 0: guild.id },
      ...(name === undefined ? {} : { name }),
    },
  };
}

function startedThreadJson(guild: Guild, message: MessageRecord): Json {
  const thread = guild.channels.get(message.id);
  if ((message.flags & FLAG.HAS_THREAD) === 0 || thread === undefined) return {};
  return { thread: channelJson(guild, thread) };
}

export function guildJson(guild: Guild): Json {
  const bot = guild.member(guild.botId);
  return {
    id: guild.id,
    name: guild.name,
    icon: null,
    owner_id: guild.ownerId,
    joined_at: isoTime(bot.joinedMs),
    large: false,
    unavailable: false,
    member_count: guild.members.size,
    features: [],
    roles: [...guild.roles.values()].map(roleJson),
    emojis: [],
    stickers: [],
    verification_level: 0,
    default_message_notifications: 0,
    explicit_content_filter: 0,
    mfa_level: 0,
    nsfw_level: 0,
    premium_tier: 0,
    premium_progress_bar_enabled: false,
    system_channel_flags: 0,
    system_channel_id: null,
    preferred_locale: 'en-US',
    afk_channel_id: null,
    afk_timeout: 300,
    rules_channel_id: null,
    public_updates_channel_id: null,
    vanity_url_code: null,
    description: null,
    banner: null,
    splash: null,
    discovery_splash: null,
    application_id: null,
  };
}

/** GUILD_CREATE: the guild with what the bot can see of it. Threads are the active ones only. */
export function guildCreateJson(guild: Guild): Json {
  const visible = [...guild.channels.values()].filter((channel) =>
    guild.may(guild.botId, 'VIEW_CHANNEL', channel),
  );
  return {
    ...guildJson(guild),
    members: [memberWithUserJson(guild, guild.botId)],
    channels: visible
      .filter((channel) => channel.thread === undefined && channel.guildId !== undefined)
      .map((channel) => channelJson(guild, channel)),
    threads: visible
      .filter((channel) => channel.thread?.archived === false)
      .map((channel) => channelJson(guild, channel)),
    presences: [],
    voice_states: [],
    stage_instances: [],
    guild_scheduled_events: [],
    soundboard_sounds: [],
  };
}
