// Simulated people: what they do in a Slack client, with the client's own refusals. They act on the
// workspace; what the app hears of it follows from that.

import { mintUuid } from '../../base/ids.ts';
import type { SlackApp } from './api-call.ts';
import { type Composed, compose } from './composer.ts';
import { mimetypeOf, shareFiles } from './file-methods.ts';
import type { SlackChannel, SlackFile, SlackMessage, SlackUser } from './model.ts';

/** A client offers a snippet instead of sending more. */
const TYPED_MAX_UNITS = 12_000;

export type Typed =
  | { readonly kind: 'sent'; readonly ts: string }
  | { readonly kind: 'command'; readonly command: string; readonly text: string }
  | { readonly kind: 'refused'; readonly says: string };

export interface TypeRequest {
  readonly user: SlackUser;
  readonly channel: SlackChannel;
  readonly threadTs: string | undefined;
  readonly text: string;
  readonly isBroadcast: boolean;
  readonly smartQuotes: boolean;
}

/** A message box and its Send button. */
export function typeMessage(
  app: SlackApp,
  request: TypeRequest,
  commands: readonly string[],
): Typed {
  const { channel, threadTs, text, user } = request;
  const refusal = refusalOf(request);
  if (refusal !== undefined) return { kind: 'refused', says: refusal };
  if (text.startsWith('/')) return slashTyped(app, request, commands);
  const composed = composeFor(app, text, request.smartQuotes);
  if (composed.text.length > TYPED_MAX_UNITS)
    return { kind: 'refused', says: 'Your message is too long. Create a snippet instead?' };
  const message = app.workspace.post({
    channel,
    user: user.id,
    isFromApp: false,
    text: composed.text,
    blocks: composed.blocks,
    clientMsgId: mintUuid(app.core.random),
    isBroadcast: request.isBroadcast,
    ...(request.isBroadcast ? { subtype: 'thread_broadcast' } : {}),
    ...(threadTs === undefined ? {} : { threadTs }),
  });
  return { kind: 'sent', ts: message.ts };
}

function refusalOf(request: TypeRequest): string | undefined {
  const { channel, threadTs, text } = request;
  if (text.trim() === '') return 'There is nothing to send';
  return placeRefusal(channel, threadTs);
}

function placeRefusal(channel: SlackChannel, threadTs: string | undefined): string | undefined {
  if (channel.isArchived) return 'This channel is archived';
  const root = threadTs === undefined ? undefined : channel.messages.get(threadTs);
  if (threadTs !== undefined && root === undefined) return 'This thread does not exist';
  return root?.isThreadLocked === true ? 'This thread is locked' : undefined;
}

/** The box never sends a leading `/`: it is a command, an unknown one, or one in a thread. */
function slashTyped(app: SlackApp, request: TypeRequest, commands: readonly string[]): Typed {
  const [command = '', ...words] = request.text.split(' ');
  if (request.threadTs !== undefined)
    return slackbotSays(app, request, `${command} is not supported in threads. Sorry!`);
  if (!commands.includes(command)) {
    return slackbotSays(
      app,
      request,
      `${command} is not a valid command. In Slack, all messages that start with "/" are interpreted as commands.`,
    );
  }
  return { kind: 'command', command, text: words.join(' ') };
}

function slackbotSays(app: SlackApp, request: TypeRequest, says: string): Typed {
  app.workspace.note(
    {
      channel: request.channel.id,
      user: request.user.id,
      threadTs: request.threadTs,
      text: says,
      blocks: undefined,
      fromSlackbot: true,
    },
    request.channel,
  );
  return { kind: 'refused', says };
}

export function composeFor(app: SlackApp, text: string, smartQuotes: boolean): Composed {
  return compose(text.trim(), {
    directory: {
      userId: (name) => app.workspace.findUser(name)?.id,
      channelId: (name) => app.workspace.findChannel(name)?.id,
    },
    smartQuotes,
    blockId: app.workspace.mint('b').slice(0, 5),
  });
}

export function editMessage(
  app: SlackApp,
  message: SlackMessage,
  user: SlackUser,
  text: string,
): void {
  const composed = composeFor(app, text, false);
  app.workspace.change(message, (stored) => {
    stored.text = composed.text;
    stored.blocks = composed.blocks;
    stored.edited = { user: user.id, ts: app.workspace.nowTs() };
  });
}

export interface SendFileRequest {
  readonly user: SlackUser;
  readonly channel: SlackChannel;
  readonly threadTs: string | undefined;
  readonly name: string;
  readonly bytes: Buffer;
  readonly comment: string;
}

/** A file dropped into the message box, with what was typed beside it. */
export function sendFile(
  app: SlackApp,
  request: SendFileRequest,
): Typed & { readonly fileId?: string } {
  const refusal = placeRefusal(request.channel, request.threadTs);
  if (refusal !== undefined) return { kind: 'refused', says: refusal };
  const file: SlackFile = {
    id: app.workspace.mint('F'),
    name: request.name,
    title: request.name,
    user: request.user.id,
    mimetype: mimetypeOf(request.name),
    bytes: request.bytes,
    createdMs: app.core.clock.wallMs(),
    shares: new Map(),
    isDeleted: false,
    needsInfo: app.knobs.filesNeedInfo,
  };
  app.workspace.files.set(file.id, file);
  const composed = composeFor(app, request.comment, false);
  const ts = shareFiles(app, {
    channel: request.channel,
    threadTs: request.threadTs,
    user: request.user.id,
    isFromApp: false,
    text: composed.text,
    ...(composed.text === '' ? {} : { blocks: composed.blocks }),
    files: [file],
    clientMsgId: mintUuid(app.core.random),
  });
  return { kind: 'sent', ts, fileId: file.id };
}
