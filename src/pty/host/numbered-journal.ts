// An append-only sequence of numbered records in rolled files `<prefix>-<first number>.log`. One
// writer. Knows torn tails, missing ranges and eviction; does not know what a record means.

import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { encodeFrame, FRAME_HEADER_BYTES, type RawFrame } from '../../base/frame-codec.ts';
import { FRAME_BYTES_MAX } from '../protocol.ts';

/** A range that was never written, because the disk refused it: payload u32 LE count. */
const RECORD_MISSING = 255;

/** A file this large is closed and the next one begun: one scan of it costs about a millisecond. */
const FILE_BYTES = 1024 * 1024;

interface JournalFile {
  readonly first: number;
  /** Numbers it holds, missing ones included. */
  count: number;
  sizeBytes: number;
  /** File position of each number, -1 for a missing one. Built on first use. */
  positions: number[] | undefined;
}

export interface NumberedRead {
  readonly from: number;
  readonly records: readonly RawFrame[];
  /** Numbers [from, to) that can no longer be had; `records` begin after it. */
  readonly gap?: { readonly from: number; readonly to: number };
}

export class NumberedJournal {
  readonly #directory: string;
  readonly #prefix: string;
  readonly #files: JournalFile[] = [];
  #fd: number | undefined;

  constructor(directory: string, prefix: string) {
    this.#directory = directory;
    this.#prefix = prefix;
    this.#scan();
  }

  /** The oldest number still kept. */
  get firstNumber(): number {
    return this.#files[0]?.first ?? 0;
  }

  /** The number the next record gets. */
  get nextNumber(): number {
    const last = this.#files.at(-1);
    return last === undefined ? 0 : last.first + last.count;
  }

  get sizeBytes(): number {
    return this.#files.reduce((sum, file) => sum + file.sizeBytes, 0);
  }

