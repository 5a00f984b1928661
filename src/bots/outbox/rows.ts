// Rows as values: what they cover, what they show now, and its name. Pure.

import { createHash } from 'node:crypto';
import type { OutboxRow } from '../../store/outbox-rows.ts';
import type { Frame, FrameRow, Line } from '../../term/values.ts';
import type { Button, Content, MessageBudget } from '../chat-platform.ts';
import { fitEnd, isBefore, linesBetween, type Position, samePosition } from '../render/chunks.ts';
import type { Transcript } from './transcript.ts';

/** Our own words of a notice, and lines of the transcript it quotes, named and not copied. */
export interface NoticeBody {
  /** By which `revise` finds it. */
  readonly name?: string;
  readonly head?: string;
  readonly foot?: string;
  readonly buttons?: readonly (readonly Button[])[];
  readonly mention?: readonly string[];
  /** Ranges [from, to) of lines shown below the head, as far as one message holds them. */
  readonly quote?: readonly (readonly [number, number])[];
  /** Shows the screen as it is when the message is made. */
  readonly screen?: boolean;
  /** May still be revised: not sealed before it is revised without this. */
  readonly keep?: boolean;
  /** Not shown: what a button of this message refers to. JSON of the bridge. */
  readonly data?: unknown;
}

/** What may be attached. The words are ours; bytes are made when the call is made. */
export interface FileBody {
  readonly caption?: string;
  readonly fileName: string;
  readonly source:
    | {
        readonly kind: 'lines';
        readonly from: number;
        /** Of a first line whose beginning is shown in a message. */
        readonly fromCol?: number;
        readonly to: number;
      }
    /** For whoever makes files: a PNG of a frame, a cast, a log. JSON. */
    | { readonly kind: 'made'; readonly what: unknown };
}

/** Kept with a text or flood row. */
export interface TextBody {
  /** The message before was deleted by someone. */
  readonly note?: 'deleted' | 'away';
  /** The platform refused the formatted text: 1 without styles, 2 not at all. */
  readonly degraded?: 1 | 2;
}

export interface Look {
  readonly budget: MessageBudget;
  readonly colour: boolean;
  /** Added to live messages by the bridge (buttons); pure. */
  readonly decorate: (about: { kind: 'text' | 'screen'; open: boolean }) => Partial<Content>;
  /** The root message, whose content is the bridge's. */
  readonly root: () => Content;
  readonly floodLastLines: number;
}

export function isCovering(row: OutboxRow): boolean {
  return row.kind === 'text' || row.kind === 'flood' || row.kind === 'gap';
}

/** A name for a content: equal names, equal messages. */
export function hashOf(content: Content): string {
  return createHash('sha1').update(JSON.stringify(content)).digest('base64url').slice(0, 16);
}

export function atLine(line: number): Position {
  return { line, col: 0 };
}

export function later(a: Position, b: Position): Position {
  return isBefore(a, b) ? b : a;
}

export function earlier(a: Position, b: Position): Position {
  return isBefore(a, b) ? a : b;
}

/** True when nothing before `position` can change any more. */
export function isFinal(position: Position, finalCount: number): boolean {
  return position.col === 0 ? position.line <= finalCount : position.line < finalCount;
}

export function isBlankBetween(transcript: Transcript, from: Position, to: Position): boolean {
  for (let line = from.line; line < to.line || (line === to.line && to.col > 0); line += 1) {
    const text = transcript.lineAt(line)?.text;
    // Not loaded: the middle of a flood.
    if (text === undefined) return line >= transcript.total || line < transcript.lostBefore;
    const piece = text.slice(line === from.line ? from.col : 0);
    if (piece.trim() !== '') return false;
  }
  return true;
}

/** What a row shows at this transcript, or undefined when that cannot be told yet. */
export function contentOf(
  row: OutboxRow,
  transcript: Transcript,
  limit: Position,
  frames: ReadonlyMap<number, Frame>,
  look: Look,
): Content | undefined {
  switch (row.kind) {
    case 'root':
      return look.root();
    case 'text':
      return textContent(row, transcript, limit, look);
    case 'flood':
      return floodContent(row, transcript, limit, look);
    case 'screen':
      return screenContent(row, transcript, frames, look);
    case 'gap':
      return { head: gapText(row) };
    case 'notice':
      return undefined;
    case 'file':
      return undefined;
  }
}

function textContent(
  row: OutboxRow,
  transcript: Transcript,
  limit: Position,
  look: Look,
): Content | undefined {
  const isOpen = row.end === undefined;
  const end = row.end ?? limit;
  const body = (row.body ?? {}) as TextBody;
  const head = body.note === undefined ? {} : { head: NOTES[body.note] };
  const extra = look.decorate({ kind: 'text', open: isOpen });
  if (body.degraded === 2)
    return { head: 'These lines could not be shown here; they are attached.' };
  const inside = earlier(end, atLine(transcript.total));
  if (!isLoaded(transcript, row.start, inside)) return undefined;
  const all = linesBetween(transcript.lineAt, row.start, inside);
  const lines = withoutBlankEnd(all);
  if (lines.every((line) => line.text.trim() === '')) {
    const isMoved = samePosition(row.start, end) && !isOpen;
    return { ...extra, head: isMoved ? '(continues below)' : '(cleared)' };
  }
  const foot = isOpen ? {} : footOf(transcript, end);
  if (body.degraded === 1) return { ...head, lines: lines.map(({ text }) => ({ text })), ...foot };
  return { ...extra, ...head, lines, colour: look.colour, ...foot };
}

/** Says that a line is cut here, while it is long enough to be. */
function footOf(transcript: Transcript, end: Position): { readonly foot?: string } {
  const length = transcript.lineAt(end.line)?.text.length ?? 0;
  return end.col > 0 && end.col < length ? { foot: '(this line goes on below)' } : {};
}

