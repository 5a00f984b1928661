// The kept lock: a permanent file, never unlinked, whose inode is held by flock and by an OFD lock
// for the owner's life. flock is the contract, the OFD lock is what others can ask about without
// taking it. The record inside is written in place, by the holder only.
//
// Why never unlinked: unlink-on-release lets two processes hold two inodes of one name
// (OWNERSHIP.md §3.3: 26,563 double owners in 36,056 acquisitions; kept: 0 in 7,390).

import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { ChatdError, errnoCode } from '../base/errors.ts';
import type { FilesystemVerdict } from '../sys/filesystem.ts';
import { type LockAttempt, probeOfdLock, tryFlock, tryOfdLock } from '../sys/locks.ts';
import { type Failpoints, noFailpoints } from './failpoints.ts';
import {
  encodeLockRecord,
  LOCK_RECORD_BYTES_MAX,
  type LockRecord,
  type ParsedLockRecord,
  parseLockRecord,
} from './lock-record.ts';
import { refuseNetworkFilesystem, unusable } from './private-directory.ts';

export interface AcquireOptions {
  readonly uid: number;
  readonly record: LockRecord;
  readonly failpoints?: Failpoints;
  /** For tests: what a second descriptor of the same file finds. */
  readonly secondLook?: (path: string) => SecondLook;
  /** For tests: what the directory is on. */
  readonly filesystem?: (directory: string) => FilesystemVerdict;
}

export type AcquireOutcome =
  | { readonly kind: 'acquired'; readonly lock: KeptLock }
  /** Somebody holds it. Who, is in the record, if that can be read. */
  | { readonly kind: 'busy' };

export type LockProof =
  | { readonly kind: 'held' }
  /** The name leads to another inode, or nowhere: stop serving. Final. */
  | { readonly kind: 'lost'; readonly because: string }
  /** Not told by the file system now: do nothing that needs the proof. */
  | { readonly kind: 'unknown'; readonly because: string };

/** The name was replaced between open and check that often in a row: somebody keeps doing it. */
const ATTEMPTS_MAX = 3;

const OPEN_FLAGS =
  constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Takes the lock without waiting.
 * @throws {ChatdError} state-directory-unusable, capability-missing, ownership-unknown
 */
export function acquireKeptLock(path: string, options: AcquireOptions): AcquireOutcome {
  const failpoints = options.failpoints ?? noFailpoints;
  refuseNetworkFilesystem(dirname(path), options.filesystem);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const fd = openLockFile(path, options.uid, failpoints);
    let kept = false;
    try {
      if (!takeBoth(fd, path, failpoints)) return { kind: 'busy' };
      if (!sameInode(fstatSync(fd), lstatOrUndefined(path))) continue;
      failpoints.hit('lock.verified');
      proveExclusion(fd, path, options.secondLook);
      writeRecord(fd, path, options.record);
      failpoints.hit('lock.record-written');
      kept = true;
      return { kind: 'acquired', lock: new KeptLock(fd, path, options.record) };
    } catch (error) {
      if (error instanceof ChatdError) throw error;
      throw unusable(path, errnoCode(error) ?? 'unknown error', error);
    } finally {
      // Closing releases both locks. The file stays.
      if (!kept) closeSync(fd);
    }
  }
  throw new ChatdError('ownership-unknown', `Cannot lock ${path}: the file keeps being replaced`);
}

function openLockFile(path: string, uid: number, failpoints: Failpoints): number {
  let fd: number;
  try {
    failpoints.hit('lock.before-open');
    // Node adds O_CLOEXEC: the lock must die with us, not with a child.
    fd = openSync(path, OPEN_FLAGS, 0o600);
  } catch (error) {
    throw unusable(path, errnoCode(error) ?? 'unknown error', error);
  }
  try {
    failpoints.hit('lock.opened');
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw unusable(path, 'not a regular file');
    if (stat.uid !== uid) throw unusable(path, `owned by user ${stat.uid}`);
    if (stat.nlink > 1 && readRecord(fd).kind === 'malformed') {
      // A hard link to some other file of ours: what is in there is not ours to overwrite.
      throw unusable(path, 'a hard link to a file that is not a lock');
    }
    if ((stat.mode & 0o077) !== 0) fchmodSync(fd, 0o600);
    return fd;
  } catch (error) {
    closeSync(fd);
    if (error instanceof ChatdError) throw error;
    throw unusable(path, errnoCode(error) ?? 'unknown error', error);
  }
}

function takeBoth(fd: number, path: string, failpoints: Failpoints): boolean {
  try {
    if (tryFlock(fd) === 'busy') return false;
    failpoints.hit('lock.flocked');
    if (tryOfdLock(fd) === 'busy') return false;
    failpoints.hit('lock.ofd-locked');
    return true;
  } catch (error) {
    const code = errnoCode(error) ?? 'unknown error';
    throw new ChatdError('capability-missing', `Cannot lock ${path}: ${code}`, { cause: error });
  }
}

/** What a lock looks like through another open description of its file. */
export interface SecondLook {
  readonly inode: Stats;
  readonly flock: LockAttempt;
  readonly ofd: 'held' | 'free';
}

function lookAgain(path: string): SecondLook {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return { inode: fstatSync(fd), flock: tryFlock(fd), ofd: probeOfdLock(fd) };
  } finally {
    closeSync(fd);
  }
}

/** A file system that grants every lock, or hides it from others, gives no ownership. */
function proveExclusion(fd: number, path: string, look = lookAgain): void {
  const seen = look(path);
  // Replaced just now: the next proof will say so.
  if (!sameInode(fstatSync(fd), seen.inode)) return;
  if (seen.flock === 'busy' && seen.ofd === 'held') return;
  throw new ChatdError('capability-missing', `Cannot lock ${path}: locks do not exclude here`);
}

