// From a Discord payload to what a person did. Pure: no network, no clock, no state; everything it
// needs to know comes in the context. Payloads are untrusted: what does not fit is not an event.

import type { Inbound, InboundFile, Person, ThreadRoot } from '../chat-platform.ts';
import { type Fields, fieldsOf, listField, numberField, textField } from '../fields.ts';
import { plainPunctuation } from '../typed-text.ts';
import type { KnownPlace } from './places.ts';
import { snowflakeMs } from './snowflake.ts';

/** What decoding needs to know about us and the moment. */
export interface DecodeContext {
  readonly guildId: string;
  readonly ourUserId: string;
  readonly receivedAtMonotonicMs: number;
  readonly caughtUp: boolean;
}

/** An act that is answered: everything but the means to answer. */
export type Decoded =
  | Exclude<Inbound, { kind: 'action' | 'command' | 'modal' }>
  | Omit<Extract<Inbound, { kind: 'action' }>, 'reply'>
  | Omit<Extract<Inbound, { kind: 'command' }>, 'reply'>
  | Omit<Extract<Inbound, { kind: 'modal' }>, 'reply'>;

/** Default message and reply. All others are Discord's own notices. */
const MESSAGE_TYPES = new Set<unknown>([0, 19]);
/** Set on what we say to one person in public, so that it is never taken for a row's message. */
export const SILENT_FLAG = 4_096;

/** The nonce of a row: 25 characters at most, or it cannot be sent. */
export function nonceOf(row: { b: string; s: number }): string | undefined {
  const nonce = `${row.b}.${row.s.toString(36)}`;
  return nonce.length <= 25 && /^[0-9a-z]+\.[0-9a-z]+$/.test(nonce) ? nonce : undefined;
}

/** The row a nonce names. Discord returns it in the create event and the create reply only. */
export function rowOfNonce(nonce: unknown): { b: string; s: number } | undefined {
  if (typeof nonce !== 'string') return undefined;
  const match = /^([0-9a-z]+)\.([0-9a-z]{1,10})$/.exec(nonce);
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  return { b: match[1], s: Number.parseInt(match[2], 36) };
}

/** Decodes a message, as an event carries it or as a page lists it. */
export function decodeMessage(
  message: Fields,
  place: ThreadRoot,
  context: DecodeContext,
): Decoded | undefined {
  const id = textField(message, 'id');
  const author = authorOf(message, context.guildId);
  if (id === undefined || author === undefined) return undefined;
  if (author.id === context.ourUserId && textField(message, 'webhook_id') === undefined) {
    const row = rowOfNonce(message['nonce']);
    return row === undefined ? undefined : { kind: 'own-message', place, messageId: id, row };
  }
  if (!MESSAGE_TYPES.has(message['type'])) return undefined;
  const typed = decodeTyped(message, context.ourUserId);
  return {
    kind: 'message',
    dedupeKeys: [`message:${id}`],
    place,
    messageId: id,
    author,
    text: typed.text,
    ...(typed.asWritten === typed.text ? {} : { asWritten: typed.asWritten }),
    verbatim: typed.verbatim,
    mentionsUs: typed.mentionsUs,
    sentAtPlatformMs: snowflakeMs(id),
    receivedAtMonotonicMs: context.receivedAtMonotonicMs,
    caughtUp: context.caughtUp,
    files: filesOf(message),
  };
}

/**
 * A person's message that arrived with nothing in it: what Discord sends to a bot without the
 * MESSAGE_CONTENT intent.
 */
export function isBlank(message: Fields): boolean {
  const author = fieldsOf(message['author']);
  if (author['bot'] === true || textField(message, 'webhook_id') !== undefined) return false;
  if (!MESSAGE_TYPES.has(message['type']) || message['content'] !== '') return false;
  const parts = ['attachments', 'embeds', 'components', 'sticker_items', 'message_snapshots'];
  if (parts.some((part) => listField(message, part).length > 0)) return false;
  return message['poll'] === undefined || message['poll'] === null;
}

