// conversations.*, users.*, and the other reading methods.

import type { Fields } from '../fields.ts';
import {
  type ApiCall,
  ApiError,
  type ApiHandler,
  channelOf,
  flagArg,
  memberChannelOf,
  numberArg,
  textArg,
} from './api-call.ts';
import type { ChannelKind, SlackChannel, SlackMessage } from './model.ts';
import { channelShape, messageShape, userShape } from './shapes.ts';
import { parseTs, parseTsBound } from './ts.ts';
import { BOT_ID, BOT_USER } from './workspace.ts';

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1_000;

export const CONVERSATION_METHODS: Readonly<Record<string, ApiHandler>> = {
  'conversations.info': (call) => ({ channel: channelShape(call.app.shapes, channelOf(call)) }),
  'conversations.list': listConversations,
  'conversations.members': listMembers,
  'conversations.history': history,
  'conversations.replies': replies,
  'conversations.join': join,
  'conversations.open': open,
  'users.conversations': listConversations,
  'users.info': userInfo,
  'users.list': (call) => ({
    members: [...call.app.workspace.users.values()].map(userShape),
    response_metadata: { next_cursor: '' },
  }),
  'bots.info': botInfo,
  'team.info': (call) => ({
    team: {
      id: call.app.workspace.teamId,
      name: call.app.settings.teamName,
      domain: 'acme',
      email_domain: '',
    },
  }),
  'emoji.list': () => ({ emoji: {} }),
};

function history(call: ApiCall): Fields {
  const channel = memberChannelOf(call);
  const onPage = [...channel.messages.values()]
    .filter((message) => isTopLevel(message) && isInRange(call, message))
    .reverse();
  const page = pageOf(call, onPage);
  return {
    messages: page.items.map((message) => shapeFor(call, message)),
    has_more: page.nextCursor !== '',
    pin_count: 0,
    response_metadata: { next_cursor: page.nextCursor },
  };
}

function replies(call: ApiCall): Fields {
  const channel = memberChannelOf(call);
  const ts = textArg(call.args, 'ts') ?? '';
  if (parseTs(ts) === undefined) throw new ApiError('invalid_ts_latest');
  const named = channel.messages.get(ts);
  if (named === undefined) throw new ApiError('thread_not_found');
  // A reply's own ts yields that reply alone, not its thread.
  const isReply = named.threadTs !== undefined && named.threadTs !== named.ts;
  const below = isReply ? [] : call.app.workspace.replies(channel, named.ts);
  const page = pageOf(
    call,
    below.filter((message) => isInRange(call, message)),
  );
  return {
    messages: [named, ...page.items].map((message) => shapeFor(call, message)),
    has_more: page.nextCursor !== '',
    response_metadata: { next_cursor: page.nextCursor },
  };
}

function shapeFor(call: ApiCall, message: SlackMessage): Fields {
  const all = flagArg(call.args, 'include_all_metadata') === true;
  return messageShape(call.app.shapes, message, all ? 'full' : 'type-only');
}

function isTopLevel(message: SlackMessage): boolean {
  return message.threadTs === undefined || message.threadTs === message.ts || message.isBroadcast;
}

function isInRange(call: ApiCall, message: SlackMessage): boolean {
  const at = parseTs(message.ts) ?? 0;
  const inclusive = flagArg(call.args, 'inclusive') === true;
  const oldest = boundArg(call, 'oldest', 'invalid_ts_oldest');
  const latest = boundArg(call, 'latest', 'invalid_ts_latest');
  if (oldest !== undefined && (inclusive ? at < oldest : at <= oldest)) return false;
  return !(latest !== undefined && (inclusive ? at > latest : at >= latest));
}

function boundArg(call: ApiCall, name: string, error: string): number | undefined {
  const text = textArg(call.args, name);
  if (text === undefined || text === '' || text === '0') return undefined;
  const bound = parseTsBound(text);
  if (bound === undefined) throw new ApiError(error);
  return bound;
}

interface Page {
  readonly items: readonly SlackMessage[];
  readonly nextCursor: string;
}

/** A cursor names the last message of its page, so that messages arriving meanwhile shift nothing. */
function pageOf(call: ApiCall, messages: readonly SlackMessage[]): Page {
  const asked = numberArg(call.args, 'limit') ?? LIMIT_DEFAULT;
  const limit = asked <= 0 ? LIMIT_DEFAULT : asked;
  if (limit > LIMIT_MAX) throw new ApiError('invalid_limit');
  const cursor = textArg(call.args, 'cursor');
  const start = cursor === undefined || cursor === '' ? 0 : startAfter(messages, cursor);
  const items = messages.slice(start, start + limit);
  const last = items.at(-1);
  const hasMore = start + limit < messages.length && last !== undefined;
  return {
    items,
    nextCursor: hasMore ? Buffer.from(`next_ts:${last.ts}`).toString('base64') : '',
  };
}

function startAfter(messages: readonly SlackMessage[], cursor: string): number {
  const ts = Buffer.from(cursor, 'base64')
    .toString('utf8')
    .replace(/^next_ts:/, '');
  const index = messages.findIndex((message) => message.ts === ts);
  if (index === -1) throw new ApiError('invalid_cursor');
  return index + 1;
}

function listConversations(call: ApiCall): Fields {
  const kinds: Readonly<Record<string, ChannelKind>> = {
    public_channel: 'public',
    private_channel: 'private',
    im: 'im',
    mpim: 'mpim',
  };
  const types = (textArg(call.args, 'types') ?? 'public_channel').split(',');
  const skipsArchived = flagArg(call.args, 'exclude_archived') === true;
  const onlyMine = call.method === 'users.conversations';
  const channels = [...call.app.workspace.channels.values()].filter((channel) => {
    if (!types.some((type) => kinds[type.trim()] === channel.kind)) return false;
    if (skipsArchived && channel.isArchived) return false;
    const isVisible = channel.kind === 'public' && !onlyMine;
    return isVisible || channel.members.has(BOT_USER);
  });
  return {
    channels: channels.map((channel) => channelShape(call.app.shapes, channel)),
    response_metadata: { next_cursor: '' },
  };
}

function listMembers(call: ApiCall): Fields {
  return { members: [...channelOf(call).members], response_metadata: { next_cursor: '' } };
}

function join(call: ApiCall): Fields {
  const channel: SlackChannel = channelOf(call);
  if (channel.kind !== 'public') throw new ApiError('method_not_supported_for_channel_type');
  if (channel.isArchived) throw new ApiError('is_archived');
  const isNew = call.app.workspace.join(channel, BOT_USER);
  if (!isNew) call.warnings.push('already_in_channel');
  return { channel: channelShape(call.app.shapes, channel) };
}

function open(call: ApiCall): Fields {
  const user = call.app.workspace.users.get(textArg(call.args, 'users') ?? '');
  if (user === undefined) throw new ApiError('user_not_found');
  const channel = call.app.workspace.directMessages(user.id);
  return { channel: { id: channel.id } };
}

function userInfo(call: ApiCall): Fields {
  const user = call.app.workspace.users.get(textArg(call.args, 'user') ?? '');
  if (user === undefined) throw new ApiError('user_not_found');
  return { user: userShape(user) };
}

function botInfo(call: ApiCall): Fields {
  if (textArg(call.args, 'bot') !== BOT_ID) throw new ApiError('bot_not_found');
  const { shapes } = call.app;
  return {
    bot: {
      id: BOT_ID,
      deleted: false,
      name: shapes.botName,
      updated: 1_760_000_000,
      app_id: shapes.appId,
      user_id: BOT_USER,
      icons: {},
    },
  };
}
