// The workspace's memory and its rules about who is where: users, channels, messages, files. It
// changes what is stored and says so through `changed`; it knows no API, no sockets, no time-outs.

import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Fields } from '../fields.ts';
import type {
  ChannelKind,
  EphemeralNote,
  SlackChannel,
  SlackFile,
  SlackMessage,
  SlackUser,
} from './model.ts';
import { formatTs, nextMicros } from './ts.ts';

export const BOT_USER = 'U0CHATDBOT';
export const BOT_ID = 'B0CHATD001';

/** What happened to the stored state, for the page and for the app's events. */
export type WorkspaceChange =
  | { readonly kind: 'posted'; readonly message: SlackMessage }
  | { readonly kind: 'changed'; readonly message: SlackMessage; readonly before: SlackMessage }
  /** Nobody typed it: reply counts, unfurls, finished files. */
  | { readonly kind: 'touched'; readonly message: SlackMessage; readonly before: SlackMessage }
  | { readonly kind: 'deleted'; readonly message: SlackMessage; readonly by: string }
  | {
      readonly kind: 'reaction';
      readonly message: SlackMessage;
      readonly name: string;
      readonly user: string;
      readonly on: boolean;
    }
  | { readonly kind: 'file-shared'; readonly file: SlackFile; readonly message: SlackMessage }
  | { readonly kind: 'ephemeral'; readonly note: EphemeralNote }
  | { readonly kind: 'joined'; readonly channel: SlackChannel; readonly user: string }
  | { readonly kind: 'left'; readonly channel: SlackChannel; readonly user: string }
  | {
      readonly kind: 'channel';
      readonly channel: SlackChannel;
      readonly event: string;
      readonly previousId?: string;
    };

export interface NewMessage {
  readonly channel: SlackChannel;
  readonly user: string;
  readonly isFromApp: boolean;
  readonly text: string;
  readonly blocks?: readonly Fields[];
  readonly attachments?: readonly Fields[];
  readonly threadTs?: string;
  readonly isBroadcast?: boolean;
  readonly files?: readonly string[];
  readonly metadata?: SlackMessage['metadata'];
  readonly subtype?: string;
  readonly clientMsgId?: string;
  readonly displayName?: string;
  readonly stream?: SlackMessage['stream'];
}

const NOTES_MAX = 2_000;

export class Workspace {
  readonly teamId: string;
  readonly users = new Map<string, SlackUser>();
  readonly channels = new Map<string, SlackChannel>();
  readonly files = new Map<string, SlackFile>();
  readonly notes: EphemeralNote[] = [];
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #changed: (change: WorkspaceChange) => void;

  constructor(options: {
    readonly teamId: string;
    readonly clock: Clock;
    readonly random: Random;
    readonly changed: (change: WorkspaceChange) => void;
  }) {
    this.teamId = options.teamId;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#changed = options.changed;
  }

