// Stored values in the shapes the Web API and the Events API send them (PLATFORM §2.4, §2.10).

import type { Fields } from '../fields.ts';
import { escapeText } from './escape.ts';
import type { EphemeralNote, SlackChannel, SlackFile, SlackMessage, SlackUser } from './model.ts';
import { BOT_ID, BOT_USER, type Workspace } from './workspace.ts';

export interface ShapeContext {
  readonly workspace: Workspace;
  readonly appId: string;
  readonly botName: string;
  readonly botUser: string;
  baseUrl(): string;
}

export type MetadataView = 'full' | 'type-only';

export function messageShape(
  context: ShapeContext,
  message: SlackMessage,
  metadata: MetadataView,
): Fields {
  return {
    type: 'message',
    ...(message.subtype === undefined ? {} : { subtype: message.subtype }),
    user: message.isTombstone ? 'USLACKBOT' : message.user,
    ...(message.isTombstone ? { hidden: true } : {}),
    ...authorShape(context, message),
    ...(message.clientMsgId === undefined ? {} : { client_msg_id: message.clientMsgId }),
    text: message.text,
    ts: message.ts,
    ...threadShape(context, message),
    ...(message.blocks === undefined ? {} : { blocks: message.blocks }),
    ...(message.attachments === undefined ? {} : { attachments: message.attachments }),
    ...(message.edited === undefined ? {} : { edited: message.edited }),
    ...filesShape(context, message),
    ...metadataShape(message, metadata),
    ...(message.reactions.size === 0 ? {} : { reactions: reactionsShape(message) }),
    ...(message.stream === undefined
      ? {}
      : { streaming_state: message.stream.state === 'streaming' ? 'in_progress' : 'completed' }),
  };
}

function authorShape(context: ShapeContext, message: SlackMessage): Fields {
  const team = context.workspace.users.get(message.user)?.teamId ?? context.workspace.teamId;
  if (!message.isFromApp) return { team, user_team: team, source_team: team };
  return {
    bot_id: BOT_ID,
    app_id: context.appId,
    team: context.workspace.teamId,
    bot_profile: {
      id: BOT_ID,
      deleted: false,
      name: message.displayName ?? context.botName,
      updated: 1_760_000_000,
      app_id: context.appId,
      user_id: BOT_USER,
      icons: {},
      team_id: context.workspace.teamId,
    },
  };
}

function threadShape(context: ShapeContext, message: SlackMessage): Fields {
  if (message.threadTs === undefined) return {};
  const channel = context.workspace.channels.get(message.channel);
  if (channel === undefined) return { thread_ts: message.threadTs };
  if (message.threadTs !== message.ts) {
    const root = channel.messages.get(message.threadTs);
    return {
      thread_ts: message.threadTs,
      ...(root === undefined ? {} : { parent_user_id: root.user }),
    };
  }
  const replies = context.workspace.replies(channel, message.ts);
  const users = [...new Set(replies.map((reply) => reply.user))];
  return {
    thread_ts: message.ts,
    reply_count: replies.length,
    reply_users_count: users.length,
    latest_reply: replies.at(-1)?.ts ?? message.ts,
    reply_users: users.slice(0, 5),
    is_locked: message.isThreadLocked,
    subscribed: message.isFromApp,
  };
}

function filesShape(context: ShapeContext, message: SlackMessage): Fields {
  const files = message.files.flatMap((id) => {
    const file = context.workspace.files.get(id);
    return file === undefined || file.isDeleted ? [] : [fileShape(context, file)];
  });
  return files.length === 0 ? {} : { files, upload: false };
}

function metadataShape(message: SlackMessage, view: MetadataView): Fields {
  if (message.metadata === undefined) return {};
  return {
    metadata: {
      event_type: message.metadata.event_type,
      event_payload: view === 'full' ? message.metadata.event_payload : {},
    },
  };
}

export function reactionsShape(message: SlackMessage): readonly Fields[] {
  return [...message.reactions].map(([name, users]) => ({ name, users, count: users.length }));
}

