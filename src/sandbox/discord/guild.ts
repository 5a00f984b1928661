// The guild and what is in it: people, roles, channels, messages. Holds the state and hands out
// events; decides nothing about forms or rights beyond looking them up.

import type { SandboxCore } from '../module.ts';
import { unknownChannel, unknownMessage } from './errors.ts';
import type { Json } from './json.ts';
import {
  BOT_PERMISSIONS,
  EVERYONE_PERMISSIONS,
  PERMISSION,
  type PermissionName,
  permissionsIn,
} from './permissions.ts';
import {
  type AttachmentRecord,
  CHANNEL,
  type ChannelRecord,
  type MemberRecord,
  type MessageRecord,
  type RoleRecord,
  type UserRecord,
} from './records.ts';
import { compareIds, SnowflakeMint } from './snowflake.ts';

/** Messages kept per channel; a long storm must not eat the machine. */
const MESSAGES_MAX = 20_000;
/** Bytes of files kept: a storm that uploads for hours must not either. */
const FILES_MAX_BYTES = 256 * 1024 * 1024;

/** One event for the gateway. */
export interface Dispatch {
  readonly name: string;
  /** A session gets it when it has any of these intents; 0: always. */
  readonly intents: number;
  /** The bot must be able to see this channel. */
  readonly channelId?: string;
  /** Built per session: without MESSAGE_CONTENT some fields are blank. */
  data(view: { readonly messageContent: boolean }): Json;
}

export interface GuildSetup {
  readonly token: string;
  readonly guildName: string;
}

export class Guild {
  readonly core: SandboxCore;
  readonly mint: SnowflakeMint;
  readonly id: string;
  readonly name: string;
  readonly createdMs: number;
  /** Application, bot user: one id, as for every bot made today. */
  readonly botId: string;
  readonly ownerId: string;
  token: string;
  /** The portal's switch for the privileged MESSAGE_CONTENT intent. */
  messageContentEnabled = true;
  readonly users = new Map<string, UserRecord>();
  readonly members = new Map<string, MemberRecord>();
  readonly roles = new Map<string, RoleRecord>();
  readonly channels = new Map<string, ChannelRecord>();
  readonly #messages = new Map<string, Map<string, MessageRecord>>();
  readonly #files: AttachmentRecord[] = [];
  #fileBytes = 0;
  readonly #listeners = new Set<(event: Dispatch) => void>();

  constructor(core: SandboxCore, setup: GuildSetup) {
    this.core = core;
    this.createdMs = core.clock.wallMs();
    this.mint = new SnowflakeMint(() => core.clock.wallMs());
    this.id = this.mint.mint();
    this.name = setup.guildName;
    this.token = setup.token;
    this.roles.set(this.id, {
      id: this.id,
      name: '@everyone',
      permissions: EVERYONE_PERMISSIONS,
      position: 0,
    });
    const bot = this.addUser('chatd', true);
    this.botId = bot.id;
    const role = this.addRole('chatd', BOT_PERMISSIONS);
    this.member(bot.id).roleIds.add(role.id);
    this.ownerId = this.addUser('olga', false).id;
    this.addUser('alice', false);
    this.addUser('bob', false);
    this.addChannel({ name: 'ops', type: CHANNEL.TEXT });
  }

  // People and roles.

  addUser(username: string, bot: boolean): UserRecord {
    const id = this.mint.mint();
    const globalName = bot ? null : username.charAt(0).toUpperCase() + username.slice(1);
    const user = { id, username, globalName, bot };
    this.users.set(id, user);
    this.members.set(id, { userId: id, roleIds: new Set(), joinedMs: this.core.clock.wallMs() });
    return user;
  }

  addRole(name: string, permissions: bigint): RoleRecord {
    const role = { id: this.mint.mint(), name, permissions, position: this.roles.size };
    this.roles.set(role.id, role);
    return role;
  }

  user(id: string): UserRecord | undefined {
    return this.users.get(id);
  }

  /** @throws {Error} when nobody has that id: the caller made a record without a member. */
  member(id: string): MemberRecord {
    const member = this.members.get(id);
    if (member === undefined) throw new Error(`No member ${id}`);
    return member;
  }