function authorOf(message: Fields, guildId: string): Person | undefined {
  const author = fieldsOf(message['author']);
  const id = textField(author, 'id');
  if (id === undefined) return undefined;
  const isWebhook = textField(message, 'webhook_id') !== undefined;
  const member = fieldsOf(message['member']);
  return {
    id,
    // Whoever wrote into a channel of the guild is in it; a page of history carries no member.
    space: isWebhook ? undefined : guildId,
    roles: rolesOf(member),
    isBot: author['bot'] === true || isWebhook,
    name: nameOf(author, member),
  };
}

function rolesOf(member: Fields): readonly string[] {
  return listField(member, 'roles').filter((role) => typeof role === 'string');
}

function nameOf(user: Fields, member: Fields): string {
  const names = [
    textField(member, 'nick'),
    textField(user, 'global_name'),
    textField(user, 'username'),
  ];
  return names.find((name) => name !== undefined && name !== '') ?? textField(user, 'id') ?? '?';
}

/** A member as `GET /guilds/{id}/members/{id}` gives it. */
export function personOf(member: Fields, guildId: string): Person | undefined {
  const user = fieldsOf(member['user']);
  const id = textField(user, 'id');
  if (id === undefined) return undefined;
  return {
    id,
    space: guildId,
    roles: rolesOf(member),
    isBot: user['bot'] === true,
    name: nameOf(user, member),
  };
}

interface Typed {
  readonly text: string;
  readonly asWritten: string;
  readonly verbatim: boolean;
  readonly mentionsUs: boolean;
}