  /**
   * Appends `records` as one write. On an error nothing of them is kept.
   * @throws the file system's error
   */
  append(records: readonly RawFrame[]): void {
    if (records.length === 0) return;
    const frames = records.map((record) => encodeFrame(record.type, record.payload));
    this.#write(Buffer.concat(frames), (file, at) => {
      let position = at;
      for (const frame of frames) {
        file.positions?.push(position);
        position += frame.length;
      }
      file.count += frames.length;
    });
  }

  /** States that the next `count` numbers will never be had. */
  appendMissing(count: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32LE(count);
    this.#write(encodeFrame(RECORD_MISSING, payload), (file) => {
      for (let missing = 0; missing < count; missing += 1) file.positions?.push(-1);
      file.count += count;
    });
  }

  /** Records [from, to), at most `maxBytes` of them but at least one; a gap is reported first. */
  read(from: number, to: number, maxBytes: number): NumberedRead {
    const end = Math.min(to, this.nextNumber);
    const kept = Math.max(from, this.firstNumber);
    const first = this.#skipMissing(kept, end);
    const gap = first > from ? { gap: { from, to: Math.min(first, Math.max(end, from)) } } : {};
    const records: RawFrame[] = [];
    let sizeBytes = 0;
    let number = first;
    while (number < end && (records.length === 0 || sizeBytes < maxBytes)) {
      const file = this.#fileOf(number);
      if (file === undefined) break;
      const taken = this.#readFile(file, number, end, maxBytes - sizeBytes);
      if (taken.length === 0) break;
      for (const record of taken) sizeBytes += record.payload.length + FRAME_HEADER_BYTES;
      records.push(...taken);
      number += taken.length;
    }
    return { from: first, records, ...gap };
  }

  /** Removes the oldest files while more than `maxBytes` are kept; never the newest one. */
  evict(maxBytes: number): void {
    while (this.#files.length > 1 && this.sizeBytes > maxBytes) {
      const oldest = this.#files.shift();
      if (oldest !== undefined) unlinkSync(this.#path(oldest.first));
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #path(first: number): string {
    return join(this.#directory, `${this.#prefix}-${String(first).padStart(12, '0')}.log`);
  }

  #scan(): void {
    const pattern = new RegExp(`^${this.#prefix}-(\\d{12})\\.log$`);
    const firsts = readdirSync(this.#directory)
      .map((name) => pattern.exec(name)?.[1])
      .filter((digits) => digits !== undefined)
      .map(Number)
      .sort((a, b) => a - b);
    for (const [index, first] of firsts.entries()) {
      const file: JournalFile = { first, count: 0, sizeBytes: 0, positions: undefined };
      const next = firsts[index + 1];
      if (next === undefined) this.#recover(file);
      else {
        file.count = next - first;
        file.sizeBytes = readFileSize(this.#path(first));
      }
      this.#files.push(file);
    }
  }

  /** The newest file: its torn tail, if any, is cut off. */
  #recover(file: JournalFile): void {
    const bytes = readFileSync(this.#path(file.first));
    const { positions, validBytes } = positionsOf(bytes);
    file.positions = positions;
    file.count = positions.length;
    file.sizeBytes = validBytes;
    this.#fd = openSync(this.#path(file.first), 'r+');
    if (validBytes < bytes.length) ftruncateSync(this.#fd, validBytes);
  }

  #write(bytes: Buffer, account: (file: JournalFile, at: number) => void): void {
    let file = this.#files.at(-1);
    if (file === undefined || this.#fd === undefined || file.sizeBytes >= FILE_BYTES) {
      file = this.#roll();
    }
    const at = file.sizeBytes;
    const fd = this.#fd;
    if (fd === undefined) return;
    try {
      let done = 0;
      while (done < bytes.length)
        done += writeSync(fd, bytes, done, bytes.length - done, at + done);
    } catch (error) {
      ftruncateSync(fd, at);
      throw error;
    }
    account(file, at);
    file.sizeBytes = at + bytes.length;
  }

  #roll(): JournalFile {
    const first = this.nextNumber;
    const fd = openSync(this.#path(first), 'wx+', 0o600);
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = fd;
    const file: JournalFile = { first, count: 0, sizeBytes: 0, positions: [] };
    this.#files.push(file);
    return file;
  }

  #fileOf(number: number): JournalFile | undefined {
    let low = 0;
    let high = this.#files.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const file = this.#files[middle];
      if (file === undefined) return undefined;
      if (number < file.first) high = middle - 1;
      else if (number >= file.first + file.count) low = middle + 1;
      else return file;
    }
    return undefined;
  }

  #positions(file: JournalFile): number[] {
    file.positions ??= positionsOf(readFileSync(this.#path(file.first))).positions;
    return file.positions;
  }

  #skipMissing(from: number, end: number): number {
    let number = from;
    while (number < end) {
      const file = this.#fileOf(number);
      if (file === undefined || this.#positions(file)[number - file.first] !== -1) break;
      number += 1;
    }
    return number;
  }

  /** Records from `number` on within one file, up to the next missing one. */
  #readFile(file: JournalFile, number: number, end: number, maxBytes: number): RawFrame[] {
    const positions = this.#positions(file);
    const index = number - file.first;
    const start = positions[index];
    if (start === undefined || start < 0) return [];
    let last = index;
    const limit = Math.min(positions.length, index + (end - number));
    while (last < limit) {
      const position = positions[last] ?? -1;
      if (position < 0 || (last > index && position - start >= maxBytes)) break;
      last += 1;
    }
    const next = positions.slice(last).find((position) => position >= 0);
    const stop = last < positions.length && next !== undefined ? next : file.sizeBytes;
    const bytes = readRange(this.#path(file.first), start, stop);
    return framesOf(bytes, last - index);
  }
}

function readFileSize(path: string): number {
  const fd = openSync(path, 'r');
  try {
    return fstatSync(fd).size;
  } finally {
    closeSync(fd);
  }
}

function readRange(path: string, start: number, stop: number): Buffer {
  const bytes = Buffer.allocUnsafe(stop - start);
  const fd = openSync(path, 'r');
  try {
    let done = 0;
    while (done < bytes.length) {
      const got = readSync(fd, bytes, done, bytes.length - done, start + done);
      if (got === 0) break;
      done += got;
    }
    return bytes.subarray(0, done);
  } finally {
    closeSync(fd);
  }
}

function framesOf(bytes: Buffer, count: number): RawFrame[] {
  const frames: RawFrame[] = [];
  let at = 0;
  while (frames.length < count && bytes.length - at >= FRAME_HEADER_BYTES) {
    const end = at + 4 + bytes.readUInt32LE(at);
    frames.push({
      type: bytes[at + 4] ?? 0,
      payload: bytes.subarray(at + FRAME_HEADER_BYTES, end),
    });
    at = end;
  }
  return frames;
}

function positionsOf(bytes: Buffer): { positions: number[]; validBytes: number } {
  const positions: number[] = [];
  let at = 0;
  while (bytes.length - at >= FRAME_HEADER_BYTES) {
    const lengthBytes = bytes.readUInt32LE(at);
    const end = at + 4 + lengthBytes;
    if (lengthBytes === 0 || lengthBytes > FRAME_BYTES_MAX || end > bytes.length) break;
    if (bytes[at + 4] === RECORD_MISSING && lengthBytes === 5) {
      const missing = bytes.readUInt32LE(at + FRAME_HEADER_BYTES);
      for (let index = 0; index < missing; index += 1) positions.push(-1);
    } else {
      positions.push(at);
    }
    at = end;
  }
  return { positions, validBytes: at };
}
