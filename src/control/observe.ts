// Looks at an owner directory: lock, holder, record. It takes nothing, changes nothing, never blocks.

import type { DaemonPaths } from '../base/paths.ts';
import { viewLock } from '../ownership/kept-lock.ts';
import { judgeIncarnation } from '../ownership/process-incarnation.ts';
import { systemObserver } from '../ownership/process-observer.ts';
import type { Observation } from './classify.ts';
import { readState } from './records.ts';

/** Everything `classify` needs, from the file system and the kernel. */
export function observe(paths: DaemonPaths): Observation {
  const state = readState(paths.state);
  // The lock last: a record read before a lock that is free is history, never the other way round.
  const lock = viewLock(paths.lock);
  const holder =
    lock.record.kind === 'record'
      ? judgeIncarnation(lock.record.record.incarnation, systemObserver)
      : undefined;
  const oldPid = state.kind === 'unavailable' ? observeNumber(state.pid) : undefined;
  return { lock, holder, state, oldPid };
}

/** Whether anything has this number: all that can be asked where no incarnation was recorded. */
export function observeNumber(pid: number): 'gone' | 'exists' | 'unknown' {
  const attempt = systemObserver.pin(pid);
  if (attempt.kind === 'failed') return attempt.code === 'ESRCH' ? 'gone' : 'unknown';
  if (attempt.kind === 'unavailable') {
    return attempt.present === 'ESRCH' ? 'gone' : 'unknown';
  }
  try {
    return attempt.pin.hasEnded() ? 'gone' : 'exists';
  } catch {
    return 'unknown';
  } finally {
    attempt.pin.close();
  }
}