function decodeTyped(message: Fields, ourUserId: string): Typed {
  const content = textField(message, 'content') ?? '';
  const us = new RegExp(`<@!?${ourUserId}>`);
  const mentionsUs = us.test(content);
  const rest = content.replace(new RegExp(`^\\s*<@!?${ourUserId}>[ \\t]*`), '');
  const code = wholeCode(rest);
  if (code !== undefined) return { text: code, asWritten: code, verbatim: true, mentionsUs };
  const names = namesOf(message);
  const parts = rest.split(/(```[\s\S]*?```|`[^`\n]+`)/);
  const written = parts.map((part, index) => (index % 2 === 1 ? part : unmarked(part, names)));
  const plain = written.map((part, index) => (index % 2 === 1 ? part : plainPunctuation(part)));
  return { text: plain.join(''), asWritten: written.join(''), verbatim: false, mentionsUs };
}

/** The inside of a message that is one block or one span of code. */
function wholeCode(content: string): string | undefined {
  const fence = /^\s*```(?:[A-Za-z0-9+_.-]*\n)?([\s\S]*?)\n?```\s*$/.exec(content)?.[1];
  if (fence !== undefined) return fence.includes('```') ? undefined : fence;
  const twice = /^\s*``([^`][\s\S]*?)``\s*$/.exec(content)?.[1];
  return twice ?? /^\s*`([^`\n]+)`\s*$/.exec(content)?.[1];
}

function namesOf(message: Fields): ReadonlyMap<string, string> {
  return new Map(
    listField(message, 'mentions')
      .map(fieldsOf)
      .map((user) => [textField(user, 'id') ?? '', textField(user, 'username') ?? ''] as const),
  );
}

/** People type `@bob` and `:wave:`; Discord stores ids. */
function unmarked(text: string, names: ReadonlyMap<string, string>): string {
  return text
    .replace(/<@!?(\d+)>/g, (whole, id: string) => {
      const name = names.get(id);
      return name === undefined || name === '' ? whole : `@${name}`;
    })
    .replace(/<a?:(\w+):\d+>/g, ':$1:');
}

function filesOf(message: Fields): readonly InboundFile[] {
  const channel = textField(message, 'channel_id') ?? '';
  const id = textField(message, 'id') ?? '';
  return listField(message, 'attachments')
    .slice(0, 10)
    .map(fieldsOf)
    .map((file) => ({
      // Addresses are signed and expire: the file is asked for again by where it is.
      id: `${channel}/${id}/${textField(file, 'id') ?? ''}`,
      name: textField(file, 'filename') ?? 'file',
      sizeBytes: numberField(file, 'size') ?? 0,
      mediaType: textField(file, 'content_type') ?? 'application/octet-stream',
    }));
}

/** Where an interaction happened: a button on a starter message belongs to that message's thread. */
export function interactionPlace(
  interaction: Fields,
  place: KnownPlace,
  guildId: string,
): ThreadRoot {
  if (place.parentId !== undefined) {
    return { space: guildId, channel: place.parentId, root: place.id };
  }
  const root = textField(fieldsOf(interaction['message']), 'id') ?? '';
  return { space: guildId, channel: place.id, root };
}

/** Decodes a slash command, a pressed button or a submitted modal. */
export function decodeInteraction(
  interaction: Fields,
  place: ThreadRoot,
  context: DecodeContext,
): Decoded | undefined {
  const id = textField(interaction, 'id');
  const author = actorOf(interaction);
  if (id === undefined || author === undefined) return undefined;
  const data = fieldsOf(interaction['data']);
  const common = {
    dedupeKeys: [`interaction:${id}`],
    place,
    author,
    sentAtPlatformMs: snowflakeMs(id),
    receivedAtMonotonicMs: context.receivedAtMonotonicMs,
  };
  switch (interaction['type']) {
    case 2:
      return { kind: 'command', ...common, text: commandText(data) };
    case 3: {
      const messageId = textField(fieldsOf(interaction['message']), 'id');
      const action = textField(data, 'custom_id');
      if (messageId === undefined || action === undefined) return undefined;
      return { kind: 'action', ...common, messageId, action };
    }
    case 5: {
      const modal = textField(data, 'custom_id');
      if (modal === undefined) return undefined;
      return { kind: 'modal', ...common, modal, values: modalValues(data) };
    }
    default:
      return undefined;
  }
}

function actorOf(interaction: Fields): Person | undefined {
  const member = fieldsOf(interaction['member']);
  const user = fieldsOf(member['user'] ?? interaction['user']);
  const id = textField(user, 'id');
  if (id === undefined) return undefined;
  return {
    id,
    space: interaction['member'] === undefined ? undefined : textField(interaction, 'guild_id'),
    roles: rolesOf(member),
    isBot: user['bot'] === true,
    name: nameOf(user, member),
  };
}

/** The words a person would have typed after the command's name: `run PROFILE -- COMMAND`. */
function commandText(data: Fields): string {
  const [sub] = listField(data, 'options').map(fieldsOf);
  if (sub === undefined) return '';
  const values = new Map(
    listField(sub, 'options')
      .map(fieldsOf)
      .map((option) => [textField(option, 'name'), textField(option, 'value') ?? ''] as const),
  );
  const profile = values.get('profile') ?? '';
  const command = values.get('command') ?? '';
  return [textField(sub, 'name') ?? '', profile, command === '' ? '' : `-- ${command}`]
    .filter((word) => word !== '')
    .join(' ');
}

/** Values of a modal: labels (18) hold one component, the older action rows (1) a list. */
function modalValues(data: Fields): Readonly<Record<string, string>> {
  const inputs = listField(data, 'components')
    .map(fieldsOf)
    .flatMap((row) => [row['component'], ...listField(row, 'components')])
    .map(fieldsOf)
    .filter((input) => textField(input, 'custom_id') !== undefined);
  return Object.fromEntries(
    inputs.map((input) => [textField(input, 'custom_id') ?? '', textField(input, 'value') ?? '']),
  );
}

/** What a thread's or channel's update changed, in the order it matters. */
export function placeChanges(
  before: KnownPlace | undefined,
  now: KnownPlace,
  place: ThreadRoot,
): readonly Decoded[] {
  const changes: Decoded[] = [];
  if (now.locked !== (before?.locked ?? false)) {
    changes.push({ kind: 'place-changed', place, change: now.locked ? 'locked' : 'unlocked' });
  }
  if (now.archived !== (before?.archived ?? false)) {
    const change = now.archived ? 'archived' : 'unarchived';
    changes.push({ kind: 'place-changed', place, change });
  }
  return changes;
}
