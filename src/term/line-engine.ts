// Owns the transcript of one normal screen: which lines are final, which rows of the screen still
// belong to it, and the line whose first rows have already left. A row becomes final when it leaves
// the screen at the top or is cleared away; never because the cursor moved on. Knows no control
// sequences and no modes: it is told what happens to the rows.

import type { Row, ScreenBuffer } from './emulator.ts';
import {
  asLine,
  joinLines,
  type LinkTargets,
  readRow,
  rowIsBlank,
  unitsBefore,
} from './row-reader.ts';
import type { Line } from './values.ts';

/** A line of more than this is split: a program that never ends a line must not fill memory. */
const LINE_UNITS_MAX = 65_536;
const SPACE = 32;

export interface Tail {
  readonly lines: readonly Line[];
  /** Index into `lines` of the cursor's line, and its column in UTF-16 units. */
  readonly cursorIndex: number;
  readonly cursorColumn: number;
}

export interface LineEngineState {
  readonly finalCount: number;
  readonly prefix: Line | undefined;
  readonly floor: number;
}

export class LineEngine {
  #finals: Line[] = [];
  #finalCount = 0;
  /** Holds what has left the screen of a line that goes on in the top row. */
  readonly #joiner: LineJoiner;
  /** Rows above this one are final already, or were part of a frame: still shown, said once. */
  #floor = 0;

  constructor(links: LinkTargets) {
    this.#joiner = new LineJoiner(links, undefined);
  }

  get finalCount(): number {
    return this.#finalCount;
  }

  get state(): LineEngineState {
    return { finalCount: this.#finalCount, prefix: this.#joiner.open, floor: this.#floor };
  }

  restore(state: LineEngineState): void {
    this.#finals = [];
    this.#finalCount = state.finalCount;
    this.#joiner.open = state.prefix;
    this.#floor = state.floor;
  }

  takeFinals(): Line[] {
    const finals = this.#finals;
    this.#finals = [];
    return finals;
  }

  /** The top row is about to leave the screen for good. */
  topRowLeaves(buffer: ScreenBuffer): void {
    this.topRowsLeave(buffer, 1);
  }

  /** The top `count` rows are about to leave at once. */
  topRowsLeave(buffer: ScreenBuffer, count: number): void {
    for (let y = 0; y < count; y += 1) {
      const row = buffer.lines.get(y);
      if (this.#floor > 0) this.#floor -= 1;
      else if (row !== undefined) this.#rowEnds(row, buffer.lines.get(y + 1)?.isWrapped === true);
    }
  }

  #rowEnds(row: Row, goesOn: boolean): void {
    this.#push(this.#joiner.add(row, goesOn));
  }

  #push(lines: readonly Line[]): void {
    for (const line of lines) this.#finals.push(line);
    this.#finalCount += lines.length;
  }

  /** All visible rows are about to be erased, or will never change again: they become final. */
  finishAll(buffer: ScreenBuffer): void {
    this.#finishRows(buffer, contentEnd(buffer));
    this.#push(this.#joiner.end());
  }

  /** The rows above the line that row `y` belongs to become final and stay on the screen. */
  finishAbove(buffer: ScreenBuffer, y: number): void {
    let start = y;
    while (start > this.#floor && buffer.lines.get(start)?.isWrapped === true) start -= 1;
    this.#finishRows(buffer, start);
  }

  #finishRows(buffer: ScreenBuffer, end: number): void {
    for (let y = this.#floor; y < end; y += 1) {
      const row = buffer.lines.get(y);
      if (row === undefined) break;
      this.#rowEnds(row, y + 1 < end && buffer.lines.get(y + 1)?.isWrapped === true);
    }
    this.#floor = Math.max(this.#floor, end);
  }

  /** The screen was erased: all of it belongs to the transcript again. */
  erased(): void {
    this.#floor = 0;
  }

  /** What is on the screen was shown as a frame: it is no text of the transcript. */
  disown(buffer: ScreenBuffer, y: number): void {
    this.#push(this.#joiner.end());
    this.#floor = Math.max(contentEnd(buffer), y);
  }

