// The files of a live session that the main thread opens for the reader: segments ahead of need,
// their indexes, and the record of a range being lost.

import {
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { OpenSegment } from './reader-messages.ts';
import { indexPath, journalRange, listSegments, SEGMENT_BYTES, segmentPath } from './segments.ts';

const LOST_BYTES = 16;

/** @throws the file system's error */
export function createSessionDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
}

export class SessionFiles {
  readonly directory: string;
  readonly lostFd: number;
  readonly #segments = new Map<number, OpenSegment>();
  #from: number;

  /** @throws the file system's error */
  constructor(directory: string) {
    this.directory = directory;
    const range = journalRange(directory);
    this.#from = range.from;
    const lostPath = join(directory, 'lost.bin');
    if (!existsSync(lostPath)) {
      const fd = openSync(lostPath, 'wx', 0o600);
      writeSync(fd, Buffer.alloc(LOST_BYTES));
      closeSync(fd);
    }
    this.lostFd = openSync(lostPath, 'r+');
    // A predecessor was killed while the disk was full: what it had counted as lost is a hole.
    this.length = Math.max(range.to, readLostEnd(lostPath));
    this.lostAtStart = Math.max(0, this.length - range.to);
    if (this.lostAtStart > 0) {
      const index = Math.floor(this.length / SEGMENT_BYTES);
      ftruncateSync(this.open(index).fd, this.length - index * SEGMENT_BYTES);
    }
  }

  /** Where the journal ended when this was opened. */
  readonly length: number;
  readonly lostAtStart: number;

  /** The oldest byte kept. */
  get from(): number {
    return this.#from;
  }

  /** Opens the segment that `offset` falls into, and the next one. */
  openAround(offset: number): OpenSegment[] {
    const index = Math.floor(offset / SEGMENT_BYTES);
    return [this.open(index), this.open(index + 1)];
  }

  open(index: number): OpenSegment {
    const known = this.#segments.get(index);
    if (known !== undefined) return known;
    const { O_CREAT, O_RDWR, O_APPEND } = constants;
    const fd = openSync(segmentPath(this.directory, index), O_CREAT | O_RDWR, 0o600);
    const flags = O_CREAT | O_RDWR | O_APPEND;
    const indexFd = openSync(indexPath(this.directory, index), flags, 0o600);
    const segment = { index, fd, indexFd };
    this.#segments.set(index, segment);
    return segment;
  }

  /** The reader has left this segment. */
  closeSegment(index: number): void {
    const segment = this.#segments.get(index);
    if (segment === undefined) return;
    this.#segments.delete(index);
    closeSync(segment.fd);
    closeSync(segment.indexFd);
  }

  /** Removes the oldest segments that end at or before `limit` while more than `maxBytes` are kept. */
  evict(length: number, maxBytes: number, limit: number): void {
    for (const index of listSegments(this.directory)) {
      const end = (index + 1) * SEGMENT_BYTES;
      if (length - index * SEGMENT_BYTES <= maxBytes || end > limit) return;
      if (this.#segments.has(index)) return;
      unlinkSync(segmentPath(this.directory, index));
      unlinkSync(indexPath(this.directory, index));
      this.#from = end;
    }
  }

  close(): void {
    for (const index of [...this.#segments.keys()]) this.closeSegment(index);
    closeSync(this.lostFd);
  }
}

function readLostEnd(path: string): number {
  const bytes = readFileSync(path);
  return bytes.length < LOST_BYTES ? 0 : bytes.readDoubleLE(8);
}