  /** `C0…`-shaped ids: a letter and ten of [A-Z0-9]. */
  mint(letter: string): string {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
    let id = `${letter}0`;
    for (const byte of this.#random.bytes(9)) id += alphabet.charAt(byte % alphabet.length);
    return id;
  }

  nowTs(): string {
    return formatTs(Math.floor(this.#clock.wallMs()) * 1000);
  }

  addChannel(
    name: string,
    kind: ChannelKind,
    members: readonly string[],
    id?: string,
  ): SlackChannel {
    const channel: SlackChannel = {
      id: id ?? this.mint(kind === 'im' ? 'D' : 'C'),
      name,
      kind,
      members: new Set(members),
      isArchived: false,
      isExtShared: members.some((user) => this.users.get(user)?.isStranger === true),
      posting: 'open',
      topic: '',
      messages: new Map(),
      lastTsMicros: 0,
    };
    this.channels.set(channel.id, channel);
    return channel;
  }

  /** By id, or by name with or without `#`. */
  findChannel(nameOrId: string): SlackChannel | undefined {
    const name = nameOrId.replace(/^#/, '');
    return (
      this.channels.get(nameOrId) ?? [...this.channels.values()].find((one) => one.name === name)
    );
  }

  /** By id, or by name with or without `@`. */
  findUser(nameOrId: string): SlackUser | undefined {
    const name = nameOrId.replace(/^@/, '');
    return this.users.get(nameOrId) ?? [...this.users.values()].find((one) => one.name === name);
  }

  /** The one-to-one conversation of `user` with the app, made when first asked for. */
  directMessages(user: string): SlackChannel {
    const found = [...this.channels.values()].find(
      (channel) => channel.kind === 'im' && channel.members.has(user),
    );
    return found ?? this.addChannel('directmessage', 'im', [user, BOT_USER]);
  }

  post(message: NewMessage): SlackMessage {
    const { channel } = message;
    const ts = this.#nextTs(channel);
    const stored: SlackMessage = {
      ts,
      channel: channel.id,
      user: message.user,
      isFromApp: message.isFromApp,
      text: message.text,
      blocks: message.blocks,
      attachments: message.attachments,
      threadTs: message.threadTs,
      isBroadcast: message.isBroadcast ?? false,
      files: message.files ?? [],
      edited: undefined,
      metadata: message.metadata,
      reactions: new Map(),
      isTombstone: false,
      isThreadLocked: false,
      stream: message.stream,
      editCount: 0,
      ...(message.subtype === undefined ? {} : { subtype: message.subtype }),
      ...(message.clientMsgId === undefined ? {} : { clientMsgId: message.clientMsgId }),
      ...(message.displayName === undefined ? {} : { displayName: message.displayName }),
    };
    channel.messages.set(ts, stored);
    this.#changed({ kind: 'posted', message: stored });
    this.#markRoot(channel, message.threadTs);
    return stored;
  }

  /** Applies `edit` to the message and reports both states of it. */
  change(
    message: SlackMessage,
    edit: (message: SlackMessage) => void,
    kind: 'changed' | 'touched' = 'changed',
  ): void {
    const before = { ...message, reactions: new Map(message.reactions) };
    edit(message);
    if (kind === 'changed') message.editCount += 1;
    this.#changed({ kind, message, before });
  }

  /** A root with replies stays as a tombstone; everything else goes. */
  remove(message: SlackMessage, by: string): void {
    const channel = this.channels.get(message.channel);
    if (channel === undefined) return;
    if (this.replies(channel, message.ts).length > 0) {
      this.change(
        message,
        (root) => {
          root.isTombstone = true;
          root.subtype = 'tombstone';
          root.text = 'This message was deleted.';
          root.blocks = undefined;
          root.attachments = undefined;
          root.metadata = undefined;
          root.files = [];
        },
        'touched',
      );
      return;
    }
    channel.messages.delete(message.ts);
    this.#changed({ kind: 'deleted', message, by });
    this.#forgetEmptyTombstone(channel, message.threadTs);
  }

  react(message: SlackMessage, name: string, user: string, on: boolean): boolean {
    const people = message.reactions.get(name) ?? [];
    if (people.includes(user) === on) return false;
    const next = on ? [...people, user] : people.filter((one) => one !== user);
    if (next.length === 0) message.reactions.delete(name);
    else message.reactions.set(name, next);
    this.#changed({ kind: 'reaction', message, name, user, on });
    return true;
  }

  note(note: Omit<EphemeralNote, 'ts'>, channel: SlackChannel): EphemeralNote {
    const stored = { ...note, ts: this.#nextTs(channel) };
    this.notes.push(stored);
    if (this.notes.length > NOTES_MAX) this.notes.shift();
    this.#changed({ kind: 'ephemeral', note: stored });
    return stored;
  }

  join(channel: SlackChannel, user: string): boolean {
    if (channel.members.has(user)) return false;
    channel.members.add(user);
    if (this.users.get(user)?.isStranger === true) channel.isExtShared = true;
    this.#changed({ kind: 'joined', channel, user });
    return true;
  }

  leave(channel: SlackChannel, user: string): boolean {
    if (!channel.members.delete(user)) return false;
    this.#changed({ kind: 'left', channel, user });
    return true;
  }

  /** Archive, unarchive, rename, delete: `edit` does it, `event` is its name in the Events API. */
  changeChannel(channel: SlackChannel, event: string, edit: (channel: SlackChannel) => void): void {
    const previousId = channel.id;
    edit(channel);
    if (channel.id !== previousId) {
      this.channels.delete(previousId);
      this.channels.set(channel.id, channel);
    }
    this.#changed({ kind: 'channel', channel, event, previousId });
  }

  fileShared(file: SlackFile, message: SlackMessage): void {
    file.shares.set(message.channel, { ts: message.ts, threadTs: message.threadTs });
    this.#changed({ kind: 'file-shared', file, message });
  }

  /** Replies below a root, oldest first. */
  replies(channel: SlackChannel, rootTs: string): readonly SlackMessage[] {
    return [...channel.messages.values()].filter(
      (message) => message.threadTs === rootTs && message.ts !== rootTs,
    );
  }

  #nextTs(channel: SlackChannel): string {
    channel.lastTsMicros = nextMicros(channel.lastTsMicros, this.#clock.wallMs());
    return formatTs(channel.lastTsMicros);
  }

  /** The first reply turns a message into a root; each one is reported on it (reply counts). */
  #markRoot(channel: SlackChannel, threadTs: string | undefined): void {
    const root = threadTs === undefined ? undefined : channel.messages.get(threadTs);
    if (root === undefined) return;
    this.change(
      root,
      (message) => {
        message.threadTs = message.ts;
      },
      'touched',
    );
  }

  #forgetEmptyTombstone(channel: SlackChannel, threadTs: string | undefined): void {
    const root = threadTs === undefined ? undefined : channel.messages.get(threadTs);
    if (root?.isTombstone !== true || this.replies(channel, root.ts).length > 0) return;
    channel.messages.delete(root.ts);
    this.#changed({ kind: 'deleted', message: root, by: root.user });
  }
}
