// One chat daemon's life: own, record, announce, serve, beat, stop. It decides nothing about chats and
// never touches the host; whatever it cannot prove to own it stops serving.

import { rename } from 'node:fs/promises';
import type { Clock, Timer } from '../base/clock.ts';
import { ChatdError, errorCode, errorText } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { DaemonPaths, Kind } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import { CommandServer } from '../control/command-server.ts';
import type { CommandHandlers } from '../control/commands/registry.ts';
import { CHAT_DAEMON_GENERATION } from '../control/generation.ts';
import type { MachineTime } from '../control/machine-time.ts';
import { observeNumber } from '../control/observe.ts';
import { type ParsedState, readState, type StateRecord, tupleOf } from '../control/records.ts';
import { requireCapabilities } from '../ownership/capabilities.ts';
import { sweepTemporaries } from '../ownership/fenced-write.ts';
import { acquireKeptLock, type KeptLock } from '../ownership/kept-lock.ts';
import type { LockRecord } from '../ownership/lock-record.ts';
import { ensurePrivateDirectory } from '../ownership/private-directory.ts';
import { ownIncarnation } from '../ownership/process-observer.ts';
import type { ChatService, FatalCause, ServiceHealth } from './chat-service.ts';
import { ControlInbox } from './control-inbox.ts';
import { OwnerState, type Phase, type StopCause } from './owner-state.ts';
import { releaseAll, takeTokens } from './token-exclusivity.ts';

const HEARTBEAT_MS = 5000;
/** A file system that cannot tell for this long cannot be served from. */
const UNPROVEN_MAX_MS = 20_000;
/**
 * The controller waits 8 s for a graceful stop (OWNERSHIP.md §1.1). These two and the last write of
 * the record, all bounded, fit into it.
 */
export const SERVICE_STOP_MS = 6000;
export const COMMANDS_STOP_MS = 500;
export const SERVICE_LATE_MS = 250;

/** Codes of the table in src/main.ts. */
export interface DaemonExit {
  readonly code: 0 | 1 | 2 | 20 | 21;
  /** One line for whoever started us; empty when there is nothing to say. */
  readonly message: string;
}

/** What is built once ownership is recorded: this may be slow and may fail. */
export interface Prepared {
  readonly service: ChatService;
  /** From `tokenHash`: locked before the service starts. */
  readonly tokenHashes: readonly string[];
}

export interface DaemonOptions {
  readonly kind: Kind;
  readonly stateDirectory: string;
  readonly paths: DaemonPaths;
  readonly tokenDirectories: readonly string[];
  readonly identity: string;
  readonly configHash: string;
  readonly ownerId: string;
  readonly programVersion: string;
  readonly interpreter: string;
  readonly self: { readonly pid: number; readonly uid: number };
  readonly clock: Clock;
  readonly machine: MachineTime;
  readonly random: Random;
  readonly log: Log;
  readonly rotateLog: () => void;
  /** Lock and record are written: the starter may stop waiting. */
  readonly announceOwned: () => void;
  /** Calls its listener on SIGTERM and SIGINT. */
  readonly onTerminate: (listener: () => void) => void;
  /** Resolves secrets and builds the service; `known` is the store as last recorded. @throws {ChatdError} config-invalid */
  readonly prepare: (known: StateRecord['store']) => Promise<Prepared>;
}

/** Runs until it is told to stop or must. Never throws for what a person can cause. */
export async function runChatDaemon(options: DaemonOptions): Promise<DaemonExit> {
  let lock: KeptLock;
  let before: ParsedState;
  try {
    // Pid 1 is a second process in every pid namespace.
    requireCapabilities(options.log, options.self.pid, 1);
    const attempt = acquire(options);
    if (attempt === undefined) {
      return { code: 20, message: `another process owns ${options.paths.directory}` };
    }
    lock = attempt;
    before = readState(options.paths.state);
  } catch (error) {
    options.log.error('ownership.refused', { error });
    const settings = errorCode(error) === 'state-directory-unusable';
    return { code: settings ? 2 : 1, message: errorText(error) };
  }
  try {
    return await new DaemonLife(options, lock, before).run();
  } finally {
    lock.release();
  }
}

