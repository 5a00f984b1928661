// Tries each capability once at start. A missing one is reported, never assumed: whoever needs it
// answers "unknown" or refuses; nobody takes its absence for a dead process or a free lock.

import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootClockMs } from './boot-clock.ts';
import { closeFd, openPipe } from './fd.ts';
import { openSocketPair, selfTestFdPassing } from './fd-passing.ts';
import { renameNoReplace } from './filesystem.ts';
import { probeOfdLock, tryFlock, tryOfdLock } from './locks.ts';
import { openPeerPidfd, readPeerCredentials } from './peer.ts';
import { hasEnded, openPidfd, pidfdInode, signalPidfd } from './pidfd.ts';
import { readBootId, readNamespace, readProcessFacts } from './process-facts.ts';
import { spawnCapabilities } from './spawn.ts';
import { splice, tee } from './splice.ts';

export type Capability =
  | 'flock'
  | 'ofd-lock'
  | 'pidfd'
  | 'pidfd-inode'
  | 'process-facts'
  | 'peer-credentials'
  | 'peer-pidfd'
  | 'fd-passing'
  | 'splice'
  | 'rename-noreplace'
  | 'boot-clock'
  | 'spawn-chdir'
  | 'spawn-closefrom';

export type CapabilityState =
  | { readonly present: true }
  | { readonly present: false; readonly because: string };

export type Capabilities = Readonly<Record<Capability, CapabilityState>>;

/**
 * Runs every trial: about 2 ms, in a private directory that is removed again. `selfPid` is ours,
 * `parentPid` any second process.
 */
export function selfTest(selfPid: number, parentPid: number): Capabilities {
  const directory = mkdtempSync(join(tmpdir(), 'chatd-self-test-'));
  try {
    const file = join(directory, 'lock');
    return {
      flock: attempt(() => tryLockTwice(file, 'flock')),
      'ofd-lock': attempt(() => tryLockTwice(file, 'ofd')),
      pidfd: attempt(() => tryPidfd(selfPid)),
      'pidfd-inode': attempt(() => tryPidfdInode(selfPid, parentPid)),
      'process-facts': attempt(() => tryProcessFacts(selfPid)),
      'peer-credentials': attempt(() => withPair((left) => tryPeer(left, selfPid))),
      'peer-pidfd': attempt(() => withPair(tryPeerPidfd)),
      'fd-passing': attempt(selfTestFdPassing),
      splice: attempt(trySplice),
      'rename-noreplace': attempt(() => tryRename(directory)),
      'boot-clock': attempt(() => expect(bootClockMs() > 0, 'clock stands at zero')),
      'spawn-chdir': attempt(() => expect(spawnCapabilities().chdir, 'libc has no chdir action')),
      'spawn-closefrom': attempt(() =>
        expect(spawnCapabilities().closeFrom, 'libc has no closefrom action'),
      ),
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function attempt(trial: () => void): CapabilityState {
  try {
    trial();
    return { present: true };
  } catch (error) {
    return { present: false, because: error instanceof Error ? error.message : String(error) };
  }
}

function expect(condition: boolean, otherwise: string): void {
  if (!condition) throw new Error(otherwise);
}

/** Two open descriptions of one file must exclude each other. */
function tryLockTwice(file: string, kind: 'flock' | 'ofd'): void {
  const take = kind === 'flock' ? tryFlock : tryOfdLock;
  const first = openSync(file, 'a+', 0o600);
  const second = openSync(file, 'a+', 0o600);
  try {
    expect(take(first) === 'locked', 'a free lock could not be taken');
    expect(take(second) === 'busy', 'a held lock was given twice');
    if (kind === 'ofd') expect(probeOfdLock(second) === 'held', 'a held lock probes as free');
  } finally {
    closeSync(first);
    closeSync(second);
  }
}

function tryPidfd(selfPid: number): void {
  const fd = openPidfd(selfPid);
  try {
    expect(!hasEnded(fd), 'our own pidfd says that we have ended');
    signalPidfd(fd, 0);
  } finally {
    closeFd(fd);
  }
}

/** Before pidfs all pidfds share one inode, which then says nothing. */
function tryPidfdInode(selfPid: number, otherPid: number): void {
  const self = openPidfd(selfPid);
  try {
    const other = openPidfd(otherPid);
    try {
      expect(pidfdInode(self) !== pidfdInode(other), 'all pidfds share one inode');
    } finally {
      closeFd(other);
    }
  } finally {
    closeFd(self);
  }
}

function tryProcessFacts(selfPid: number): void {
  expect(readProcessFacts(selfPid).startTicks > 0, 'no start time');
  expect(readBootId().length > 0, 'no boot id');
  readNamespace('pid');
  readNamespace('time');
}

function withPair(trial: (left: number) => void): void {
  const [left, right] = openSocketPair();
  try {
    trial(left);
  } finally {
    closeFd(left);
    closeFd(right);
  }
}

function tryPeer(left: number, selfPid: number): void {
  expect(readPeerCredentials(left).pid === selfPid, 'the peer of our own pair is not us');
}

function tryPeerPidfd(left: number): void {
  const fd = openPeerPidfd(left);
  if (fd === undefined) throw new Error('the kernel gives no pidfd of a peer');
  closeFd(fd);
}

function trySplice(): void {
  const first = openPipe({ nonBlocking: true });
  const second = openPipe({ nonBlocking: true });
  try {
    expect(splice(first.read, second.write, 1) === 'EAGAIN', 'splice of an empty pipe');
    expect(tee(first.read, second.write, 1) === 'EAGAIN', 'tee of an empty pipe');
  } finally {
    for (const fd of [first.read, first.write, second.read, second.write]) closeFd(fd);
  }
}

function tryRename(directory: string): void {
  const [one, two] = [join(directory, 'one'), join(directory, 'two')];
  closeSync(openSync(one, 'wx'));
  renameNoReplace(one, two);
  closeSync(openSync(one, 'wx'));
  let refused = false;
  try {
    renameNoReplace(one, two);
  } catch {
    refused = true;
  }
  expect(refused, 'an existing name was replaced');
}
