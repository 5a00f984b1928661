// A chat platform as a distributed system: requests are lost, refused, answered late or not at all,
// and land seconds after their sender gave up or died. As strict as the real ones: Slack finds its
// messages by metadata, Discord repeats a nonce for some minutes and hides it on reading.

import type { Clock } from '../../src/base/clock.ts';
import type { Random } from '../../src/base/random.ts';
import type {
  ChatPlatform,
  Content,
  EditRequest,
  Found,
  Outcome,
  PlatformKind,
  Posted,
  PostRequest,
  RowName,
  ThreadRoot,
  UploadRequest,
} from '../../src/bots/chat-platform.ts';
import { discordBudget } from '../../src/bots/render/discord-format.ts';
import { slackBudget } from '../../src/bots/render/slack-format.ts';

export interface SimMessage {
  readonly id: string;
  readonly row: RowName;
  readonly bornMs: number;
  content: Content;
  readonly file?: { readonly name: string; readonly text: string };
  isDeleted: boolean;
}

export interface SimFaults {
  /** Chance that a call does not simply succeed. */
  rate: number;
  /** Longest time a request may take to land after its sender gave up. */
  lateMs: number;
  /** Own messages come back as events, most of the time. */
  events: boolean;
  /** Discord's nonce is honoured this long after the first message. */
  nonceMs: number;
}

const TIMEOUT_MS = 5_000;

export class SimPlatform {
  readonly messages: SimMessage[] = [];
  readonly faults: SimFaults;
  calls = { post: 0, edit: 0, look: 0, upload: 0, delete: 0 };
  onOwn: ((messageId: string, row: RowName) => void) | undefined;
  readonly #kind: PlatformKind;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #shares = new Map<string, string>();
  readonly #discarded = new Set<string>();
  #counter = 0;

  constructor(kind: PlatformKind, clock: Clock, random: Random, faults: SimFaults) {
    this.#kind = kind;
    this.#clock = clock;
    this.#random = random;
    this.faults = faults;
  }

  /** Messages that still stand, in the order a reader sees them. */
  get shown(): readonly SimMessage[] {
    return this.messages.filter((message) => !message.isDeleted);
  }

  /** The port, for one life of a daemon: once `isDead` nothing ever resolves again. */
  portFor(life: { isDead: boolean; step: () => void }): ChatPlatform {
    const alive = async <T>(call: () => Promise<T>): Promise<T> => {
      life.step();
      if (isOver(life)) return never();
      const answer = await call();
      life.step();
      return life.isDead ? never() : answer;
    };
    const port: Partial<ChatPlatform> = {
      kind: this.#kind,
      identity: 'T1',
      budget: this.#kind === 'slack' ? slackBudget : discordBudget,
      repeatWindowMs: this.#kind === 'slack' ? 0 : 120_000,
      clockSkewMs: () => 0,
      post: (request) => alive(() => this.#post(request)),
      postRoot: (request) =>
        alive(async () => {
          const outcome = await this.#post(request);
          if (outcome.kind !== 'ok') return outcome;
          const { messageId } = outcome.value;
          return { kind: 'ok', value: { messageId, root: { ...request.place, root: messageId } } };
        }),
      proveRoot: (place) => alive(async () => ({ kind: 'ok', value: { root: place } })),
      edit: (request) => alive(() => this.#edit(request)),
      delete: (_place, id) => alive(() => this.#delete(id)),
      findPosted: (request) => alive(() => this.#find(request)),
      upload: (request, known) => alive(() => this.#upload(request, known, life)),
      findUpload: (_place, fileId) => alive(() => this.#findUpload(fileId)),
      discardUpload: (fileId) =>
        alive(async () => {
          this.#discarded.add(fileId);
          return { kind: 'ok', value: undefined };
        }),
      unarchive: () => alive(async () => ({ kind: 'ok', value: undefined })),
    };
    // The outbox uses nothing else of the port; a call of anything else is a failing test.
    return port as ChatPlatform;
  }

  // What the platform does with a request.

  async #send<T>(land: () => Outcome<T>): Promise<Outcome<T>> {
    const latencyMs = 100 + Math.floor(this.#random.next() * 200);
    if (this.#random.next() >= this.faults.rate) {
      await this.#clock.sleep(latencyMs);
      return land();
    }
    const fate = Math.floor(this.#random.next() * 5);
    if (fate === 0) {
      await this.#clock.sleep(latencyMs);
      return {
        kind: 'refused',
        because: 'rate-limited',
        retryAfterMs: 500 + Math.floor(this.#random.next() * 2_000),
        scope: 'method',
        detail: 'ratelimited',
      };
    }
    if (fate === 1) {
      // Lost on the way.
      await this.#clock.sleep(TIMEOUT_MS);
      return { kind: 'in-doubt', detail: 'timeout' };
    }
    if (fate === 2) {
      // Done, and the answer lost.
      await this.#clock.sleep(latencyMs);
      land();
      return { kind: 'in-doubt', detail: 'reset' };
    }
    if (fate === 3) {
      // The sender gives up; the request lands later.
      const landsMs = this.#random.next() * this.faults.lateMs;
      this.#clock.timer(landsMs, () => land());
      await this.#clock.sleep(Math.min(TIMEOUT_MS, landsMs));
      return { kind: 'in-doubt', detail: 'timeout' };
    }
    await this.#clock.sleep(latencyMs);
    return { kind: 'refused', because: 'not-sent', detail: 'ECONNREFUSED' };
  }

  #post(request: PostRequest): Promise<Outcome<Posted>> {
    this.calls.post += 1;
    return this.#send(() => this.#land(request.row, request.content));
  }

  #land(row: RowName, content: Content, file?: SimMessage['file']): Outcome<Posted> {
    const nowMs = this.#clock.monotonicMs();
    const first = this.messages.find(
      (message) =>
        message.row.b === row.b &&
        message.row.s === row.s &&
        nowMs - message.bornMs < this.faults.nonceMs,
    );
    if (this.#kind === 'discord' && first !== undefined) {
      if (first.isDeleted) return { kind: 'gone', detail: '10008' };
      return { kind: 'ok', value: { messageId: first.id } };
    }
    this.#counter += 1;
    const message: SimMessage = {
      id: `1800000000.${String(this.#counter).padStart(6, '0')}`,
      row,
      bornMs: nowMs,
      content,
      isDeleted: false,
      ...(file === undefined ? {} : { file }),
    };
    this.messages.push(message);
    if (this.faults.events && this.#random.next() < 0.9) {
      this.#clock.timer(this.#random.next() * 3_000, () => this.onOwn?.(message.id, row));
    }
    return { kind: 'ok', value: { messageId: message.id } };
  }

  #edit(request: EditRequest): Promise<Outcome<Posted>> {
    this.calls.edit += 1;
    return this.#send(() => {
      const message = this.messages.find((one) => one.id === request.messageId);
      if (message === undefined || message.isDeleted) return { kind: 'gone', detail: 'no message' };
      message.content = request.content;
      return { kind: 'ok', value: { messageId: message.id } };
    });
  }

  #delete(id: string): Promise<Outcome<void>> {
    this.calls.delete += 1;
    return this.#send(() => {
      const message = this.messages.find((one) => one.id === id);
      if (message === undefined || message.isDeleted) return { kind: 'gone', detail: 'no message' };
      message.isDeleted = true;
      return { kind: 'ok', value: undefined };
    });
  }

