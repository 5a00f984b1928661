// The host: puts keeper, threads, sessions and clients together, and answers requests. What it
// holds alone, a SIGKILL may take: terminals are the keeper's, bytes and records are on disk.

import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { ChatdError, errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { SignalTarget } from '../keeper-protocol.ts';
import { type AttachResult, encodeControl, type Request, type RequestOf } from '../protocol.ts';
import type { SessionState, Snapshot } from '../session-values.ts';
import {
  BytesAttachment,
  LinesAttachment,
  type SessionViews,
  unpackSnapshot,
} from './attachments.ts';
import { Connection } from './connection.ts';
import type { HostSession } from './host-session.ts';
import { type KeeperClient, SpawnFailed } from './keeper-client.ts';
import type { ModelQuery } from './model-messages.ts';
import type { Sessions } from './sessions.ts';
import { SizeLeases } from './size-leases.ts';
import type { Workers } from './workers.ts';

/** Connections that have not said hello: the oldest goes when there are more. */
const STRANGERS_MAX = 128;
const CLIENTS_MAX = 1_024;
/** Steps of `end`: hang up, then TERM, then KILL. */
const END_GRACE_MS = 2_000;
const READ_BYTES_MAX = 4 * 1024 * 1024;
const IDLE_LOOK_MS = 1_000;
const SWEEP_EVERY = 5;
const RETRY_AFTER_MS = 200;
/** How long a hand-over waits for input under way. */
const INPUT_DRAIN_MS = 1_000;
const INPUT_DRAIN_POLL_MS = 5;

export interface HostPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly keeper: KeeperClient;
  readonly workers: Workers;
  readonly sessions: Sessions;
  readonly instance: string;
  readonly pid: number;
  readonly version: string;
  readonly idleExitMs: number;
  memoryBytes(): number;
  stopListening(): void;
  /** A successor may take it: nothing is owned from here on. */
  releaseLock(): void;
  /** Publishes again after `stopListening`. */
  listenAgain(): Promise<void>;
  exit(code: number): void;
}

export class Host implements SessionViews {
  readonly #ports: HostPorts;
  readonly #clients = new Set<Connection>();
  readonly #strangers = new Set<Connection>();
  readonly #leases = new SizeLeases();
  #idleSinceMs: number | undefined;
  #leaving = false;
  #looks = 0;

  constructor(ports: HostPorts) {
    this.#ports = ports;
  }

  /** Called once when everything is adopted. */
  start(): void {
    this.#sweepLater();
  }

  accept(socket: Socket): void {
    const { clock, log, instance, pid, version } = this.#ports;
    if (this.#leaving || this.#clients.size + this.#strangers.size >= CLIENTS_MAX) {
      socket.on('error', () => undefined);
      socket.destroy();
      return;
    }
    const connection = new Connection(socket, {
      clock,
      log,
      instance,
      pid,
      version,
      request: (from, request) => {
        this.#greet(from);
        return this.#request(from, request);
      },
      closed: (from) => this.#closed(from),
    });
    this.#strangers.add(connection);
    if (this.#strangers.size > STRANGERS_MAX) this.#dropOldestStranger();
  }

  #dropOldestStranger(): void {
    for (const connection of this.#strangers) {
      this.#strangers.delete(connection);
      if (connection.greeted) this.#clients.add(connection);
      else {
        connection.close();
        return;
      }
    }
  }

  #greet(connection: Connection): void {
    if (this.#strangers.delete(connection)) this.#clients.add(connection);
  }