/** `block_actions` echo their message with the text escaped once more (PLATFORM §2.9). */
export function escapedAgain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(escapedAgain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      key === 'text' && typeof item === 'string' ? escapeText(item) : escapedAgain(item),
    ]),
  );
}

export function noteShape(context: ShapeContext, note: EphemeralNote): Fields {
  return {
    type: 'message',
    subtype: 'bot_message',
    bot_id: BOT_ID,
    app_id: context.appId,
    is_ephemeral: true,
    text: note.text,
    ts: note.ts,
    ...(note.threadTs === undefined ? {} : { thread_ts: note.threadTs }),
    ...(note.blocks === undefined ? {} : { blocks: note.blocks }),
  };
}

export function fileShape(context: ShapeContext, file: SlackFile, isFull = false): Fields {
  if (file.needsInfo && !isFull)
    return { id: file.id, mode: 'file_access', file_access: 'check_file_info' };
  const base = `${context.baseUrl()}/files/${context.workspace.teamId}-${file.id}`;
  const name = encodeURIComponent(file.name);
  return {
    id: file.id,
    created: Math.floor(file.createdMs / 1000),
    timestamp: Math.floor(file.createdMs / 1000),
    name: file.name,
    title: file.title,
    // Empty until Slack has looked into it.
    mimetype: file.shares.size === 0 ? '' : file.mimetype,
    filetype: file.shares.size === 0 ? '' : (file.mimetype.split('/')[1] ?? 'binary'),
    user: file.user,
    size: file.bytes.length,
    mode: 'hosted',
    is_external: false,
    is_public: true,
    file_access: 'visible',
    url_private: `${base}/${name}`,
    url_private_download: `${base}/download/${name}`,
    permalink: `${context.baseUrl()}/files/${file.user}/${file.id}/${name}`,
    channels: [...file.shares.keys()],
    shares: sharesShape(context, file),
  };
}

function sharesShape(context: ShapeContext, file: SlackFile): Fields {
  const byKind = {
    public: {} as Record<string, Fields[]>,
    private: {} as Record<string, Fields[]>,
  };
  for (const [channelId, share] of file.shares) {
    const isPublic = context.workspace.channels.get(channelId)?.kind === 'public';
    byKind[isPublic ? 'public' : 'private'][channelId] = [
      { ts: share.ts, ...(share.threadTs === undefined ? {} : { thread_ts: share.threadTs }) },
    ];
  }
  return Object.fromEntries(
    Object.entries(byKind).filter(([, channels]) => Object.keys(channels).length > 0),
  );
}

export function channelShape(context: ShapeContext, channel: SlackChannel): Fields {
  const isPrivate = channel.kind !== 'public';
  return {
    id: channel.id,
    name: channel.name,
    is_channel: channel.kind === 'public',
    is_group: channel.kind === 'private',
    is_im: channel.kind === 'im',
    is_mpim: channel.kind === 'mpim',
    is_private: isPrivate,
    is_archived: channel.isArchived,
    is_member: channel.members.has(BOT_USER),
    is_shared: channel.isExtShared,
    is_ext_shared: channel.isExtShared,
    is_org_shared: false,
    is_general: false,
    context_team_id: context.workspace.teamId,
    creator: 'U0ALICE001',
    topic: { value: channel.topic, creator: '', last_set: 0 },
    purpose: { value: '', creator: '', last_set: 0 },
  };
}

export function userShape(user: SlackUser): Fields {
  return {
    id: user.id,
    team_id: user.teamId,
    name: user.name,
    deleted: false,
    real_name: user.realName,
    profile: { real_name: user.realName, display_name: user.name, team: user.teamId },
    is_admin: false,
    is_owner: false,
    is_restricted: user.isRestricted,
    is_ultra_restricted: false,
    is_bot: user.isBot,
    is_app_user: false,
    ...(user.isStranger ? { is_stranger: true } : {}),
    updated: 1_760_000_000,
  };
}
