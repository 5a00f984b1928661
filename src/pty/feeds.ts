// What a client knows of one session it follows: attached, unreachable, moved on, ended. Survives
// the connection; who connects again calls `attachRequest` and `attached` again.

import type { Clock } from '../base/clock.ts';
import { ChatdError } from '../base/errors.ts';
import type { Line, Mark, View } from '../term/values.ts';
import type { Question } from './host-channel.ts';
import { type AttachResult, parseView, type RequestOf } from './protocol.ts';
import type {
  ByteFeed,
  ByteFeedListener,
  FeedStatus,
  LineFeed,
  LinesRead,
  SessionState,
  Snapshot,
} from './session-values.ts';

export interface FeedPorts {
  ack(offset: number): void;
  askPacked(question: Question): Promise<unknown>;
  close(): void;
}

type AttachQuestion = Omit<RequestOf<'attach'>, 't' | 'id' | 'op'>;

export interface Follower {
  readonly handle: number;
  attachRequest(): AttachQuestion;
  attached(result: unknown): void;
  refused(code: 'session-not-found' | 'other-incarnation'): void;
  unreachable(because: string, sinceMonotonicMs: number): void;
  /** The host answered again without the connection having ended. */
  reachable(): void;
  output(offset: number, bytes: Buffer): void;
  viewed(payload: Buffer): void;
  skipped(to: number, snapshot: Snapshot, gap: Gap | undefined): void;
  stateChanged(state: SessionState): void;
  /** @throws {ChatdError} session-not-found, other-incarnation, host-unreachable */
  whenAttached(clock: Clock, withinMs: number): Promise<void>;
}

type Gap = { readonly from: number; readonly to: number };

interface Target {
  readonly sessionId: string;
  readonly incarnation?: string;
}

abstract class FollowerBase implements Follower {
  readonly handle: number;
  readonly sessionId: string;
  protected readonly ports: FeedPorts;
  /** Undefined until the host named it. */
  protected named: string | undefined;
  #status: FeedStatus = { kind: 'unreachable', because: 'not attached yet', sinceMonotonicMs: 0 };
  #waiters: (() => void)[] = [];

  constructor(handle: number, target: Target, ports: FeedPorts) {
    this.handle = handle;
    this.sessionId = target.sessionId;
    this.named = target.incarnation;
    this.ports = ports;
  }

  get incarnation(): string {
    return this.named ?? '';
  }

  get status(): FeedStatus {
    return this.#status;
  }

  abstract attachRequest(): AttachQuestion;
  abstract changedStatus(): void;
  protected abstract began(result: AttachResult): void;

  attached(result: unknown): void {
    const attach = result as AttachResult;
    // Another program under the same id: what it says is not this feed's to tell.
    if (this.named !== undefined && attach.info.incarnation !== this.named) {
      this.refused('other-incarnation');
      return;
    }
    this.named = attach.info.incarnation;
    this.#setStatus({ kind: 'attached' });
    this.began(attach);
  }