  /** Rights of a member in a channel; threads inherit from their parent. */
  permissions(userId: string, channel: ChannelRecord | undefined): bigint {
    const member = this.members.get(userId);
    if (member === undefined) return 0n;
    if (channel?.type === CHANNEL.DM)
      return channel.recipientId === userId || userId === this.botId ? -1n : 0n;
    const parent = channel?.parentId === undefined ? channel : this.channels.get(channel.parentId);
    return permissionsIn({
      ownerId: this.ownerId,
      everyoneId: this.id,
      roles: this.roles,
      member,
      channel: parent,
    });
  }

  may(userId: string, name: PermissionName, channel: ChannelRecord | undefined): boolean {
    if (channel?.type === CHANNEL.PRIVATE_THREAD && !this.#isInThread(userId, channel))
      return false;
    return (this.permissions(userId, channel) & PERMISSION[name]) !== 0n;
  }

  #isInThread(userId: string, thread: ChannelRecord): boolean {
    if (thread.thread?.members.has(userId) === true) return true;
    return (this.permissions(userId, thread) & PERMISSION.MANAGE_THREADS) !== 0n;
  }

  // Channels.

  addChannel(fields: Partial<ChannelRecord> & Pick<ChannelRecord, 'name' | 'type'>): ChannelRecord {
    const channel: ChannelRecord = {
      id: this.mint.mint(),
      guildId: this.id,
      topic: null,
      parentId: undefined,
      position: this.channels.size,
      slowmodeSecs: 0,
      overwrites: [],
      lastMessageId: null,
      messageCount: 0,
      thread: undefined,
      recipientId: undefined,
      tags: [],
      requiresTag: false,
      ...fields,
    };
    this.channels.set(channel.id, channel);
    return channel;
  }

  removeChannel(id: string): void {
    this.channels.delete(id);
    this.#messages.delete(id);
  }

  /** @throws {ApiError} 10003. */
  channel(id: string): ChannelRecord {
    const channel = this.channels.get(id);
    if (channel === undefined) throw unknownChannel();
    return channel;
  }

  threads(): readonly ChannelRecord[] {
    return [...this.channels.values()].filter((channel) => channel.thread !== undefined);
  }

  // Messages.

  addMessage(message: MessageRecord): void {
    let list = this.#messages.get(message.channelId);
    if (list === undefined) {
      list = new Map();
      this.#messages.set(message.channelId, list);
    }
    list.set(message.id, message);
    if (list.size > MESSAGES_MAX) {
      const oldest = list.keys().next();
      if (oldest.done !== true) list.delete(oldest.value);
    }
  }

  findMessage(channelId: string, id: string): MessageRecord | undefined {
    return this.#messages.get(channelId)?.get(id);
  }

  /** @throws {ApiError} 10008. */
  message(channelId: string, id: string): MessageRecord {
    const message = this.findMessage(channelId, id);
    if (message === undefined) throw unknownMessage();
    return message;
  }

  /** Oldest first, ephemeral ones included. */
  messages(channelId: string): readonly MessageRecord[] {
    const list = this.#messages.get(channelId);
    return list === undefined ? [] : [...list.values()].sort((a, b) => compareIds(a.id, b.id));
  }

  /** Counts a new file in; the oldest lose their bytes when all are too many. */
  keepFile(file: AttachmentRecord): void {
    this.#files.push(file);
    this.#fileBytes += file.size;
    while (this.#fileBytes > FILES_MAX_BYTES) {
      const oldest = this.#files.shift();
      if (oldest === undefined) return;
      this.#fileBytes -= oldest.size;
      oldest.bytes = undefined;
    }
  }

  removeMessage(channelId: string, id: string): void {
    this.#messages.get(channelId)?.delete(id);
  }

  // Events.

  /** Calls `listener` for every event from now on. */
  onDispatch(listener: (event: Dispatch) => void): void {
    this.#listeners.add(listener);
  }

  dispatch(event: Dispatch): void {
    for (const listener of this.#listeners) listener(event);
  }

  /** Tells the page and tests that something changed. */
  changed(type: string, data: Json): void {
    this.core.changes.push({ platform: 'discord', type, data });
  }

  violation(
    rule: string,
    severity: 'refused' | 'warned' | 'mangled',
    target: string,
    detail: string,
  ): void {
    this.core.violations.add({ platform: 'discord', rule, severity, target, detail });
  }
}
