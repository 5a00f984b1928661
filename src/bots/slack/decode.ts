// From a Slack payload to what a person did. Pure: no network, no clock, no state; everything it
// needs to know comes in the context. Payloads are untrusted: what does not fit is not an event.

import type { Inbound, InboundFile, Person, ThreadRoot } from '../chat-platform.ts';
import { type Fields, fieldsOf, textField } from '../fields.ts';
import { decodeTyped, unescapeEntities } from './rich-text.ts';

/** Our own message, by the metadata chatd puts on every post and edit. */
export const METADATA_TYPE = 'chatd';

/** What decoding needs to know about us and the moment. */
export interface DecodeContext {
  readonly teamId: string;
  readonly botId: string;
  readonly botUserId: string;
  readonly receivedAtMonotonicMs: number;
  /** For payloads that carry no time of their own. */
  readonly platformNowMs: number;
  readonly caughtUp: boolean;
  nameOf(userId: string): string | undefined;
  rolesOf(userId: string): readonly string[];
}

type WithReply = Extract<Inbound, { kind: 'action' | 'command' | 'modal' }>;
/** An act that is answered: everything but the means to answer. */
export type Decoded =
  | Exclude<Inbound, WithReply>
  | Omit<Extract<Inbound, { kind: 'action' }>, 'reply'>
  | Omit<Extract<Inbound, { kind: 'command' }>, 'reply'>
  | Omit<Extract<Inbound, { kind: 'modal' }>, 'reply'>;

/** Subtypes that are a person's message; all others are Slack's own notices. */
const HUMAN_SUBTYPES = new Set([undefined, 'thread_broadcast', 'file_share', 'me_message']);

/** Decodes the body of an events_api envelope. */
export function decodeEvent(body: unknown, context: DecodeContext): Decoded | undefined {
  const wrapper = fieldsOf(body);
  const event = fieldsOf(wrapper['event']);
  const type = textField(event, 'type');
  switch (type) {
    case 'message':
    case 'app_mention':
      return decodeMessageEvent(event, textField(wrapper, 'event_id'), context);
    case 'channel_archive':
    case 'group_archive':
      return placeChanged(event, 'archived', context);
    case 'channel_unarchive':
    case 'group_unarchive':
      return placeChanged(event, 'unarchived', context);
    case 'channel_deleted':
    case 'group_deleted':
      return placeChanged(event, 'deleted', context);
    case 'channel_id_changed': {
      const from = textField(event, 'old_channel_id');
      const to = textField(event, 'new_channel_id');
      if (from === undefined || to === undefined) return undefined;
      return { kind: 'channel-id-changed', from, to };
    }
    default:
      return undefined;
  }
}

function placeChanged(
  event: Fields,
  change: 'archived' | 'unarchived' | 'deleted',
  context: DecodeContext,
): Decoded | undefined {
  const channel = textField(event, 'channel');
  if (channel === undefined) return undefined;
  return { kind: 'place-changed', place: { space: context.teamId, channel, root: '' }, change };
}

function decodeMessageEvent(
  event: Fields,
  eventId: string | undefined,
  context: DecodeContext,
): Decoded | undefined {
  const channel = textField(event, 'channel');
  if (channel === undefined) return undefined;
  if (event['subtype'] === 'message_changed') return tombstoned(event, channel, context);
  if (event['subtype'] === 'message_deleted') {
    const messageId = textField(event, 'deleted_ts');
    if (messageId === undefined) return undefined;
    return deleted(channel, messageId, fieldsOf(event['previous_message']), context);
  }
  return decodeMessage(event, channel, eventId, context);
}

/** A deleted parent with replies stays as a tombstone. Every other change is not a new act. */
function tombstoned(event: Fields, channel: string, context: DecodeContext): Decoded | undefined {
  const message = fieldsOf(event['message']);
  const messageId = textField(message, 'ts');
  if (message['subtype'] !== 'tombstone' || messageId === undefined) return undefined;
  return deleted(channel, messageId, message, context);
}

function deleted(
  channel: string,
  messageId: string,
  message: Fields,
  context: DecodeContext,
): Decoded {
  const root = textField(message, 'thread_ts') ?? '';
  return {
    kind: 'place-changed',
    place: { space: context.teamId, channel, root },
    change: 'message-deleted',
    messageId,
  };
}

