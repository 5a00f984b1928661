// The port to a chat platform. Two adapters implement it: slack/ and discord/. Adapters translate
// and classify; they do not retry, schedule, remember or invent recovery (DELIVERY.md does).

import type { Line } from '../term/values.ts';

export type PlatformKind = 'slack' | 'discord';

/** The place of a thread. Slack: team, channel, root ts. Discord: guild, channel, thread id. */
export interface ThreadRoot {
  readonly space: string;
  readonly channel: string;
  readonly root: string;
}

/** What one message shows. The adapter formats it; text of a program never becomes markup. */
export interface Content {
  /** Our own words above and below the terminal's lines, plain text, escaped by the adapter. */
  readonly head?: string;
  readonly lines?: readonly Line[];
  readonly foot?: string;
  /** Show colours where the platform can. */
  readonly colour?: boolean;
  readonly buttons?: readonly (readonly Button[])[];
  /** People to ping, by id. Nobody else is ever pinged. */
  readonly mention?: readonly string[];
}

export interface Button {
  readonly label: string;
  /** At most 100 characters: carries session, incarnation and key. */
  readonly action: string;
  readonly style?: 'primary' | 'danger';
}

/** How much fits into one message, in the platform's own unit, counted on what is sent. */
export interface MessageBudget {
  /** Upper bound for the lines of one message. */
  readonly linesMax: number;
  readonly unitsMax: number;
  /** Units that one line adds, its newline included. `colour` as in Content. */
  costOf(line: Line, colour: boolean): number;
  /** Cuts a line that is over budget alone into pieces that are not, never inside a grapheme. */
  split(line: Line, colour: boolean): readonly Line[];
}

/** Identity of a message of ours: names the outbox row. */
export interface RowName {
  /** Binding, minted at random. */
  readonly b: string;
  /** Sequence in the binding. */
  readonly s: number;
}

export interface PostRequest {
  /** The thread; for a root message the channel with an empty `root`. */
  readonly place: ThreadRoot;
  readonly row: RowName;
  readonly content: Content;
}

export interface EditRequest {
  readonly place: ThreadRoot;
  readonly row: RowName;
  readonly messageId: string;
  readonly content: Content;
}

export interface UploadRequest {
  readonly place: ThreadRoot;
  readonly row: RowName;
  readonly fileName: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  readonly caption?: string;
}

/** What became of a call. Exactly one of: done, known not processed, its object gone, unknown. */
export type Outcome<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | {
      readonly kind: 'refused';
      readonly because: Refusal;
      /** Earliest next try, for rate limits. */
      readonly retryAfterMs?: number;
      /** What shares the limit: everything of the app, or only this place, or this method. */
      readonly scope?: 'app' | 'place' | 'method';
      /** For people and logs: the platform's code, never a token or text. */
      readonly detail: string;
    }
  | { readonly kind: 'gone'; readonly detail: string }
  | { readonly kind: 'in-doubt'; readonly detail: string };

export type Refusal =
  | 'rate-limited'
  | 'invalid'
  | 'archived'
  | 'locked'
  | 'place-gone'
  | 'credentials'
  | 'not-permitted'
  /** The request never left (connection refused, gate closed). */
  | 'not-sent';

export interface Posted {
  readonly messageId: string;
}

