// chat.*: posting, editing, deleting, ephemeral notes, permalinks.

import type { Fields } from '../fields.ts';
import {
  type ApiCall,
  ApiError,
  type ApiHandler,
  channelOf,
  flagArg,
  memberChannelOf,
  messageOf,
  textArg,
  violate,
} from './api-call.ts';
import { type Content, contentOf, refuseLongText, truncated } from './content.ts';
import type { SlackChannel, SlackMessage } from './model.ts';
import { messageShape } from './shapes.ts';
import { splitText } from './split-text.ts';
import { BOT_ID, BOT_USER } from './workspace.ts';

export const CHAT_METHODS: Readonly<Record<string, ApiHandler>> = {
  'chat.postMessage': postMessage,
  'chat.update': updateMessage,
  'chat.delete': deleteMessage,
  'chat.postEphemeral': postEphemeral,
  'chat.getPermalink': getPermalink,
};

function postMessage(call: ApiCall): Fields {
  const { workspace, shapes } = call.app;
  const channel = postableChannelOf(call);
  const content = contentOf(call);
  const threadTs = rootOf(call, channel, textArg(call.args, 'thread_ts'));
  refuseByRules(channel, threadTs);
  const isBroadcast = flagArg(call.args, 'reply_broadcast') === true;
  if (isBroadcast && threadTs === undefined) throw new ApiError('cannot_reply_to_message');
  const text = truncated(call, content.text);
  // With blocks the text is only what notifications show: it is not split.
  const isSplit = (content.blocks ?? []).length === 0;
  const [first = '', ...rest] = isSplit ? splitText(text) : [text];
  if (rest.length > 0)
    violate(
      call,
      'text-split',
      'mangled',
      `${text.length} units became ${rest.length + 1} messages`,
    );
  const displayName = textArg(call.args, 'username');
  const shared = {
    channel,
    user: BOT_USER,
    isFromApp: true,
    isBroadcast,
    ...(isBroadcast ? { subtype: 'thread_broadcast' } : {}),
    ...(threadTs === undefined ? {} : { threadTs }),
    ...(displayName === undefined ? {} : { displayName }),
  };
  const posted = workspace.post({
    ...shared,
    text: first,
    ...(content.blocks === undefined ? {} : { blocks: content.blocks }),
    ...(content.attachments === undefined ? {} : { attachments: content.attachments }),
    ...(content.metadata === undefined ? {} : { metadata: content.metadata }),
  });
  // Metadata, attachments and the returned ts belong to the first piece only.
  for (const piece of rest) workspace.post({ ...shared, text: piece });
  return {
    channel: channel.id,
    ts: posted.ts,
    message: messageShape(shapes, posted, 'type-only'),
  };
}

/** chat:write.public lets an app post where it is no member. */
function postableChannelOf(call: ApiCall): SlackChannel {
  const channel = channelOf(call);
  if (channel.members.has(BOT_USER)) return channel;
  const mayPostAnywhere =
    channel.kind === 'public' && call.app.settings.scopes.includes('chat:write.public');
  if (!mayPostAnywhere) throw new ApiError('not_in_channel');
  return channel;
}

/** The root a reply is filed under. Naming a reply instead of the root is tolerated, and noted. */
function rootOf(
  call: ApiCall,
  channel: SlackChannel,
  threadTs: string | undefined,
): string | undefined {
  if (threadTs === undefined || threadTs === '') return undefined;
  const named = channel.messages.get(threadTs);
  if (named === undefined) throw new ApiError('thread_not_found');
  if (named.threadTs === undefined || named.threadTs === named.ts) return named.ts;
  violate(call, 'thread-ts-not-root', 'warned', 'thread_ts names a reply');
  return named.threadTs;
}