  async #find(request: {
    row: RowName;
    anchor: string | undefined;
    knownIds: ReadonlySet<string>;
  }): Promise<Found> {
    this.calls.look += 1;
    await this.#clock.sleep(150);
    if (this.#random.next() < this.faults.rate) return { kind: 'unknown', detail: 'http 500' };
    const candidates = this.shown.filter(
      (message) =>
        (request.anchor === undefined || message.id > request.anchor) &&
        !request.knownIds.has(message.id),
    );
    // Discord hides the nonce: the one message of ours that no row knows.
    const found =
      this.#kind === 'discord'
        ? candidates[0]
        : candidates.find(
            ({ row, file }) =>
              file === undefined && row.b === request.row.b && row.s === request.row.s,
          );
    return found === undefined ? { kind: 'none' } : { kind: 'found', messageId: found.id };
  }

  async #upload(
    request: UploadRequest,
    known: (fileId: string) => Promise<void>,
    life: { isDead: boolean; step: () => void },
  ): Promise<Outcome<Posted>> {
    this.calls.upload += 1;
    const file = { name: request.fileName, text: Buffer.from(request.bytes).toString() };
    if (this.#kind === 'discord') {
      return this.#send(() => this.#land(request.row, {}, file));
    }
    this.#counter += 1;
    const fileId = `F${this.#counter}`;
    await this.#clock.sleep(100);
    if (life.isDead) return never();
    await known(fileId);
    life.step();
    if (isOver(life)) return never();
    return this.#send(() => {
      if (this.#discarded.has(fileId)) return { kind: 'gone', detail: 'file deleted' };
      const landed = this.#land(request.row, {}, file);
      if (landed.kind === 'ok') this.#shares.set(fileId, landed.value.messageId);
      return landed;
    });
  }

  async #findUpload(fileId: string): Promise<Found> {
    this.calls.look += 1;
    await this.#clock.sleep(150);
    if (this.#random.next() < this.faults.rate) return { kind: 'unknown', detail: 'http 500' };
    const messageId = this.#shares.get(fileId);
    return messageId === undefined ? { kind: 'none' } : { kind: 'found', messageId };
  }
}

/** A call, so that nobody concludes that it cannot have changed. */
function isOver(life: { readonly isDead: boolean }): boolean {
  return life.isDead;
}

function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}

export const SIM_PLACE: ThreadRoot = { space: 'T1', channel: 'C1', root: 'R1' };
