// The one reader of the masters: poll, then splice master → pipe → segment, all inside the kernel,
// so that no byte is anywhere a SIGKILL could lose it. Runs alone in a worker thread and blocks it.
// Knows no client, no emulator, no session's name.

import { ftruncateSync, writeSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { POLLIN, PollSet } from '../../sys/poll.ts';
import { SpliceIntoFile, splice } from '../../sys/splice.ts';
import { readSome, setTerminalSize } from '../../sys/tty.ts';
import type { FromReader, OpenSegment, ReaderToModel, ToReader } from './reader-messages.ts';
import { encodeIndexRecord, type IndexRecord, SEGMENT_BYTES } from './segments.ts';
import type { SharedState } from './shared-state.ts';

/** A pipe's default capacity: what one splice can move at most. */
const SPLICE_BYTES = 65_536;
/**
 * Asked of a terminal at once. Its line discipline gives at most 4,095 bytes, and the kernel sets
 * pages aside for all that is asked: more costs time and brings nothing.
 */
const TERMINAL_BYTES = 4_096;
/** Each move takes one of the pipe's 16 pages; then they go to the journal in one call. */
const MOVES_PER_STORE = 16;
/** Stores of one session before the others get their turn. */
const STORES_PER_TURN = 1;
/** The model may lag the journal by this much (DETAILS.md); reading resumes below the lower mark. */
const MODEL_LAG_MAX_BYTES = 4 * 1024 * 1024;
export const MODEL_LAG_RESUME_BYTES = 512 * 1024;
/** Longest time a full disk may hold up a program before its bytes are read and counted as lost. */
const DISK_PATIENCE_MS = 1_000;
const DISK_RETRY_MS = 20;
const TIME_RECORD_MS = 1_000;
const IDLE_POLL_MS = 1_000;

interface Entry {
  readonly slot: number;
  readonly master: number;
  readonly pipeRead: number;
  readonly pipeWrite: number;
  readonly lostFd: number;
  readonly segments: Map<number, OpenSegment>;
  length: number;
  /** Bytes in the pipe that are not in the journal yet. */
  piped: number;
  closed: boolean;
  closedTold: boolean;
  /** Since when the journal cannot be written; undefined while it can. */
  blockedSinceMs: number | undefined;
  losing: { from: number; to: number } | undefined;
  lastTimeMs: number;
  recordedLength: number;
}

export interface ReaderPorts {
  readonly clock: Clock;
  readonly shared: SharedState;
  /** Takes the next message, or undefined. */
  receive(): ToReader | undefined;
  toMain(message: FromReader): void;
  toModel(message: ReaderToModel): void;
  /** Readable when `receive` has something or a paused session may go on. */
  readonly wakeFd: number;
}

export class Reader {
  readonly #ports: ReaderPorts;
  readonly #poll = new PollSet(256);
  readonly #entries = new Map<number, Entry>();
  readonly #file = new SpliceIntoFile();
  readonly #scratch = Buffer.allocUnsafe(SPLICE_BYTES);
  #order: Entry[] = [];
  #grewMain: number[] = [];
  #grewModel: number[] = [];
  #blocked = 0;
  #stopped = false;

  constructor(ports: ReaderPorts) {
    this.#ports = ports;
  }

  /** Reads until told to stop. */
  run(): void {
    this.#receiveAll();
    while (!this.#stopped) this.#turn();
    this.#ports.toMain({ t: 'stopped' });
  }

  #turn(): void {
    this.#poll.set(0, this.#ports.wakeFd, POLLIN);
    for (const [index, entry] of this.#order.entries()) {
      this.#poll.set(index + 1, this.#mayRead(entry) ? entry.master : -1, POLLIN);
    }
    this.#poll.truncate(this.#order.length + 1);
    const seen = this.#poll.wait(this.#blocked > 0 ? DISK_RETRY_MS : IDLE_POLL_MS);
    if (seen > 0) {
      for (const [index, entry] of this.#order.entries()) {
        if (this.#poll.seen(index + 1) !== 0) this.#read(entry);
      }
    }
    if (this.#blocked > 0) this.#retryBlocked();
    this.#tell();
    if (this.#poll.seen(0) !== 0) {
      readSome(this.#ports.wakeFd, this.#scratch);
      this.#receiveAll();
    }
  }

  #receiveAll(): void {
    for (let next = this.#ports.receive(); next !== undefined; next = this.#ports.receive()) {
      this.#handle(next);
    }
    this.#tell();
  }

  #handle(message: ToReader): void {
    switch (message.t) {
      case 'add':
        this.#add(message);
        return;
      case 'segment':
        this.#addSegment(message.slot, message.segment);
        return;
      case 'remove':
        this.#entries.delete(message.slot);
        this.#order = [...this.#entries.values()];
        this.#ports.toMain({ t: 'removed', slot: message.slot });
        return;
      case 'resize':
        this.#resize(message);
        return;
      case 'stop':
        this.#stopped = true;
    }
  }

  #add(message: Extract<ToReader, { t: 'add' }>): void {
    const entry: Entry = {
      slot: message.slot,
      master: message.master,
      pipeRead: message.pipeRead,
      pipeWrite: message.pipeWrite,
      lostFd: message.lostFd,
      segments: new Map(message.segments.map((segment) => [segment.index, segment])),
      length: message.from,
      piped: SPLICE_BYTES, // What a predecessor left in the pipe goes first.
      closed: false,
      closedTold: false,
      blockedSinceMs: undefined,
      losing: undefined,
      lastTimeMs: Number.NEGATIVE_INFINITY,
      recordedLength: message.from,
    };
    this.#entries.set(entry.slot, entry);
    this.#order = [...this.#entries.values()];
    this.#store(entry);
    this.#read(entry);
  }

  #addSegment(slot: number, segment: OpenSegment): void {
    const entry = this.#entries.get(slot);
    if (entry === undefined) return;
    entry.segments.set(segment.index, segment);
    this.#store(entry);
    if (entry.closed && entry.piped === 0) this.#reportClosed(entry);
  }

  #mayRead(entry: Entry): boolean {
    if (entry.closed || entry.blockedSinceMs !== undefined || !this.#hasRoom(entry)) return false;
    const { shared } = this.#ports;
    if (!shared.modelOn(entry.slot)) {
      if (shared.paused(entry.slot)) shared.setPaused(entry.slot, false);
      return true;
    }
    const paused = shared.paused(entry.slot);
    const lagLimit = paused ? MODEL_LAG_RESUME_BYTES : MODEL_LAG_MAX_BYTES;
    const pause = entry.length - shared.modelOffset(entry.slot) > lagLimit;
    if (pause !== paused) shared.setPaused(entry.slot, pause);
    return !pause;
  }

  #read(entry: Entry): void {
    for (let stores = 0; stores < STORES_PER_TURN && !entry.closed; stores += 1) {
      if (entry.blockedSinceMs !== undefined || !this.#hasRoom(entry)) break;
      const stopped = this.#fillPipe(entry);
      this.#store(entry);
      if (stopped === undefined) continue;
      if (stopped !== 'EAGAIN' && stopped !== 'EINTR') this.#close(entry, stopped);
      break;
    }
    this.#recordTime(entry);
  }

  /** Terminal → pipe, as long as both go on. What stopped it, or undefined for a full round. */
  #fillPipe(entry: Entry): number | string | undefined {
    for (let moves = 0; moves < MOVES_PER_STORE; moves += 1) {
      const moved = splice(entry.master, entry.pipeWrite, TERMINAL_BYTES);
      if (typeof moved === 'string' || moved === 0) return moved;
      entry.piped += moved;
    }
    return undefined;
  }

  /** EIO comes only after the last byte (DETAILS.md); 0 never comes from a Linux master. */
  #close(entry: Entry, moved: number | string): void {
    if (typeof moved === 'string' && moved !== 'EIO') {
      this.#ports.toMain({ t: 'disk', slot: entry.slot, errno: `read ${moved}` });
    }
    entry.closed = true;
    if (entry.piped === 0) this.#reportClosed(entry);
  }

  #reportClosed(entry: Entry): void {
    if (entry.closedTold) return;
    entry.closedTold = true;
    if (entry.blockedSinceMs !== undefined) this.#unblock(entry);
    this.#recordTime(entry, true);
    this.#tell();
    this.#ports.toMain({ t: 'closed', slot: entry.slot, offset: entry.length });
  }

  /** False when the next segment has not come yet: reading waits, the kernel holds the bytes. */
  #hasRoom(entry: Entry): boolean {
    return entry.segments.has(Math.floor(entry.length / SEGMENT_BYTES));
  }

  /** Pipe → journal, until the pipe is empty or the disk refuses. */
  #store(entry: Entry): void {
    const before = entry.length;
    while (entry.piped > 0 && this.#storeOnce(entry)) {
      const index = Math.floor(entry.length / SEGMENT_BYTES);
      if (entry.length === index * SEGMENT_BYTES) this.#leaveSegment(entry, index - 1);
    }
    if (entry.length === before) return;
    if (entry.blockedSinceMs !== undefined && entry.piped === 0) this.#unblock(entry);
    this.#grew(entry);
  }

  /** False when there is nothing to move, or nowhere to move it to. */
  #storeOnce(entry: Entry): boolean {
    const index = Math.floor(entry.length / SEGMENT_BYTES);
    const segment = entry.segments.get(index);
    if (segment === undefined) return false;
    const within = entry.length - index * SEGMENT_BYTES;
    const wanted = Math.min(SPLICE_BYTES, SEGMENT_BYTES - within);
    const moved = this.#file.move(entry.pipeRead, segment.fd, within, wanted);
    if (moved === 'EINTR') return true;
    if (moved === 'EAGAIN' || moved === 0) {
      entry.piped = 0;
      return false;
    }
    if (typeof moved === 'string') {
      this.#block(entry, moved);
      return false;
    }
    entry.length += moved;
    // Exact once the pipe was seen empty: what a predecessor left is not known at the beginning.
    entry.piped = Math.max(0, entry.piped - moved);
    return true;
  }

  #leaveSegment(entry: Entry, index: number): void {
    this.#recordTime(entry, true, index);
    entry.segments.delete(index);
    this.#ports.toMain({ t: 'filled', slot: entry.slot, index });
  }

  #grew(entry: Entry): void {
    const { shared } = this.#ports;
    shared.setLength(entry.slot, entry.length);
    if (shared.claimTelling(entry.slot, 'main')) this.#grewMain.push(entry.slot);
    if (shared.claimTelling(entry.slot, 'model')) this.#grewModel.push(entry.slot);
  }

  #tell(): void {
    if (this.#grewModel.length > 0) {
      this.#ports.toModel({ t: 'grew', slots: this.#grewModel });
      this.#grewModel = [];
    }
    if (this.#grewMain.length > 0) {
      this.#ports.toMain({ t: 'grew', slots: this.#grewMain });
      this.#grewMain = [];
    }
  }

  // ── A disk that refuses ─────────────────────────────────────────────────────────────────────

  #block(entry: Entry, errno: string): void {
    if (entry.blockedSinceMs !== undefined) return;
    entry.blockedSinceMs = this.#ports.clock.monotonicMs();
    this.#blocked += 1;
    this.#ports.toMain({ t: 'disk', slot: entry.slot, errno });
  }

  #unblock(entry: Entry): void {
    entry.blockedSinceMs = undefined;
    this.#blocked -= 1;
    if (entry.losing !== undefined) {
      this.#append(entry, { kind: 'lost', offset: entry.losing.from, to: entry.losing.to });
      entry.losing = undefined;
    }
    this.#ports.toMain({ t: 'disk', slot: entry.slot, errno: '' });
  }

  #retryBlocked(): void {
    for (const entry of this.#order) {
      if (entry.blockedSinceMs !== undefined) this.#retry(entry, entry.blockedSinceMs);
    }
  }

  #retry(entry: Entry, blockedSinceMs: number): void {
    if (entry.piped === 0 && !entry.closed) {
      const moved = splice(entry.master, entry.pipeWrite, SPLICE_BYTES);
      if (typeof moved === 'number') entry.piped += moved;
      else if (moved === 'EIO') entry.closed = true;
    }
    this.#store(entry);
    const waitedMs = this.#ports.clock.monotonicMs() - blockedSinceMs;
    if (entry.piped > 0 && waitedMs >= DISK_PATIENCE_MS) this.#lose(entry);
    if (entry.closed && entry.piped === 0) this.#reportClosed(entry);
  }

  /** Reads what the journal cannot take. It is counted, on allocated blocks, before it is taken. */
  #lose(entry: Entry): void {
    const from = entry.losing?.from ?? entry.length;
    const index = Math.floor(entry.length / SEGMENT_BYTES);
    const room = Math.min(SPLICE_BYTES, (index + 1) * SEGMENT_BYTES - entry.length);
    const got = readSome(entry.pipeRead, this.#scratch.subarray(0, room));
    if (typeof got === 'string' || got === 0) {
      entry.piped = 0;
      return;
    }
    const lost = { from, to: entry.length + got };
    writeLost(entry.lostFd, lost);
    entry.losing = lost;
    const start = entry.length;
    entry.length = lost.to;
    entry.piped = Math.max(0, entry.piped - got);
    extendByHole(entry.segments.get(index), entry.length - index * SEGMENT_BYTES);
    if (entry.length === (index + 1) * SEGMENT_BYTES) this.#leaveSegment(entry, index);
    this.#ports.toModel({ t: 'lost', slot: entry.slot, from: start, to: lost.to });
    this.#ports.toMain({ t: 'lost', slot: entry.slot, from: start, to: lost.to });
    this.#grew(entry);
  }

  // ── Index ───────────────────────────────────────────────────────────────────────────────────

  #recordTime(entry: Entry, now = false, index?: number): void {
    if (entry.length === entry.recordedLength) return;
    const nowMs = this.#ports.clock.monotonicMs();
    if (!now && nowMs - entry.lastTimeMs < TIME_RECORD_MS) return;
    entry.lastTimeMs = nowMs;
    entry.recordedLength = entry.length;
    this.#append(entry, { kind: 'time', offset: entry.length }, index);
  }

  #append(
    entry: Entry,
    record:
      | { kind: 'time'; offset: number }
      | { kind: 'resize'; offset: number; cols: number; rows: number }
      | { kind: 'lost'; offset: number; to: number },
    index = Math.floor(entry.length / SEGMENT_BYTES),
  ): void {
    const segment = entry.segments.get(index);
    if (segment === undefined) return;
    const full: IndexRecord = { ...record, wallMs: this.#ports.clock.wallMs() };
    try {
      writeSync(segment.indexFd, encodeIndexRecord(full));
    } catch {
      // A full disk loses times, never bytes without saying so: gaps are in `lost` too.
    }
  }

  /** The record first, then the size: a program never writes for a size nobody knows of. */
  #resize(message: Extract<ToReader, { t: 'resize' }>): void {
    const entry = this.#entries.get(message.slot);
    if (entry === undefined || entry.closed) return;
    const { slot, cols, rows } = message;
    this.#read(entry);
    this.#append(entry, { kind: 'resize', offset: entry.length, cols, rows });
    const resized = { t: 'resized', slot, offset: entry.length, cols, rows } as const;
    this.#tell();
    this.#ports.toModel(resized);
    try {
      setTerminalSize(entry.master, { cols, rows });
    } catch {
      // Hung up meanwhile: the next read says so.
    }
    this.#ports.toMain(resized);
  }
}

/** Needs no block: readers of the journal find zeros, not an early end. */
function extendByHole(segment: OpenSegment | undefined, sizeBytes: number): void {
  try {
    if (segment !== undefined) ftruncateSync(segment.fd, sizeBytes);
  } catch {
    // The next byte that can be written extends it as well.
  }
}

/** In place, on blocks that are already allocated: works on a full disk. */
function writeLost(fd: number, lost: { from: number; to: number }): void {
  const bytes = Buffer.alloc(16);
  bytes.writeDoubleLE(lost.from, 0);
  bytes.writeDoubleLE(lost.to, 8);
  try {
    writeSync(fd, bytes, 0, 16, 0);
  } catch {
    // The gap is still told; only a host killed in this state would misplace what follows.
  }
}
