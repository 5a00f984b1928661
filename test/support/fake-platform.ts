// A chat platform in memory, for tests of what stands on the port. Behaves as the contract suite
// (test/contract/bots/chat-platform.contract.ts) says; it does not know Slack's or Discord's wire.

import type { Clock } from '../../src/base/clock.ts';
import type {
  ChatPlatform,
  Content,
  EditRequest,
  Found,
  Inbound,
  InboundFile,
  InteractionReply,
  MessageBudget,
  ModalSpec,
  Outcome,
  Person,
  PlatformEvents,
  PlatformKind,
  Posted,
  PostRequest,
  Reaction,
  RowName,
  ThreadRoot,
  UploadRequest,
} from '../../src/bots/chat-platform.ts';
import type { Line } from '../../src/term/values.ts';

export interface FakeMessage {
  readonly id: string;
  readonly place: ThreadRoot;
  readonly authorId: string;
  /** Present on our own messages. */
  readonly row?: RowName;
  /** Lines joined by newlines; for people what they typed. */
  text: string;
  content: Content;
  editCount: number;
  deleted: boolean;
  readonly file?: { readonly id: string; readonly name: string; readonly bytes: Uint8Array };
  readonly reactions: Set<Reaction>;
}

/** What the next call of a method meets. `effect`: whether the platform did it all the same. */
export interface FakeFault {
  readonly outcome: Exclude<Outcome<never>, { kind: 'ok' }>;
  readonly effect?: 'none' | 'done';
}

export type FakeMethod =
  | 'post'
  | 'postRoot'
  | 'edit'
  | 'delete'
  | 'upload'
  | 'findPosted'
  | 'findUpload'
  | 'react'
  | 'whisper'
  | 'catchUp'
  | 'proveRoot';

const US = 'UBOT';

/** 1,900 units a message, one unit per UTF-16 unit, newline included. */
const fakeBudget: MessageBudget = {
  linesMax: 100,
  unitsMax: 1_900,
  costOf: (line) => line.text.length + 1,
  split(line: Line): readonly Line[] {
    const pieces: Line[] = [];
    for (let at = 0; at < line.text.length; at += 1_800)
      pieces.push({ text: line.text.slice(at, at + 1_800) });
    return pieces.length === 0 ? [line] : pieces;
  },
};

export class FakePlatform implements ChatPlatform {
  readonly kind: PlatformKind;
  readonly identity: string;
  readonly repeatWindowMs: number;
  readonly budget: MessageBudget = fakeBudget;
  /** Everything ever posted, in order of posting, deleted ones included. */
  readonly messages: FakeMessage[] = [];
  readonly whispers: { place: ThreadRoot; personId: string; text: string }[] = [];
  readonly privateReplies: string[] = [];
  readonly modals: ModalSpec[] = [];
  /** Every call, for assertions about what was not done. */
  readonly calls: { method: FakeMethod; at: number }[] = [];
  readonly archived = new Set<string>();
  readonly locked = new Set<string>();
  readonly people = new Map<string, Person>();

  readonly #clock: Clock;
  readonly #faults = new Map<FakeMethod, FakeFault[]>();
  readonly #uploads = new Map<string, string>();
  #events: PlatformEvents | undefined;
  #counter = 0;

  constructor(options: { clock: Clock; kind?: PlatformKind; space?: string }) {
    this.#clock = options.clock;
    this.kind = options.kind ?? 'slack';
    this.identity = options.space ?? 'T1';
    this.repeatWindowMs = this.kind === 'discord' ? 120_000 : 0;
  }

  // What a test does to it.

  /** The next call of `method` meets `fault`; several queue up. */
  failNext(method: FakeMethod, fault: FakeFault): void {
    const queue = this.#faults.get(method) ?? [];
    queue.push(fault);
    this.#faults.set(method, queue);
  }

