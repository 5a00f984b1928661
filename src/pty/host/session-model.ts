// One session in the model thread: reads its journal, feeds its emulator, journals final lines and
// marks. After a restart the same bytes give the same numbers, and what is journaled stays.

import { TerminalModel } from '../../term/terminal-model.ts';
import type { Line, Mark, View } from '../../term/values.ts';
import { packValue } from '../protocol.ts';
import { readCheckpoint, writeCheckpoint } from './checkpoint-file.ts';
import { decodeLine, decodeMark, encodeLine, encodeMark } from './line-codec.ts';
import type { ModelProgress, ModelQuery, OpenModel } from './model-messages.ts';
import { NumberedJournal } from './numbered-journal.ts';
import { JournalReader, readIndex } from './segments.ts';

/** Fed at once: about a millisecond of parsing. */
const SLICE_BYTES = 65_536;
/** A page of lines or marks. */
const READ_BYTES_MAX = 2 * 1024 * 1024;
/** Marks read back to repeat decisions during a replay. */
const MARKS_PER_PAGE = 1_000;

interface Resize {
  readonly offset: number;
  readonly cols: number;
  readonly rows: number;
}

export class SessionModel {
  readonly slot: number;
  readonly #directory: string;
  readonly #journal: JournalReader;
  readonly #lines: NumberedJournal;
  readonly #marks: NumberedJournal;
  readonly #liveFrom: number;
  readonly #model: TerminalModel;
  readonly #resizes: Resize[];
  /** Decisions of the stretch to be replayed, oldest first. */
  readonly #decided: readonly Mark[];
  readonly #scratch = Buffer.allocUnsafe(SLICE_BYTES);
  #exitOffset: number | undefined;
  #finished = false;
  #missingLines = 0;
  #missingMarks = 0;
  #checkpointOffset: number;

  constructor(open: OpenModel) {
    this.slot = open.slot;
    this.#liveFrom = open.liveFrom;
    this.#journal = new JournalReader(open.directory);
    this.#lines = new NumberedJournal(open.directory, 'lines');
    this.#marks = new NumberedJournal(open.directory, 'marks');
    this.#directory = open.directory;
    this.#model = restoreModel(open);
    this.#checkpointOffset = this.#model.offset;
    this.#resizes = resizesFrom(open.directory, this.#model.offset);
    this.#stateMissing();
    this.#decided = this.#readDecisions();
  }

  get offset(): number {
    return this.#model.offset;
  }

  get finished(): boolean {
    return this.#finished;
  }

  get synchronizing(): boolean {
    return this.#model.synchronizing;
  }

  get progress(): ModelProgress {
    return {
      offset: this.#model.offset,
      finalCount: this.#model.finalCount,
      markCount: this.#model.markCount,
      checkpointOffset: this.#checkpointOffset,
      firstLine: this.#lines.firstNumber,
    };
  }

  addResize(resize: Resize): void {
    this.#resizes.push(resize);
  }

