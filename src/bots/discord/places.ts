// Which thread belongs to which channel, and the state it was last seen in. Learned from what the
// gateway tells; a message names its thread only. Bounded: what is forgotten is asked for again.

import type { Clock } from '../../base/clock.ts';
import type { ThreadRoot } from '../chat-platform.ts';
import { type Fields, fieldsOf, textField } from '../fields.ts';
import { RecentMap } from '../recent-map.ts';
import { compareSnowflakes } from './snowflake.ts';

export interface KnownPlace {
  readonly id: string;
  /** The channel a thread is in; undefined for a channel. */
  readonly parentId: string | undefined;
  readonly archived: boolean;
  readonly locked: boolean;
  readonly lastMessageId: string | undefined;
}

/** Announcement thread, public thread, private thread. */
const THREAD_TYPES = new Set<unknown>([10, 11, 12]);
const PLACES_MAX = 5_000;
const KNOWN_MS = 24 * 60 * 60_000;

export class Places {
  readonly #known: RecentMap<string, KnownPlace>;

  constructor(clock: Clock) {
    this.#known = new RecentMap({ clock, capacity: PLACES_MAX, ttlMs: KNOWN_MS });
  }

  /** Takes a channel object; returns what was known before and what is now. */
  learn(channel: Fields): { before: KnownPlace | undefined; now: KnownPlace } | undefined {
    const now = placeOf(channel);
    if (now === undefined) return undefined;
    const before = this.#known.get(now.id);
    const merged = {
      ...now,
      parentId: now.parentId ?? before?.parentId,
      lastMessageId: newer(now.lastMessageId, before?.lastMessageId),
    };
    this.#known.set(now.id, merged);
    return { before, now: merged };
  }

  get(id: string): KnownPlace | undefined {
    return this.#known.get(id);
  }

  /** A message was seen there. */
  saw(id: string, messageId: string): void {
    const place = this.#known.get(id);
    if (place !== undefined) this.#known.set(id, { ...place, lastMessageId: messageId });
  }

  /** A new session of the gateway: what was known of newest messages is old. */
  clear(): void {
    this.#known.clear();
  }

  forget(id: string): void {
    this.#known.delete(id);
  }
}

export function isThread(channel: Fields): boolean {
  return THREAD_TYPES.has(channel['type']);
}

function placeOf(channel: Fields): KnownPlace | undefined {
  const id = textField(channel, 'id');
  if (id === undefined) return undefined;
  const state = fieldsOf(channel['thread_metadata']);
  return {
    id,
    parentId: isThread(channel) ? textField(channel, 'parent_id') : undefined,
    archived: state['archived'] === true,
    locked: state['locked'] === true,
    lastMessageId: textField(channel, 'last_message_id'),
  };
}

function newer(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return compareSnowflakes(a, b) < 0 ? b : a;
}

/** Where a message with this channel id is. */
export function rootOf(space: string, place: KnownPlace): ThreadRoot {
  return place.parentId === undefined
    ? { space, channel: place.id, root: '' }
    : { space, channel: place.parentId, root: place.id };
}
