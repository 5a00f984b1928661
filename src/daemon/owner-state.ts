// state.json as its owner writes it: one writer, one write at a time, each under the fence. A heartbeat
// is not synced to disk: the boot id ends it at a reboot.

import type { Clock } from '../base/clock.ts';
import type { Kind } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import type { MachineTime } from '../control/machine-time.ts';
import type { PHASES, StateRecord } from '../control/records.ts';
import { writeFenced } from '../ownership/fenced-write.ts';
import type { KeptLock } from '../ownership/kept-lock.ts';
import type { ServiceHealth } from './chat-service.ts';

export type Phase = (typeof PHASES)[number];

export interface OwnerFacts {
  readonly kind: Kind;
  readonly identity: string;
  readonly configHash: string;
  readonly programVersion: string;
  readonly interpreter: string;
}

export interface StopCause {
  readonly code: string;
  readonly reason: string;
}

/** What a heartbeat tells besides the time. */
export interface Beat {
  readonly phase: Phase;
  readonly health: ServiceHealth;
  readonly stopCause?: StopCause;
}

export class OwnerState {
  readonly #lock: KeptLock;
  readonly #path: string;
  readonly #facts: OwnerFacts;
  readonly #clock: Clock;
  readonly #machine: MachineTime;
  readonly #random: Random;
  readonly #startedAtWallMs: number;
  #store: StateRecord['store'];
  #seq = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(options: {
    readonly lock: KeptLock;
    readonly path: string;
    readonly facts: OwnerFacts;
    /** Carried over from the owner before. */
    readonly store: StateRecord['store'];
    readonly clock: Clock;
    readonly machine: MachineTime;
    readonly random: Random;
  }) {
    this.#lock = options.lock;
    this.#path = options.path;
    this.#facts = options.facts;
    this.#store = options.store;
    this.#clock = options.clock;
    this.#machine = options.machine;
    this.#random = options.random;
    this.#startedAtWallMs = options.clock.wallMs();
  }

  /** From the next write on. */
  rememberStore(store: NonNullable<StateRecord['store']>): void {
    this.#store = store;
  }

  /** Writes after the writes before it. @throws {ChatdError} ownership-lost, -unknown; I/O errors */
  async write(beat: Beat): Promise<void> {
    const mine = this.#last.catch(() => undefined).then(() => this.#writeNow(beat));
    this.#last = mine;
    await mine;
  }

  async #writeNow(beat: Beat): Promise<void> {
    this.#seq += 1;
    const record = this.#record(beat);
    await writeFenced(this.#lock, this.#path, `${JSON.stringify(record)}\n`, {
      random: this.#random,
    });
  }

  #record(beat: Beat): StateRecord {
    const { ownerId, incarnation, generation, nonce } = this.#lock.record;
    const nowWallMs = this.#clock.wallMs();
    const { health } = beat;
    return {
      version: 1,
      ...this.#facts,
      ownerId,
      pid: incarnation.pid,
      incarnation,
      generation,
      nonce,
      startedAtWallMs: this.#startedAtWallMs,
      heartbeat: {
        seq: this.#seq,
        wallMs: nowWallMs,
        bootId: this.#machine.bootId,
        bootMs: this.#machine.bootMs(),
        monotonicMs: this.#machine.monotonicMs(),
      },
      phase: beat.phase,
      transportHealthy: health.transportHealthy,
      transportReason: health.transportReason.slice(0, 1000),
      ...(health.lastEventAtWallMs === undefined
        ? {}
        : { lastEventAtWallMs: health.lastEventAtWallMs }),
      ...(health.connectionsSeen === undefined ? {} : { connectionsSeen: health.connectionsSeen }),
      ...(health.connectionsOwn === undefined ? {} : { connectionsOwn: health.connectionsOwn }),
      ...(health.degraded === undefined ? {} : { degraded: health.degraded.slice(0, 1000) }),
      ...(this.#store === undefined ? {} : { store: this.#store }),
      ...(beat.stopCause === undefined ? {} : { stopCause: beat.stopCause }),
      ...(beat.phase === 'stopped' ? { stoppedAtWallMs: nowWallMs } : {}),
    };
  }
}