  /** A program that repainted the screen may be gone without having said so. */
  programChanged(): void {
    if (this.#model.offset < this.#liveFrom) return;
    this.#model.programChanged();
    this.#keep();
  }

  exitAt(offset: number): void {
    this.#exitOffset = offset;
  }

  /**
   * Feeds at most one slice of what is journaled up to `length`.
   * @returns answers for the terminal, and whether more is there.
   */
  step(length: number, nowMs: number): { readonly answers: Uint8Array; readonly more: boolean } {
    this.#applyResizes();
    const offset = this.#model.offset;
    const end = this.#boundary(offset, length);
    const live = offset >= this.#liveFrom;
    if (end > offset) {
      const got = this.#journal.readInto(this.#scratch, offset, end - offset);
      if (got === 0) return { answers: new Uint8Array(0), more: false };
      const bytes = this.#scratch.subarray(0, got);
      if (live) this.#model.write(bytes, nowMs);
      else this.#model.replay(bytes, nowMs, this.#decided);
    }
    if (this.#model.offset === this.#exitOffset && !this.#finished) {
      this.#model.exit();
      this.#finished = true;
    }
    this.#keep();
    const answers = live ? this.#model.takeAnswers() : new Uint8Array(0);
    return { answers, more: this.#model.offset < length };
  }

  view(): View {
    return this.#model.view();
  }

  /** The answer to a query, packed. */
  query(query: ModelQuery): Buffer {
    switch (query.op) {
      case 'frame':
        return packValue(this.#model.frame());
      case 'snapshot':
        return packValue(this.#model.snapshot());
      case 'read-lines': {
        const read = this.#lines.read(query.from, query.to, READ_BYTES_MAX);
        return packValue({ ...read, records: undefined, lines: read.records.map(decodeLine) });
      }
      case 'read-marks': {
        const end = query.from + query.max;
        const read = this.#marks.read(query.from, end, READ_BYTES_MAX);
        return packValue(read.records.map(decodeMark));
      }
    }
  }

  close(): void {
    this.#journal.close();
    this.#lines.close();
    this.#marks.close();
  }

  /** Output since the last checkpoint. */
  get sinceCheckpoint(): number {
    return this.#model.offset - this.#checkpointOffset;
  }

  /** After it a restart replays from here. Not while lines are missing or once the end is applied. */
  checkpoint(): void {
    if (this.#exitOffset !== undefined || this.#missingLines + this.#missingMarks > 0) return;
    const checkpoint = this.#model.checkpoint();
    if (checkpoint === undefined || checkpoint.offset <= this.#checkpointOffset) return;
    if (writeCheckpoint(this.#directory, checkpoint.bytes)) {
      this.#checkpointOffset = checkpoint.offset;
    }
  }

  /** A power cut can leave a checkpoint that is ahead of its journals. */
  #stateMissing(): void {
    const lines = this.#model.finalCount - this.#lines.nextNumber;
    if (lines > 0) this.#lines.appendMissing(lines);
    const marks = this.#model.markCount - this.#marks.nextNumber;
    if (marks > 0) this.#marks.appendMissing(marks);
  }

  /** Bytes laid out for one size are fed in one piece; so are bytes seen before, and an exit. */
  #boundary(offset: number, length: number): number {
    const stops = [length, offset + SLICE_BYTES];
    const resize = this.#resizes[0];
    if (resize !== undefined) stops.push(resize.offset);
    if (offset < this.#liveFrom) stops.push(this.#liveFrom);
    if (this.#exitOffset !== undefined && offset < this.#exitOffset) stops.push(this.#exitOffset);
    return Math.min(...stops);
  }

  #applyResizes(): void {
    for (let next = this.#resizes[0]; next !== undefined; next = this.#resizes[0]) {
      if (next.offset > this.#model.offset) return;
      this.#model.resize(next.cols, next.rows);
      this.#resizes.shift();
    }
  }

  #readDecisions(): Mark[] {
    const decided: Mark[] = [];
    for (let from = this.#marks.firstNumber; from < this.#marks.nextNumber; ) {
      const read = this.#marks.read(from, from + MARKS_PER_PAGE, READ_BYTES_MAX);
      if (read.records.length === 0) break;
      for (const mark of read.records.map(decodeMark)) {
        if (mark.what.kind === 'mode') decided.push(mark);
      }
      from = read.from + read.records.length;
    }
    return decided;
  }

  /** Journals what is new; a rebuild yields again what is there already. */
  #keep(): void {
    const finals = this.#model.takeFinals();
    if (finals.length > 0) {
      const fresh = newOnes(finals, this.#model.finalCount, this.#lines.nextNumber);
      this.#missingLines = store(this.#lines, fresh.map(encodeLine), this.#missingLines);
    }
    const marks = this.#model.takeMarks();
    if (marks.length > 0) {
      const fresh = newOnes(marks, this.#model.markCount, this.#marks.nextNumber);
      this.#missingMarks = store(this.#marks, fresh.map(encodeMark), this.#missingMarks);
    }
  }
}

/** From the newest checkpoint that can be used, or from the beginning. */
function restoreModel(open: OpenModel): TerminalModel {
  const bytes = readCheckpoint(open.directory);
  if (bytes !== undefined) {
    try {
      return TerminalModel.restore(bytes);
    } catch {
      // Of another version: the bytes are replayed instead.
    }
  }
  return new TerminalModel({ cols: open.cols, rows: open.rows });
}

/** Those after `offset`, and of those at it the last: it is in the checkpoint, or just not yet. */
function resizesFrom(directory: string, offset: number): Resize[] {
  const all = readIndex(directory).filter((record) => record.kind === 'resize');
  const at = all.filter((record) => record.offset <= offset).at(-1);
  const later = all.filter((record) => record.offset > offset);
  return at === undefined ? later : [at, ...later];
}

/** The last of `items` has number `count` - 1; those below `kept` are journaled already. */
function newOnes<T extends Line | Mark>(
  items: readonly T[],
  count: number,
  kept: number,
): readonly T[] {
  const first = count - items.length;
  return first >= kept ? items : items.slice(kept - first);
}

/** Appends; what a full disk refuses becomes missing numbers, stated as soon as it can be. */
function store(
  journal: NumberedJournal,
  records: readonly ReturnType<typeof encodeLine>[],
  missing: number,
): number {
  if (records.length === 0) return missing;
  try {
    if (missing > 0) journal.appendMissing(missing);
  } catch {
    return missing + records.length;
  }
  try {
    journal.append(records);
    return 0;
  } catch {
    return records.length;
  }
}
