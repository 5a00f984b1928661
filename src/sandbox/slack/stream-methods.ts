// chat.startStream, appendStream, stopStream: markdown that only grows and expires after five minutes.

import type { Fields } from '../fields.ts';
import { isFields } from '../fields.ts';
import {
  type ApiCall,
  ApiError,
  type ApiHandler,
  jsonArg,
  memberChannelOf,
  messageOf,
  textArg,
} from './api-call.ts';
import { checkBlocks } from './blocks.ts';
import type { SlackMessage } from './model.ts';
import { messageShape } from './shapes.ts';
import { BOT_USER } from './workspace.ts';

export const STREAM_LIFE_MS = 5 * 60_000;
const MARKDOWN_MAX_UNITS = 12_000;

export const STREAM_METHODS: Readonly<Record<string, ApiHandler>> = {
  'chat.startStream': start,
  'chat.appendStream': append,
  'chat.stopStream': stop,
};

function start(call: ApiCall): Fields {
  const channel = memberChannelOf(call);
  if (channel.isArchived) throw new ApiError('is_archived');
  const threadTs = textArg(call.args, 'thread_ts');
  if (threadTs !== undefined && !channel.messages.has(threadTs))
    throw new ApiError('thread_not_found');
  if (channel.kind !== 'im') {
    if (textArg(call.args, 'recipient_user_id') === undefined)
      throw new ApiError('missing_recipient_user_id');
    if (textArg(call.args, 'recipient_team_id') === undefined)
      throw new ApiError('missing_recipient_team_id');
  }
  const markdown = chunkText(call);
  const message = call.app.workspace.post({
    channel,
    user: BOT_USER,
    isFromApp: true,
    text: markdown,
    ...(threadTs === undefined ? {} : { threadTs }),
    stream: {
      state: 'streaming',
      markdown,
      expiresAtMs: call.app.core.clock.monotonicMs() + STREAM_LIFE_MS,
    },
  });
  return { channel: channel.id, ts: message.ts };
}

function append(call: ApiCall): Fields {
  const message = streamOf(call);
  const more = chunkText(call);
  if (more === '') throw new ApiError('no_text');
  extend(call, message, more, 'streaming');
  return { channel: message.channel, ts: message.ts };
}

function stop(call: ApiCall): Fields {
  const message = streamOf(call);
  const blocks = call.args['blocks'] === undefined ? undefined : checkBlocks(call.args['blocks']);
  if (blocks?.kind === 'error') throw new ApiError(blocks.error);
  extend(call, message, chunkText(call), 'done');
  if (blocks !== undefined)
    call.app.workspace.change(message, (stored) => {
      stored.blocks = blocks.blocks;
    });
  return {
    channel: message.channel,
    ts: message.ts,
    message: messageShape(call.app.shapes, message, 'type-only'),
  };
}

function extend(
  call: ApiCall,
  message: SlackMessage,
  more: string,
  state: 'streaming' | 'done',
): void {
  call.app.workspace.change(message, (stored) => {
    if (stored.stream === undefined) return;
    stored.stream.markdown += more;
    stored.stream.state = state;
    stored.text = stored.stream.markdown;
  });
}

function streamOf(call: ApiCall): SlackMessage {
  const message = messageOf(memberChannelOf(call), textArg(call.args, 'ts'));
  if (!message.isFromApp) throw new ApiError('message_not_owned_by_app');
  const { stream } = message;
  if (stream === undefined) throw new ApiError('message_not_in_streaming_state');
  if (stream.state === 'stopped-by-user') throw new ApiError('stopped_by_user');
  if (stream.state === 'streaming' && call.app.core.clock.monotonicMs() > stream.expiresAtMs)
    stream.state = 'expired';
  if (stream.state !== 'streaming') throw new ApiError('message_not_in_streaming_state');
  return message;
}

function chunkText(call: ApiCall): string {
  const chunks = jsonArg(call.args, 'chunks');
  const items: readonly unknown[] = Array.isArray(chunks) ? chunks : [];
  const text =
    (textArg(call.args, 'markdown_text') ?? '') +
    items
      .filter(isFields)
      .map((chunk) => textArg(chunk, 'text') ?? '')
      .join('');
  if (text.length > MARKDOWN_MAX_UNITS) throw new ApiError('msg_too_long');
  return text;
}
