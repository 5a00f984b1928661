// Keeps the cursor at its character when the rows are laid out for another width. The emulator moves
// the text of the cursor's line and leaves the cursor's column: what is printed next would overwrite.

import type { Row, ScreenBuffer } from './emulator.ts';

const CONTENT_MASK = 0x3fffff;

/** A place in the text: line counted from the top of the buffer, cell counted from its start. */
export interface TextPlace {
  readonly line: number;
  readonly cell: number;
}

export function cursorPlace(buffer: ScreenBuffer): TextPlace {
  let line = -1;
  let cell = 0;
  for (let y = 0; y <= buffer.ybase + buffer.y; y += 1) {
    const row = buffer.lines.get(y);
    if (line < 0 || row?.isWrapped !== true) {
      line += 1;
      cell = 0;
    }
    if (row !== undefined && y < buffer.ybase + buffer.y) cell += wrappedCells(row);
  }
  return { line, cell: cell + buffer.x };
}

/** Moves the cursor to `place`, if that is on the screen of `rowCount` rows. */
export function putCursor(buffer: ScreenBuffer, place: TextPlace, rowCount: number): void {
  let y = startOfLine(buffer, place.line);
  let cell = place.cell;
  for (; y < buffer.lines.length; y += 1) {
    const row = buffer.lines.get(y);
    const goesOn = buffer.lines.get(y + 1)?.isWrapped === true;
    if (row === undefined || !goesOn || cell < wrappedCells(row)) break;
    cell -= wrappedCells(row);
  }
  const row = buffer.lines.get(y);
  if (row === undefined || y < buffer.ybase || y >= buffer.ybase + rowCount) return;
  buffer.y = y - buffer.ybase;
  buffer.x = Math.min(cell, row.length);
}

/** Index of the row the line with this number begins in. */
function startOfLine(buffer: ScreenBuffer, line: number): number {
  let found = -1;
  for (let y = 0; y < buffer.lines.length; y += 1) {
    if (found < 0 || buffer.lines.get(y)?.isWrapped !== true) found += 1;
    if (found === line) return y;
  }
  return buffer.lines.length;
}

/** A row that wraps is full, but for the cell a wide character left free. */
function wrappedCells(row: Row): number {
  const last = (row._data[(row.length - 1) * 3] ?? 0) & CONTENT_MASK;
  const width = (row._data[(row.length - 1) * 3] ?? 0) >>> 22;
  return last === 0 && width === 1 ? row.length - 1 : row.length;
}
