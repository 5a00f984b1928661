// The real `Host`: connects or starts one, reconnects with back-off, re-attaches by itself, and says
// `unreachable` when it cannot tell. It never takes silence for an exit.

import { Backoff } from '../base/backoff.ts';
import { readBounded } from '../base/bounded-file.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { ChatdError, errorCode, errorText } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { HostPaths } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import type { Frame } from '../term/values.ts';
import { BytesFollower, type Follower, LinesFollower } from './feeds.ts';
import {
  type ChannelEvents,
  type HostChannel,
  openChannel,
  type Question,
} from './host-channel.ts';
import { type Hello, type HostEvent, unpackValue } from './protocol.ts';
import type {
  ByteFeed,
  ByteFeedListener,
  CreateRequest,
  Host,
  InputOutcome,
  InputRequest,
  LineFeed,
  SessionInfo,
  SessionState,
  SessionTarget,
  Snapshot,
  TtyState,
} from './session-values.ts';
import { isServing, type StartOptions, startHostOnDemand } from './start-host.ts';

export interface HostClientOptions {
  readonly paths: HostPaths;
  readonly uid: number;
  readonly pid: number;
  readonly role: Hello['role'];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Undefined: nothing starts on demand (CHATD_AUTOSTART, host.autostart). */
  readonly start: StartOptions | undefined;
  /** How long a request waits for a host to come back. Feeds wait for ever. */
  readonly patienceMs?: number;
}

/** What operators ask of a host. */
export interface HostControl extends Host {
  /** What `chatd host status` shows. */
  status(): Promise<unknown>;
  reload(interpreter: string, entry: string, actor: string): Promise<void>;
  shutdown(sessions: 'refuse' | 'end', actor: string): Promise<void>;
  /** The instance id of the host connected to, or undefined. */
  readonly instance: string | undefined;
}

const PATIENCE_MS = 15_000;
/** `end` has its own steps, each bounded by the host. */
const END_PATIENCE_MS = 30_000;
const BACKOFF = { initialMs: 20, maxMs: 2_000, factor: 1.6 };
const HEARTBEAT_MS = 5_000;
/** Silence after which feeds say unreachable (SESSIONS.md "Starting numbers"). */
const SILENT_MS = 11_000;
/** A host that is replaced is back before this: nobody is told. */
const GRACE_MS = 1_000;
const HOST_RECORD_BYTES_MAX = 65_536;

export class HostClient implements HostControl {
  readonly #options: HostClientOptions;
  readonly #backoff: Backoff;
  readonly #followers = new Map<number, Follower>();
  #channel: HostChannel | undefined;
  #connecting: Promise<HostChannel> | undefined;
  #retry: Timer | undefined;
  #grace: Timer | undefined;
  #heartbeat: Timer | undefined;
  #heardAtMs = 0;
  #nextHandle = 1;
  /** The last host said that it was stopped: only a person starts it again. */
  #stopped = false;
  #closed = false;

  constructor(options: HostClientOptions) {
    this.#options = options;
    this.#backoff = new Backoff(BACKOFF, options.random);
  }

  get instance(): string | undefined {
    return this.#channel?.welcome.instance;
  }

