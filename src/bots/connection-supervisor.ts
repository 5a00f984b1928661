// Keeps one connection to a platform alive: a state machine that judges by traffic, builds a NEW
// client object for every attempt (no SDK survives being restarted), and never ends the process. It
// knows no platform: slack/ and discord/ say how to open one and what its end meant.

import { Backoff, type BackoffLimits } from '../base/backoff.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';

/** One attempt. Once discarded it must not call its hooks. */
export interface Connection {
  /** Idempotent, never throws, does not wait. */
  discard(): void;
}

export interface ConnectionHooks {
  /** The platform has said hello: events will arrive here. */
  ready(): void;
  /** Anything arrived, pings and heartbeats included. */
  traffic(): void;
  /** The client is repairing itself and will say `ready` again: give it as long as for a hello. */
  unsettled(reason: string): void;
  down(cause: Down): void;
}

export type Down =
  /** Gone or going: open another one. `atLeastMs` when the platform asked for patience. */
  | { readonly kind: 'lost'; readonly reason: string; readonly atLeastMs?: number }
  /** Still works, will be closed soon: open the next one before this one ends. */
  | { readonly kind: 'replace'; readonly reason: string }
  /** Waiting does not help. */
  | { readonly kind: 'fatal'; readonly reason: string };

export type ConnectionState =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'connecting'; readonly reason: string }
  | { readonly kind: 'up' }
  | { readonly kind: 'waiting'; readonly reason: string }
  | { readonly kind: 'fatal'; readonly reason: string };

export interface SupervisorOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly open: (hooks: ConnectionHooks) => Connection;
  /** No hello within this time: the attempt is given up. */
  readonly readyWithinMs: number;
  /** Nothing at all for this time: the connection is dead, whatever its object says. */
  readonly silenceMs: number;
  /** Two openings are never closer than this. */
  readonly openGapMs: number;
  readonly backoff: BackoffLimits;
  readonly onState: (state: ConnectionState) => void;
}

/** A connection that stayed up this long was a good one: the next loss starts with a short wait. */
const STABLE_MS = 60_000;
/** How far wall and monotonic clock may part between two looks before it counts as a suspend. */
const JUMP_MS = 15_000;

interface Attempt {
  readonly connection: Connection;
  readonly openedAtMs: number;
}

