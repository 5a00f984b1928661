// An owner of another make: any generation, identity or record, deaf to signals when told so. What
// the real daemon of this revision can never be, but one of yesterday or tomorrow may.
//
// argv: <directory> <JSON of FakeOwner>. Says "owned" on stdout.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mintId } from '../../src/base/ids.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import { systemMachineTime } from '../../src/control/machine-time.ts';
import { acquireKeptLock } from '../../src/ownership/kept-lock.ts';
import { ownIncarnation } from '../../src/ownership/process-observer.ts';

export interface FakeOwner {
  /** null: none is recorded, as in the first days. */
  readonly generation?: number | null;
  readonly identity?: string;
  /** Ignores SIGTERM and control.json. */
  readonly deaf?: boolean;
  /** Written instead of a state record. */
  readonly rawState?: string;
  /** Writes its state only after this time. */
  readonly stateAfterMs?: number;
  readonly healthy?: boolean;
  readonly extra?: Readonly<Record<string, unknown>>;
  readonly ownerId?: string;
  /** The heartbeat looks this old. */
  readonly heartbeatAgeMs?: number;
}

const directory = process.argv[2] ?? '.';
const told = JSON.parse(process.argv[3] ?? '{}') as FakeOwner;
const self = { pid: process.pid, uid: process.getuid?.() ?? 0 };
const incarnation = ownIncarnation({ ...self, nonce: mintId(systemRandom) });
const nonce = mintId(systemRandom, 16);
const ownerId = told.ownerId ?? `fake-${process.pid}`;
const generation = told.generation ?? 1;
const machine = systemMachineTime();
const acquired = acquireKeptLock(join(directory, 'owner.lock'), {
  uid: self.uid,
  record: {
    v: 1,
    incarnation,
    ownerId,
    generation: told.generation === null ? 0 : generation,
    nonce,
    createdAtMs: 1,
  },
});
if (acquired.kind === 'busy') process.exit(20);

function writeState(seq: number): void {
  const healthy = told.healthy !== false;
  const record = {
    version: 1,
    kind: 'slack',
    ownerId,
    pid: process.pid,
    incarnation,
    ...(told.generation === null ? {} : { generation }),
    identity: told.identity ?? 'T0123/A0123',
    configHash: 'of-another-make',
    nonce,
    startedAtWallMs: 1,
    heartbeat: {
      seq,
      wallMs: 1,
      bootId: machine.bootId,
      bootMs: machine.bootMs(),
      monotonicMs: Math.max(0, machine.monotonicMs() - (told.heartbeatAgeMs ?? 0)),
    },
    phase: 'running',
    transportHealthy: healthy,
    transportReason: healthy ? 'connected' : 'told to be sick',
    programVersion: '9.9.9',
    interpreter: 'fake',
    ...told.extra,
  };
  writeFileSync(join(directory, 'state.json'), told.rawState ?? JSON.stringify(record), {
    mode: 0o600,
  });
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    if (told.deaf !== true) process.exit(0);
  });
}
setTimeout(() => writeState(1), told.stateAfterMs ?? 0);
setInterval(() => {
  if (told.heartbeatAgeMs === undefined) writeState(2);
}, 5000);
process.stdout.write('owned\n');
