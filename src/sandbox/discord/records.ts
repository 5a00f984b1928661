// What the guild holds. Records are the sandbox's own; wire.ts turns them into Discord's JSON.

import type { Json } from './json.ts';

export const CHANNEL = {
  TEXT: 0,
  DM: 1,
  FORUM: 15,
  PUBLIC_THREAD: 11,
  PRIVATE_THREAD: 12,
} as const;

export const MESSAGE = {
  DEFAULT: 0,
  CHANNEL_NAME_CHANGE: 4,
  PINNED: 6,
  THREAD_CREATED: 18,
  REPLY: 19,
  CHAT_INPUT_COMMAND: 20,
  THREAD_STARTER: 21,
} as const;

export const FLAG = {
  SUPPRESS_EMBEDS: 1 << 2,
  EPHEMERAL: 1 << 6,
  LOADING: 1 << 7,
  HAS_THREAD: 1 << 5,
  SUPPRESS_NOTIFICATIONS: 1 << 12,
  COMPONENTS_V2: 1 << 15,
} as const;

export const INTENT = {
  GUILDS: 1,
  GUILD_MEMBERS: 1 << 1,
  GUILD_PRESENCES: 1 << 8,
  GUILD_MESSAGES: 1 << 9,
  GUILD_MESSAGE_REACTIONS: 1 << 10,
  GUILD_MESSAGE_TYPING: 1 << 11,
  DIRECT_MESSAGES: 1 << 12,
  MESSAGE_CONTENT: 1 << 15,
} as const;

export interface UserRecord {
  readonly id: string;
  readonly username: string;
  readonly globalName: string | null;
  readonly bot: boolean;
}

export interface RoleRecord {
  readonly id: string;
  readonly name: string;
  permissions: bigint;
  readonly position: number;
}

export interface MemberRecord {
  readonly userId: string;
  readonly roleIds: Set<string>;
  readonly joinedMs: number;
}

export interface Overwrite {
  readonly id: string;
  /** 0 role, 1 member. */
  readonly type: number;
  readonly allow: bigint;
  readonly deny: bigint;
}

export interface ThreadState {
  readonly ownerId: string;
  archived: boolean;
  locked: boolean;
  autoArchiveMinutes: number;
  /** When `archived` last changed. */
  archiveChangedMs: number;
  readonly createdMs: number;
  /** Last message, unarchive or change of the archive time. Edits do not count. */
  activityMs: number;
  readonly members: Set<string>;
  appliedTags: readonly string[];
}

export interface ChannelRecord {
  readonly id: string;
  readonly type: number;
  /** Undefined for direct messages. */
  readonly guildId: string | undefined;
  name: string;
  topic: string | null;
  readonly parentId: string | undefined;
  readonly position: number;
  slowmodeSecs: number;
  overwrites: Overwrite[];
  lastMessageId: string | null;
  messageCount: number;
  readonly thread: ThreadState | undefined;
  /** Direct messages: the person at the other end. */
  readonly recipientId: string | undefined;
  readonly tags: readonly { readonly id: string; readonly name: string }[];
  readonly requiresTag: boolean;
}

export interface AttachmentRecord {
  readonly id: string;
  readonly filename: string;
  readonly contentType: string | undefined;
  /** Undefined once the sandbox had to make room: a CDN address that no longer works. */
  bytes: Uint8Array | undefined;
  readonly size: number;
  /** Of pictures, in pixels. */
  readonly dimensions: { readonly width: number; readonly height: number } | undefined;
  readonly description: string | undefined;
  readonly channelId: string;
  readonly ephemeral: boolean;
}

export interface MessageRecord {
  readonly id: string;
  readonly channelId: string;
  readonly type: number;
  readonly authorId: string;
  readonly createdMs: number;
  content: string;
  editedMs: number | null;
  flags: number;
  readonly tts: boolean;
  mentionEveryone: boolean;
  mentionIds: readonly string[];
  mentionRoleIds: readonly string[];
  attachments: readonly AttachmentRecord[];
  embeds: readonly Json[];
  components: readonly Json[];
  readonly reactions: Map<string, Set<string>>;
  pinned: boolean;
  /** Known to the create reply and MESSAGE_CREATE only; never read back. */
  readonly nonce: string | number | undefined;
  readonly referenceId: string | undefined;
  /** Where the referenced message is, when not in the same channel. */
  readonly referenceChannelId: string | undefined;
  readonly interaction:
    | {
        readonly id: string;
        readonly type: number;
        readonly userId: string;
        readonly name?: string;
      }
    | undefined;
  readonly fromApplication: boolean;
  /** An ephemeral message: the one person who sees it. */
  readonly onlyFor: string | undefined;
  /** What people typed in earlier versions, oldest first, for the page's "(edited)". */
  readonly earlier: string[];
}