  /** Text is about to be printed in row `y`: such a row is not final, whatever it was before. */
  printsAt(y: number): void {
    if (y < this.#floor) this.#floor = y;
  }

  /** Rows from `y` on are about to move. Saying a row twice is better than losing one. */
  movesFrom(y: number): void {
    this.printsAt(y);
  }

  tail(buffer: ScreenBuffer, cursor: { readonly x: number; readonly y: number } | undefined): Tail {
    const end = Math.max(contentEnd(buffer), (cursor?.y ?? -1) + 1);
    const joiner = this.#joiner.copy();
    const lines: Line[] = [];
    let cursorIndex = 0;
    let cursorColumn = 0;
    for (let y = this.#floor; y < end; y += 1) {
      const row = buffer.lines.get(y);
      if (row === undefined) break;
      if (!row.isWrapped) lines.push(...joiner.end());
      if (cursor?.y === y) {
        cursorIndex = lines.length;
        cursorColumn = (joiner.open?.text.length ?? 0) + unitsBefore(row, cursor.x);
      }
      lines.push(...joiner.add(row, y + 1 < end && buffer.lines.get(y + 1)?.isWrapped === true));
    }
    lines.push(...joiner.end());
    return { lines, cursorIndex, cursorColumn };
  }

  /** Index into the tail of the line that row `y` belongs to, without reading any text. */
  indexOfRow(buffer: ScreenBuffer, y: number): number {
    let index = 0;
    let open = this.#joiner.open !== undefined;
    for (let row = this.#floor; row <= y; row += 1) {
      const wrapped = buffer.lines.get(row)?.isWrapped === true;
      if (open && !wrapped) index += 1;
      if (row === y) return index;
      open = buffer.lines.get(row + 1)?.isWrapped === true;
      if (!open) index += 1;
    }
    return 0;
  }

  /** Number of lines that start above the floor: what a new layout of the rows keeps. */
  linesAboveFloor(buffer: ScreenBuffer): number {
    let count = 0;
    for (let y = 0; y < this.#floor; y += 1) {
      if (y === 0 || buffer.lines.get(y)?.isWrapped !== true) count += 1;
    }
    return count;
  }

  /** The rows were laid out anew; `ybase` of them no longer fit on the screen. */
  laidOut(buffer: ScreenBuffer, linesAboveFloor: number): void {
    let lines = 0;
    let floor = 0;
    for (; floor < buffer.lines.length; floor += 1) {
      if (floor === 0 || buffer.lines.get(floor)?.isWrapped !== true) lines += 1;
      if (lines > linesAboveFloor) break;
    }
    this.#floor = floor;
    for (let y = this.#floor; y < buffer.ybase; y += 1) {
      const row = buffer.lines.get(y);
      if (row !== undefined) this.#rowEnds(row, buffer.lines.get(y + 1)?.isWrapped === true);
    }
    this.#floor = Math.max(0, this.#floor - buffer.ybase);
  }
}

/** Joins rows that wrap into lines. */
class LineJoiner {
  readonly #links: LinkTargets;
  /** The line that goes on in the next row. */
  open: Line | undefined;

  constructor(links: LinkTargets, open: Line | undefined) {
    this.#links = links;
    this.open = open;
  }

  copy(): LineJoiner {
    return new LineJoiner(this.#links, this.open);
  }

  /** Lines that are complete with this row. */
  add(row: Row, goesOn: boolean): readonly Line[] {
    if (!goesOn && this.open === undefined) return [asLine(readRow(row, 'trimmed', this.#links))];
    const before = row.isWrapped ? [] : this.end();
    const part = asLine(readRow(row, goesOn ? 'wraps' : 'trimmed', this.#links));
    this.open = this.open === undefined ? part : joinLines(this.open, part);
    const full = this.open.text.length >= LINE_UNITS_MAX;
    return goesOn && !full ? before : [...before, ...this.end()];
  }

  end(): readonly Line[] {
    if (this.open === undefined) return NO_LINES;
    const line = trimLine(this.open);
    this.open = undefined;
    return [line];
  }
}

const NO_LINES: readonly Line[] = [];

/** One past the last row with text. */
export function contentEnd(buffer: ScreenBuffer): number {
  for (let y = buffer.lines.length - 1; y >= 0; y -= 1) {
    const row = buffer.lines.get(y);
    if (row !== undefined && !rowIsBlank(row)) return y + 1;
  }
  return 0;
}

function trimLine(line: Line): Line {
  let end = line.text.length;
  while (end > 0 && line.text.charCodeAt(end - 1) === SPACE) end -= 1;
  if (end === line.text.length) return line;
  const text = line.text.slice(0, end);
  const spans = (line.spans ?? [])
    .filter((span) => span.start < text.length)
    .map((span) => (span.end > text.length ? { ...span, end: text.length } : span));
  return spans.length === 0 ? { text } : { text, spans };
}
