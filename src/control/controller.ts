// ensure, stop and reload for one kind. Each waits for proof, is idempotent, has bounded time, and says
// what it saw. Refusals name what to do; nothing destructive rests on "cannot tell".

import type { Clock } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import type { DaemonPaths, Kind } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import type { LockRecord } from '../ownership/lock-record.ts';
import { ensurePrivateDirectory } from '../ownership/private-directory.ts';
import { ownIncarnation } from '../ownership/process-observer.ts';
import type { SpawnReadyOutcome } from '../ownership/spawn-ready.ts';
import {
  type Classification,
  classify,
  type Expectation,
  HEARTBEAT_AGE_MAX_MS,
  type Owner,
  ownerOf,
} from './classify.ts';
import { endOwner, GRACEFUL_MS, KILL_MS } from './end-owner.ts';
import type { MachineTime } from './machine-time.ts';
import { observe } from './observe.ts';
import {
  type Action,
  type ActionOutcome,
  type ActionResult,
  exitCodeOf,
  exitCodeOfCause,
  summarize,
} from './outcomes.ts';
import { heartbeatAgeMs, type StateRecord } from './records.ts';

/** DETAILS.md "Ready times": until `owned` on the pipe, and then until the platform is connected. */
export const OWNED_MS = 10_000;
export const CONNECTED_MS = 30_000;
/** Somebody else may be starting, after having ended an older one. */
const SPAWN_TURN_MS = OWNED_MS + GRACEFUL_MS + KILL_MS;
const POLL_MS = 50;

export interface ControllerOptions {
  readonly kind: Kind;
  readonly paths: DaemonPaths;
  /** Undefined: the section is absent or off. */
  readonly configured: { readonly identity: string; readonly configHash: string } | undefined;
  readonly generation: number;
  readonly self: { readonly pid: number; readonly uid: number };
  readonly clock: Clock;
  readonly machine: MachineTime;
  readonly random: Random;
  /** Starts a daemon with this ownerId and waits until it owns, at most OWNED_MS. */
  readonly spawn: (ownerId: string) => Promise<SpawnReadyOutcome>;
}

export interface EnsureOptions {
  /** Do not wait for the platform. */
  readonly noWait?: boolean;
}

export interface StopOptions {
  readonly force?: boolean;
}

export interface ReloadOptions extends StopOptions, EnsureOptions {
  /** With nobody running, start nobody. */
  readonly noSpawn?: boolean;
}

interface Report {
  readonly outcome: ActionOutcome;
  readonly message: string;
  readonly after?: Owner | undefined;
  readonly warnings?: readonly string[];
  readonly exitCode?: number;
}

interface Ended {
  andThen(next: () => Promise<Report>): Promise<Report>;
}

