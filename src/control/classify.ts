// What an owner directory says, as one of few classes. Pure: the facts come in, nothing is looked at.
// The lock decides whether there is an owner; the records only say who; what cannot be told is
// `unknown` and licenses nothing.

import type { LockView } from '../ownership/kept-lock.ts';
import type { LockRecord } from '../ownership/lock-record.ts';
import { type Judgement, sameIncarnation } from '../ownership/process-incarnation.ts';
import type { MachineTime } from './machine-time.ts';
import { heartbeatAgeMs, type ParsedState, type StateRecord } from './records.ts';

/** What was seen, each fact by itself, for decisions and for `status --explain`. */
export interface Observation {
  readonly lock: LockView;
  /** About the process that the lock's record names; undefined without such a record. */
  readonly holder: Judgement | undefined;
  readonly state: ParsedState;
  /** About the number in a record whose incarnation is "unavailable". */
  readonly oldPid: 'gone' | 'exists' | 'unknown' | undefined;
}

/** What the asking side is: whom it serves and which contract it speaks. */
export interface Expectation {
  /** Undefined when no configuration says: then identities are not compared. */
  readonly identity: string | undefined;
  readonly generation: number;
}

export interface Owner {
  readonly lock: LockRecord;
  readonly state: StateRecord;
}

export type Classification =
  | { readonly class: 'absent' }
  | { readonly class: 'stopped'; readonly last: StateRecord | undefined }
  /** Held, and the record cannot be read as one. Somebody must look. */
  | { readonly class: 'malformed'; readonly because: string }
  /** Cannot be told now. `starting`: looks like an owner that has not written its record yet. */
  | { readonly class: 'unknown'; readonly because: string; readonly starting: boolean }
  | { readonly class: 'unauthorized'; readonly owner: Owner }
  | { readonly class: 'newer'; readonly owner: Owner }
  | { readonly class: 'replaceable'; readonly owner: Owner }
  | { readonly class: 'compatible'; readonly owner: Owner };

export function classify(seen: Observation, expected: Expectation): Classification {
  switch (seen.lock.state) {
    case 'unknown':
      return unknown(`the lock cannot be looked at: ${seen.lock.because}`);
    case 'free':
      return classifyFree(seen);
    case 'held':
      return classifyHeld(seen, expected);
  }
}

function classifyFree(seen: Observation): Classification {
  const { state } = seen;
  switch (state.kind) {
    case 'absent':
      return { class: 'absent' };
    case 'record':
      return { class: 'stopped', last: state.record };
    case 'unavailable':
      // Written before owners held a lock: only the proven death of its pid makes it the past.
      return seen.oldPid === 'gone'
        ? { class: 'stopped', last: undefined }
        : unknown(`an old record names pid ${state.pid}, which is not proven dead`);
    case 'malformed':
    case 'unreadable':
      return { class: 'stopped', last: undefined };
  }
}

function classifyHeld(seen: Observation, expected: Expectation): Classification {
  const { lock, holder, state } = seen;
  if (lock.record.kind === 'absent') return starting('its holder has not said who it is');
  if (lock.record.kind === 'malformed') {
    return { class: 'malformed', because: `owner.lock: ${lock.record.because}` };
  }
  if (holder?.verdict !== 'alive') {
    const because = holder?.because ?? 'not looked at';
    return holder?.verdict === 'dead'
      ? starting(`the lock is held, its record names a dead process (${because})`)
      : unknown(`the lock is held, its holder cannot be placed: ${because}`);
  }
  if (state.kind === 'absent') return starting('its holder has not written state.json yet');
  if (state.kind === 'unreadable') return unknown(`state.json: ${state.because}`);
  if (state.kind === 'malformed') {
    return { class: 'malformed', because: `state.json: ${state.because}` };
  }
  if (state.kind === 'unavailable' || state.record.nonce !== lock.record.record.nonce) {
    return starting('state.json is still an earlier owner’s');
  }
  return classifyOwner({ lock: lock.record.record, state: state.record }, expected);
}

function classifyOwner(owner: Owner, expected: Expectation): Classification {
  const { lock, state } = owner;
  const agree =
    sameIncarnation(lock.incarnation, state.incarnation) &&
    state.pid === lock.incarnation.pid &&
    state.ownerId === lock.ownerId &&
    (state.generation === undefined || state.generation === lock.generation);
  if (!agree) return { class: 'malformed', because: 'owner.lock and state.json disagree' };
  if (expected.identity !== undefined && state.identity !== expected.identity) {
    return { class: 'unauthorized', owner };
  }
  if (state.generation === undefined) return { class: 'replaceable', owner };
  if (state.generation > expected.generation) return { class: 'newer', owner };
  if (state.generation < expected.generation) return { class: 'replaceable', owner };
  return { class: 'compatible', owner };
}

function unknown(because: string): Classification {
  return { class: 'unknown', because, starting: false };
}

function starting(because: string): Classification {
  return { class: 'unknown', because, starting: true };
}

/** The owner that is there, whatever its class. */
export function ownerOf(classification: Classification): Owner | undefined {
  return 'owner' in classification ? classification.owner : undefined;
}

export type HealthWord =
  | 'not-configured'
  | 'stopped'
  | 'starting'
  | 'running'
  | 'degraded'
  | 'not-answering'
  | 'unknown';

/** Heartbeats come every 5 s; three missed ones may be a busy machine, four are not. */
export const HEARTBEAT_AGE_MAX_MS = 20_000;

/** One word of health. It is never a proof of anything. */
export function healthWord(
  classification: Classification,
  configured: boolean,
  machine: MachineTime,
): HealthWord {
  const owner = ownerOf(classification);
  if (owner !== undefined) return ownerHealth(owner.state, machine);
  switch (classification.class) {
    case 'absent':
    case 'stopped':
      return configured ? 'stopped' : 'not-configured';
    case 'unknown':
      return classification.starting ? 'starting' : 'unknown';
    default:
      return 'unknown';
  }
}

function ownerHealth(state: StateRecord, machine: MachineTime): HealthWord {
  if (heartbeatAgeMs(machine, state.heartbeat) > HEARTBEAT_AGE_MAX_MS) return 'not-answering';
  if (state.phase === 'starting') return 'starting';
  if (!state.transportHealthy || state.degraded !== undefined) return 'degraded';
  return 'running';
}