/** Undefined when somebody else holds the lock. @throws {ChatdError} when owning is not possible */
function acquire(options: DaemonOptions): KeptLock | undefined {
  const { paths, self, random, clock } = options;
  for (const directory of [options.stateDirectory, paths.directory, paths.commands]) {
    const { tightened } = ensurePrivateDirectory(directory, self.uid);
    if (tightened) options.log.warn('directory.tightened', { directory });
  }
  const before = readState(paths.state);
  if (before.kind === 'unavailable' && observeNumber(before.pid) !== 'gone') {
    throw new ChatdError(
      'ownership-unknown',
      `Cannot own ${paths.directory}: an old record names pid ${before.pid}, which is not proven dead; look at that process, then remove ${paths.state}`,
    );
  }
  const incarnation = ownIncarnation({ ...self, nonce: mintId(random) });
  const record: LockRecord = {
    v: 1,
    incarnation,
    ownerId: options.ownerId,
    generation: CHAT_DAEMON_GENERATION,
    nonce: mintId(random, 16),
    createdAtMs: Math.floor(clock.wallMs()),
  };
  const attempt = acquireKeptLock(paths.lock, { uid: self.uid, record });
  return attempt.kind === 'busy' ? undefined : attempt.lock;
}

const NOT_YET: ServiceHealth = {
  transportHealthy: false,
  transportReason: 'starting',
  lastEventAtWallMs: undefined,
};

/** What ends a life, and the exit it leads to. */
interface End extends StopCause {
  readonly exit: DaemonExit['code'];
}

class DaemonLife {
  readonly #options: DaemonOptions;
  readonly #lock: KeptLock;
  readonly #state: OwnerState;
  readonly #before: ParsedState;
  readonly #ended: Promise<End>;
  #end: (end: End) => void = () => undefined;
  #endedWith: End | undefined;
  #phase: Phase = 'starting';
  #service: ChatService | undefined;
  #timer: Timer | undefined;
  #unprovenSinceMs: number | undefined;
  #wasHealthy = false;

