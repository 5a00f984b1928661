// Threads: made from a message, alone or in a forum; archived by quiet, by hand, locked, renamed.

import type { Timer } from '../../base/clock.ts';
import {
  ApiError,
  FormErrors,
  missingPermissions,
  threadArchived,
  threadExists,
  threadLocked,
  tooManyThreads,
} from './errors.ts';
import type { Guild } from './guild.ts';
import { type Json, numberOf, stringOf, stringsOf } from './json.ts';
import { CHANNEL, type ChannelRecord, FLAG, INTENT, type MessageRecord } from './records.ts';
import { channelJson, threadMemberJson } from './wire.ts';

const ARCHIVE_MINUTES = [60, 1_440, 4_320, 10_080];
const DEFAULT_ARCHIVE_MINUTES = 1_440;

export class Threads {
  readonly #guild: Guild;
  readonly #timers = new Map<string, Timer>();
  /** Active threads a guild may have; the unofficial documentation's number. */
  activeMax = 1_000;

  constructor(guild: Guild) {
    this.#guild = guild;
  }

  /** POST /channels/{c}/messages/{m}/threads. The thread's id is the message's. */
  fromMessage(
    parent: ChannelRecord,
    message: MessageRecord,
    form: Json,
    userId: string,
  ): ChannelRecord {
    const guild = this.#guild;
    this.#refuseWithout(userId, 'CREATE_PUBLIC_THREADS', parent);
    if (guild.channels.has(message.id)) throw threadExists();
    const thread = this.#make(parent, form, userId, {
      id: message.id,
      type: CHANNEL.PUBLIC_THREAD,
    });
    message.flags |= FLAG.HAS_THREAD;
    this.#announce(thread);
    return thread;
  }

  /** POST /channels/{c}/threads. Without a type Discord makes it private. */
  alone(parent: ChannelRecord, form: Json, userId: string): ChannelRecord {
    const type = numberOf(form['type']) ?? CHANNEL.PRIVATE_THREAD;
    if (type !== CHANNEL.PUBLIC_THREAD && type !== CHANNEL.PRIVATE_THREAD) {
      const errors = new FormErrors();
      errors.choices('type', type);
      errors.throwIfAny();
    }
    const isPrivate = type === CHANNEL.PRIVATE_THREAD;
    this.#refuseWithout(
      userId,
      isPrivate ? 'CREATE_PRIVATE_THREADS' : 'CREATE_PUBLIC_THREADS',
      parent,
    );
    const thread = this.#make(parent, form, userId, { id: this.#guild.mint.mint(), type });
    this.#announce(thread);
    return thread;
  }

  /** A forum post: the caller adds the first message, whose id must be the thread's. */
  inForum(parent: ChannelRecord, form: Json, userId: string): ChannelRecord {
    this.#refuseWithout(userId, 'SEND_MESSAGES', parent);
    const tags = stringsOf(form['applied_tags']);
    if (tags.length > 5) {
      const errors = new FormErrors();
      errors.tooLong('applied_tags', 5);
      errors.throwIfAny();
    }
    if (tags.some((tag) => !parent.tags.some((known) => known.id === tag)))
      throw new ApiError(
        400,
        40066,
        'There are no tags available that can be set by non-moderators',
      );
    if (parent.requiresTag && tags.length === 0)
      throw new ApiError(400, 40067, 'A tag is required to create a forum post in this channel');
    const thread = this.#make(parent, form, userId, {
      id: this.#guild.mint.mint(),
      type: CHANNEL.PUBLIC_THREAD,
    });
    if (thread.thread !== undefined) thread.thread.appliedTags = tags;
    this.#announce(thread);
    return thread;
  }

  #make(
    parent: ChannelRecord,
    form: Json,
    userId: string,
    made: { readonly id: string; readonly type: number },
  ): ChannelRecord {
    const guild = this.#guild;
    const name = checkedName(form['name']);
    const minutes = checkedArchive(form['auto_archive_duration']) ?? DEFAULT_ARCHIVE_MINUTES;
    if (
      guild.threads().filter((thread) => thread.thread?.archived === false).length >= this.activeMax
    )
      throw tooManyThreads();
    const nowMs = guild.core.clock.wallMs();
    return guild.addChannel({
      ...made,
      name,
      parentId: parent.id,
      thread: {
        ownerId: userId,
        archived: false,
        locked: false,
        autoArchiveMinutes: minutes,
        archiveChangedMs: nowMs,
        createdMs: nowMs,
        activityMs: nowMs,
        members: new Set([userId]),
        appliedTags: [],
      },
    });
  }

  #announce(thread: ChannelRecord): void {
    this.#guild.dispatch({
      name: 'THREAD_CREATE',
      intents: INTENT.GUILDS,
      channelId: thread.id,
      data: () => ({
        ...channelJson(this.#guild, thread),
        newly_created: true,
      }),
    });
    this.#guild.changed('channel', { id: thread.id });
    this.#watch(thread);
  }

  #refuseWithout(
    userId: string,
    right: 'CREATE_PUBLIC_THREADS' | 'CREATE_PRIVATE_THREADS' | 'SEND_MESSAGES',
    parent: ChannelRecord,
  ): void {
    if (!this.#guild.may(userId, right, parent)) throw missingPermissions();
  }

  /**
   * Before a message enters a thread: refuses a locked one, revives an archived one.
   * @throws {ApiError} 160005.
   */
  beforePost(thread: ChannelRecord, userId: string): void {
    if (thread.thread === undefined) return;
    this.refuseLocked(thread, userId);
    if (thread.thread.archived) this.setArchived(thread, false);
  }

  /** @throws {ApiError} 160005 unless the person moderates threads. */
  refuseLocked(thread: ChannelRecord, userId: string): void {
    if (thread.thread?.locked !== true) return;
    if (!this.#guild.may(userId, 'MANAGE_THREADS', thread)) throw threadLocked();
  }

  /** @throws {ApiError} 50083. */
  refuseArchived(thread: ChannelRecord): void {
    if (thread.thread?.archived === true) throw threadArchived();
  }

  /** A message counts as activity; an edit does not. */
  touched(thread: ChannelRecord, userId: string): void {
    const state = thread.thread;
    if (state === undefined) return;
    state.activityMs = this.#guild.core.clock.wallMs();
    this.join(thread, userId);
    this.#watch(thread);
  }

  join(thread: ChannelRecord, userId: string): void {
    const state = thread.thread;
    if (state === undefined || state.members.has(userId)) return;
    state.members.add(userId);
    this.#guild.dispatch({
      name: 'THREAD_MEMBERS_UPDATE',
      intents: INTENT.GUILDS,
      channelId: thread.id,
      data: () => ({
        id: thread.id,
        guild_id: this.#guild.id,
        member_count: Math.min(50, state.members.size),
        added_members: [threadMemberJson(thread, userId)],
        removed_member_ids: [],
      }),
    });
  }

  setArchived(thread: ChannelRecord, archived: boolean): void {
    const state = thread.thread;
    if (state === undefined || state.archived === archived) return;
    const nowMs = this.#guild.core.clock.wallMs();
    state.archived = archived;
    state.archiveChangedMs = nowMs;
    if (!archived) state.activityMs = nowMs;
    this.updated(thread);
    this.#watch(thread);
  }

  /** A channel that has just been made. */
  created(channel: ChannelRecord): void {
    this.#guild.dispatch({
      name: 'CHANNEL_CREATE',
      intents: INTENT.GUILDS,
      channelId: channel.id,
      data: () => channelJson(this.#guild, channel),
    });
    this.#guild.changed('channel', { id: channel.id });
  }

  updated(channel: ChannelRecord): void {
    this.#guild.dispatch({
      name: channel.thread === undefined ? 'CHANNEL_UPDATE' : 'THREAD_UPDATE',
      intents: INTENT.GUILDS,
      channelId: channel.id,
      data: () => channelJson(this.#guild, channel),
    });
    this.#guild.changed('channel', { id: channel.id });
  }

  /**
   * PATCH /channels/{thread}, by the bot or a person.
   * @throws {ApiError} 50013, 50083, 160005, 50035.
   */
  patch(thread: ChannelRecord, form: Json, userId: string): void {
    const state = thread.thread;
    if (state === undefined) return;
    const manages = this.#guild.may(userId, 'MANAGE_THREADS', thread);
    this.#refusePatch(thread, form, userId, manages);
    const name = form['name'] === undefined ? undefined : checkedName(form['name']);
    const minutes = checkedArchive(form['auto_archive_duration']);
    if (name !== undefined) thread.name = name;
    if (minutes !== undefined && minutes !== state.autoArchiveMinutes) {
      state.autoArchiveMinutes = minutes;
      state.activityMs = this.#guild.core.clock.wallMs();
    }
    if (typeof form['locked'] === 'boolean') state.locked = form['locked'];
    const slowmode = numberOf(form['rate_limit_per_user']);
    if (slowmode !== undefined) thread.slowmodeSecs = slowmode;
    if (typeof form['archived'] === 'boolean' && form['archived'] !== state.archived)
      this.setArchived(thread, form['archived']);
    else this.updated(thread);
    this.#watch(thread);
  }

  #refusePatch(thread: ChannelRecord, form: Json, userId: string, manages: boolean): void {
    const state = thread.thread;
    const owns = state?.ownerId === userId;
    if ((form['locked'] !== undefined || form['rate_limit_per_user'] !== undefined) && !manages)
      throw missingPermissions();
    if (state?.locked === true && !manages) throw threadLocked();
    // Any member may revive an unlocked thread; the rest is for its creator and moderators.
    const onlyRevives = form['archived'] === false && Object.keys(form).length === 1;
    if (!owns && !manages && !onlyRevives) throw missingPermissions();
    if (state?.archived === true && form['archived'] === undefined) throw threadArchived();
  }

  remove(channel: ChannelRecord): void {
    this.#timers.get(channel.id)?.cancel();
    this.#timers.delete(channel.id);
    this.#guild.dispatch({
      name: channel.thread === undefined ? 'CHANNEL_DELETE' : 'THREAD_DELETE',
      intents: INTENT.GUILDS,
      channelId: channel.id,
      data: () =>
        channel.thread === undefined
          ? channelJson(this.#guild, channel)
          : {
              id: channel.id,
              guild_id: this.#guild.id,
              parent_id: channel.parentId,
              type: channel.type,
            },
    });
    this.#guild.removeChannel(channel.id);
    this.#guild.changed('channel', { id: channel.id });
  }

  #watch(thread: ChannelRecord): void {
    const state = thread.thread;
    if (state === undefined) return;
    this.#timers.get(thread.id)?.cancel();
    this.#timers.delete(thread.id);
    if (state.archived) return;
    const clock = this.#guild.core.clock;
    const dueMs = state.activityMs + state.autoArchiveMinutes * 60_000;
    const timer = clock.timer(Math.max(0, dueMs - clock.wallMs()), () =>
      this.setArchived(thread, true),
    );
    timer.unref();
    this.#timers.set(thread.id, timer);
  }
}

/** @throws {ApiError} 50035 unless it is 1 to 100 characters. */
export function checkedName(value: unknown): string {
  const name = (stringOf(value) ?? '').trim();
  const errors = new FormErrors();
  if (value === undefined) errors.required('name');
  else if (name.length < 1 || name.length > 100) errors.badLength('name', 1, 100);
  errors.throwIfAny();
  return name;
}

function checkedArchive(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  const minutes = numberOf(value);
  if (minutes === undefined || !ARCHIVE_MINUTES.includes(minutes)) {
    const errors = new FormErrors();
    errors.choices('auto_archive_duration', value);
    errors.throwIfAny();
  }
  return minutes;
}
