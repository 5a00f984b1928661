// All sessions of the host: created, adopted from the keeper, found on disk, proven ended, removed.

import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { ChatdError, errorText } from '../../base/errors.ts';
import { mintId } from '../../base/ids.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import { closeFd } from '../../sys/fd.ts';
import type { WaitStatus } from '../keeper-protocol.ts';
import type { CreateRequest, SessionInfo } from '../session-values.ts';
import { HostSession } from './host-session.ts';
import { type KeeperClient, type KeptTerminal, SpawnFailed } from './keeper-client.ts';
import { type LoginUser, resolveLaunch } from './launch.ts';
import type { FromModel } from './model-messages.ts';
import type { FromReader } from './reader-messages.ts';
import { createSessionDirectory } from './session-files.ts';
import { parseSessionRecord, readSessionRecord, type SessionRecord } from './session-record.ts';
import type { Workers } from './workers.ts';

export interface SessionsPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly workers: Workers;
  readonly keeper: KeeperClient;
  readonly directory: string;
  readonly user: LoginUser;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly limits: {
    readonly sessionsMax: number;
    readonly journalBytes: number;
    readonly journalBytesTotal: number;
  };
  /** Whether the process a record names is proven to be gone. */
  provenDead(process: unknown): boolean;
}

/** Kept after the end so that a thread that was away still learns of it. */
const EXITED_KEPT_MS = 24 * 60 * 60 * 1000;
/** Idle models of ended sessions cost memory; rebuilding one costs a moment. */
const IDLE_MODEL_MS = 60_000;

export class Sessions {
  readonly #ports: SessionsPorts;
  readonly #byId = new Map<string, HostSession>();
  readonly #bySlot = new Map<number, HostSession>();
  readonly #creating = new Map<string, Promise<HostSession>>();
  /** Running by record, held by nobody: their end is not proven yet. */
  readonly #unresolved = new Set<HostSession>();
  /** Started, and perhaps over, before the answer to the start has been taken in. */
  readonly #spawning = new Set<string>();
  readonly #earlyExits = new Map<string, WaitStatus>();
  readonly #endedSeen = new Map<string, number>();
  readonly #modelUsedMs = new Map<HostSession, number>();

  constructor(ports: SessionsPorts) {
    this.#ports = ports;
  }

  list(): readonly HostSession[] {
    return [...this.#byId.values()];
  }

  get runningCount(): number {
    return this.list().filter((session) => session.state.kind === 'running').length;
  }

  /** @throws {ChatdError} session-not-found */
  find(sessionId: string): HostSession {
    const session = this.#byId.get(sessionId);
    if (session === undefined) {
      throw new ChatdError('session-not-found', `Cannot find session ${sessionId}: not known here`);
    }
    return session;
  }

  /** @throws {ChatdError} session-not-found, other-incarnation */
  findExactly(sessionId: string, incarnation: string): HostSession {
    const session = this.find(sessionId);
    if (session.incarnation !== incarnation) {
      throw new ChatdError(
        'other-incarnation',
        `Cannot use ${sessionId}: another program runs there`,
      );
    }
    return session;
  }

  /** A slot with a model for the session, rebuilt when it had none; undefined when it broke. */
  modelSlot(session: HostSession): number | undefined {
    const slot = session.needModel();
    if (slot === undefined) return undefined;
    this.#bySlot.set(slot, session);
    this.#modelUsedMs.set(session, this.#ports.clock.monotonicMs());
    return slot;
  }

  // ── Creating ────────────────────────────────────────────────────────────────────────────────

  /** Idempotent by token, also across hosts. */
  async create(request: CreateRequest): Promise<SessionInfo> {
    const before = this.list().find((session) => session.record.token === request.token);
    if (before !== undefined) return before.info();
    const running = this.#creating.get(request.token);
    if (running !== undefined) return (await running).info();
    const creating = this.#create(request);
    this.#creating.set(request.token, creating);
    try {
      return (await creating).info();
    } finally {
      this.#creating.delete(request.token);
    }
  }

  async #create(request: CreateRequest): Promise<HostSession> {
    const { random, user, environment, limits, keeper, directory, clock } = this.#ports;
    if (this.runningCount + this.#creating.size >= limits.sessionsMax) {
      throw new ChatdError(
        'session-limit',
        `Cannot start session: ${limits.sessionsMax} are running (host.sessions_max)`,
      );
    }
    const launch = resolveLaunch(request, user, environment);
    const sessionId = mintId(random);
    const incarnation = mintId(random, 16);
    const spawned: Omit<SessionRecord, 'pid' | 'process' | 'keeper'> = {
      v: 1,
      sessionId,
      incarnation,
      token: request.token,
      command: [...request.command],
      argv: [...launch.argv],
      cwd: launch.cwd,
      envNames: Object.keys(request.env),
      actor: request.actor,
      ...(request.profile === undefined ? {} : { profile: request.profile }),
      cols: request.cols,
      rows: request.rows,
      startedAtWallMs: clock.wallMs(),
      state: { kind: 'running' },
      lostBytes: 0,
      lastOutputAtWallMs: clock.wallMs(),
    };
    const home = join(directory, sessionId);
    makeHome(home);
    this.#spawning.add(sessionId);
    try {
      const started = await keeper.spawn({
        sessionId,
        incarnation,
        token: request.token,
        record: JSON.stringify(spawned),
        file: launch.file,
        argv: launch.argv,
        env: Object.entries(launch.env).map(([name, value]) => `${name}=${value}`),
        cwd: launch.cwd,
        cols: request.cols,
        rows: request.rows,
      });
      const { pid, process } = started;
      const record: SessionRecord = { ...spawned, pid, process, keeper: keeper.process };
      const session = this.#add(record);
      this.#start(session, started.fds);
      const early = this.#earlyExits.get(sessionId);
      if (early !== undefined) session.exitedWith(early);
      await this.#save(session);
      return session;
    } catch (error) {
      if (!(error instanceof SpawnFailed)) throw error;
      rmSync(home, { recursive: true, force: true });
      throw spawnError(error, request);
    } finally {
      this.#spawning.delete(sessionId);
      this.#earlyExits.delete(sessionId);
    }
  }