  async create(request: CreateRequest): Promise<SessionInfo> {
    return (await this.#ask(createQuestion(request))) as SessionInfo;
  }

  async list(): Promise<readonly SessionInfo[]> {
    return (await this.#ask({ op: 'list' })) as SessionInfo[];
  }

  async followLines(target: { sessionId: string; incarnation?: string }): Promise<LineFeed> {
    const handle = this.#takeHandle();
    const follower = new LinesFollower(handle, target, this.#feedPorts(handle));
    await this.#follow(follower);
    return follower;
  }

  async followBytes(
    target: { sessionId: string; incarnation?: string; sinceOffset?: number; lossless?: boolean },
    listener: ByteFeedListener,
  ): Promise<ByteFeed> {
    const handle = this.#takeHandle();
    const follower = new BytesFollower(handle, target, this.#feedPorts(handle), listener);
    await this.#follow(follower);
    return follower;
  }

  async input(request: InputRequest): Promise<InputOutcome> {
    const question = inputQuestion(request);
    try {
      // The message id makes a repeat after a reconnect safe.
      return ((await this.#ask(question)) as { outcome: InputOutcome }).outcome;
    } catch (error) {
      const code = errorCode(error);
      if (code === 'session-not-found' || code === 'other-incarnation') {
        return { kind: 'refused', because: code };
      }
      throw error;
    }
  }

  async resize(target: SessionTarget, cols: number, rows: number): Promise<void> {
    await this.#ask({ op: 'resize', ...exactly(target), cols, rows });
  }

  async signal(target: SessionTarget, signal: string, actor: string): Promise<void> {
    await this.#askOnce({ op: 'signal', ...exactly(target), signal, actor });
  }

  async ttyState(target: SessionTarget): Promise<TtyState | 'unknown'> {
    return (await this.#ask({ op: 'tty-state', ...exactly(target) })) as TtyState | 'unknown';
  }

  async frame(target: SessionTarget): Promise<Frame> {
    return (await this.#askPacked({ op: 'frame', ...exactly(target) })) as Frame;
  }

  async snapshot(target: SessionTarget): Promise<Snapshot> {
    return (await this.#askPacked({ op: 'snapshot', ...exactly(target) })) as Snapshot;
  }

  async end(target: SessionTarget, actor: string): Promise<SessionState> {
    const question = { op: 'end', ...exactly(target), actor } as const;
    return (await this.#ask(question, END_PATIENCE_MS)) as SessionState;
  }

  async kill(target: SessionTarget, actor: string): Promise<SessionState> {
    const question = { op: 'kill', ...exactly(target), actor } as const;
    return (await this.#ask(question, END_PATIENCE_MS)) as SessionState;
  }

  async readBytes(
    target: SessionTarget,
    from: number,
    to: number,
  ): Promise<{ readonly from: number; readonly bytes: Uint8Array }> {
    const question = { op: 'read-bytes', ...exactly(target), from, to } as const;
    return (await this.#ask(question)) as { from: number; bytes: Uint8Array };
  }

  status(): Promise<unknown> {
    return this.#ask({ op: 'status' });
  }

  async reload(interpreter: string, entry: string, actor: string): Promise<void> {
    await this.#askOnce({ op: 'reload', interpreter, entry, actor });
  }

  async shutdown(sessions: 'refuse' | 'end', actor: string): Promise<void> {
    await this.#askOnce({ op: 'shutdown', sessions, actor });
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    this.#grace?.cancel();
    this.#heartbeat?.cancel();
    this.#channel?.close();
    this.#channel = undefined;
  }

  // ── Asking ──────────────────────────────────────────────────────────────────────────────────

  /** Asks until answered: safe for what may be asked twice. @throws {ChatdError} */
  async #ask(
    question: Question,
    patienceMs = this.#options.patienceMs ?? PATIENCE_MS,
  ): Promise<unknown> {
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + patienceMs;
    for (;;) {
      try {
        const channel = await this.#connected();
        return await this.#answered(channel.ask(question), untilMs);
      } catch (error) {
        const code = errorCode(error);
        const again = code === 'host-unreachable' || code === 'host-starting';
        if (!again || this.#closed || clock.monotonicMs() >= untilMs) throw error;
        await clock.sleep(this.#backoff.nextMs());
      }
    }
  }

  /** Asks once: what must not happen twice. */
  async #askOnce(question: Question): Promise<unknown> {
    const { clock, patienceMs } = this.#options;
    const channel = await this.#connected();
    const untilMs = clock.monotonicMs() + (patienceMs ?? PATIENCE_MS);
    return await this.#answered(channel.ask(question), untilMs);
  }

  async #askPacked(question: Question): Promise<unknown> {
    const packed = await this.#ask(question);
    if (packed instanceof Uint8Array) return unpackValue(packed);
    throw new ChatdError('protocol-violation', 'Cannot read answer: not packed');
  }

  async #answered(answer: Promise<unknown>, untilMs: number): Promise<unknown> {
    const { clock } = this.#options;
    const abort = new AbortController();
    const late = clock.sleep(Math.max(0, untilMs - clock.monotonicMs()), abort.signal).then(() => {
      throw new ChatdError('host-unreachable', 'Cannot reach host: no answer in time');
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      abort.abort();
      late.catch(() => undefined);
      answer.catch(() => undefined);
    }
  }

  // ── Connecting ──────────────────────────────────────────────────────────────────────────────

  #connected(): Promise<HostChannel> {
    if (this.#closed) {
      return Promise.reject(new ChatdError('cancelled', 'Cannot ask host: the client was closed'));
    }
    if (this.#channel !== undefined) return Promise.resolve(this.#channel);
    this.#connecting ??= this.#connectOrStart(true).finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #connectOrStart(asked: boolean): Promise<HostChannel> {
    try {
      return await this.#connect();
    } catch (error) {
      const { start, paths } = this.#options;
      const errno = error instanceof ChatdError ? error.details['errno'] : undefined;
      // Only what is proven not to be served is started; anything else is waited for.
      if (errno !== 'ENOENT' && errno !== 'ECONNREFUSED') throw error;
      if (start === undefined) throw notStarted(error);
      if (!asked && (this.#stopped || (await isServing(paths.keeperSocket)))) throw error;
      await startHostOnDemand(this.#options, start);
      return await this.#connect();
    }
  }

  async #connect(): Promise<HostChannel> {
    const { uid, role, clock } = this.#options;
    let mine: HostChannel | undefined;
    const events: ChannelEvents = {
      output: (handle, offset, bytes) => {
        this.#heard();
        this.#followers.get(handle)?.output(offset, bytes);
      },
      view: (handle, payload) => {
        this.#heard();
        this.#followers.get(handle)?.viewed(payload);
      },
      event: (event) => this.#event(event),
      closed: (because) => {
        if (this.#channel === mine) this.#lost(because);
      },
    };
    const path = await this.#socketPath();
    mine = await openChannel({ path, uid, role, clock, events });
    if (this.#closed) {
      mine.close();
      throw new ChatdError('cancelled', 'Cannot ask host: the client was closed');
    }
    this.#channel = mine;
    this.#stopped = false;
    this.#backoff.reset();
    this.#grace?.cancel();
    this.#grace = undefined;
    this.#heard();
    this.#beat();
    for (const follower of this.#followers.values()) this.#attach(mine, follower);
    return mine;
  }

  /** $XDG_RUNTIME_DIR may differ here from what it was there: host.json says where it serves. */
  async #socketPath(): Promise<string> {
    const read = await readBounded(this.#options.paths.hostRecord, HOST_RECORD_BYTES_MAX);
    if (read.kind !== 'content') return this.#options.paths.hostSocket;
    try {
      const value = JSON.parse(read.bytes.toString('utf8')) as { socket?: unknown };
      return typeof value.socket === 'string' ? value.socket : this.#options.paths.hostSocket;
    } catch {
      return this.#options.paths.hostSocket;
    }
  }

  #lost(because: string): void {
    this.#channel = undefined;
    this.#heartbeat?.cancel();
    if (this.#closed) return;
    this.#options.log.info('host.connection-lost', { because });
    this.#reportLater(because);
    if (this.#followers.size > 0) this.#retryLater();
  }

  #reportLater(because: string): void {
    const { clock } = this.#options;
    const sinceMs = clock.monotonicMs();
    this.#grace ??= clock.timer(GRACE_MS, () => this.#reportUnreachable(because, sinceMs));
  }

  #reportUnreachable(because: string, sinceMs: number): void {
    for (const follower of this.#followers.values()) {
      follower.unreachable(because, sinceMs);
    }
  }

  #retryLater(): void {
    this.#retry?.cancel();
    this.#retry = this.#options.clock.timer(this.#backoff.nextMs(), () => {
      if (this.#closed || this.#channel !== undefined) return;
      this.#connecting ??= this.#connectOrStart(false).finally(() => {
        this.#connecting = undefined;
      });
      this.#connecting.catch((error: unknown) => {
        if (this.#closed) return;
        this.#reportLater(errorText(error));
        if (this.#followers.size > 0) this.#retryLater();
      });
    });
  }

  #event(event: HostEvent): void {
    this.#heard();
    if (event.t === 'going-away') {
      this.#stopped = event.reason !== 'reloading';
      return;
    }
    const follower = this.#followers.get(event.handle);
    if (event.t === 'state') follower?.stateChanged(event.state);
    else follower?.skipped(event.to, event.snapshot, event.gap);
  }

  #heard(): void {
    this.#heardAtMs = this.#options.clock.monotonicMs();
  }

  /** Silence is asked about; no answer is reported, and taken for nothing more. */
  #beat(): void {
    const { clock } = this.#options;
    this.#heartbeat?.cancel();
    this.#heartbeat = clock.timer(HEARTBEAT_MS, () => {
      const channel = this.#channel;
      if (channel === undefined) return;
      channel.ask({ op: 'ping' }).then(
        () => {
          this.#heard();
          for (const follower of this.#followers.values()) follower.reachable();
        },
        () => undefined,
      );
      const silentMs = clock.monotonicMs() - this.#heardAtMs;
      if (silentMs >= SILENT_MS) this.#reportUnreachable('it does not answer', this.#heardAtMs);
      this.#beat();
    });
    this.#heartbeat.unref();
  }

  // ── Following ───────────────────────────────────────────────────────────────────────────────

  #takeHandle(): number {
    const handle = this.#nextHandle;
    this.#nextHandle += 1;
    return handle;
  }

  #feedPorts(handle: number): ConstructorParameters<typeof LinesFollower>[2] {
    return {
      ack: (offset) => this.#channel?.ack(handle, offset),
      askPacked: (question) => this.#askPacked(question),
      close: () => {
        if (!this.#followers.delete(handle)) return;
        this.#channel?.ask({ op: 'detach', handle }).catch(() => undefined);
      },
    };
  }

  /** The first attach answers whoever asked; later ones are ours. */
  async #follow(follower: Follower): Promise<void> {
    const { clock, patienceMs } = this.#options;
    const untilMs = clock.monotonicMs() + (patienceMs ?? PATIENCE_MS);
    const channel = await this.#connected();
    this.#followers.set(follower.handle, follower);
    try {
      const question = { op: 'attach', ...follower.attachRequest() } as const;
      const answer = channel.ask(question, (result) => follower.attached(result));
      await this.#answered(answer, untilMs);
    } catch (error) {
      const code = errorCode(error);
      if (code !== 'host-unreachable') {
        this.#followers.delete(follower.handle);
        throw error;
      }
      this.#retryLater();
      await follower.whenAttached(clock, Math.max(0, untilMs - clock.monotonicMs()));
    }
  }

  #attach(channel: HostChannel, follower: Follower): void {
    const question = { op: 'attach', ...follower.attachRequest() } as const;
    channel
      .ask(question, (result) => follower.attached(result))
      .catch((error: unknown) => {
        const code = errorCode(error);
        if (code === 'session-not-found' || code === 'other-incarnation') follower.refused(code);
        else if (code !== 'host-unreachable') {
          this.#options.log.error('host.attach-failed', { error });
          this.#options.clock.timer(GRACE_MS, () => {
            if (!channel.closed) this.#attach(channel, follower);
          });
        }
      });
  }
}

function exactly(target: SessionTarget): SessionTarget {
  return { sessionId: target.sessionId, incarnation: target.incarnation };
}

/** Exactly the keys of the schema: it refuses any other, and callers may carry more. */
function createQuestion(request: CreateRequest): Question {
  const { token, command, cwd, env, cols, rows, actor, profile } = request;
  return {
    op: 'create',
    token,
    command: [...command],
    cwd,
    env: { ...env },
    cols,
    rows,
    actor,
    ...(profile === undefined ? {} : { profile }),
  };
}

function inputQuestion(request: InputRequest): Question {
  const { messageId, actor, bytes, onlyIf, secret } = request;
  return {
    op: 'input',
    ...exactly(request),
    messageId,
    actor,
    bytes,
    ...(onlyIf === undefined ? {} : { onlyIf: { ...onlyIf } }),
    ...(secret === undefined ? {} : { secret }),
  };
}

function notStarted(cause: unknown): ChatdError {
  return new ChatdError(
    'host-unreachable',
    'Cannot reach host: none is running and starting on demand is off; run `chatd host run`',
    { cause, details: { autostart: false } },
  );
}
