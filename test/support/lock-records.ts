// Records of this test process, for locks that tests take.

import type { LockRecord } from '../../src/ownership/lock-record.ts';
import { ownIncarnation } from '../../src/ownership/process-observer.ts';

let count = 0;

/** A fresh record of the running process. */
export function makeRecord(change: Partial<LockRecord> = {}): LockRecord {
  count++;
  const nonce = `nonce-${process.pid}-${count}`;
  return {
    v: 1,
    incarnation: ownIncarnation({ pid: process.pid, uid: process.getuid?.() ?? 0, nonce }),
    ownerId: `test-${process.pid}`,
    generation: 1,
    nonce,
    createdAtMs: 1_700_000_000_000,
    ...change,
  };
}

/** Options to take a lock as this process. */
export function asMyself(change: Partial<LockRecord> = {}): { uid: number; record: LockRecord } {
  return { uid: process.getuid?.() ?? 0, record: makeRecord(change) };
}
