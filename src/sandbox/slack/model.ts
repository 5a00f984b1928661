// The Slack workspace as values: what is stored, before anybody asks for it in some API's shape.

import type { Fields } from '../fields.ts';

export interface SlackUser {
  readonly id: string;
  readonly name: string;
  readonly realName: string;
  readonly teamId: string;
  readonly isBot: boolean;
  /** Of another workspace, seen through a shared channel. */
  readonly isStranger: boolean;
  readonly isRestricted: boolean;
}

export type ChannelKind = 'public' | 'private' | 'im' | 'mpim';

export interface SlackChannel {
  id: string;
  name: string;
  readonly kind: ChannelKind;
  readonly members: Set<string>;
  isArchived: boolean;
  isExtShared: boolean;
  /** Who may post: everybody, nobody but admins, threads only, or no threads. */
  posting: 'open' | 'read-only' | 'thread-only' | 'no-threads';
  topic: string;
  /** By ts, in order of ts. */
  readonly messages: Map<string, SlackMessage>;
  lastTsMicros: number;
}

export interface Edited {
  readonly user: string;
  readonly ts: string;
}

export interface Metadata {
  readonly event_type: string;
  readonly event_payload: Fields;
}

export interface SlackMessage {
  readonly ts: string;
  readonly channel: string;
  readonly user: string;
  readonly isFromApp: boolean;
  readonly clientMsgId?: string;
  subtype?: string;
  /** Escaped form, as Slack stores it. */
  text: string;
  blocks: readonly Fields[] | undefined;
  attachments: readonly Fields[] | undefined;
  /** Root's ts; absent on messages that are in no thread. A root has its own ts once it has replies. */
  threadTs: string | undefined;
  isBroadcast: boolean;
  files: readonly string[];
  edited: Edited | undefined;
  metadata: Metadata | undefined;
  /** Emoji name → people, in order of their reaction. */
  readonly reactions: Map<string, string[]>;
  isTombstone: boolean;
  isThreadLocked: boolean;
  stream: Stream | undefined;
  /** How often its content changed since it was posted. */
  editCount: number;
  /** Author's name and icon, where chat:write.customize changed them. */
  readonly displayName?: string;
}

export interface Stream {
  state: 'streaming' | 'done' | 'stopped-by-user' | 'expired';
  markdown: string;
  /** Sandbox time after which it is over. */
  readonly expiresAtMs: number;
}

/** Only one person sees it; nothing can read it back through the API. */
export interface EphemeralNote {
  readonly ts: string;
  readonly channel: string;
  readonly user: string;
  readonly threadTs: string | undefined;
  readonly text: string;
  readonly blocks: readonly Fields[] | undefined;
  /** Slackbot's own words (refusals of the client) and not the app's. */
  readonly fromSlackbot: boolean;
}

export interface SlackFile {
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly user: string;
  readonly mimetype: string;
  readonly bytes: Buffer;
  readonly createdMs: number;
  /** Channel → ts of the message that shares it. Empty until Slack has processed it. */
  readonly shares: Map<string, { readonly ts: string; readonly threadTs: string | undefined }>;
  isDeleted: boolean;
  /** Slack Connect: details only through files.info. */
  needsInfo: boolean;
}

export interface SlackView {
  readonly id: string;
  readonly rootId: string;
  readonly previousId: string | undefined;
  readonly user: string;
  view: Fields;
  hash: string;
  /** Error by block id, from the last submission's ack. */
  errors: Readonly<Record<string, string>>;
}