/** `none` is an answer, `unknown` is the lack of one. */
export type Found =
  | { readonly kind: 'found'; readonly messageId: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown'; readonly detail: string };

/** A person as the platform proves them. */
export interface Person {
  readonly id: string;
  /** Team or guild they belong to; an unknown one counts as foreign. */
  readonly space: string | undefined;
  readonly roles: readonly string[];
  readonly isBot: boolean;
  readonly name: string;
}

/** What a person did, already claimed nowhere: the bridge claims it before any effect. */
export type Inbound =
  | {
      readonly kind: 'message';
      /** Every key under which this one act may arrive again. */
      readonly dedupeKeys: readonly string[];
      readonly place: ThreadRoot;
      readonly messageId: string;
      readonly author: Person;
      /**
       * Decoded to what was typed: markup, links and entities undone, smart punctuation made plain
       * unless `verbatim`. A leading mention of us is taken off; `mentionsUs` tells of it.
       */
      readonly text: string;
      /** The text before smart punctuation was made plain; present only where that changed it. */
      readonly asWritten?: string;
      /** Blocks typed as code are taken verbatim. */
      readonly verbatim: boolean;
      readonly mentionsUs: boolean;
      readonly sentAtPlatformMs: number;
      readonly receivedAtMonotonicMs: number;
      /** True when it came from a catch-up and not live. */
      readonly caughtUp: boolean;
      readonly files: readonly InboundFile[];
    }
  | {
      readonly kind: 'action';
      readonly dedupeKeys: readonly string[];
      readonly place: ThreadRoot;
      readonly messageId: string;
      readonly author: Person;
      readonly action: string;
      readonly sentAtPlatformMs: number;
      readonly receivedAtMonotonicMs: number;
      readonly reply: InteractionReply;
    }
  | {
      readonly kind: 'command';
      readonly dedupeKeys: readonly string[];
      readonly place: ThreadRoot;
      readonly author: Person;
      /** Words after the command's name, as typed. */
      readonly text: string;
      readonly sentAtPlatformMs: number;
      readonly receivedAtMonotonicMs: number;
      readonly reply: InteractionReply;
    }
  | {
      readonly kind: 'modal';
      readonly dedupeKeys: readonly string[];
      readonly place: ThreadRoot;
      readonly author: Person;
      readonly modal: string;
      readonly values: Readonly<Record<string, string>>;
      readonly sentAtPlatformMs: number;
      readonly receivedAtMonotonicMs: number;
      readonly reply: InteractionReply;
    }
  /** One of our own messages, seen by event: HEAL compares it with the row it names. */
  | {
      readonly kind: 'own-message';
      readonly place: ThreadRoot;
      readonly messageId: string;
      readonly row: RowName;
    }
  | {
      readonly kind: 'place-changed';
      readonly place: ThreadRoot;
      readonly change:
        | 'archived'
        | 'unarchived'
        | 'locked'
        | 'unlocked'
        | 'deleted'
        | 'message-deleted';
      readonly messageId?: string;
    }
  | { readonly kind: 'channel-id-changed'; readonly from: string; readonly to: string };

export interface InboundFile {
  readonly id: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly mediaType: string;
}

/** Answers an interaction within its window; acknowledged by the adapter within 3 s by itself. */
export interface InteractionReply {
  /** Only the person sees it. */
  privately(text: string): Promise<void>;
  /** Opens a modal; must be called at once. */
  modal(spec: ModalSpec): Promise<void>;
}

export interface ModalSpec {
  readonly id: string;
  readonly title: string;
  readonly fields: readonly {
    readonly id: string;
    readonly label: string;
    readonly multiline: boolean;
  }[];
}

/** Health of the connection, judged by traffic. */
export interface TransportHealth {
  readonly healthy: boolean;
  readonly reason: string;
  readonly lastEventAtMonotonicMs: number;
  /** Slack: sockets the platform counts for this app. */
  readonly connectionsSeen?: number;
}

export interface PlatformEvents {
  /**
   * Called in arrival order. Resolves as soon as the event is claimed durably (or needs no claim);
   * the adapter acknowledges it to the platform after that. A rejection leaves a Slack event
   * unacknowledged, so that it is delivered again. Interactions are acknowledged after 2 s at the
   * latest, whatever this promise does.
   */
  inbound(event: Inbound): Promise<void>;
  health(health: TransportHealth): void;
  /** Connected or reconnected: catch up now. */
  connected(): void;
  /** Credentials are wrong, the account is another one: nothing will get better by waiting. */
  fatal(reason: string): void;
}

export interface ChatPlatform {
  readonly kind: PlatformKind;
  readonly budget: MessageBudget;
  /** Name shown in logs and status: team or guild id. */
  readonly identity: string;
  /**
   * For this long after `sentAt` a post repeated with the same row answers with the message of the
   * first try instead of making a second one (Discord's nonce). 0: the platform has no such thing.
   */
  readonly repeatWindowMs: number;

  start(events: PlatformEvents): Promise<void>;
  /** Bounded: resolves within 3 s whatever the platform does. */
  stop(): Promise<void>;

  /** Posts the root message of a session and, on Discord, opens its thread. */
  postRoot(
    request: PostRequest,
    title: string,
  ): Promise<Outcome<{ messageId: string; root: ThreadRoot }>>;
  post(request: PostRequest): Promise<Outcome<Posted>>;
  edit(request: EditRequest): Promise<Outcome<Posted>>;
  delete(place: ThreadRoot, messageId: string): Promise<Outcome<void>>;
  /** Looks for the message of a row in doubt, newer than `anchor`. DELIVERY.md LOOK. */
  findPosted(request: {
    place: ThreadRoot;
    row: RowName;
    anchor: string | undefined;
    sentAtPlatformMs: number;
    knownIds: ReadonlySet<string>;
  }): Promise<Found>;
  /** `known` is called with the file's id before the step that makes it visible. */
  upload(
    request: UploadRequest,
    known: (fileId: string) => Promise<void>,
  ): Promise<Outcome<Posted>>;
  findUpload(place: ThreadRoot, fileId: string): Promise<Found>;
  /** Discards an upload that never became visible, so that it cannot appear later. */
  discardUpload(fileId: string): Promise<Outcome<void>>;
  react(
    place: ThreadRoot,
    messageId: string,
    reaction: Reaction,
    on: boolean,
  ): Promise<Outcome<void>>;
  /**
   * Says something to one person in a place without a row: refusals. Discord has nothing private
   * outside interactions: there it is a silent message that pings nobody and that findPosted skips.
   */
  whisper(place: ThreadRoot, personId: string, text: string): Promise<Outcome<void>>;
  download(file: InboundFile, maxBytes: number): Promise<Outcome<Uint8Array>>;
  /** Messages of people since `since` in bound places, oldest first. */
  catchUp(
    places: readonly { place: ThreadRoot; sinceMessageId: string | undefined }[],
  ): Promise<Outcome<readonly Inbound[]>>;
  /** Proves a thread root by asking the platform: exists, is a root, bot may post. */
  proveRoot(place: ThreadRoot): Promise<Outcome<{ readonly root: ThreadRoot }>>;
  /** Brings an archived thread back, where that exists. */
  unarchive(place: ThreadRoot): Promise<Outcome<void>>;
  person(id: string): Promise<Person | undefined>;
  /** A link to the thread, for people and the CLI. */
  linkOf(place: ThreadRoot): string;
  /** Platform clock minus ours, from Date headers; undefined until known. */
  clockSkewMs(): number | undefined;
}

/** Receipts, by meaning; the adapter picks the emoji. */
export type Reaction = 'written' | 'refused' | 'unknown';
