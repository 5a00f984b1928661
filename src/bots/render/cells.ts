// A row of a screen as cells: what is drawn where. Values only; the widths are the emulator's.

import type { FrameRow } from '../../term/values.ts';

export interface Cell {
  /** One character with all that is joined to it. */
  readonly text: string;
  /** Where its text begins in the row's text, in UTF-16 units. */
  readonly unit: number;
  readonly column: number;
  readonly width: 1 | 2;
}

/** The cells of `row`, left to right. */
export function rowCells(row: FrameRow): Cell[] {
  const wide = new Set(row.wide);
  const joined = new Set(row.joined);
  const cells: Cell[] = [];
  let unit = 0;
  let column = 0;
  for (const character of row.text) {
    const last = cells.at(-1);
    if (joined.has(unit) && last !== undefined) {
      cells[cells.length - 1] = { ...last, text: last.text + character };
    } else {
      const width = wide.has(unit) ? 2 : 1;
      cells.push({ text: character, unit, column, width });
      column += width;
    }
    unit += character.length;
  }
  return cells;
}

/** The UTF-16 index of what is at `column`: the text's length, plus the blanks after it, behind it. */
export function unitAtColumn(row: FrameRow, column: number): number {
  if (row.wide === undefined && row.joined === undefined && isOneUnitPerCell(row.text)) {
    return column;
  }
  let end = 0;
  for (const cell of rowCells(row)) {
    if (column < cell.column + cell.width) return cell.unit;
    end = cell.column + cell.width;
  }
  return row.text.length + column - end;
}

function isOneUnitPerCell(text: string): boolean {
  return !/[\ud800-\udfff]/.test(text);
}