export class ConnectionSupervisor {
  readonly #options: SupervisorOptions;
  readonly #backoff: Backoff;
  #state: ConnectionState = { kind: 'stopped' };
  #current: Attempt | undefined;
  /** Being replaced: still delivers until the next one is ready. */
  #draining: Attempt | undefined;
  #epoch = 0;
  #openedAtMs = Number.NEGATIVE_INFINITY;
  #lastTrafficMs = 0;
  #reopen: Timer | undefined;
  #readyWatch: Timer | undefined;
  #look: Timer | undefined;
  #lookedAt = { wallMs: 0, monotonicMs: 0 };

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.backoff, options.random);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get lastTrafficMs(): number {
    return this.#lastTrafficMs;
  }

  /** Starts after `delayMs`: two connections of one app are started apart. */
  start(delayMs = 0): void {
    if (this.#state.kind !== 'stopped') return;
    this.#enter({ kind: 'connecting', reason: 'starting' });
    this.#scheduleOpen(delayMs);
    this.#watch();
  }

  stop(): void {
    this.#end();
    this.#enter({ kind: 'stopped' });
  }

  /** Throws the present client away and builds another one, within the rate allowed. */
  rebuild(reason: string): void {
    if (this.#state.kind === 'stopped' || this.#state.kind === 'fatal') return;
    this.#lose({ kind: 'lost', reason });
  }

  #end(): void {
    this.#epoch += 1;
    for (const timer of [this.#reopen, this.#readyWatch, this.#look]) timer?.cancel();
    this.#reopen = undefined;
    this.#readyWatch = undefined;
    this.#look = undefined;
    this.#current?.connection.discard();
    this.#current = undefined;
    this.#drop();
  }

  #drop(): void {
    this.#draining?.connection.discard();
    this.#draining = undefined;
  }

  #enter(state: ConnectionState): void {
    this.#state = state;
    this.#options.onState(state);
  }

  #scheduleOpen(delayMs: number): void {
    const { clock, openGapMs } = this.#options;
    const gapMs = this.#openedAtMs + openGapMs - clock.monotonicMs();
    this.#reopen?.cancel();
    this.#reopen = clock.timer(Math.max(delayMs, gapMs, 0), () => {
      this.#reopen = undefined;
      this.#open();
    });
  }

  #open(): void {
    const { clock, log, name } = this.#options;
    this.#epoch += 1;
    const epoch = this.#epoch;
    this.#openedAtMs = clock.monotonicMs();
    if (this.#draining === undefined) {
      const reason = 'reason' in this.#state ? this.#state.reason : 'starting';
      this.#enter({ kind: 'connecting', reason });
    }
    const hooks: ConnectionHooks = {
      ready: () => {
        if (epoch === this.#epoch) this.#ready();
      },
      // The one being replaced counts too: what arrives there is traffic.
      traffic: () => {
        if (epoch >= this.#epoch - 1) this.#lastTrafficMs = clock.monotonicMs();
      },
      unsettled: (reason) => {
        if (epoch !== this.#epoch) return;
        this.#awaitReady(epoch);
        this.#enter({ kind: 'connecting', reason });
      },
      down: (cause) => {
        if (epoch === this.#epoch) this.#down(cause);
        else if (this.#draining !== undefined && epoch === this.#epoch - 1) this.#drop();
      },
    };
    this.#awaitReady(epoch);
    try {
      const connection = this.#options.open(hooks);
      this.#current = { connection, openedAtMs: this.#openedAtMs };
    } catch (error) {
      log.warn('connection.not-opened', { name, reason: errorText(error) });
      this.#lose({ kind: 'lost', reason: 'could not be opened' });
    }
  }

  #awaitReady(epoch: number): void {
    const { clock, readyWithinMs } = this.#options;
    this.#readyWatch?.cancel();
    this.#readyWatch = clock.timer(readyWithinMs, () => {
      if (epoch === this.#epoch) this.#lose({ kind: 'lost', reason: 'no hello in time' });
    });
  }

  #ready(): void {
    this.#readyWatch?.cancel();
    this.#readyWatch = undefined;
    this.#lastTrafficMs = this.#options.clock.monotonicMs();
    this.#drop();
    this.#options.log.info('connection.up', { name: this.#options.name });
    this.#enter({ kind: 'up' });
  }

  #down(cause: Down): void {
    if (cause.kind === 'fatal') {
      this.#options.log.error('connection.refused', {
        name: this.#options.name,
        reason: cause.reason,
      });
      this.#end();
      this.#enter({ kind: 'fatal', reason: cause.reason });
    } else if (cause.kind === 'replace' && this.#state.kind === 'up') {
      this.#replace(cause.reason);
    } else {
      this.#lose({ ...cause, kind: 'lost' });
    }
  }

  #replace(reason: string): void {
    this.#options.log.info('connection.replaced', { name: this.#options.name, reason });
    this.#drop();
    this.#draining = this.#current;
    this.#current = undefined;
    this.#scheduleOpen(0);
  }

  #lose(cause: Extract<Down, { kind: 'lost' }>): void {
    const { clock, log, name } = this.#options;
    const opened = this.#current;
    if (opened !== undefined && clock.monotonicMs() - opened.openedAtMs > STABLE_MS) {
      this.#backoff.reset();
    }
    this.#epoch += 1;
    this.#readyWatch?.cancel();
    this.#readyWatch = undefined;
    opened?.connection.discard();
    this.#current = undefined;
    this.#drop();
    const delayMs = Math.max(this.#backoff.nextMs(), cause.atLeastMs ?? 0);
    log.warn('connection.lost', { name, reason: cause.reason, delayMs: Math.round(delayMs) });
    this.#enter({ kind: 'waiting', reason: cause.reason });
    this.#scheduleOpen(delayMs);
  }

  /** Looks every few seconds: for silence, and for a machine that was asleep. */
  #watch(): void {
    const { clock, silenceMs } = this.#options;
    this.#lookedAt = { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
    this.#look = clock.timer(Math.min(5_000, silenceMs / 4), () => {
      const passedMs = clock.monotonicMs() - this.#lookedAt.monotonicMs;
      const jumpedMs = clock.wallMs() - this.#lookedAt.wallMs - passedMs;
      if (this.#state.kind === 'up') {
        if (clock.monotonicMs() - this.#lastTrafficMs > silenceMs) {
          this.#lose({ kind: 'lost', reason: 'silent for too long' });
        } else if (jumpedMs > JUMP_MS) {
          this.#lose({ kind: 'lost', reason: 'the machine was asleep' });
        }
      }
      this.#watch();
    });
    this.#look.unref();
  }
}
