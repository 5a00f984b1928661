// Which inputs of a session were accepted and which were written, on disk, so that a repeat after
// a crash is answered `already` or `unknown` and never typed twice. Never the bytes themselves.

import { closeSync, ftruncateSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { encodeFrame, readRecords } from '../../base/frame-codec.ts';

const ACCEPTED = 1;
const WRITTEN = 2;
/** Message ids remembered (DETAILS.md). */
export const LEDGER_IDS_MAX = 1_000;
/** Records in the file before it is rewritten with the remembered ones only. */
const LEDGER_RECORDS_MAX = 4 * LEDGER_IDS_MAX;
const RECORD_BYTES_MAX = 4_096;

interface InputRecord {
  readonly messageId: string;
  readonly actor: string;
  readonly sizeBytes: number;
  readonly atWallMs: number;
}

type Seen = 'accepted' | 'written';

export class InputLedger {
  readonly #path: string;
  readonly #seen = new Map<string, { state: Seen; record: InputRecord }>();
  #fd: number;
  #records = 0;

  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(path, 'a+', 0o600);
    const bytes = readFileSync(path);
    const { records, validBytes } = readRecords(bytes, RECORD_BYTES_MAX);
    if (validBytes < bytes.length) ftruncateSync(this.#fd, validBytes);
    for (const { type, payload } of records) {
      this.#remember(type === WRITTEN ? 'written' : 'accepted', parseRecord(payload));
    }
    this.#records = records.length;
  }

  /** What is known of an input with this id. */
  find(messageId: string): Seen | undefined {
    return this.#seen.get(messageId)?.state;
  }

  /** Before the first byte is written. */
  accept(record: InputRecord): void {
    this.#append(ACCEPTED, record);
    this.#remember('accepted', record);
  }

  /** `sizeBytes` of it have been written. */
  complete(record: InputRecord): void {
    this.#append(WRITTEN, record);
    this.#remember('written', record);
  }

  /** It was refused at the write, whole: a repeat may try again. */
  forget(messageId: string): void {
    this.#seen.delete(messageId);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #remember(state: Seen, record: InputRecord): void {
    this.#seen.delete(record.messageId);
    this.#seen.set(record.messageId, { state, record });
    if (this.#seen.size <= LEDGER_IDS_MAX) return;
    const oldest = this.#seen.keys().next().value;
    if (oldest !== undefined) this.#seen.delete(oldest);
  }

  #append(type: number, record: InputRecord): void {
    if (this.#records >= LEDGER_RECORDS_MAX) this.#compact();
    writeSync(this.#fd, encodeRecord(type, record));
    this.#records += 1;
  }

  #compact(): void {
    const temporary = `${this.#path}.tmp`;
    const fd = openSync(temporary, 'w', 0o600);
    for (const { state, record } of this.#seen.values()) {
      writeSync(fd, encodeRecord(state === 'written' ? WRITTEN : ACCEPTED, record));
    }
    renameSync(temporary, this.#path);
    closeSync(this.#fd);
    closeSync(fd);
    this.#fd = openSync(this.#path, 'a', 0o600);
    this.#records = this.#seen.size;
  }
}

function encodeRecord(type: number, record: InputRecord): Buffer {
  return encodeFrame(type, Buffer.from(JSON.stringify(record)));
}

function parseRecord(payload: Buffer): InputRecord {
  const value = JSON.parse(payload.toString()) as Partial<InputRecord>;
  return {
    messageId: String(value.messageId),
    actor: String(value.actor),
    sizeBytes: Number(value.sizeBytes),
    atWallMs: Number(value.atWallMs),
  };
}
