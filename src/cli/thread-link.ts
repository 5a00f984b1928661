// What people paste to name a thread: permalinks, ids, channel and timestamp. Pure; whether the thread
// exists is the platform's to say.

import type { Kind } from '../base/paths.ts';

/** Fields of bind-thread's arguments. */
export interface ThreadName {
  readonly space: string;
  readonly channel: string;
  readonly root: string;
}

/** Undefined when the text names no thread. `channels` are the configured ones. */
export function parseThread(
  kind: Kind,
  text: string,
  channels: readonly string[],
): ThreadName | undefined {
  const pasted = text.trim().replace(/^<(.*)>$/, '$1');
  return kind === 'slack' ? parseSlack(pasted) : parseDiscord(pasted, channels);
}

/** What `parseThread` understands, for the error. */
export function threadForms(kind: Kind): string {
  return kind === 'slack'
    ? 'a message link (…/archives/C0123/p1700000000000100) or channel/timestamp (C0123/1700000000.000100)'
    : 'a link (https://discord.com/channels/…) or a thread’s id';
}

const SLACK_LINK = /^https:\/\/[^/]+\/archives\/([CGD][A-Z0-9]+)\/p(\d{7,})(?:\?([^#]*))?(?:#.*)?$/;
const SLACK_PAIR = /^([CGD][A-Z0-9]+)[/:](\d{1,12}\.\d{1,9})$/;

function parseSlack(text: string): ThreadName | undefined {
  const [, pairChannel, pairRoot] = SLACK_PAIR.exec(text) ?? [];
  if (pairChannel !== undefined && pairRoot !== undefined) {
    return { space: '', channel: pairChannel, root: pairRoot };
  }
  const [, channel, digits, query] = SLACK_LINK.exec(text) ?? [];
  if (channel === undefined || digits === undefined) return undefined;
  // A link to a reply names its root; one to a root does not.
  const threadTs = new URLSearchParams(query ?? '').get('thread_ts');
  if (threadTs !== null) {
    return /^\d{1,12}\.\d{1,9}$/.test(threadTs)
      ? { space: '', channel, root: threadTs }
      : undefined;
  }
  return { space: '', channel, root: `${digits.slice(0, -6)}.${digits.slice(-6)}` };
}

const DISCORD_LINK =
  /^https:\/\/(?:(?:ptb|canary)\.)?discord(?:app)?\.com\/channels\/(\d+)\/(\d+)(?:\/(\d+))?\/?(?:[?#].*)?$/;

function parseDiscord(text: string, channels: readonly string[]): ThreadName | undefined {
  if (/^\d{5,20}$/.test(text)) return { space: '', channel: '', root: text };
  const [, space, place, message] = DISCORD_LINK.exec(text) ?? [];
  if (space === undefined || place === undefined) return undefined;
  // A message in a configured channel opened the thread that has its id; any other link to a
  // message is one inside the thread.
  if (message !== undefined && channels.includes(place)) {
    return { space, channel: place, root: message };
  }
  return { space, channel: '', root: place };
}