export class Controller {
  readonly #options: ControllerOptions;

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  async ensure(options: EnsureOptions = {}): Promise<ActionResult> {
    const { kind, configured } = this.#options;
    const seen = this.#look();
    if (configured === undefined) {
      return this.#result('ensure', seen, {
        outcome: 'disabled',
        message: `${kind} is not configured or off; set [${kind}] enabled = true`,
        after: ownerOf(seen),
      });
    }
    return this.#result('ensure', seen, await this.#ensureFrom(seen, options, true));
  }

  async stop(options: StopOptions = {}): Promise<ActionResult> {
    const seen = await this.#settle();
    const refused = this.#refusal(seen, 'stop');
    if (refused !== undefined) return this.#result('stop', seen, refused);
    const owner = ownerOf(seen);
    if (owner === undefined) {
      return this.#result('stop', seen, { outcome: 'not-running', message: 'nobody is running' });
    }
    const ended = await this.#end(owner, 'stop', options.force === true);
    return this.#result('stop', seen, await ended.andThen(() => this.#stopped(owner)));
  }

  async reload(options: ReloadOptions = {}): Promise<ActionResult> {
    const { kind, configured } = this.#options;
    const seen = await this.#settle();
    if (configured === undefined) {
      return this.#result('reload', seen, {
        outcome: 'disabled',
        message: `${kind} is not configured or off; use: chatd stop ${kind}`,
        after: ownerOf(seen),
      });
    }
    const refused = this.#refusal(seen, 'reload');
    if (refused !== undefined) return this.#result('reload', seen, refused);
    const owner = ownerOf(seen);
    if (owner === undefined) {
      if (options.noSpawn === true) {
        const message = 'nobody is running, so there is nothing to reload';
        return this.#result('reload', seen, { outcome: 'nothing-to-reload', message });
      }
      return this.#result('reload', seen, await this.#start(options, 'spawned'));
    }
    const ended = await this.#end(owner, 'reload', options.force === true);
    const report = await ended.andThen(() => this.#start(options, 'reloaded'));
    return this.#result('reload', seen, report);
  }

  #look(): Classification {
    const { configured, generation, paths } = this.#options;
    const expected: Expectation = { identity: configured?.identity, generation };
    return classify(observe(paths), expected);
  }

  /** Looks, and waits out one start where it seems that somebody is just starting. */
  async #settle(): Promise<Classification> {
    const { clock } = this.#options;
    const endMs = clock.monotonicMs() + OWNED_MS;
    for (;;) {
      const seen = this.#look();
      const mayStart = seen.class === 'malformed' || (seen.class === 'unknown' && seen.starting);
      if (!mayStart || clock.monotonicMs() >= endMs) return seen;
      await clock.sleep(POLL_MS);
    }
  }

  async #ensureFrom(
    first: Classification,
    options: EnsureOptions,
    again: boolean,
  ): Promise<Report> {
    const mayStart = first.class === 'malformed' || first.class === 'unknown';
    const seen = mayStart ? await this.#settle() : first;
    switch (seen.class) {
      case 'compatible':
      case 'newer':
        return await this.#attach(seen.owner, options, again);
      case 'replaceable': {
        // A killed chat daemon loses nothing, so an older one is replaced without being asked twice.
        const ended = await this.#end(seen.owner, 'reload', true);
        return await ended.andThen(() => this.#start(options, 'spawned'));
      }
      case 'absent':
      case 'stopped':
        return await this.#start(options, 'spawned');
      default:
        return this.#refusal(seen, 'ensure') ?? { outcome: 'unknown', message: 'cannot tell' };
    }
  }

  /** An owner is there: attached once it is healthy, within the ready time. */
  async #attach(owner: Owner, options: EnsureOptions, again: boolean): Promise<Report> {
    const found = await this.#awaitConnected(owner, options.noWait === true ? 0 : CONNECTED_MS);
    switch (found.kind) {
      case 'connected':
        return this.#attached(found.owner);
      case 'waiting':
        return options.noWait === true ? this.#attached(found.owner) : this.#unhealthy(found.owner);
      case 'ended':
      case 'other':
        // It ended, or another took over, while we waited: look once more, then say so.
        if (again) return await this.#ensureFrom(await this.#settle(), options, false);
        return { outcome: 'unknown', message: 'its owner keeps changing; try again' };
    }
  }

  #attached(owner: Owner): Report {
    const { configured, kind, generation } = this.#options;
    const warnings: string[] = [];
    const differs = configured !== undefined && configured.configHash !== owner.state.configHash;
    if (differs) {
      warnings.push(`its configuration differs from the file; to apply: chatd reload ${kind}`);
    }
    const theirs = owner.state.generation ?? 0;
    if (theirs > generation)
      warnings.push(`it is newer (generation ${theirs}, ours ${generation})`);
    if (owner.state.degraded !== undefined) warnings.push(owner.state.degraded);
    const message = `attached to pid ${owner.state.pid}${differs ? ', config differs' : ''}`;
    return { outcome: 'attached', message, after: owner, warnings };
  }

  #unhealthy(owner: Owner): Report {
    const { kind, generation } = this.#options;
    const reason = this.#reasonOf(owner.state);
    const theirs = owner.state.generation ?? 0;
    if (theirs > generation) {
      const message = `the owner (pid ${owner.state.pid}, generation ${theirs}) is newer than this chatd (generation ${generation}) and not healthy: ${reason}; upgrade this chatd`;
      return { outcome: 'newer', message, after: owner };
    }
    const message = `the owner (pid ${owner.state.pid}) is not healthy: ${reason}; to replace it: chatd reload ${kind} --force`;
    return { outcome: 'unhealthy', message, after: owner };
  }

  #reasonOf(state: StateRecord): string {
    const ageMs = heartbeatAgeMs(this.#options.machine, state.heartbeat);
    if (ageMs > HEARTBEAT_AGE_MAX_MS) {
      return `not answering, its last heartbeat is ${Math.round(ageMs / 1000)} s old`;
    }
    return state.transportReason === '' ? state.phase : state.transportReason;
  }

  /** Starts one under the spawn lock, or adopts the one somebody else started meanwhile. */
  async #start(options: EnsureOptions, word: 'spawned' | 'reloaded'): Promise<Report> {
    const { paths, clock, random, self } = this.#options;
    // Who only attaches does not pay for loading what starts processes.
    const { takeSpawnTurn } = await import('../ownership/spawn-ready.ts');
    try {
      ensurePrivateDirectory(paths.directory, self.uid);
      const ownerId = `${self.pid}-${mintId(random)}`;
      const turn = await takeSpawnTurn<{ owner?: Owner; started?: SpawnReadyOutcome }>({
        lockPath: paths.spawnLock,
        lock: { uid: self.uid, record: this.#spawnRecord(ownerId) },
        clock,
        waitMs: SPAWN_TURN_MS,
        adopt: async () => {
          const owner = ownerOf(this.#look());
          return owner === undefined ? undefined : { owner };
        },
        start: async () => ({ started: await this.#options.spawn(ownerId) }),
      });
      if (turn.kind === 'timed-out') {
        const message = 'another process has been starting it for too long; try again';
        return { outcome: 'did-not-become-ready', message };
      }
      if (turn.kind === 'started' && turn.value.started !== undefined) {
        return await this.#started(turn.value.started, ownerId, options, word);
      }
      return await this.#lostTo(turn.value.owner, options, word);
    } catch (error) {
      const message = `cannot start: ${errorText(error)}`;
      return { outcome: 'did-not-become-ready', message, exitCode: startFailureCode(error) };
    }
  }

  #spawnRecord(ownerId: string): LockRecord {
    const { self, random, clock, generation } = this.#options;
    return {
      v: 1,
      incarnation: ownIncarnation({ ...self, nonce: mintId(random) }),
      ownerId,
      generation,
      nonce: mintId(random, 16),
      createdAtMs: Math.floor(clock.wallMs()),
    };
  }

  async #started(
    started: SpawnReadyOutcome,
    ownerId: string,
    options: EnsureOptions,
    word: 'spawned' | 'reloaded',
  ): Promise<Report> {
    if (started.kind === 'occupied') {
      return await this.#lostTo(ownerOf(await this.#settle()), options, word);
    }
    if (started.kind === 'timed-out') {
      const message = `pid ${started.pid} did not become ready within ${OWNED_MS / 1000} s`;
      return { outcome: 'did-not-become-ready', message: withTail(message, started.stderrTail) };
    }
    if (started.kind === 'ended') {
      const code = Number(/^code (\d+)$/.exec(started.status)?.[1] ?? 1);
      const message = withTail(`it ended at once (${started.status})`, started.stderrTail);
      return { outcome: 'did-not-become-ready', message, exitCode: code === 0 ? 1 : code };
    }
    return await this.#connected(ownerId, options, word);
  }

  /** It owns. Now wait for the platform, which may take long or never come. */
  async #connected(
    ownerId: string,
    options: EnsureOptions,
    word: 'spawned' | 'reloaded',
  ): Promise<Report> {
    const owner = ownerOf(await this.#settle());
    if (owner === undefined || owner.state.ownerId !== ownerId) return await this.#ended(ownerId);
    const waitMs = options.noWait === true ? 0 : CONNECTED_MS;
    const found = await this.#awaitConnected(owner, waitMs);
    switch (found.kind) {
      case 'connected':
        return {
          outcome: word,
          message: `${word}, pid ${found.owner.state.pid}`,
          after: found.owner,
        };
      case 'waiting': {
        const message = `${word}, not connected: ${this.#reasonOf(found.owner.state)}`;
        if (options.noWait === true) return { outcome: word, message, after: found.owner };
        return { outcome: 'did-not-become-ready', message, after: found.owner };
      }
      case 'ended':
        return await this.#ended(ownerId);
      case 'other':
        return await this.#lostTo(found.owner, options, word);
    }
  }

  /** What an owner that ended by itself left in its record. */
  async #ended(ownerId: string): Promise<Report> {
    const seen = this.#look();
    const last = seen.class === 'stopped' ? seen.last : undefined;
    const cause = last?.ownerId === ownerId ? last.stopCause : undefined;
    if (cause === undefined) {
      const message = `it ended before it was connected; see ${this.#options.paths.log}`;
      return { outcome: 'did-not-become-ready', message, exitCode: 1 };
    }
    const message = `it ended: ${cause.reason}`;
    const exitCode = exitCodeOfCause(cause.code);
    return { outcome: 'did-not-become-ready', message, exitCode };
  }

  /** Somebody else owns now. For `ensure` that is as good; a reload says whose it became. */
  async #lostTo(
    owner: Owner | undefined,
    options: EnsureOptions,
    word: 'spawned' | 'reloaded',
  ): Promise<Report> {
    if (owner === undefined) {
      return { outcome: 'unknown', message: 'another process holds the lock and cannot be placed' };
    }
    const refused = this.#refusal(await this.#settle(), word === 'reloaded' ? 'reload' : 'ensure');
    if (refused !== undefined && refused.outcome !== 'newer') return refused;
    const report = await this.#attachOnce(owner, options);
    if (word === 'spawned' || report.outcome !== 'attached') return report;
    const message = `another process started pid ${report.after?.state.pid ?? 0} meanwhile`;
    return { ...report, outcome: 'lost-to-other-owner', message };
  }

  async #attachOnce(owner: Owner, options: EnsureOptions): Promise<Report> {
    const found = await this.#awaitConnected(owner, options.noWait === true ? 0 : CONNECTED_MS);
    if (found.kind === 'connected') return this.#attached(found.owner);
    if (found.kind === 'ended') return await this.#ended(owner.state.ownerId);
    return options.noWait === true ? this.#attached(found.owner) : this.#unhealthy(found.owner);
  }

  /** Polls until `owner` is connected, ended, or replaced, at most `forMs`. */
  async #awaitConnected(
    owner: Owner,
    forMs: number,
  ): Promise<
    | { readonly kind: 'connected' | 'waiting' | 'other'; readonly owner: Owner }
    | { readonly kind: 'ended' }
  > {
    const { clock } = this.#options;
    const endMs = clock.monotonicMs() + forMs;
    let current = owner;
    for (;;) {
      if (current.lock.nonce !== owner.lock.nonce) return { kind: 'other', owner: current };
      if (this.#isConnected(current.state)) return { kind: 'connected', owner: current };
      if (clock.monotonicMs() >= endMs) return { kind: 'waiting', owner: current };
      await clock.sleep(POLL_MS);
      const seen = this.#look();
      if (seen.class === 'absent' || seen.class === 'stopped') return { kind: 'ended' };
      current = ownerOf(seen) ?? current;
    }
  }

  #isConnected(state: StateRecord): boolean {
    const fresh = heartbeatAgeMs(this.#options.machine, state.heartbeat) <= HEARTBEAT_AGE_MAX_MS;
    return fresh && state.phase === 'running' && state.transportHealthy;
  }

  /** Ends an owner. `andThen` runs only if it has ended; its report carries what was noticed. */
  async #end(owner: Owner, action: 'stop' | 'reload', escalate: boolean): Promise<Ended> {
    const ended = await endOwner({ ...this.#options, owner, action, escalate });
    const { warnings } = ended;
    if (ended.kind === 'ended') {
      const noticed = ended.killed ? [...warnings, 'it had to be killed'] : warnings;
      return {
        andThen: async (next) => {
          const report = await next();
          return { ...report, warnings: [...noticed, ...(report.warnings ?? [])] };
        },
      };
    }
    const report = await this.#notEnded(ended.kind, owner, action);
    return { andThen: () => Promise.resolve({ ...report, warnings }) };
  }

  async #notEnded(
    outcome: 'owner-changed' | 'did-not-exit' | 'did-not-exit-after-kill',
    owner: Owner,
    action: 'stop' | 'reload',
  ): Promise<Report> {
    const { kind } = this.#options;
    const { pid } = owner.state;
    switch (outcome) {
      case 'owner-changed': {
        const message = `pid ${pid} no longer owns ${kind}; look again: chatd status ${kind}`;
        return { outcome, message, after: ownerOf(this.#look()) };
      }
      case 'did-not-exit': {
        const message = `pid ${pid} did not exit within ${GRACEFUL_MS / 1000} s; to kill it: chatd ${action} ${kind} --force`;
        return { outcome, message, after: owner };
      }
      case 'did-not-exit-after-kill': {
        const message = `pid ${pid} did not exit even after SIGKILL; the kernel holds it, look at its state in ps`;
        return { outcome, message, after: owner };
      }
    }
  }

  async #stopped(owner: Owner): Promise<Report> {
    const after = ownerOf(this.#look());
    const other = after !== undefined && after.lock.nonce !== owner.lock.nonce;
    const message = `stopped pid ${owner.state.pid}`;
    const warnings = other ? [`another owner (pid ${after.state.pid}) has started since`] : [];
    return { outcome: 'stopped', message, after, warnings };
  }

  /** What may not be touched, and the way out. */
  #refusal(seen: Classification, action: Action): Report | undefined {
    const { kind, generation, configured } = this.#options;
    const wayOut = `see: chatd status ${kind} --explain`;
    switch (seen.class) {
      case 'malformed':
        return {
          outcome: 'malformed',
          message: `refused, a record is malformed (${seen.because}); ${wayOut}`,
        };
      case 'unknown':
        return {
          outcome: 'unknown',
          message: `refused, cannot tell who owns it: ${seen.because}; ${wayOut}`,
        };
      case 'unauthorized': {
        const message = `refused, pid ${seen.owner.state.pid} serves ${seen.owner.state.identity}, the configuration says ${configured?.identity ?? 'nothing'}; use the configuration it was started with, or another CHATD_STATE`;
        return { outcome: 'unauthorized', message, after: seen.owner };
      }
      case 'newer': {
        const message = `refused to ${action}: the owner has generation ${seen.owner.state.generation ?? 0}, this chatd ${generation}; upgrade this chatd first`;
        return { outcome: 'newer', message, after: seen.owner };
      }
      default:
        return undefined;
    }
  }

  #result(action: Action, seen: Classification, report: Report): ActionResult {
    const { kind, machine } = this.#options;
    const exitCode = report.exitCode ?? exitCodeOf(report.outcome);
    return {
      kind,
      action,
      outcome: report.outcome,
      ok: exitCode === 0,
      message: report.message,
      before: summarize(ownerOf(seen), machine),
      after: summarize(report.after, machine),
      warnings: report.warnings ?? [],
      exitCode,
    };
  }
}

function withTail(message: string, tail: string): string {
  return tail === '' ? message : `${message}: ${tail}`;
}

/** A directory that cannot be used is a matter of settings. */
function startFailureCode(error: unknown): number {
  const settings =
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    error.code === 'state-directory-unusable';
  return settings ? 2 : 1;
}
