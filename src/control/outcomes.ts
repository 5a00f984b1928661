// What a lifecycle action came to, in one word each, and the exit code that follows. Pure.

import type { Kind } from '../base/paths.ts';
import type { Owner } from './classify.ts';
import type { MachineTime } from './machine-time.ts';
import { heartbeatAgeMs } from './records.ts';

export type Action = 'ensure' | 'stop' | 'reload';

export type ActionOutcome =
  | 'disabled'
  | 'attached'
  | 'spawned'
  | 'stopped'
  | 'not-running'
  | 'reloaded'
  | 'nothing-to-reload'
  | 'lost-to-other-owner'
  | 'did-not-exit'
  | 'did-not-exit-after-kill'
  | 'did-not-become-ready'
  | 'owner-changed'
  | 'newer'
  | 'unauthorized'
  | 'malformed'
  | 'unhealthy'
  | 'unknown';

/** An owner as results show it: who, which contract, how it is. */
export interface OwnerSummary {
  readonly ownerId: string;
  readonly pid: number;
  readonly generation: number | null;
  readonly identity: string;
  readonly version: string;
  readonly phase: string;
  readonly transportHealthy: boolean;
  readonly transportReason: string;
  readonly heartbeatAgeMs: number;
}

export interface ActionResult {
  readonly kind: Kind;
  readonly action: Action;
  readonly outcome: ActionOutcome;
  readonly ok: boolean;
  /** One line for people, with what to do when it is not ok. */
  readonly message: string;
  readonly before: OwnerSummary | null;
  readonly after: OwnerSummary | null;
  readonly warnings: readonly string[];
  /** By the table in src/main.ts. */
  readonly exitCode: number;
}

export function summarize(owner: Owner | undefined, machine: MachineTime): OwnerSummary | null {
  if (owner === undefined) return null;
  const { state } = owner;
  const ageMs = heartbeatAgeMs(machine, state.heartbeat);
  return {
    ownerId: state.ownerId,
    pid: state.pid,
    generation: state.generation ?? null,
    identity: state.identity,
    version: state.programVersion,
    phase: state.phase,
    transportHealthy: state.transportHealthy,
    transportReason: state.transportReason,
    heartbeatAgeMs: Number.isFinite(ageMs) ? Math.round(ageMs) : Number.MAX_SAFE_INTEGER,
  };
}

const EXIT_CODES: Readonly<Record<ActionOutcome, number>> = {
  disabled: 21,
  attached: 0,
  spawned: 0,
  stopped: 0,
  'not-running': 0,
  reloaded: 0,
  'nothing-to-reload': 0,
  'lost-to-other-owner': 0,
  'did-not-exit': 25,
  'did-not-exit-after-kill': 25,
  'did-not-become-ready': 25,
  'owner-changed': 1,
  newer: 21,
  unauthorized: 21,
  malformed: 21,
  unhealthy: 25,
  unknown: 24,
};

/** The usual exit code of an outcome; a failed start carries the started process' own. */
export function exitCodeOf(outcome: ActionOutcome): number {
  return EXIT_CODES[outcome];
}

/**
 * Exit code for several results: the first that is not 0 and not "off". A kind that is off is no
 * failure when all kinds were meant.
 */
export function combinedExitCode(results: readonly ActionResult[], named: boolean): number {
  const failing = results.find(
    (result) => result.exitCode !== 0 && (named || result.outcome !== 'disabled'),
  );
  return failing?.exitCode ?? 0;
}

/** Exit code for an owner that ended by itself, from the cause it recorded. */
export function exitCodeOfCause(code: string): number {
  switch (code) {
    case 'config-invalid':
    case 'wrong-account':
    case 'platform-credentials':
      return 2;
    case 'refused':
      return 21;
    default:
      return 1;
  }
}
