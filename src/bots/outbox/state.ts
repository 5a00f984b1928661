// The outbox of one thread in memory, following its committed rows: loaded at start, changed only
// by what has been written. Knows the store, no platform.

import { type Binding, saveNextMark } from '../../store/bindings.ts';
import {
  dropNotice,
  insertIntent,
  type NewRow,
  newestCoveringRow,
  newestMessageId,
  type OutboxRow,
  openRows,
  pruneRows,
  queuedNotices,
  queueNotice,
  saveRow,
} from '../../store/outbox-rows.ts';
import type { Store } from '../../store/store.ts';
import type { Frame, Line, Mark } from '../../term/values.ts';
import { recovered } from './outcomes.ts';
import type { Change, OutboxState } from './plan.ts';
import { isCovering } from './rows.ts';

/** Sealed rows between two prunings. */
const PRUNE_EVERY = 50;

export class ThreadState {
  readonly b: string;
  readonly #store: Store;
  #state: OutboxState;
  #sealedCount = 0;
  readonly #refused = new Set<number>();
  readonly #frames = new Map<number, Frame>();

  /** Reads the rows; what was in flight at its sender's death is in doubt from now on. */
  constructor(store: Store, binding: Binding, nowMs: number, settleMs: number) {
    this.#store = store;
    this.b = binding.b;
    const rows = openRows(store, binding.b).map((row) => recovered(row, nowMs, settleMs));
    store.transaction(() => {
      for (const row of rows) saveRow(store, row);
    });
    const last = newestCoveringRow(store, binding.b);
    this.#state = {
      firstLine: binding.firstLine,
      rows,
      lastCovering: rows.find((row) => row.s === last?.s) ?? last,
      notices: queuedNotices(store, binding.b),
      marks: [],
      nextMark: binding.nextMark,
      promptLine: undefined,
      closeLine: undefined,
      frames: this.#frames,
      quoted: [],
      refused: this.#refused,
      duplicates: [],
      lastScreenHash: undefined,
      away: false,
      lastPostMs: nowMs,
    };
  }

  get value(): OutboxState {
    return this.#state;
  }

  row(s: number): OutboxRow | undefined {
    return this.#state.rows.find((row) => row.s === s);
  }

  /** What is known without having been written: marks, quotes, wishes of people. */
  note(
    what: Partial<
      Pick<
        OutboxState,
        'marks' | 'quoted' | 'closeLine' | 'duplicates' | 'away' | 'lastPostMs' | 'promptLine'
      >
    >,
  ): void {
    this.#state = { ...this.#state, ...what };
  }

  noteFrame(mark: number, frame: Frame): void {
    this.#frames.set(mark, frame);
  }

  /** An intent that the platform has refused, or one that is sent again. */
  noteRefused(s: number, isRefused: boolean): void {
    if (isRefused) this.#refused.add(s);
    else this.#refused.delete(s);
  }

  /** Commits a change of rows, and with it in memory. */
  apply(change: Change, nowMs: number): void {
    this.#store.transaction(() => this.#write(change, nowMs));
    this.#follow(change);
  }

  /** TX1: the row, what comes with it, and the notice it takes from the queue, at once. */
  intend(
    row: Omit<NewRow, 'anchor' | 'sentAtMs'>,
    change: Change,
    notice: number | undefined,
    nowMs: number,
  ): OutboxRow {
    const intent = this.#store.transaction(() => {
      const anchor = newestMessageId(this.#store, this.b);
      const inserted = insertIntent(this.#store, this.b, { ...row, anchor, sentAtMs: nowMs });
      if (notice !== undefined) dropNotice(this.#store, notice);
      this.#write(change, nowMs);
      return inserted;
    });
    if (notice !== undefined) this.reloadNotices();
    this.#follow({ ...change, rows: [...(change.rows ?? []), intent] });
    return intent;
  }

  save(row: OutboxRow): void {
    saveRow(this.#store, row);
    this.#follow({ rows: [row] });
  }

  /** A notice that can not be made into a message after all. */
  drop(notice: number): void {
    dropNotice(this.#store, notice);
    this.reloadNotices();
  }

  reloadNotices(): void {
    this.#state = { ...this.#state, notices: queuedNotices(this.#store, this.b), quoted: [] };
  }

  #write(change: Change, nowMs: number): void {
    for (const row of change.rows ?? []) saveRow(this.#store, row);
    if (change.nextMark !== undefined) saveNextMark(this.#store, this.b, change.nextMark);
    if (change.file !== undefined) {
      const { line, body } = change.file;
      const notice = {
        b: this.b,
        line,
        kind: 'file' as const,
        lane: 'final',
        body,
        queuedAtMs: nowMs,
      };
      // Part of the transcript, not a remark: it is queued beyond the bound of the remarks.
      queueNotice(this.#store, notice, undefined, true);
    }
  }

  #follow(change: Change): void {
    const { nextMark, rows = [] } = change;
    let { lastCovering } = this.#state;
    for (const row of rows) {
      if (isCovering(row) && (lastCovering === undefined || row.s >= lastCovering.s)) {
        lastCovering = row;
      }
      if (row.state === 'sealed' || row.state === 'gone') this.#finish(row);
    }
    this.#state = {
      ...this.#state,
      rows: merged(this.#state.rows, rows),
      lastCovering,
      ...(nextMark === undefined
        ? {}
        : { nextMark, marks: this.#state.marks.filter((mark) => mark.seq >= nextMark) }),
      ...('promptLine' in change ? { promptLine: change.promptLine } : {}),
      ...('lastScreenHash' in change ? { lastScreenHash: change.lastScreenHash } : {}),
      ...(change.closed === true ? { closeLine: undefined } : {}),
    };
    if (change.file !== undefined) this.reloadNotices();
  }

  #finish(row: OutboxRow): void {
    this.#refused.delete(row.s);
    if (row.frameMark !== undefined) this.#frames.delete(row.frameMark);
    this.#sealedCount += 1;
    if (this.#sealedCount % PRUNE_EVERY === 0) pruneRows(this.#store, this.b);
  }
}

function merged(rows: readonly OutboxRow[], changed: readonly OutboxRow[]): readonly OutboxRow[] {
  const bySequence = new Map(rows.map((row) => [row.s, row]));
  for (const row of changed) {
    if (row.state === 'sealed' || row.state === 'gone') bySequence.delete(row.s);
    else bySequence.set(row.s, row);
  }
  return [...bySequence.values()].sort((a, b) => a.s - b.s);
}

/** Marks not yet acted on, of a transcript at `offset`. */
export function marksUpTo(marks: readonly Mark[], offset: number): readonly Mark[] {
  return marks.filter((mark) => mark.offset <= offset);
}

/** Lines as text, for files. */
export function plainText(lines: readonly Line[]): string {
  return lines.map((line) => `${line.text}\n`).join('');
}