/** Decodes a message, as an event carries it or as a page of history lists it. */
export function decodeMessage(
  message: Fields,
  channel: string,
  eventId: string | undefined,
  context: DecodeContext,
): Decoded | undefined {
  const ts = textField(message, 'ts');
  if (ts === undefined || !isTs(ts)) return undefined;
  const threadTs = textField(message, 'thread_ts');
  const root = threadTs !== undefined && threadTs !== ts ? threadTs : '';
  const place: ThreadRoot = { space: context.teamId, channel, root };
  if (isOwn(message, context)) {
    const row = rowOf(message);
    return row === undefined ? undefined : { kind: 'own-message', place, messageId: ts, row };
  }
  if (!HUMAN_SUBTYPES.has(textField(message, 'subtype'))) return undefined;
  const author = authorOf(message, context);
  if (author === undefined) return undefined;
  const typed = decodeTyped(message['blocks'], textField(message, 'text'), {
    ourUserId: context.botUserId,
    nameOf: context.nameOf,
  });
  const clientId = textField(message, 'client_msg_id');
  return {
    kind: 'message',
    dedupeKeys: [
      `ts:${channel}:${ts}`,
      ...(eventId === undefined ? [] : [`event:${eventId}`]),
      ...(clientId === undefined ? [] : [`client-msg:${clientId}`]),
    ],
    place,
    messageId: ts,
    author,
    text: typed.text,
    ...(typed.asWritten === typed.text ? {} : { asWritten: typed.asWritten }),
    verbatim: typed.verbatim,
    mentionsUs: typed.mentionsUs,
    sentAtPlatformMs: tsToMs(ts),
    receivedAtMonotonicMs: context.receivedAtMonotonicMs,
    caughtUp: context.caughtUp,
    files: filesOf(message),
  };
}

export function isOwn(
  message: Fields,
  context: Pick<DecodeContext, 'botId' | 'botUserId'>,
): boolean {
  return message['bot_id'] === context.botId || message['user'] === context.botUserId;
}

/** The outbox row a message of ours names. */
export function rowOf(message: Fields): { b: string; s: number } | undefined {
  const metadata = fieldsOf(message['metadata']);
  if (metadata['event_type'] !== METADATA_TYPE) return undefined;
  const payload = fieldsOf(metadata['event_payload']);
  const b = textField(payload, 'b');
  // Slack may hand numbers of a payload back as strings.
  const s = Number(payload['s']);
  return b === undefined || !Number.isSafeInteger(s) || s < 0 ? undefined : { b, s };
}

function authorOf(message: Fields, context: DecodeContext): Person | undefined {
  const id = textField(message, 'user') ?? textField(message, 'bot_id');
  if (id === undefined) return undefined;
  return {
    id,
    // Of a shared channel's foreign members `user_team` names their own workspace.
    space:
      textField(message, 'user_team') ??
      textField(message, 'source_team') ??
      textField(message, 'team'),
    roles: context.rolesOf(id),
    isBot: textField(message, 'bot_id') !== undefined,
    name: context.nameOf(id) ?? id,
  };
}

function filesOf(message: Fields): readonly InboundFile[] {
  const files = message['files'];
  if (!Array.isArray(files)) return [];
  return files.slice(0, 10).flatMap((value: unknown) => {
    const file = fieldsOf(value);
    const id = textField(file, 'id');
    if (id === undefined) return [];
    return [
      {
        id,
        name: textField(file, 'name') ?? id,
        sizeBytes: typeof file['size'] === 'number' ? file['size'] : 0,
        mediaType: textField(file, 'mimetype') ?? 'application/octet-stream',
      },
    ];
  });
}

/** Decodes the body of an `interactive` envelope. */
export function decodeInteractive(body: unknown, context: DecodeContext): Decoded | undefined {
  const payload = fieldsOf(body);
  if (payload['type'] === 'block_actions') return decodeAction(payload, context);
  if (payload['type'] === 'view_submission') return decodeSubmission(payload, context);
  return undefined;
}

function decodeAction(payload: Fields, context: DecodeContext): Decoded | undefined {
  const container = fieldsOf(payload['container']);
  const message = fieldsOf(payload['message']);
  const channel = textField(fieldsOf(payload['channel']), 'id');
  const messageId = textField(container, 'message_ts');
  const actions = payload['actions'];
  const action = fieldsOf(Array.isArray(actions) ? actions[0] : undefined);
  // Labels are escaped once more on the way back; what counts travels in `value`.
  const value = textField(action, 'value') ?? textField(action, 'action_id');
  const author = actorOf(payload, context);
  if (channel === undefined || messageId === undefined) return undefined;
  if (value === undefined || author === undefined) return undefined;
  const actionTs = textField(action, 'action_ts');
  const root = textField(container, 'thread_ts') ?? textField(message, 'thread_ts') ?? messageId;
  return {
    kind: 'action',
    dedupeKeys: [`action:${channel}:${messageId}:${author.id}:${actionTs ?? triggerOf(payload)}`],
    place: { space: context.teamId, channel, root },
    messageId,
    author,
    action: value,
    sentAtPlatformMs: actionTs === undefined ? context.platformNowMs : tsToMs(actionTs),
    receivedAtMonotonicMs: context.receivedAtMonotonicMs,
  };
}