function lstatOrUndefined(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function sameInode(left: Stats, right: Stats | undefined): boolean {
  return right !== undefined && left.dev === right.dev && left.ino === right.ino;
}

/** In one write, then cut to length: a reader sees the old record, the new one, or a malformed one. */
function writeRecord(fd: number, path: string, record: LockRecord): void {
  const bytes = Buffer.from(encodeLockRecord(record));
  if (bytes.length > LOCK_RECORD_BYTES_MAX) {
    throw new ChatdError('ownership-unknown', `Cannot write ${path}: record too large`);
  }
  if (writeSync(fd, bytes, 0, bytes.length, 0) !== bytes.length) {
    throw unusable(path, 'short write');
  }
  ftruncateSync(fd, bytes.length);
  const back = readRecord(fd);
  if (back.kind !== 'record' || back.record.nonce !== record.nonce) {
    throw unusable(path, 'the record reads back differently');
  }
}

function readRecord(fd: number): ParsedLockRecord {
  const buffer = Buffer.alloc(LOCK_RECORD_BYTES_MAX + 1);
  const sizeBytes = readSync(fd, buffer, 0, buffer.length, 0);
  if (sizeBytes > LOCK_RECORD_BYTES_MAX) return { kind: 'malformed', because: 'too large' };
  return parseLockRecord(buffer.toString('utf8', 0, sizeBytes));
}

/** A held lock. It is released by closing, or by the end of the process. */
export class KeptLock {
  readonly path: string;
  readonly record: LockRecord;
  readonly #fd: number;
  #lostBecause: string | undefined;
  #closed = false;

  /** For `acquireKeptLock` and `adoptKeptLock`. */
  constructor(fd: number, path: string, record: LockRecord) {
    this.#fd = fd;
    this.path = path;
    this.record = record;
  }

  /** The descriptor, for handing the lock through an execve. Closing it elsewhere loses the lock. */
  get descriptor(): number {
    return this.#fd;
  }

  /** Proves again that the name still leads to the inode we hold. About 5 µs. */
  prove(): LockProof {
    if (this.#closed) return { kind: 'lost', because: 'released' };
    if (this.#lostBecause !== undefined) return { kind: 'lost', because: this.#lostBecause };
    try {
      const named = lstatOrUndefined(this.path);
      if (sameInode(fstatSync(this.#fd), named)) return { kind: 'held' };
      this.#lostBecause =
        named === undefined ? 'the lock file is gone' : 'the lock file was replaced';
      return { kind: 'lost', because: this.#lostBecause };
    } catch (error) {
      return { kind: 'unknown', because: errnoCode(error) ?? 'unknown error' };
    }
  }

  /**
   * The fence before an effect.
   * @throws {ChatdError} ownership-lost, or ownership-unknown when it cannot be proved now.
   */
  assertHeld(): void {
    const proof = this.prove();
    if (proof.kind === 'held') return;
    const code = proof.kind === 'lost' ? 'ownership-lost' : 'ownership-unknown';
    throw new ChatdError(code, `Cannot prove ownership of ${this.path}: ${proof.because}`);
  }

  /**
   * Writes the record again if something else is in the file (a foreign hand, a torn first write).
   * @returns whether it had to.
   * @throws {ChatdError} as `assertHeld`
   */
  healRecord(): boolean {
    this.assertHeld();
    const found = readRecord(this.#fd);
    if (found.kind === 'record' && found.record.nonce === this.record.nonce) return false;
    writeRecord(this.#fd, this.path, this.record);
    return true;
  }

  /** Releases the lock; the file stays. Idempotent. */
  release(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#fd);
  }
}

/**
 * Takes over a descriptor that holds both locks already (after an execve of the same process) and
 * writes the new record. @throws {ChatdError} ownership-unknown when the descriptor is no such lock
 */
export function adoptKeptLock(fd: number, path: string, options: AcquireOptions): KeptLock {
  try {
    // Both calls succeed on the description that already holds them.
    const holds = tryFlock(fd) === 'locked' && tryOfdLock(fd) === 'locked';
    if (!holds || !sameInode(fstatSync(fd), lstatOrUndefined(path))) {
      throw new ChatdError('ownership-unknown', `Cannot adopt ${path}: not the lock we held`);
    }
    writeRecord(fd, path, options.record);
  } catch (error) {
    if (error instanceof ChatdError) throw error;
    const code = errnoCode(error) ?? 'unknown error';
    throw new ChatdError('ownership-unknown', `Cannot adopt ${path}: ${code}`, { cause: error });
  }
  return new KeptLock(fd, path, options.record);
}

/** A lock as seen from outside: nothing is taken, created or changed. */
export interface LockView {
  readonly state: 'held' | 'free' | 'unknown';
  readonly because: string;
  readonly record: ParsedLockRecord;
}

const ABSENT: ParsedLockRecord = { kind: 'absent' };

/** Looks at a lock without taking it. Never throws, never blocks on a FIFO or link. */
export function viewLock(path: string): LockView {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = errnoCode(error) ?? 'unknown error';
    if (code === 'ENOENT') return { state: 'free', because: 'no lock file', record: ABSENT };
    return { state: 'unknown', because: code, record: ABSENT };
  }
  try {
    if (!fstatSync(fd).isFile()) {
      return { state: 'unknown', because: 'not a regular file', record: ABSENT };
    }
    const before = probeOfdLock(fd);
    const record = readRecord(fd);
    return { state: before, because: `the kernel says ${before}`, record };
  } catch (error) {
    return { state: 'unknown', because: errnoCode(error) ?? 'unknown error', record: ABSENT };
  } finally {
    closeSync(fd);
  }
}