function refuseByRules(channel: SlackChannel, threadTs: string | undefined): void {
  if (channel.isArchived) throw new ApiError('is_archived');
  if (channel.posting === 'read-only') throw new ApiError('restricted_action_read_only_channel');
  if (channel.posting === 'thread-only' && threadTs === undefined)
    throw new ApiError('restricted_action_thread_only_channel');
  if (channel.posting === 'no-threads' && threadTs !== undefined)
    throw new ApiError('restricted_action_non_threadable_channel');
  const root = threadTs === undefined ? undefined : channel.messages.get(threadTs);
  if (root?.isThreadLocked === true) throw new ApiError('restricted_action_thread_locked');
}

function updateMessage(call: ApiCall): Fields {
  const { workspace, shapes } = call.app;
  const channel = memberChannelOf(call);
  const message = messageOf(channel, textArg(call.args, 'ts'));
  if (!message.isFromApp) throw new ApiError('cant_update_message');
  if (channel.isArchived) throw new ApiError('is_archived');
  if (message.stream?.state === 'streaming') throw new ApiError('streaming_state_conflict');
  refuseOldEdit(call, message);
  const content = contentOf(call);
  refuseLongText(content.text);
  workspace.change(message, (stored) => applyUpdate(call, stored, content));
  return {
    channel: channel.id,
    ts: message.ts,
    text: message.text,
    message: messageShape(shapes, message, 'type-only'),
  };
}

function refuseOldEdit(call: ApiCall, message: SlackMessage): void {
  const { editWindowMs } = call.app.settings;
  if (editWindowMs === undefined) return;
  const ageMs = call.app.core.clock.wallMs() - Number(message.ts) * 1000;
  if (ageMs > editWindowMs) throw new ApiError('edit_window_closed');
}

/** Text without blocks removes blocks; only a change of text shows "(edited)"; attachments stay if omitted. */
function applyUpdate(call: ApiCall, stored: SlackMessage, content: Content): void {
  const hasText =
    textArg(call.args, 'text') !== undefined || call.args['markdown_text'] !== undefined;
  const isTextEdit = hasText && content.text !== stored.text;
  if (hasText) stored.text = content.text;
  if (content.blocks !== undefined || hasText) stored.blocks = content.blocks;
  if (content.attachments !== undefined) stored.attachments = content.attachments;
  // Not sent again means gone: nobody promises that it stays.
  stored.metadata = content.metadata;
  if (isTextEdit) stored.edited = { user: BOT_ID, ts: call.app.workspace.nowTs() };
}

function deleteMessage(call: ApiCall): Fields {
  const channel = memberChannelOf(call);
  const message = messageOf(channel, textArg(call.args, 'ts'));
  if (!message.isFromApp) throw new ApiError('cant_delete_message');
  call.app.workspace.remove(message, BOT_USER);
  return { channel: channel.id, ts: message.ts };
}

function postEphemeral(call: ApiCall): Fields {
  const { workspace } = call.app;
  const channel = postableChannelOf(call);
  const user = workspace.users.get(textArg(call.args, 'user') ?? '');
  if (user === undefined || !channel.members.has(user.id))
    throw new ApiError('user_not_in_channel');
  if (channel.isArchived) throw new ApiError('is_archived');
  const content = contentOf(call);
  refuseLongText(content.text);
  const note = workspace.note(
    {
      channel: channel.id,
      user: user.id,
      threadTs: rootOf(call, channel, textArg(call.args, 'thread_ts')),
      text: content.text,
      blocks: content.blocks,
      fromSlackbot: false,
    },
    channel,
  );
  return { message_ts: note.ts };
}

function getPermalink(call: ApiCall): Fields {
  const channel = channelOf(call);
  const message = messageOf(channel, textArg(call.args, 'message_ts'));
  const path = `/archives/${channel.id}/p${message.ts.replace('.', '')}`;
  const thread =
    message.threadTs === undefined || message.threadTs === message.ts
      ? ''
      : `?thread_ts=${message.threadTs}&cid=${channel.id}`;
  return { channel: channel.id, permalink: `https://acme.slack.com${path}${thread}` };
}
