// The journal of a session's bytes on disk. Segment k holds the bytes [kS, (k+1)S) at their own
// positions: a file's length is the truth, a hole is a stated gap. Beside each segment lies its
// index of times, resizes and gaps. Written by the reader thread alone; here are names and reading.

import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { errnoCode } from '../../base/errors.ts';
import { encodeFrame, type RawFrame, readRecords } from '../../base/frame-codec.ts';

/** S. Sixteen of them are the default retention of a session. */
export const SEGMENT_BYTES = 4 * 1024 * 1024;

export function segmentPath(directory: string, index: number): string {
  return join(directory, `out-${String(index).padStart(8, '0')}.bin`);
}

export function indexPath(directory: string, index: number): string {
  return join(directory, `out-${String(index).padStart(8, '0')}.idx`);
}

/** Indexes of the segments present, ascending. */
export function listSegments(directory: string): number[] {
  return readdirSync(directory)
    .map((name) => /^out-(\d{8})\.bin$/.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .sort((a, b) => a - b);
}

/** Where the journal begins and ends. An empty last segment was only opened ahead. */
export function journalRange(directory: string): { readonly from: number; readonly to: number } {
  const segments = listSegments(directory);
  let to = 0;
  for (const index of segments) {
    const sizeBytes = fileSize(segmentPath(directory, index));
    if (sizeBytes > 0) to = index * SEGMENT_BYTES + Math.min(sizeBytes, SEGMENT_BYTES);
  }
  return { from: Math.min((segments[0] ?? 0) * SEGMENT_BYTES, to), to };
}

function fileSize(path: string): number {
  const fd = openSync(path, 'r');
  try {
    return fstatSync(fd).size;
  } finally {
    closeSync(fd);
  }
}

/** Reads ranges of one session's journal; keeps the segment it read last open. */
export class JournalReader {
  readonly #directory: string;
  #open: { readonly index: number; readonly fd: number } | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * Bytes from `from` on into `target`, at most up to the end of their segment. 0: evicted or
   * not there.
   */
  readInto(target: Buffer, from: number, maxBytes: number): number {
    const index = Math.floor(from / SEGMENT_BYTES);
    const fd = this.#segment(index);
    if (fd === undefined) return 0;
    const within = from - index * SEGMENT_BYTES;
    const wanted = Math.min(maxBytes, target.length, SEGMENT_BYTES - within);
    return wanted <= 0 ? 0 : readSync(fd, target, 0, wanted, within);
  }

  /** Bytes [from, to), shorter where the journal ends or was evicted. */
  read(from: number, to: number): Buffer {
    const bytes = Buffer.allocUnsafe(Math.max(0, to - from));
    let done = 0;
    while (done < bytes.length) {
      const got = this.readInto(bytes.subarray(done), from + done, bytes.length - done);
      if (got === 0) break;
      done += got;
    }
    return bytes.subarray(0, done);
  }

  close(): void {
    if (this.#open !== undefined) closeSync(this.#open.fd);
    this.#open = undefined;
  }

  #segment(index: number): number | undefined {
    if (this.#open?.index === index) return this.#open.fd;
    this.close();
    try {
      const fd = openSync(segmentPath(this.#directory, index), 'r');
      this.#open = { index, fd };
      return fd;
    } catch (error) {
      if (errnoCode(error) === 'ENOENT') return undefined;
      throw error;
    }
  }
}

// ── Index records ─────────────────────────────────────────────────────────────────────────────

const INDEX_TIME = 1;
const INDEX_RESIZE = 2;
const INDEX_LOST = 3;

export type IndexRecord =
  /** Output had reached `offset` at `wallMs`. */
  | { readonly kind: 'time'; readonly offset: number; readonly wallMs: number }
  /** From `offset` on the program writes for another size. */
  | {
      readonly kind: 'resize';
      readonly offset: number;
      readonly wallMs: number;
      readonly cols: number;
      readonly rows: number;
    }
  /** Bytes [offset, to) were read and could not be kept. */
  | {
      readonly kind: 'lost';
      readonly offset: number;
      readonly wallMs: number;
      readonly to: number;
    };

export function encodeIndexRecord(record: IndexRecord): Buffer {
  const payload = Buffer.alloc(24);
  payload.writeDoubleLE(record.offset, 0);
  payload.writeDoubleLE(record.wallMs, 8);
  switch (record.kind) {
    case 'time':
      return encodeFrame(INDEX_TIME, payload.subarray(0, 16));
    case 'resize':
      payload.writeUInt16LE(record.cols, 16);
      payload.writeUInt16LE(record.rows, 18);
      return encodeFrame(INDEX_RESIZE, payload.subarray(0, 20));
    case 'lost':
      payload.writeDoubleLE(record.to, 16);
      return encodeFrame(INDEX_LOST, payload);
  }
}

export function decodeIndexRecord(frame: RawFrame): IndexRecord | undefined {
  const { type, payload } = frame;
  if (payload.length < 16) return undefined;
  const offset = payload.readDoubleLE(0);
  const wallMs = payload.readDoubleLE(8);
  if (type === INDEX_TIME) return { kind: 'time', offset, wallMs };
  if (type === INDEX_RESIZE && payload.length >= 20) {
    const cols = payload.readUInt16LE(16);
    return { kind: 'resize', offset, wallMs, cols, rows: payload.readUInt16LE(18) };
  }
  if (type === INDEX_LOST && payload.length >= 24) {
    return { kind: 'lost', offset, wallMs, to: payload.readDoubleLE(16) };
  }
  return undefined;
}

/** All index records of a session, oldest first. A torn last one is left out. */
export function readIndex(directory: string): IndexRecord[] {
  const records: IndexRecord[] = [];
  for (const index of listSegments(directory)) {
    for (const frame of readRecords(readOrEmpty(indexPath(directory, index)), 64).records) {
      const record = decodeIndexRecord(frame);
      if (record !== undefined) records.push(record);
    }
  }
  return records;
}

function readOrEmpty(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (errnoCode(error) === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}