  /** A person types into a thread (or, with an empty root, the channel). */
  async say(
    place: ThreadRoot,
    text: string,
    by: Partial<Person> & { id: string } = { id: 'U1' },
    options: { verbatim?: boolean; mentionsUs?: boolean; ageMs?: number; silent?: boolean } = {},
  ): Promise<string> {
    const author = this.#personOf(by);
    const message = this.#store({ place, authorId: author.id, text, content: {} });
    if (options.silent !== true) {
      await this.deliver(this.#inboundOf(message, author, { ...options, caughtUp: false }));
    }
    return message.id;
  }

  async press(
    place: ThreadRoot,
    messageId: string,
    action: string,
    by: Partial<Person> & { id: string } = { id: 'U1' },
  ): Promise<void> {
    await this.deliver({
      kind: 'action',
      dedupeKeys: [`interaction:${this.#nextId()}`],
      place,
      messageId,
      author: this.#personOf(by),
      action,
      sentAtPlatformMs: this.#clock.wallMs(),
      receivedAtMonotonicMs: this.#clock.monotonicMs(),
      reply: this.#reply(),
    });
  }

  async command(
    place: ThreadRoot,
    text: string,
    by: Partial<Person> & { id: string } = { id: 'U1' },
  ): Promise<void> {
    await this.deliver({
      kind: 'command',
      dedupeKeys: [`interaction:${this.#nextId()}`],
      place,
      author: this.#personOf(by),
      text,
      sentAtPlatformMs: this.#clock.wallMs(),
      receivedAtMonotonicMs: this.#clock.monotonicMs(),
      reply: this.#reply(),
    });
  }

  async submitModal(
    place: ThreadRoot,
    modal: string,
    values: Readonly<Record<string, string>>,
    by: Partial<Person> & { id: string } = { id: 'U1' },
  ): Promise<void> {
    await this.deliver({
      kind: 'modal',
      dedupeKeys: [`interaction:${this.#nextId()}`],
      place,
      author: this.#personOf(by),
      modal,
      values,
      sentAtPlatformMs: this.#clock.wallMs(),
      receivedAtMonotonicMs: this.#clock.monotonicMs(),
      reply: this.#reply(),
    });
  }

  /** Hands any event to the subscriber, as often as a test likes (redelivery). */
  async deliver(event: Inbound): Promise<void> {
    await this.#events?.inbound(event);
  }

  /** As after a reconnect. */
  reconnect(): void {
    this.#events?.health({
      healthy: true,
      reason: 'connected',
      lastEventAtMonotonicMs: this.#clock.monotonicMs(),
    });
    this.#events?.connected();
  }

  dropConnection(reason = 'connection lost'): void {
    this.#events?.health({
      healthy: false,
      reason,
      lastEventAtMonotonicMs: this.#clock.monotonicMs(),
    });
  }

  fail(reason: string): void {
    this.#events?.fatal(reason);
  }

  /** Our own messages of a place that still stand, in order. */
  own(place: ThreadRoot): readonly FakeMessage[] {
    return this.messages.filter(
      (message) => message.row !== undefined && !message.deleted && samePlace(message.place, place),
    );
  }

  /** The lines shown in a thread, as a reader sees them. */
  transcript(place: ThreadRoot): readonly string[] {
    return this.own(place).flatMap((message) =>
      (message.content.lines ?? []).map((line) => line.text),
    );
  }

  message(id: string): FakeMessage | undefined {
    return this.messages.find((message) => message.id === id);
  }

  // The port.

  async start(events: PlatformEvents): Promise<void> {
    this.#events = events;
    this.reconnect();
  }

  async stop(): Promise<void> {
    this.#events = undefined;
  }

  async postRoot(
    request: PostRequest,
    _title: string,
  ): Promise<Outcome<{ messageId: string; root: ThreadRoot }>> {
    return this.#call('postRoot', request.place, () => {
      const message = this.#post(request);
      return {
        kind: 'ok',
        value: { messageId: message.id, root: { ...request.place, root: message.id } },
      };
    });
  }

  async post(request: PostRequest): Promise<Outcome<Posted>> {
    return this.#call('post', request.place, () => {
      const message = this.#post(request);
      if (message.deleted) return { kind: 'gone', detail: 'deleted' };
      return { kind: 'ok', value: { messageId: message.id } };
    });
  }

  async edit(request: EditRequest): Promise<Outcome<Posted>> {
    return this.#call('edit', request.place, () => {
      if (this.archived.has(request.place.root)) {
        return { kind: 'refused', because: 'archived', detail: 'archived' };
      }
      const message = this.message(request.messageId);
      if (message === undefined || message.deleted) return { kind: 'gone', detail: 'not found' };
      message.content = request.content;
      message.text = textOf(request.content);
      message.editCount += 1;
      return { kind: 'ok', value: { messageId: message.id } };
    });
  }

  async delete(place: ThreadRoot, messageId: string): Promise<Outcome<void>> {
    return this.#call('delete', place, () => {
      const message = this.message(messageId);
      if (message === undefined || message.deleted) return { kind: 'gone', detail: 'not found' };
      message.deleted = true;
      return { kind: 'ok', value: undefined };
    });
  }

  async findPosted(request: {
    place: ThreadRoot;
    row: RowName;
    anchor: string | undefined;
    sentAtPlatformMs: number;
    knownIds: ReadonlySet<string>;
  }): Promise<Found> {
    const outcome = this.#call<Found>('findPosted', request.place, () => {
      const found = this.own(request.place).find(
        (message) =>
          message.row?.b === request.row.b &&
          message.row.s === request.row.s &&
          !request.knownIds.has(message.id),
      );
      const value: Found =
        found === undefined ? { kind: 'none' } : { kind: 'found', messageId: found.id };
      return { kind: 'ok', value };
    });
    return outcome.kind === 'ok' ? outcome.value : { kind: 'unknown', detail: outcome.detail };
  }

  async upload(
    request: UploadRequest,
    known: (fileId: string) => Promise<void>,
  ): Promise<Outcome<Posted>> {
    if (request.bytes.length === 0) {
      return { kind: 'refused', because: 'invalid', detail: 'empty file' };
    }
    const fileId = `F${this.#nextId()}`;
    await known(fileId);
    return this.#call('upload', request.place, () => {
      const message = this.#store({
        place: request.place,
        authorId: US,
        row: request.row,
        text: request.caption ?? '',
        content: {},
        file: { id: fileId, name: request.fileName, bytes: request.bytes },
      });
      this.#uploads.set(fileId, message.id);
      return { kind: 'ok', value: { messageId: message.id } };
    });
  }

  async findUpload(place: ThreadRoot, fileId: string): Promise<Found> {
    const outcome = this.#call<Found>('findUpload', place, () => {
      const messageId = this.#uploads.get(fileId);
      const value: Found =
        messageId === undefined ? { kind: 'none' } : { kind: 'found', messageId };
      return { kind: 'ok', value };
    });
    return outcome.kind === 'ok' ? outcome.value : { kind: 'unknown', detail: outcome.detail };
  }

  async discardUpload(fileId: string): Promise<Outcome<void>> {
    const message = this.message(this.#uploads.get(fileId) ?? '');
    if (message !== undefined) message.deleted = true;
    return { kind: 'ok', value: undefined };
  }

  async react(
    place: ThreadRoot,
    messageId: string,
    reaction: Reaction,
    on: boolean,
  ): Promise<Outcome<void>> {
    return this.#call('react', place, () => {
      const message = this.message(messageId);
      if (message === undefined || message.deleted) return { kind: 'gone', detail: 'not found' };
      if (on) message.reactions.add(reaction);
      else message.reactions.delete(reaction);
      return { kind: 'ok', value: undefined };
    });
  }

  async whisper(place: ThreadRoot, personId: string, text: string): Promise<Outcome<void>> {
    return this.#call('whisper', place, () => {
      this.whispers.push({ place, personId, text });
      return { kind: 'ok', value: undefined };
    });
  }

  async download(file: InboundFile, maxBytes: number): Promise<Outcome<Uint8Array>> {
    if (file.sizeBytes > maxBytes) {
      return { kind: 'refused', because: 'invalid', detail: 'too large' };
    }
    return { kind: 'ok', value: new Uint8Array(file.sizeBytes) };
  }

  async catchUp(
    places: readonly { place: ThreadRoot; sinceMessageId: string | undefined }[],
  ): Promise<Outcome<readonly Inbound[]>> {
    return this.#call('catchUp', undefined, () => {
      const missed = places.flatMap(({ place, sinceMessageId }) =>
        this.messages.filter(
          (message) =>
            message.row === undefined &&
            !message.deleted &&
            samePlace(message.place, place) &&
            (sinceMessageId === undefined || message.id > sinceMessageId),
        ),
      );
      const value = missed
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map((message) =>
          this.#inboundOf(message, this.#personOf({ id: message.authorId }), { caughtUp: true }),
        );
      return { kind: 'ok', value };
    });
  }

  async proveRoot(place: ThreadRoot): Promise<Outcome<{ readonly root: ThreadRoot }>> {
    return this.#call('proveRoot', place, () => {
      const root = this.message(place.root);
      if (root === undefined || root.deleted) {
        return { kind: 'refused', because: 'place-gone', detail: 'thread not found' };
      }
      return { kind: 'ok', value: { root: place } };
    });
  }

  async unarchive(place: ThreadRoot): Promise<Outcome<void>> {
    this.archived.delete(place.root);
    return { kind: 'ok', value: undefined };
  }

  async person(id: string): Promise<Person | undefined> {
    return this.#personOf({ id });
  }

  linkOf(place: ThreadRoot): string {
    return `fake://${place.space}/${place.channel}/${place.root}`;
  }

  clockSkewMs(): number | undefined {
    return 0;
  }

  #call<T>(
    method: FakeMethod,
    place: ThreadRoot | undefined,
    effect: () => Outcome<T>,
  ): Outcome<T> {
    this.calls.push({ method, at: this.#clock.monotonicMs() });
    const fault = this.#faults.get(method)?.shift();
    if (fault !== undefined) {
      if (fault.effect === 'done') effect();
      return fault.outcome;
    }
    if (place !== undefined && this.locked.has(place.root)) {
      return { kind: 'refused', because: 'locked', detail: 'locked' };
    }
    return effect();
  }

  #post(request: PostRequest): FakeMessage {
    if (this.repeatWindowMs > 0) {
      const first = this.messages.find(
        (message) => message.row?.b === request.row.b && message.row.s === request.row.s,
      );
      if (first !== undefined) return first;
    }
    // Posting brings an archived thread back, as on Discord.
    this.archived.delete(request.place.root);
    return this.#store({
      place: request.place,
      authorId: US,
      row: request.row,
      text: textOf(request.content),
      content: request.content,
    });
  }

  #store(fields: Omit<FakeMessage, 'id' | 'editCount' | 'deleted' | 'reactions'>): FakeMessage {
    const message: FakeMessage = {
      ...fields,
      id: this.#nextId(),
      editCount: 0,
      deleted: false,
      reactions: new Set(),
    };
    this.messages.push(message);
    return message;
  }

  #inboundOf(
    message: FakeMessage,
    author: Person,
    options: { verbatim?: boolean; mentionsUs?: boolean; ageMs?: number; caughtUp: boolean },
  ): Inbound {
    return {
      kind: 'message',
      dedupeKeys: [`message:${message.place.channel}:${message.id}`],
      place: message.place,
      messageId: message.id,
      author,
      text: message.text,
      verbatim: options.verbatim ?? false,
      mentionsUs: options.mentionsUs ?? false,
      sentAtPlatformMs: this.#clock.wallMs() - (options.ageMs ?? 0),
      receivedAtMonotonicMs: this.#clock.monotonicMs(),
      caughtUp: options.caughtUp,
      files: [],
    };
  }

  #personOf(fields: Partial<Person> & { id: string }): Person {
    const known = this.people.get(fields.id);
    return {
      space: this.identity,
      roles: [],
      isBot: false,
      name: fields.id,
      ...known,
      ...fields,
    };
  }

  #reply(): InteractionReply {
    return {
      privately: async (text) => {
        this.privateReplies.push(text);
      },
      modal: async (spec) => {
        this.modals.push(spec);
      },
    };
  }

  /** Ordered as strings, so that "newer than" works as on the real ones. */
  #nextId(): string {
    this.#counter += 1;
    return `1800000000.${String(this.#counter).padStart(6, '0')}`;
  }
}

function samePlace(a: ThreadRoot, b: ThreadRoot): boolean {
  return a.space === b.space && a.channel === b.channel && a.root === b.root;
}

function textOf(content: Content): string {
  const lines = (content.lines ?? []).map((line) => line.text);
  return [content.head, ...lines, content.foot].filter((part) => part !== undefined).join('\n');
}
