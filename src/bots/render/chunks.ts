// Cuts a transcript into messages: whole lines, greedy, counted in what is sent. A line too long
// for one message is cut inside, never inside a grapheme. Joined again, the pieces are the source.

import type { Line } from '../../term/values.ts';
import type { MessageBudget } from '../chat-platform.ts';
import { sliceLine, wholeAt } from './lines.ts';

/** A place in the transcript: column 0 of a line, or inside a line too long for one message. */
export interface Position {
  readonly line: number;
  readonly col: number;
}

export function isBefore(a: Position, b: Position): boolean {
  return a.line < b.line || (a.line === b.line && a.col < b.col);
}

export function samePosition(a: Position, b: Position): boolean {
  return a.line === b.line && a.col === b.col;
}

/** Lines by number; undefined where a line is not loaded. */
export type LineAt = (line: number) => Line | undefined;

/** The pieces of lines that [start, end) covers. */
export function linesBetween(lineAt: LineAt, start: Position, end: Position): readonly Line[] {
  const lines: Line[] = [];
  const last = end.col > 0 ? end.line : end.line - 1;
  for (let number = start.line; number <= last; number += 1) {
    const line = lineAt(number);
    if (line === undefined) continue;
    const from = number === start.line ? start.col : 0;
    const to = number === end.line ? end.col : line.text.length;
    if (from > 0 && from >= line.text.length) continue;
    lines.push(sliceLine(line, from, to));
  }
  return lines;
}

/**
 * The greatest end ≤ `limit` such that [start, end) fits one message. Always beyond `start`, unless
 * there is nothing up to `limit`: a line over budget alone is cut where the budget ends.
 */
export function fitEnd(
  lineAt: LineAt,
  start: Position,
  limit: Position,
  budget: MessageBudget,
  colour: boolean,
): Position {
  let used = 0;
  let count = 0;
  let at = start;
  while (isBefore(at, limit)) {
    const line = lineAt(at.line);
    if (line === undefined) return at;
    const stop = at.line === limit.line ? limit.col : line.text.length;
    // Looking at the whole rest of a huge line for each of its pieces would be quadratic.
    const piece = sliceLine(line, at.col, Math.min(stop, at.col + budget.unitsMax + LOOK_AHEAD));
    const cost = budget.costOf(piece, colour);
    if (count > 0 && (used + cost > budget.unitsMax || count >= budget.linesMax)) return at;
    const isWhole = at.col + piece.text.length >= stop;
    if (cost > budget.unitsMax || !isWhole) return cutInside(at, piece, budget, colour);
    used += cost;
    count += 1;
    at = at.line === limit.line ? limit : { line: at.line + 1, col: 0 };
  }
  return at;
}

/** Enough to see the whole of any grapheme that the budget's end may divide. */
const LOOK_AHEAD = 320;

function cutInside(at: Position, piece: Line, budget: MessageBudget, colour: boolean): Position {
  const first = budget.split(piece, colour)[0]?.text.length ?? 0;
  return { line: at.line, col: at.col + Math.max(1, first) };
}

export interface Chunk {
  readonly start: Position;
  readonly end: Position;
  readonly lines: readonly Line[];
}

/** All of `lines` as messages. */
export function chunksOf(
  lines: readonly Line[],
  budget: MessageBudget,
  colour: boolean,
): readonly Chunk[] {
  const lineAt: LineAt = (number) => lines[number];
  const limit = { line: lines.length, col: 0 };
  const chunks: Chunk[] = [];
  let start: Position = { line: 0, col: 0 };
  while (isBefore(start, limit)) {
    const end = fitEnd(lineAt, start, limit, budget, colour);
    chunks.push({ start, end, lines: linesBetween(lineAt, start, end) });
    start = end;
  }
  return chunks;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/**
 * Cuts a line into pieces of at most `unitsMax` each. `costOf` grows with the piece; the cut is
 * found by halving, so the work is linear in the line for a fixed budget.
 */
export function splitLine(
  line: Line,
  unitsMax: number,
  costOf: (piece: Line) => number,
): readonly Line[] {
  const pieces: Line[] = [];
  let at = 0;
  while (at < line.text.length) {
    const end = pieceEnd(line, at, unitsMax, costOf);
    pieces.push(sliceLine(line, at, end));
    at = end;
  }
  return pieces.length === 0 ? [line] : pieces;
}

function pieceEnd(
  line: Line,
  at: number,
  unitsMax: number,
  costOf: (piece: Line) => number,
): number {
  let fits = at;
  // Every unit costs at least nothing: a piece is never longer than the budget has units.
  let tooFar = Math.min(line.text.length, at + unitsMax) + 1;
  while (tooFar - fits > 1) {
    const middle = (fits + tooFar) >> 1;
    if (costOf(sliceLine(line, at, middle)) <= unitsMax) fits = middle;
    else tooFar = middle;
  }
  if (fits >= line.text.length) return line.text.length;
  return Math.max(graphemeStart(line.text, at, fits), at + 1);
}

/** The start of the grapheme that a cut at `cut` would divide, unless that leaves nothing. */
function graphemeStart(text: string, from: number, cut: number): number {
  // A grapheme longer than this is hostile (a letter under hundreds of marks): cut at a code point.
  const back = wholeAt(text, Math.max(from, cut - 256));
  const segment = graphemes.segment(text.slice(back, cut + 64)).containing(cut - back);
  const start = segment === undefined ? cut : back + segment.index;
  return start > from ? start : Math.max(from + 1, wholeAt(text, cut));
}
