// The port between a chat daemon's life and what it serves. The daemon owns lock, record, control and
// commands; the service owns platform, bindings and threads. Neither knows how the other works.

import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { DaemonPaths, Kind } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import type { CommandHandlers } from '../control/commands/registry.ts';
import type { StoreMarker } from '../store/store.ts';

/** What `status` tells of the platform connection. */
export interface ServiceHealth {
  readonly transportHealthy: boolean;
  /** One line for people: why it is (not) healthy. Never a token or a person's text. */
  readonly transportReason: string;
  /** Wall time of the last event from the platform; undefined before the first. */
  readonly lastEventAtWallMs: number | undefined;
  /** Slack: sockets the platform counts for this app. */
  readonly connectionsSeen?: number;
  /** Slack: how many of them are ours. */
  readonly connectionsOwn?: number;
  /** Served, but something is wrong that a person should know: parked threads, a full disk. */
  readonly degraded?: string;
}

/** Why a daemon cannot go on: waiting makes nothing better. */
export interface FatalCause {
  readonly code: 'wrong-account' | 'platform-credentials' | 'store-corrupt' | 'store-unwritable';
  readonly reason: string;
}

/** What the daemon gives its service. */
export interface ServiceContext {
  readonly kind: Kind;
  readonly paths: DaemonPaths;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /**
   * True only if this process is proven to hold the owner lock now. Ask before every effect outside
   * (a commit, a call to the platform); false or a throw means: do nothing more, we are stopping.
   */
  proven(): boolean;
  /**
   * Keeps in state.json what the store is, so that the next owner can tell a lost store from a new
   * one. Resolves when it is written: before anything is put into the store.
   */
  rememberStore(marker: StoreMarker): Promise<void>;
  /** Account that the platform says we are, in the form of Config.identityOf. Called after login. */
  signedIn(identity: string): void;
  /** Stops the daemon: the cause is recorded and shown by `status`. */
  fatal(cause: FatalCause): void;
  /** Health changed: written with the next heartbeat, at once if `transportHealthy` did. */
  healthChanged(): void;
}

/** What a chat daemon serves. */
export interface ChatService {
  /**
   * Called once ownership is recorded, never before. Loads what it needs, begins to connect, and
   * returns without waiting for the platform. A throw ends the daemon with its message.
   */
  start(context: ServiceContext): Promise<void>;
  health(): ServiceHealth;
  /** Commands this service executes in place. */
  readonly commands: CommandHandlers;
  /**
   * Stops taking events, flushes the outbox as far as `graceMs` allows, closes the platform. Resolves
   * within the grace; never ends a session, never stops the host.
   */
  stop(graceMs: number): Promise<void>;
}
