// Ends exactly one owner: request, signal through a pinned process, wait for the proof. It kills only
// when told to, only after the grace, and only what it has compared again right before.

import type { Clock } from '../base/clock.ts';
import type { DaemonPaths, Kind } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import { viewLock } from '../ownership/kept-lock.ts';
import { type PinnedProcess, pinIncarnation } from '../ownership/pinned-process.ts';
import { systemObserver } from '../ownership/process-observer.ts';
import type { Owner } from './classify.ts';
import { publishControl } from './control-request.ts';
import type { MachineTime } from './machine-time.ts';
import { type LifecycleAction, tupleOf } from './records.ts';

/** OWNERSHIP.md §1.1: 8 s for a graceful end, 3 s for one by SIGKILL. */
export const GRACEFUL_MS = 8000;
export const KILL_MS = 3000;
/** Without a pinned process only the lock can be watched. */
const LOCK_POLL_MS = 50;

export interface EndRequest {
  readonly paths: DaemonPaths;
  readonly kind: Kind;
  readonly owner: Owner;
  readonly action: LifecycleAction;
  /** SIGKILL after the grace: `--force`, or an older generation that is replaced. */
  readonly escalate: boolean;
  readonly clock: Clock;
  readonly machine: MachineTime;
  readonly random: Random;
}

export type EndOutcome =
  | { readonly kind: 'ended'; readonly killed: boolean; readonly warnings: readonly string[] }
  | {
      readonly kind: 'owner-changed' | 'did-not-exit' | 'did-not-exit-after-kill';
      readonly warnings: readonly string[];
    };

export async function endOwner(request: EndRequest): Promise<EndOutcome> {
  const pinned = pinIncarnation(request.owner.lock.incarnation, systemObserver);
  if (pinned.kind !== 'pinned') {
    return pinned.kind === 'dead'
      ? { kind: 'ended', killed: false, warnings: [] }
      : await endUnpinned(request, pinned.because);
  }
  try {
    return await endPinned(request, pinned.process);
  } finally {
    pinned.process.close();
  }
}

async function endPinned(request: EndRequest, pinned: PinnedProcess): Promise<EndOutcome> {
  const warnings: string[] = [];
  if (!stillOwns(request)) {
    // It let go of the lock; if it has also ended, that is what was wanted.
    const ended = pinned.judge().verdict === 'dead';
    return ended ? { kind: 'ended', killed: false, warnings } : { kind: 'owner-changed', warnings };
  }
  const asked = await publishControl({ ...request, owner: tupleOf(request.owner.lock) });
  if (asked.kind === 'failed') warnings.push(`control.json was not written: ${asked.because}`);
  const signalled = pinned.signal('SIGTERM');
  if (signalled.kind === 'failed') warnings.push(`SIGTERM was not sent: ${signalled.because}`);
  if ((await pinned.waitForDeath(request.clock, GRACEFUL_MS)) === 'ended') {
    return { kind: 'ended', killed: false, warnings };
  }
  if (!request.escalate) return { kind: 'did-not-exit', warnings };
  return await kill(request, pinned, warnings);
}

async function kill(
  request: EndRequest,
  pinned: PinnedProcess,
  warnings: string[],
): Promise<EndOutcome> {
  // The pin still names the same process; whether it still is the owner is asked once more.
  if (!stillOwns(request)) warnings.push('it no longer holds the lock but has not ended');
  const killed = pinned.signal('SIGKILL');
  if (killed.kind === 'failed') warnings.push(`SIGKILL was not sent: ${killed.because}`);
  if ((await pinned.waitForDeath(request.clock, KILL_MS)) === 'ended') {
    return { kind: 'ended', killed: true, warnings };
  }
  return { kind: 'did-not-exit-after-kill', warnings };
}

/** No process to signal or to wait for: the request alone must do, and the lock says when it did. */
async function endUnpinned(request: EndRequest, because: string): Promise<EndOutcome> {
  const warnings = [`its process cannot be signalled: ${because}`];
  if (!stillOwns(request)) return { kind: 'owner-changed', warnings };
  const asked = await publishControl({ ...request, owner: tupleOf(request.owner.lock) });
  if (asked.kind === 'failed') warnings.push(`control.json was not written: ${asked.because}`);
  const endMs = request.clock.monotonicMs() + GRACEFUL_MS;
  for (;;) {
    const view = viewLock(request.paths.lock);
    if (view.state === 'free') {
      warnings.push('the lock is free again; that its process ended is not proven');
      return { kind: 'ended', killed: false, warnings };
    }
    if (request.clock.monotonicMs() >= endMs) return { kind: 'did-not-exit', warnings };
    await request.clock.sleep(LOCK_POLL_MS);
  }
}

/** Re-read right before an effect: the lock is held and its record is still this owner's. */
function stillOwns(request: EndRequest): boolean {
  const view = viewLock(request.paths.lock);
  return (
    view.state === 'held' &&
    view.record.kind === 'record' &&
    view.record.record.nonce === request.owner.lock.nonce
  );
}