  refused(code: 'session-not-found' | 'other-incarnation'): void {
    this.#setStatus(
      code === 'other-incarnation' ? { kind: 'other-incarnation' } : { kind: 'not-known-here' },
    );
  }

  unreachable(because: string, sinceMonotonicMs: number): void {
    if (this.#status.kind === 'unreachable') return;
    this.#setStatus({ kind: 'unreachable', because, sinceMonotonicMs });
  }

  reachable(): void {
    if (this.#status.kind === 'unreachable' && this.named !== undefined) {
      this.#setStatus({ kind: 'attached' });
    }
  }

  output(_offset: number, _bytes: Buffer): void {
    // Only a bytes follower gets output.
  }

  viewed(_payload: Buffer): void {
    // Only a lines follower gets views.
  }

  skipped(_to: number, _snapshot: Snapshot, _gap: Gap | undefined): void {
    // Only a bytes follower is moved on.
  }

  abstract stateChanged(state: SessionState): void;

  async whenAttached(clock: Clock, withinMs: number): Promise<void> {
    const abort = new AbortController();
    const late = clock.sleep(withinMs, abort.signal).catch(() => undefined);
    const settled = new Promise<void>((resolve) => {
      this.#waiters.push(resolve);
    });
    if (this.#status.kind === 'unreachable') await Promise.race([settled, late]);
    abort.abort();
    const { kind } = this.#status;
    if (kind === 'attached') return;
    this.close();
    const code = {
      'other-incarnation': 'other-incarnation',
      'not-known-here': 'session-not-found',
      unreachable: 'host-unreachable',
    } as const;
    throw new ChatdError(code[kind], `Cannot attach to ${this.sessionId}: ${kind}`);
  }

  close(): void {
    this.ports.close();
  }

  #setStatus(status: FeedStatus): void {
    this.#status = status;
    for (const waiter of this.#waiters.splice(0)) waiter();
    this.changedStatus();
  }
}

export class LinesFollower extends FollowerBase implements LineFeed {
  #view: View | undefined;
  #state: SessionState = { kind: 'running' };
  #listener: () => void = () => undefined;

  get view(): View | undefined {
    return this.#view;
  }

  get state(): SessionState {
    return this.#state;
  }

  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  async readLines(from: number, to: number): Promise<LinesRead> {
    const { sessionId, incarnation } = this;
    const read = await this.ports.askPacked({ op: 'read-lines', sessionId, incarnation, from, to });
    const { lines, gap, ...rest } = read as { from: number; lines: Line[]; gap?: Gap };
    return { from: rest.from, lines, ...(gap === undefined ? {} : { gap }) };
  }

  async readMarks(fromSeq: number, max: number): Promise<readonly Mark[]> {
    const { sessionId, incarnation } = this;
    const question = { op: 'read-marks', sessionId, incarnation, from: fromSeq, max } as const;
    return (await this.ports.askPacked(question)) as Mark[];
  }

  attachRequest(): AttachQuestion {
    return {
      sessionId: this.sessionId,
      handle: this.handle,
      want: 'lines',
      ...(this.named === undefined ? {} : { incarnation: this.named }),
    };
  }

  override viewed(payload: Buffer): void {
    const view = parseView(payload);
    this.ports.ack(view.offset);
    // A host that rebuilds its model sends what was shown already: the newest stays.
    const older = this.#view !== undefined && view.offset < this.#view.offset;
    if (older) return;
    this.#view = view;
    this.#listener();
  }

  override stateChanged(state: SessionState): void {
    this.#state = state;
    this.#listener();
  }

  override changedStatus(): void {
    this.#listener();
  }

  /** An exit is told after its view, in the stream: the answer's state alone would be too early. */
  protected override began(_result: AttachResult): void {
    this.#listener();
  }
}

/** Acknowledged at once only when this much was consumed: a keystroke's echo needs no credit. */
const ACK_BYTES = 128 * 1024;

type Event =
  | { readonly kind: 'bytes'; readonly offset: number; readonly bytes: Buffer }
  | {
      readonly kind: 'snapshot';
      readonly to: number;
      readonly snapshot: Snapshot;
      readonly gap: Gap | undefined;
    }
  | { readonly kind: 'state'; readonly state: SessionState };

export class BytesFollower extends FollowerBase implements ByteFeed {
  readonly #listener: ByteFeedListener;
  readonly #lossless: boolean;
  /** The next byte expected; undefined until the host said where it begins. */
  #next: number | undefined;
  #consumed = 0;
  #acked = 0;
  #queue: Event[] = [];
  #running = false;
  #exitTold = false;

  constructor(
    handle: number,
    target: Target & { readonly sinceOffset?: number; readonly lossless?: boolean },
    ports: FeedPorts,
    listener: ByteFeedListener,
  ) {
    super(handle, target, ports);
    this.#next = target.sinceOffset;
    this.#lossless = target.lossless === true;
    this.#listener = listener;
  }

  attachRequest(): AttachQuestion {
    return {
      sessionId: this.sessionId,
      handle: this.handle,
      want: 'bytes',
      ...(this.named === undefined ? {} : { incarnation: this.named }),
      ...(this.#next === undefined ? {} : { since: this.#next }),
      ...(this.#lossless ? { lossless: true } : {}),
    };
  }

  protected override began(result: AttachResult): void {
    if (result.snapshot !== undefined) {
      this.#push({
        kind: 'snapshot',
        to: result.from,
        snapshot: result.snapshot,
        gap: result.gap,
      });
    }
    this.#next = result.from;
    this.#acked = Math.max(this.#acked, result.from);
  }

  override output(offset: number, bytes: Buffer): void {
    // From a connection that was replaced meanwhile: each byte is delivered once.
    if (offset !== this.#next) return;
    this.#next = offset + bytes.length;
    this.#push({ kind: 'bytes', offset, bytes });
  }

  override skipped(to: number, snapshot: Snapshot, gap: Gap | undefined): void {
    this.#next = to;
    this.#push({ kind: 'snapshot', to, snapshot, gap });
  }

  override stateChanged(state: SessionState): void {
    this.#push({ kind: 'state', state });
  }

  override changedStatus(): void {
    this.#listener.status(this.status);
  }

  #push(event: Event): void {
    this.#queue.push(event);
    if (this.#running) return;
    this.#running = true;
    try {
      this.#drain();
    } catch (error) {
      // The listener's bug is its own; the next event finds the feed as usable as before.
      this.#running = false;
      throw error;
    }
  }

  /** In order; synchronous as long as the listener is. */
  #drain(): void {
    for (let event = this.#queue.shift(); event !== undefined; event = this.#queue.shift()) {
      const pending = this.#deliver(event);
      if (pending === undefined) continue;
      pending.then(
        () => this.#drain(),
        () => this.#drain(),
      );
      return;
    }
    this.#running = false;
  }

  #deliver(event: Event): Promise<void> | undefined {
    switch (event.kind) {
      case 'state':
        if (event.state.kind === 'exited' && !this.#exitTold) {
          this.#exitTold = !event.state.terminalOpen;
          this.#listener.exited(event.state);
        }
        return undefined;
      case 'snapshot':
        this.#listener.snapshot(event.to, event.snapshot, event.gap);
        this.#consumed = event.to;
        this.#acked = event.to;
        return undefined;
      case 'bytes': {
        const end = event.offset + event.bytes.length;
        const taken = this.#listener.bytes(event.offset, event.bytes);
        if (taken instanceof Promise) return taken.then(() => this.#consume(end));
        this.#consume(end);
        return undefined;
      }
    }
  }

  #consume(end: number): void {
    this.#consumed = end;
    if (this.#consumed - this.#acked < ACK_BYTES) return;
    this.#acked = this.#consumed;
    this.ports.ack(this.#consumed);
  }
}