function decodeSubmission(payload: Fields, context: DecodeContext): Decoded | undefined {
  const view = fieldsOf(payload['view']);
  const place = placeOfModal(textField(view, 'private_metadata'), context.teamId);
  const modal = textField(view, 'callback_id');
  const author = actorOf(payload, context);
  if (place === undefined || modal === undefined || author === undefined) return undefined;
  const blocks = Object.entries(fieldsOf(fieldsOf(view['state'])['values']));
  const values = blocks.map(([field, elements]) => {
    const [first] = Object.values(fieldsOf(elements));
    return [field, textField(fieldsOf(first), 'value') ?? ''] as const;
  });
  return {
    kind: 'modal',
    dedupeKeys: [`view:${textField(view, 'id') ?? triggerOf(payload)}`],
    place,
    author,
    modal,
    values: Object.fromEntries(values),
    sentAtPlatformMs: context.platformNowMs,
    receivedAtMonotonicMs: context.receivedAtMonotonicMs,
  };
}

/** Where a modal was opened; a submission does not say. */
export function modalPlace(place: ThreadRoot): string {
  return JSON.stringify({ channel: place.channel, root: place.root });
}

function placeOfModal(metadata: string | undefined, teamId: string): ThreadRoot | undefined {
  if (metadata === undefined) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(metadata);
  } catch {
    return undefined;
  }
  const channel = textField(fieldsOf(parsed), 'channel');
  if (channel === undefined) return undefined;
  return { space: teamId, channel, root: textField(fieldsOf(parsed), 'root') ?? '' };
}

/** Decodes the body of a `slash_commands` envelope. Slack has none inside threads. */
export function decodeCommand(body: unknown, context: DecodeContext): Decoded | undefined {
  const payload = fieldsOf(body);
  const channel = textField(payload, 'channel_id');
  const id = textField(payload, 'user_id');
  if (channel === undefined || id === undefined) return undefined;
  return {
    kind: 'command',
    dedupeKeys: [`command:${triggerOf(payload) || `${id}:${context.platformNowMs}`}`],
    place: { space: context.teamId, channel, root: '' },
    author: {
      id,
      // Slash commands are there for people of the installing workspace alone.
      space: textField(payload, 'team_id'),
      roles: context.rolesOf(id),
      isBot: false,
      name: context.nameOf(id) ?? textField(payload, 'user_name') ?? id,
    },
    text: unescapeEntities(textField(payload, 'text') ?? '').trim(),
    sentAtPlatformMs: context.platformNowMs,
    receivedAtMonotonicMs: context.receivedAtMonotonicMs,
  };
}

function actorOf(payload: Fields, context: DecodeContext): Person | undefined {
  const user = fieldsOf(payload['user']);
  const id = textField(user, 'id');
  if (id === undefined) return undefined;
  return {
    id,
    // Missing counts as foreign: people of other organisations can press our buttons.
    space: textField(user, 'team_id'),
    roles: context.rolesOf(id),
    isBot: false,
    name: context.nameOf(id) ?? textField(user, 'username') ?? textField(user, 'name') ?? id,
  };
}

function triggerOf(payload: Fields): string {
  return textField(payload, 'trigger_id') ?? '';
}

/** A message id of Slack: seconds and six digits. Compared as text, never as a number. */
export function isTs(value: string): boolean {
  return /^\d{1,12}\.\d{6}$/.test(value);
}

/** Milliseconds of a ts. Only the age is taken from it: 16 digits do not fit a number times 1,000. */
export function tsToMs(ts: string): number {
  const [seconds = '0', fraction = '0'] = ts.split('.');
  return Number(seconds) * 1_000 + Math.floor(Number(`0.${fraction}`) * 1_000);
}

/** The ts of a moment, for bounds of a search. */
export function msToTs(ms: number): string {
  const whole = Math.max(0, Math.floor(ms));
  return `${Math.floor(whole / 1_000)}.${String((whole % 1_000) * 1_000).padStart(6, '0')}`;
}