  constructor(options: DaemonOptions, lock: KeptLock, before: ParsedState) {
    this.#options = options;
    this.#lock = lock;
    this.#before = before;
    const { kind, identity, configHash, programVersion, interpreter } = options;
    this.#state = new OwnerState({
      lock,
      path: options.paths.state,
      facts: { kind, identity, configHash, programVersion, interpreter },
      store: this.#knownStore(),
      clock: options.clock,
      machine: options.machine,
      random: options.random,
    });
    this.#ended = new Promise((resolve) => {
      this.#end = (end) => {
        this.#endedWith ??= end;
        resolve(end);
      };
    });
  }

  async run(): Promise<DaemonExit> {
    const { options, lock } = { options: this.#options, lock: this.#lock };
    try {
      await this.#takeOver();
    } catch (error) {
      options.log.error('ownership.unrecorded', { error });
      return { code: 1, message: errorText(error) };
    }
    const inbox = new ControlInbox({
      ...options,
      lock,
      owner: tupleOf(lock.record),
      accept: ({ action }) => this.#stop(0, action, `${action} was asked for`),
      lost: (because) => this.#lost(because),
    });
    options.onTerminate(() => this.#terminate(inbox));
    options.announceOwned();
    inbox.start();
    this.#scheduleBeat();
    const end = await this.#serve();
    inbox.close();
    this.#timer?.cancel();
    return { code: end.exit, message: end.exit === 0 ? '' : end.reason };
  }

  #knownStore(): StateRecord['store'] {
    return this.#before.kind === 'record' ? this.#before.record.store : undefined;
  }

  /** The first acts of a new owner: what an earlier one left is put aside, then the record. */
  async #takeOver(): Promise<void> {
    const { paths, log } = this.#options;
    if (this.#before.kind === 'malformed') {
      await rename(paths.state, `${paths.state}.bad`);
      log.warn('state.set-aside', { because: this.#before.because });
    }
    for (const path of [paths.state, paths.control, paths.controlResponse]) {
      await sweepTemporaries(this.#lock, path);
    }
    await this.#state.write({ phase: 'starting', health: NOT_YET });
    log.info('ownership.taken', { ownerId: this.#lock.record.ownerId });
  }

  async #serve(): Promise<End> {
    let tokens: readonly KeptLock[] = [];
    let commands: CommandServer | undefined;
    try {
      const prepared = await this.#unlessEnded(this.#options.prepare(this.#knownStore()));
      if (prepared === undefined) return await this.#finish(tokens, commands);
      tokens = this.#takeTokens(prepared);
      this.#service = prepared.service;
      await this.#unlessEnded(prepared.service.start(this.#context()));
      if (this.#endedWith === undefined) {
        this.#phase = 'running';
        // Only now: a service has its handlers once it has started.
        commands = this.#serveCommands(prepared.service);
        commands.start();
        await this.#beat();
      }
    } catch (error) {
      this.#failed(error);
    }
    return await this.#finish(tokens, commands);
  }

  async #finish(tokens: readonly KeptLock[], commands: CommandServer | undefined): Promise<End> {
    const end = await this.#ended;
    await this.#shutDown(end, commands);
    releaseAll(tokens);
    return end;
  }

  /** A step that hangs (a password manager, a platform) must not delay a stop. */
  async #unlessEnded<T>(step: Promise<T>): Promise<T | undefined> {
    return await Promise.race([step, this.#ended.then(() => undefined)]);
  }

  #takeTokens(prepared: Prepared): readonly KeptLock[] {
    const { tokenDirectories, self } = this.#options;
    const { record } = this.#lock;
    const taken = takeTokens(prepared.tokenHashes, tokenDirectories, { uid: self.uid, record });
    if (taken.kind === 'held') return taken.locks;
    throw new ChatdError(
      'refused',
      `Cannot serve ${this.#options.kind}: another chatd on this machine uses the same token (${taken.path}); stop it or use another app`,
    );
  }

  #failed(error: unknown): void {
    this.#options.log.error('daemon.failed', { error });
    const code = errorCode(error);
    const exit = code === 'config-invalid' || code === 'wrong-account' ? 2 : 1;
    this.#stop(code === 'refused' ? 21 : exit, code ?? 'failed', errorText(error));
  }

  #serveCommands(service: ChatService): CommandServer {
    const { paths, kind, clock, machine, random, log } = this.#options;
    return new CommandServer({
      directory: paths.commands,
      kind,
      owner: tupleOf(this.#lock.record),
      proven: () => this.#proven(),
      handlers: { 'rotate-log': this.#rotateLog, ...service.commands },
      clock,
      machine,
      random,
      log,
    });
  }

  readonly #rotateLog: NonNullable<CommandHandlers['rotate-log']> = async (_args, fence) => {
    const entered = await fence.enter();
    if (!entered.granted) return { kind: 'rejected', code: entered.because };
    this.#options.rotateLog();
    return { kind: 'ok', result: {} };
  };

  #context(): Parameters<ChatService['start']>[0] {
    const { kind, paths, log, clock, random, identity } = this.#options;
    return {
      kind,
      paths,
      log,
      clock,
      random,
      proven: () => this.#proven(),
      rememberStore: async (marker) => {
        this.#state.rememberStore(marker);
        const health = this.#service?.health() ?? NOT_YET;
        await this.#state.write({ phase: this.#phase, health });
      },
      signedIn: (actual) => {
        if (actual === identity) return;
        const reason = `the token is for ${actual}, the configuration says ${identity}`;
        this.#fatal({ code: 'wrong-account', reason });
      },
      fatal: (cause) => this.#fatal(cause),
      healthChanged: () => this.#healthChanged(),
    };
  }

  #fatal(cause: FatalCause): void {
    this.#options.log.error('daemon.cannot-go-on', { code: cause.code, reason: cause.reason });
    const settings = cause.code === 'wrong-account' || cause.code === 'platform-credentials';
    this.#stop(settings ? 2 : 1, cause.code, cause.reason);
  }

  #stop(exit: DaemonExit['code'], code: string, reason: string): void {
    this.#end({ exit, code, reason });
  }

  #lost(because: string): void {
    this.#stop(1, 'ownership-lost', `ownership was lost: ${because}`);
  }

  /** A signal is the wake-up of a request, or by itself a graceful stop. */
  #terminate(inbox: ControlInbox): void {
    inbox
      .look()
      .then(() => this.#stop(0, 'signal', 'told by a signal'))
      .catch((error: unknown) => this.#failed(error));
  }

  #proven(): boolean {
    return this.#endedWith?.code !== 'ownership-lost' && this.#lock.prove().kind === 'held';
  }

  #healthChanged(): void {
    const healthy = this.#service?.health().transportHealthy ?? false;
    if (healthy === this.#wasHealthy) return;
    this.#beat().catch((error: unknown) => this.#failed(error));
  }

  #scheduleBeat(): void {
    this.#timer = this.#options.clock.timer(HEARTBEAT_MS, () => {
      this.#beat()
        .catch((error: unknown) => this.#failed(error))
        .finally(() => {
          if (this.#phase !== 'stopped') this.#scheduleBeat();
        });
    });
  }

  /** Proves ownership again, then writes. Whoever cannot prove it stops serving. */
  async #beat(): Promise<void> {
    const proof = this.#lock.prove();
    if (proof.kind === 'lost') {
      this.#lost(proof.because);
      return;
    }
    const nowMs = this.#options.clock.monotonicMs();
    try {
      if (proof.kind === 'unknown') throw new Error(proof.because);
      const health = this.#service?.health() ?? NOT_YET;
      this.#wasHealthy = health.transportHealthy;
      await this.#state.write({ phase: this.#phase, health });
      this.#unprovenSinceMs = undefined;
    } catch (error) {
      this.#unprovenSinceMs ??= nowMs;
      this.#options.log.warn('heartbeat.unwritten', { error: errorText(error) });
      if (proof.kind === 'unknown' && nowMs - this.#unprovenSinceMs > UNPROVEN_MAX_MS) {
        this.#stop(1, 'ownership-unknown', `ownership cannot be proved: ${errorText(error)}`);
      }
    }
  }

  async #shutDown(end: End, commands: CommandServer | undefined): Promise<void> {
    const { log } = this.#options;
    log.info('daemon.stopping', { code: end.code });
    this.#phase = 'stopping';
    await this.#beat();
    const patience = end.code === 'ownership-lost' ? 0 : SERVICE_STOP_MS;
    await commands?.close(COMMANDS_STOP_MS);
    await this.#stopService(patience);
    this.#phase = 'stopped';
    const health = { ...(this.#service?.health() ?? NOT_YET), transportHealthy: false };
    const { code, reason } = end;
    await this.#state
      .write({ phase: 'stopped', health, stopCause: { code, reason } })
      .catch((error: unknown) => log.warn('state.unwritten', { error: errorText(error) }));
    log.info('daemon.stopped', { code: end.code });
  }

  /** A service that does not come back in its grace is left behind: the process ends anyway. */
  async #stopService(graceMs: number): Promise<void> {
    const { clock, log } = this.#options;
    if (this.#service === undefined) return;
    const done = this.#service.stop(graceMs).catch((error: unknown) => {
      log.error('service.stop-failed', { error });
    });
    const timer = new AbortController();
    const late = clock
      .sleep(graceMs + SERVICE_LATE_MS, timer.signal)
      .then(() => log.warn('service.stop-late', { graceMs }))
      .catch(() => undefined);
    await Promise.race([done, late]);
    timer.abort();
  }
}
