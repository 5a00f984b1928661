// Forces the kernel to give a dead process' number to a stranger, and tries to signal the dead one.

import { readFileSync, writeFileSync } from 'node:fs';
import { pinIncarnation } from '../../src/ownership/pinned-process.ts';
import { incarnationOfChild, systemObserver } from '../../src/ownership/process-observer.ts';
import { spawnProcess } from '../../src/sys/spawn.ts';
import { reap } from '../../src/sys/wait.ts';

const LAST_PID = '/proc/sys/kernel/ns_last_pid';

export interface PidReuse {
  readonly rounds: number;
  /** Rounds in which the stranger really got the number: only these test anything. */
  readonly reused: number;
  /** Of these, with the start tick of the dead one. */
  readonly sameTick: number;
  readonly wrongSignals: number;
}

/** Whether the kernel lets us choose the next pid. */
export function mayChoosePids(): boolean {
  try {
    writeFileSync(LAST_PID, readFileSync(LAST_PID, 'utf8').trim());
    return true;
  } catch {
    return false;
  }
}

export function runPidReuse(rounds: number): PidReuse | 'not permitted' {
  if (!mayChoosePids()) return 'not permitted';
  const uid = process.getuid?.() ?? 0;
  const counts = { rounds, reused: 0, sameTick: 0, wrongSignals: 0 };
  for (let round = 0; round < rounds; round++) {
    const victim = startSleeper();
    const record = incarnationOfChild(victim, uid, 'nonce-of-victim');
    end(victim);
    writeFileSync(LAST_PID, String(victim - 1));
    const stranger = startSleeper();
    if (stranger === victim) {
      counts.reused++;
      const now = incarnationOfChild(stranger, uid, 'nonce-of-stranger');
      if (now.startTicks === record.startTicks) counts.sameTick++;
      const pinned = pinIncarnation(record, systemObserver);
      if (pinned.kind === 'pinned') {
        if (pinned.process.signal('SIGTERM').kind === 'sent') counts.wrongSignals++;
        pinned.process.close();
      }
    }
    end(stranger);
  }
  return counts;
}

function startSleeper(): number {
  const result = spawnProcess({ file: '/bin/sleep', argv: ['sleep', '60'], environment: {} });
  if (result.kind !== 'started') throw new Error(result.code);
  return result.pid;
}

function end(pid: number): void {
  process.kill(pid, 'SIGKILL');
  while (reap(pid).kind === 'running');
}
