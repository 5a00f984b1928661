// reactions.*

import type { Fields } from '../fields.ts';
import {
  type ApiCall,
  ApiError,
  type ApiHandler,
  memberChannelOf,
  messageOf,
  textArg,
} from './api-call.ts';
import { isEmojiName } from './emoji.ts';
import { messageShape, reactionsShape } from './shapes.ts';
import { BOT_USER } from './workspace.ts';

/** Distinct emoji on one message; Slack's own number is undisclosed, folklore says 23 by one person. */
const REACTIONS_MAX = 23;

export const REACTION_METHODS: Readonly<Record<string, ApiHandler>> = {
  'reactions.add': (call) => {
    const { message, name } = targetOf(call);
    if (!message.reactions.has(name) && message.reactions.size >= REACTIONS_MAX)
      throw new ApiError('too_many_emoji');
    if (!call.app.workspace.react(message, name, BOT_USER, true))
      throw new ApiError('already_reacted');
    return {};
  },
  'reactions.remove': (call) => {
    const { message, name } = targetOf(call);
    if (!call.app.workspace.react(message, name, BOT_USER, false))
      throw new ApiError('no_reaction');
    return {};
  },
  'reactions.get': (call): Fields => {
    const channel = memberChannelOf(call);
    const message = messageOf(channel, textArg(call.args, 'timestamp'));
    const shape = messageShape(call.app.shapes, message, 'type-only');
    return {
      type: 'message',
      channel: channel.id,
      message: { ...shape, reactions: reactionsShape(message) },
    };
  },
};

function targetOf(call: ApiCall): { message: ReturnType<typeof messageOf>; name: string } {
  const name = textArg(call.args, 'name') ?? '';
  // `:name:` and names Slack does not have are refused alike.
  if (!isEmojiName(name)) throw new ApiError('invalid_name');
  const channel = memberChannelOf(call);
  if (channel.isArchived) throw new ApiError('is_archived');
  return { message: messageOf(channel, textArg(call.args, 'timestamp')), name };
}