function isLoaded(transcript: Transcript, from: Position, to: Position): boolean {
  for (let line = from.line; line < to.line; line += 1) {
    if (transcript.lineAt(line) === undefined) return false;
  }
  return true;
}

const NOTES = {
  deleted: 'The message that showed this was deleted.',
  away: 'Printed while chatd was away:',
} as const;

/** Blank lines at the end of a message say nothing, and would cost an edit to come and to go. */
function withoutBlankEnd(lines: readonly Line[]): readonly Line[] {
  let count = lines.length;
  while (count > 0 && lines[count - 1]?.text.trim() === '') count -= 1;
  return count === lines.length ? lines : lines.slice(0, count);
}

function floodContent(
  row: OutboxRow,
  transcript: Transcript,
  limit: Position,
  look: Look,
): Content {
  const end = row.end ?? limit;
  const shownFrom = row.omitTo ?? floodShownFrom(row.start, end, transcript, look);
  const count = shownFrom - row.start.line;
  const words = row.omitTo === undefined ? 'omitted so far, to be attached' : 'omitted, attached';
  const note = ((row.body ?? {}) as TextBody).note;
  const away = note === undefined ? '' : `${NOTES[note]} `;
  return {
    head: `${away}${count} ${count === 1 ? 'line' : 'lines'} ${words}`,
    lines: linesBetween(transcript.lineAt, atLine(shownFrom), end),
    colour: look.colour,
    ...(row.end === undefined ? {} : footOf(transcript, end)),
  };
}

/** The first line that a flood still shows: the last few, as far as they fit. */
export function floodShownFrom(
  start: Position,
  end: Position,
  transcript: Transcript,
  look: Look,
): number {
  const stop = end.col > 0 ? end.line + 1 : end.line;
  const least = Math.max(start.line + (start.col > 0 ? 1 : 0), stop - look.floodLastLines);
  let units = 0;
  let first = stop;
  for (let number = stop - 1; number >= least; number -= 1) {
    const line = transcript.lineAt(number);
    if (line === undefined) break;
    units += look.budget.costOf(line, look.colour);
    if (units > look.budget.unitsMax) break;
    first = number;
  }
  return first;
}

function gapText(row: OutboxRow): string {
  const count = (row.end?.line ?? row.start.line) - row.start.line;
  return `${count} lines are missing here: they are no longer kept.`;
}

function screenContent(
  row: OutboxRow,
  transcript: Transcript,
  frames: ReadonlyMap<number, Frame>,
  look: Look,
): Content | undefined {
  const isOpen = row.frameMark === undefined;
  const frame = isOpen
    ? transcript.mode === 'screen'
      ? transcript.frame
      : undefined
    : frames.get(row.frameMark);
  if (frame === undefined) return undefined;
  return frameContent(frame, look, isOpen);
}

/** A frame as text: the rows around the cursor when not all of them fit. */
export function frameContent(frame: Frame, look: Look, open: boolean): Content {
  const extra = look.decorate({ kind: 'screen', open });
  const rows = trimmedRows(frame);
  if (rows.length === 0) return { ...extra, head: '(the screen is empty)' };
  const costs = rows.map((row) => look.budget.costOf(row, look.colour));
  let from = Math.min(frame.cursor.row, rows.length - 1);
  let to = from + 1;
  let units = costs[from] ?? 0;
  const limit = look.budget.unitsMax;
  // Up first: what led to the cursor explains it.
  while (from > 0 && units + (costs[from - 1] ?? 0) <= limit) units += costs[--from] ?? 0;
  while (to < rows.length && units + (costs[to] ?? 0) <= limit) units += costs[to++] ?? 0;
  const hidden = rows.length - (to - from);
  const fitting = fitEnd((line) => rows[line], atLine(from), atLine(to), look.budget, look.colour);
  return {
    ...extra,
    lines: linesBetween((line) => rows[line], atLine(from), fitting),
    colour: look.colour,
    ...(hidden > 0 ? { foot: `(${hidden} rows of the screen do not fit here)` } : {}),
  };
}

function trimmedRows(frame: Frame): readonly Line[] {
  const rows = frame.rows.map((row) => trimmed(row));
  let count = rows.length;
  while (count > 0 && rows[count - 1]?.text === '') count -= 1;
  return rows.slice(0, count);
}

function trimmed(row: FrameRow): Line {
  const text = row.text.trimEnd();
  const spans = (row.spans ?? []).filter((span) => span.start < text.length);
  return spans.length === 0 ? { text } : { text, spans };
}

/** What a notice says; `quoted` are the lines it names, `frame` the screen now. */
export function noticeContent(
  body: NoticeBody,
  quoted: readonly Line[],
  frame: Frame | undefined,
  look: Look,
): Content {
  const { name: _name, quote: _quote, keep: _keep, data: _data, screen, ...words } = body;
  if (screen === true && frame !== undefined) {
    return { ...frameContent(frame, { ...look, decorate: () => ({}) }, false), ...words };
  }
  if (quoted.length === 0) return words;
  const end = fitEnd(
    (line) => quoted[line],
    atLine(0),
    atLine(quoted.length),
    look.budget,
    look.colour,
  );
  const lines = linesBetween((line) => quoted[line], atLine(0), end);
  const left = quoted.length - end.line;
  const foot = left > 0 ? { foot: `(${left} more ${left === 1 ? 'line' : 'lines'})` } : {};
  return { ...foot, ...words, lines, colour: look.colour };
}

export function isBlankFrame(frame: Frame): boolean {
  return frame.rows.every((row) => row.text.trim() === '');
}