  /** A record that cannot be written now is written at the exit; the keeper has it meanwhile. */
  async #save(session: HostSession): Promise<void> {
    try {
      await session.save();
    } catch (error) {
      this.#ports.log.error('session.record-failed', {
        session: session.id,
        error: errorText(error),
      });
    }
  }

  #start(session: HostSession, fds: KeptTerminal['fds']): void {
    try {
      session.start(fds);
    } finally {
      if (session.slot !== undefined) this.#bySlot.set(session.slot, session);
    }
  }

  #add(record: SessionRecord): HostSession {
    const { clock, log, workers, keeper, limits, random, directory } = this.#ports;
    const session = new HostSession(join(directory, record.sessionId), record, {
      clock,
      log,
      workers,
      limits,
      mintNonce: () => mintId(random),
      forget: (sessionId, incarnation) => keeper.forget(sessionId, incarnation),
    });
    this.#byId.set(record.sessionId, session);
    return session;
  }

  // ── Taking over ─────────────────────────────────────────────────────────────────────────────

  /** What the predecessors left: everything on disk, and what the keeper holds. */
  adopt(terminals: readonly KeptTerminal[]): void {
    for (const name of readdirSync(this.#ports.directory)) {
      const record = readSessionRecord(join(this.#ports.directory, name));
      if (record !== undefined && record.sessionId === name) this.#add(record);
    }
    for (const terminal of terminals) this.#adoptTerminal(terminal);
    for (const session of this.#byId.values()) {
      if (session.state.kind === 'running' && !session.live) this.#unresolved.add(session);
    }
    this.proveEnds();
  }

  #adoptTerminal(terminal: KeptTerminal): void {
    const { session: kept, fds } = terminal;
    const { keeper, log } = this.#ports;
    const known = this.#byId.get(kept.sessionId);
    const session = known ?? this.#fromKeeper(terminal);
    if (session === undefined || session.incarnation !== kept.incarnation) {
      log.error('session.not-adopted', { session: kept.sessionId });
      for (const fd of fds) closeFd(fd);
      return;
    }
    session.record.keeper = keeper.process;
    createSessionDirectory(session.directory);
    this.#start(session, fds);
    if (kept.status !== undefined) session.exitedWith(kept.status);
  }

  /** The predecessor was killed between the spawn and session.json. */
  #fromKeeper(terminal: KeptTerminal): HostSession | undefined {
    const { pid, process, record } = terminal.session;
    const { keeper } = this.#ports;
    const full = { ...(JSON.parse(record) as object), pid, process, keeper: keeper.process };
    const parsed = parseSessionRecord(JSON.stringify(full));
    return parsed === undefined ? undefined : this.#add(parsed);
  }

  /** To a new keeper: what is not certainly over. */
  handBack(): readonly KeptTerminal[] {
    return this.list().flatMap((session) => {
      const { fds, record } = session;
      if (fds === undefined) return [];
      const { sessionId, incarnation, token, pid, process, ...rest } = record;
      const kept = { sessionId, incarnation, token, pid, process };
      const status =
        record.state.kind === 'exited' ? { status: { kind: 'unknown' } as WaitStatus } : {};
      const json = JSON.stringify({ ...rest, sessionId, incarnation, token });
      return [{ session: { ...kept, record: json, ...status }, fds }];
    });
  }

  /**
   * Sessions nobody holds: over once the program is proven to be gone, not before. Called at the
   * start and from time to time.
   */
  proveEnds(): void {
    for (const session of this.#unresolved) {
      if (!this.#ports.provenDead(session.record.process)) continue;
      this.#unresolved.delete(session);
      session.setCause('keeper and host ended together');
      session.closeUnheld();
    }
  }

  // ── What keeper and threads say ─────────────────────────────────────────────────────────────

  exited(sessionId: string, incarnation: string, status: WaitStatus): void {
    const session = this.#byId.get(sessionId);
    if (session?.incarnation === incarnation) session.exitedWith(status);
    else if (this.#spawning.has(sessionId)) this.#earlyExits.set(sessionId, status);
  }

  fromReader(message: FromReader): void {
    if (message.t === 'grew') {
      for (const slot of message.slots) this.#bySlot.get(slot)?.grew();
    } else if ('slot' in message) {
      this.#bySlot.get(message.slot)?.fromReader(message);
    }
  }

  fromModel(
    message: Exclude<FromModel, { t: 'result' | 'refused' | 'prepared' | 'stopped' }>,
  ): void {
    const session = this.#bySlot.get(message.slot);
    if (session === undefined) return;
    switch (message.t) {
      case 'view':
        session.showView(message.payload, message.progress);
        return;
      case 'progress':
        session.progressed(message.progress);
        return;
      case 'answers':
        session.answerQuery(message.bytes);
        return;
      case 'finished':
        session.showExit();
        return;
      case 'session-failed':
        this.#ports.log.error('session.model-failed', {
          session: session.id,
          because: message.message,
        });
        session.modelFailed();
        return;
      case 'closed':
        session.modelClosed();
        if (session.slot === undefined) this.#bySlot.delete(message.slot);
    }
  }

  /** Every few seconds: idle models go, old records go, unproven ends are looked at again. */
  sweep(): void {
    this.proveEnds();
    const nowMs = this.#ports.clock.monotonicMs();
    for (const session of this.list()) {
      if (session.state.kind === 'running' || session.live) continue;
      this.#sweepModel(session, nowMs);
      const seenMs = this.#endedSeen.get(session.id) ?? nowMs;
      this.#endedSeen.set(session.id, seenMs);
      if (nowMs - seenMs >= EXITED_KEPT_MS && session.attached.size === 0) this.#remove(session);
    }
    this.#evictTotal();
  }

  #sweepModel(session: HostSession, nowMs: number): void {
    if (session.slot === undefined || session.attached.size > 0) return;
    const usedMs = this.#modelUsedMs.get(session) ?? nowMs;
    this.#modelUsedMs.set(session, usedMs);
    if (nowMs - usedMs < IDLE_MODEL_MS) return;
    this.#modelUsedMs.delete(session);
    this.#ports.workers.toModel({ t: 'close', slot: session.slot });
  }

  #remove(session: HostSession): void {
    if (session.slot !== undefined) return;
    this.#byId.delete(session.id);
    this.#endedSeen.delete(session.id);
    session.journal.close();
    rmSync(session.directory, { recursive: true, force: true });
  }

  /** Above the total, the oldest ended sessions go first; running ones keep their own bound. */
  #evictTotal(): void {
    let total = this.list().reduce((sum, session) => sum + session.keptBytes, 0);
    const ended = this.list()
      .filter((session) => session.state.kind === 'exited' && session.attached.size === 0)
      .sort((a, b) => a.record.startedAtWallMs - b.record.startedAtWallMs);
    for (const session of ended) {
      if (total <= this.#ports.limits.journalBytesTotal) return;
      total -= session.keptBytes;
      this.#remove(session);
    }
  }
}

/** @throws {ChatdError} state-directory-unusable */
function makeHome(home: string): void {
  try {
    createSessionDirectory(home);
  } catch (cause) {
    throw new ChatdError('state-directory-unusable', `Cannot start session: ${errorText(cause)}`, {
      cause,
    });
  }
}

function spawnError(error: SpawnFailed, request: CreateRequest): ChatdError {
  const name = request.command[0] ?? 'the login shell';
  const { errno } = error;
  if (errno === 'ENOENT') {
    return new ChatdError(
      'command-not-found',
      `Cannot start ${name}: it or its interpreter is missing`,
    );
  }
  if (errno === 'EACCES' || errno === 'ENOEXEC' || errno === 'EPERM') {
    return new ChatdError('command-not-executable', `Cannot start ${name}: ${errno}`);
  }
  return new ChatdError('spawn-failed', `Cannot start ${name}: ${error.message}`);
}