  #closed(connection: Connection): void {
    this.#clients.delete(connection);
    this.#strangers.delete(connection);
    for (const handle of [...connection.attachments.keys()]) this.#detach(connection, handle);
  }

  // ── Views for attachments ───────────────────────────────────────────────────────────────────

  wantView(session: HostSession, fresh: boolean): boolean {
    const slot = this.#ports.sessions.modelSlot(session);
    if (slot === undefined) return false;
    this.#ports.workers.toModel({ t: 'want-view', slot, fresh });
    return true;
  }

  async snapshot(session: HostSession): Promise<Snapshot> {
    return unpackSnapshot(await this.#query(session, { op: 'snapshot' }));
  }

  #query(session: HostSession, query: ModelQuery): Promise<Uint8Array> {
    const slot = this.#ports.sessions.modelSlot(session);
    if (slot === undefined) {
      throw new ChatdError(
        'host-unreachable',
        `Cannot show ${session.id}: its screen model failed`,
      );
    }
    return this.#ports.workers.query(slot, query);
  }

  // ── Requests ────────────────────────────────────────────────────────────────────────────────

  async #request(from: Connection, request: Request): Promise<unknown> {
    const { sessions } = this.#ports;
    switch (request.op) {
      case 'create':
        if (this.#leaving) throw new ChatdError('host-starting', 'The host is being replaced');
        return await sessions.create(request);
      case 'list':
        return sessions.list().map((session) => session.info());
      case 'status':
        return this.#status();
      case 'ping':
        return null;
      case 'attach':
        return await this.#attach(from, request);
      case 'detach':
        this.#detach(from, request.handle);
        return null;
      case 'reload':
        return await this.#reload(request);
      case 'shutdown':
        return await this.#shutdown(request);
      default:
        return await this.#sessionRequest(from, request);
    }
  }

  async #sessionRequest(
    from: Connection,
    request: Exclude<
      Request,
      { op: 'create' | 'list' | 'status' | 'ping' | 'attach' | 'detach' | 'reload' | 'shutdown' }
    >,
  ): Promise<unknown> {
    const session = this.#ports.sessions.findExactly(request.sessionId, request.incarnation);
    switch (request.op) {
      case 'input':
        return { outcome: await session.input(request) };
      case 'resize': {
        const size = this.#leases.take(session, holderOf(from, session), request);
        await session.resize(size.cols, size.rows);
        return null;
      }
      case 'signal':
        await this.#signal(session, request.signal, 'foreground');
        return null;
      case 'tty-state':
        return session.ttyState();
      case 'frame':
      case 'snapshot':
        return await this.#query(session, { op: request.op });
      case 'read-lines':
      case 'read-marks':
        return await this.#query(session, request);
      case 'read-bytes':
        return readBytes(session, request);
      case 'end':
        return await this.#end(session, request.actor);
      case 'kill':
        session.setCause(`killed by ${request.actor}`);
        return await this.#kill(session);
    }
  }

  async #attach(from: Connection, request: RequestOf<'attach'>): Promise<AttachResult> {
    const { sessions } = this.#ports;
    const { sessionId, incarnation, handle, want } = request;
    const session =
      incarnation === undefined
        ? sessions.find(sessionId)
        : sessions.findExactly(sessionId, incarnation);
    this.#detach(from, handle);
    const result = { info: session.info(), markCount: session.progress.markCount };
    if (want === 'lines') {
      const attachment = new LinesAttachment(session, handle, from, this);
      this.#follow(from, session, attachment);
      return { ...result, from: session.length };
    }
    const start = await this.#bytesStart(session, request);
    const attachment = new BytesAttachment({
      session,
      handle,
      from: start.from,
      lossless: request.lossless === true,
      outlet: from,
      views: this,
    });
    this.#follow(from, session, attachment);
    return { ...result, info: session.info(), ...start };
  }

  #follow(
    from: Connection,
    session: HostSession,
    attachment: LinesAttachment | BytesAttachment,
  ): void {
    from.attachments.set(attachment.handle, attachment);
    session.attached.add(attachment);
    // After the answer, which is queued by the promise that this call settles.
    this.#ports.clock.timer(0, () => {
      if (from.attachments.get(attachment.handle) === attachment) attachment.start();
    });
  }

  /** Bytes since an offset where that redraws truly; else the screen, and what it skips. */
  async #bytesStart(
    session: HostSession,
    request: RequestOf<'attach'>,
  ): Promise<Pick<AttachResult, 'from' | 'gap' | 'snapshot'>> {
    const { since, lossless } = request;
    if (since !== undefined && lossless === true && since >= session.from) {
      return { from: Math.min(since, session.length) };
    }
    const usable =
      since !== undefined &&
      since >= session.from &&
      since <= session.length &&
      session.length - since <= READ_BYTES_MAX &&
      (since >= session.resizedAt || since === session.length);
    if (usable) return { from: since };
    const snapshot = await this.snapshot(session);
    const from = snapshot.offset;
    const skipped = since !== undefined && since < from ? { gap: { from: since, to: from } } : {};
    return { from, snapshot, ...skipped };
  }

  #detach(from: Connection, handle: number): void {
    const attachment = from.attachments.get(handle);
    if (attachment === undefined) return;
    from.attachments.delete(handle);
    const { session } = attachment;
    session.attached.delete(attachment);
    if (attachment instanceof BytesAttachment) attachment.close();
    const size = this.#leases.release(session, attachment);
    if (size !== undefined) session.resize(size.cols, size.rows).catch(() => undefined);
  }

  async #signal(session: HostSession, signal: string, to: SignalTarget): Promise<void> {
    if (session.state.kind === 'exited') {
      throw new ChatdError('session-exited', `Cannot signal ${session.id}: it has ended`);
    }
    try {
      await this.#ports.keeper.signal(session.id, session.incarnation, signal, to);
    } catch (error) {
      if (!(error instanceof SpawnFailed)) throw error;
      throw new ChatdError('session-exited', `Cannot send ${signal}: ${error.message}`);
    }
  }

  /** Hang up its process group, then TERM, then KILL. The session's end is observed, not assumed. */
  async #end(session: HostSession, actor: string): Promise<SessionState> {
    session.setCause(`ended by ${actor}`);
    for (const signal of ['SIGHUP', 'SIGTERM'] as const) {
      if (session.state.kind === 'exited') return session.state;
      await this.#signalQuietly(session, signal);
      if (await this.#exitedWithin(session, END_GRACE_MS)) return session.state;
    }
    return await this.#kill(session);
  }

  async #kill(session: HostSession): Promise<SessionState> {
    if (session.state.kind === 'running') {
      await this.#signalQuietly(session, 'SIGKILL');
      await session.whenExited();
    }
    return session.state;
  }

  /** A group may be gone between two steps; its leader is then on its way out. */
  async #signalQuietly(session: HostSession, signal: string): Promise<void> {
    const { keeper, log } = this.#ports;
    // A shell ignores TERM and a stopped one hears nothing: CONT lets it hear.
    for (const step of signal === 'SIGHUP' ? [signal, 'SIGCONT'] : [signal]) {
      try {
        await keeper.signal(session.id, session.incarnation, step, 'group');
      } catch (error) {
        log.info('session.signal-failed', { session: session.id, because: errorText(error) });
      }
    }
  }

  async #exitedWithin(session: HostSession, graceMs: number): Promise<boolean> {
    const abort = new AbortController();
    const grace = this.#ports.clock.sleep(graceMs, abort.signal).then(
      () => undefined,
      () => undefined,
    );
    await Promise.race([session.whenExited(), grace]);
    abort.abort();
    return session.state.kind === 'exited';
  }

  #status(): unknown {
    const { instance, pid, version, sessions, workers } = this.#ports;
    return {
      instance,
      pid,
      version,
      clients: this.#clients.size,
      memoryBytes: this.#ports.memoryBytes(),
      sessions: sessions.list().map((session) => ({
        ...session.info(),
        modelOffset: session.progress.offset,
        checkpointOffset: session.progress.checkpointOffset,
        keptFrom: session.from,
        queuedInputBytes: session.queuedInputBytes,
        paused: session.slot === undefined ? false : workers.shared.paused(session.slot),
        disk: session.diskErrno,
      })),
    };
  }

  // ── Leaving ─────────────────────────────────────────────────────────────────────────────────

  async #reload(request: RequestOf<'reload'>): Promise<unknown> {
    try {
      await this.#ports.keeper.reload(request.interpreter, request.entry);
      return { reloading: true };
    } catch (error) {
      if (!(error instanceof SpawnFailed)) throw error;
      throw new ChatdError('refused', `Cannot reload host: ${error.message}`);
    }
  }

  async #shutdown(request: RequestOf<'shutdown'>): Promise<unknown> {
    const running = this.#ports.sessions.list().filter((item) => item.state.kind === 'running');
    if (running.length > 0 && request.sessions === 'refuse') {
      throw new ChatdError(
        'refused',
        `Cannot stop host: ${running.length} sessions are running; say what is to become of them`,
      );
    }
    await Promise.all(running.map((session) => this.#end(session, request.actor)));
    await Promise.all(this.#ports.sessions.list().map((session) => session.save()));
    this.#ports.clock.timer(50, () =>
      this.#leave('stopped', () => this.#ports.keeper.shutdown('stopped')),
    );
    return { stopped: true };
  }

  /** The keeper asks: a successor is ready. Nothing is read or written after this. */
  handOver(): void {
    this.#leave('reloading', () => this.#ports.keeper.stoppedReading());
  }

  #leave(reason: string, tell: () => void): void {
    if (this.#leaving) return;
    this.#leaving = true;
    const { workers, clock, exit, log } = this.#ports;
    log.info('host.leaving', { reason });
    this.#ports.stopListening();
    const goodbye = encodeControl({ t: 'going-away', reason, retryAfterMs: RETRY_AFTER_MS });
    for (const connection of [...this.#clients, ...this.#strangers]) connection.send(goodbye);
    for (const session of this.#ports.sessions.list()) session.stopInput();
    workers.prepareToStop(() => {
      this.#drainInput(clock.monotonicMs() + INPUT_DRAIN_MS, () => {
        workers.stop(
          () => log.info('host.stopped-reading'),
          () => {
            for (const session of this.#ports.sessions.list()) session.stop();
            this.#ports.releaseLock();
            tell();
            // The pipe to the keeper is flushed by the loop's next turns.
            clock.timer(20, () => exit(0));
          },
        );
      });
    });
  }

  /** A paste that has begun is finished if its program reads; half of one helps nobody. */
  #drainInput(untilMs: number, done: () => void): void {
    const { sessions, clock } = this.#ports;
    const queued = sessions.list().some((session) => session.queuedInputBytes > 0);
    if (!queued || clock.monotonicMs() >= untilMs) done();
    else clock.timer(INPUT_DRAIN_POLL_MS, () => this.#drainInput(untilMs, done));
  }

  #sweepLater(): void {
    this.#ports.clock.timer(IDLE_LOOK_MS, () => {
      if (this.#leaving) return;
      this.#looks += 1;
      if (this.#looks % SWEEP_EVERY === 0) this.#ports.sessions.sweep();
      this.#exitWhenIdle();
      this.#sweepLater();
    });
  }

  /** Clients counted before sessions; without a break for the whole time. */
  #exitWhenIdle(): void {
    const { idleExitMs, clock, sessions } = this.#ports;
    if (idleExitMs === 0) return;
    const idle =
      this.#clients.size === 0 && this.#strangers.size === 0 && sessions.runningCount === 0;
    if (!idle) {
      this.#idleSinceMs = undefined;
      return;
    }
    this.#idleSinceMs ??= clock.monotonicMs();
    if (clock.monotonicMs() - this.#idleSinceMs < idleExitMs) return;
    this.#ports.stopListening();
    // Whoever connected before the listener closed is counted now.
    clock.timer(50, () => {
      const still =
        this.#clients.size === 0 && this.#strangers.size === 0 && sessions.runningCount === 0;
      if (still) this.#leave('idle', () => this.#ports.keeper.shutdown('idle'));
      else {
        this.#idleSinceMs = undefined;
        this.#ports.listenAgain().catch((error: unknown) => {
          this.#ports.log.error('host.not-listening', { because: errorText(error) });
        });
      }
    });
  }
}

function readBytes(session: HostSession, request: RequestOf<'read-bytes'>): unknown {
  const from = Math.max(request.from, session.from);
  const to = Math.min(request.to, session.length, from + READ_BYTES_MAX);
  return { from, bytes: session.journal.read(from, to) };
}

/** The bytes attachment of this connection, or the connection itself for a bot. */
function holderOf(from: Connection, session: HostSession): object {
  for (const attachment of from.attachments.values()) {
    if (attachment instanceof BytesAttachment && attachment.session === session) return attachment;
  }
  return session;
}
