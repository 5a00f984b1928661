// Turns rows of the emulator's cells into text and styled spans. Knows the bit layout of a cell and
// nothing of terminals otherwise.

import type { Row } from './emulator.ts';
import {
  BOLD,
  type Color,
  DIM,
  type FrameRow,
  INVERSE,
  ITALIC,
  type Line,
  RGB_FLAG,
  type Span,
  STRIKE,
  UNDERLINE,
} from './values.ts';

// Layout of a cell's words in @xterm/headless 6.0.0.
const CODE_MASK = 0x1fffff;
const COMBINED = 0x200000;
const CONTENT_MASK = 0x3fffff;
const WIDTH_SHIFT = 22;
const SPACE = 32;
const COLOR_MODE_MASK = 0x3000000;
const COLOR_MODE_RGB = 0x3000000;
const COLOR_MASK = 0x3ffffff;
const FG_INVERSE = 0x4000000;
const FG_BOLD = 0x8000000;
const FG_UNDERLINE = 0x10000000;
const FG_INVISIBLE = 0x40000000;
const FG_STRIKE = 0x80000000;
/** All but blink. */
const FG_STYLE = 0xdfffffff;
const BG_ITALIC = 0x4000000;
const BG_DIM = 0x8000000;
const BG_EXTENDED = 0x10000000;
/** All but protected and overline, which have no meaning to a reader. */
const BG_STYLE = 0x1fffffff;

/** A link's target by the id its cells carry. */
export type LinkTargets = (id: number) => string | undefined;

/** How much of a row is read: all cells of a row that wraps, else up to the last visible one. */
export type RowEnd = 'wraps' | 'trimmed' | 'visible';

let codes = new Uint16Array(512);
let bytes = Buffer.alloc(512);

/** The end of what a reader sees as text. */
function textEnd(row: Row): number {
  const data = row._data;
  let end = row.length;
  while (end > 0) {
    const content = data[(end - 1) * 3] ?? 0;
    const code = content & CONTENT_MASK;
    // A cell without width shows nothing, whatever it holds.
    if (code !== 0 && code !== SPACE && content >>> WIDTH_SHIFT !== 0) break;
    end -= 1;
  }
  return end;
}

/** Like textEnd, but blank cells with a visible background, inversion or line count. */
function visibleEnd(row: Row, from: number): number {
  const data = row._data;
  let end = row.length;
  while (end > from) {
    const fg = data[(end - 1) * 3 + 1] ?? 0;
    const bg = data[(end - 1) * 3 + 2] ?? 0;
    const line = fg & (FG_INVERSE | FG_UNDERLINE | FG_STRIKE);
    if (line !== 0 || (bg & COLOR_MODE_MASK) !== 0) break;
    end -= 1;
  }
  return end;
}

/** There is text in the last column. */
export function isFull(row: Row): boolean {
  return ((row._data[(row.length - 1) * 3] ?? 0) & CONTENT_MASK) !== 0 || hasWideEnd(row);
}

/** A wide character ends in the last column, or did not fit there and left it free. */
function hasWideEnd(row: Row): boolean {
  const before = (row._data[(row.length - 2) * 3] ?? 0) >>> WIDTH_SHIFT;
  return before === 2;
}

export function rowIsBlank(row: Row): boolean {
  return textEnd(row) === 0;
}

/** Text of the cells before `column`, in UTF-16 units, blanks included. */
export function unitsBefore(row: Row, column: number): number {
  const data = row._data;
  let units = 0;
  for (let x = 0; x < column && x < row.length; x += 1) {
    const content = data[x * 3] ?? 0;
    if (content >>> WIDTH_SHIFT === 0) continue;
    if ((content & COMBINED) !== 0) units += row._combined[x]?.length ?? 1;
    else units += (content & CODE_MASK) > 0xffff ? 2 : 1;
  }
  return units;
}

/** Reads `row`. Styles are left out of `Line.spans` where they are the default. */
export function readRow(row: Row, rowEnd: RowEnd, links: LinkTargets): Line {
  let end = textEnd(row);
  if (rowEnd === 'wraps') {
    // The last cell is empty when a wide character did not fit: it is no blank of the text.
    const last = (row._data[(row.length - 1) * 3] ?? 0) & CONTENT_MASK;
    end = last === 0 ? row.length - 1 : row.length;
  } else if (rowEnd === 'visible') {
    end = visibleEnd(row, end);
  }
  if (end === 0) return EMPTY_LINE;
  const plain = plainText(row, end);
  if (plain !== undefined) return { text: plain };
  return styledLine(row, end, links);
}

const EMPTY_LINE: Line = { text: '' };

/** The text of a row without styles, wide or combined cells above U+00FF; else undefined. */
function plainText(row: Row, end: number): string | undefined {
  const data = row._data;
  if (end > bytes.length) bytes = Buffer.alloc(end * 2);
  const out = bytes;
  for (let x = 0, word = 0; x < end; x += 1, word += 3) {
    const code = (data[word] ?? 0) & CONTENT_MASK;
    if (code > 0xff || data[word + 1] !== 0 || data[word + 2] !== 0) return undefined;
    out[x] = code === 0 ? SPACE : code;
  }
  return out.toString('latin1', 0, end);
}

class SpanBuilder {
  readonly spans: Span[] = [];
  #start = 0;
  #fg = 0;
  #bg = 0;
  #link = 0;

  /** A cell with these attributes begins at `unit`. */
  cell(unit: number, fg: number, bg: number, link: number, links: LinkTargets): void {
    if (fg === this.#fg && bg === this.#bg && link === this.#link) return;
    this.close(unit, links);
    this.#fg = fg;
    this.#bg = bg;
    this.#link = link;
    this.#start = unit;
  }

  close(unit: number, links: LinkTargets): void {
    if (unit <= this.#start) return;
    const link = this.#link === 0 ? undefined : links(this.#link);
    const span = toSpan(this.#start, unit, this.#fg, this.#bg, link);
    if (span !== undefined) appendSpan(this.spans, span);
  }
}

/** Adds `span`, as part of the last one where that ends at its start with the same style. */
function appendSpan(spans: Span[], span: Span): void {
  const last = spans.at(-1);
  if (last?.end === span.start && sameStyle(last, span)) {
    spans[spans.length - 1] = { ...last, end: span.end };
  } else {
    spans.push(span);
  }
}

function styledLine(row: Row, end: number, links: LinkTargets): FrameRow {
  const data = row._data;
  const builder = new SpanBuilder();
  const wide: number[] = [];
  const joined: number[] = [];
  let count = 0;
  for (let x = 0; x < end; x += 1) {
    const content = data[x * 3] ?? 0;
    const width = content >>> WIDTH_SHIFT;
    // The second cell of a wide character.
    if (width === 0) continue;
    const fg = ((data[x * 3 + 1] ?? 0) & FG_STYLE) >>> 0;
    const bg = ((data[x * 3 + 2] ?? 0) & BG_STYLE) >>> 0;
    const link = linkAt(row, x, bg);
    builder.cell(count, fg, (bg & ~BG_EXTENDED) >>> 0, link, links);
    if (width === 2) wide.push(count);
    count = putCell(row, x, (fg & FG_INVISIBLE) === 0 ? content : SPACE, count, joined);
  }
  builder.close(count, links);
  return {
    text: takeCodes(count),
    ...(builder.spans.length === 0 ? {} : { spans: builder.spans }),
    ...(wide.length === 0 ? {} : { wide }),
    ...(joined.length === 0 ? {} : { joined }),
  };
}

function linkAt(row: Row, x: number, bg: number): number {
  return (bg & BG_EXTENDED) === 0 ? 0 : (row._extendedAttrs[x]?.urlId ?? 0);
}

/** Writes the characters of a cell to `codes` at `count`; returns the new count. */
function putCell(row: Row, x: number, content: number, count: number, joined: number[]): number {
  if ((content & COMBINED) !== 0) return putCluster(row._combined[x] ?? ' ', count, joined);
  reserveCodes(count + 2);
  const code = content & CODE_MASK;
  if (code > 0xffff) {
    codes[count] = 0xd800 + ((code - 0x10000) >> 10);
    codes[count + 1] = 0xdc00 + ((code - 0x10000) & 0x3ff);
    return count + 2;
  }
  codes[count] = code === 0 ? SPACE : code;
  return count + 1;
}

function putCluster(cluster: string, from: number, joined: number[]): number {
  reserveCodes(from + cluster.length);
  let count = from;
  for (const character of cluster) {
    if (count > from) joined.push(count);
    for (let unit = 0; unit < character.length; unit += 1) {
      codes[count] = character.charCodeAt(unit);
      count += 1;
    }
  }
  return count;
}

function reserveCodes(count: number): void {
  if (count <= codes.length) return;
  const larger = new Uint16Array(count * 2);
  larger.set(codes);
  codes = larger;
}

/** A call takes a bounded number of arguments. */
const CODES_PER_CALL = 8_192;

function takeCodes(count: number): string {
  let text = '';
  for (let from = 0; from < count; from += CODES_PER_CALL) {
    const part = codes.subarray(from, Math.min(count, from + CODES_PER_CALL));
    text += String.fromCharCode.apply(null, asNumbers(part));
  }
  return text;
}

/** `apply` takes any array-like; its type says arrays only. */
function asNumbers(values: Uint16Array): number[] {
  return values as unknown as number[];
}

/** Undefined when nothing of it differs from plain text. */
function toSpan(
  start: number,
  end: number,
  fg: number,
  bg: number,
  link: string | undefined,
): Span | undefined {
  const foreground = toColor(fg);
  const background = toColor(bg);
  const flags =
    ((fg & FG_BOLD) !== 0 ? BOLD : 0) |
    ((bg & BG_DIM) !== 0 ? DIM : 0) |
    ((bg & BG_ITALIC) !== 0 ? ITALIC : 0) |
    ((fg & FG_UNDERLINE) !== 0 ? UNDERLINE : 0) |
    ((fg & FG_INVERSE) !== 0 ? INVERSE : 0) |
    ((fg & FG_STRIKE) !== 0 ? STRIKE : 0);
  if (foreground === undefined && background === undefined && flags === 0 && link === undefined) {
    return undefined;
  }
  return {
    start,
    end,
    ...(foreground === undefined ? {} : { fg: foreground }),
    ...(background === undefined ? {} : { bg: background }),
    ...(flags === 0 ? {} : { flags }),
    ...(link === undefined ? {} : { link }),
  };
}

function toColor(word: number): Color | undefined {
  const mode = word & COLOR_MODE_MASK;
  if (mode === 0) return undefined;
  if (mode === COLOR_MODE_RGB) return RGB_FLAG | (word & COLOR_MASK & 0xffffff);
  return word & 0xff;
}

/** Where cells begin matters on a screen; a log line has no use for it. */
export function asLine(row: FrameRow): Line {
  return row.spans === undefined ? { text: row.text } : { text: row.text, spans: row.spans };
}

/** `head` followed by `tail` on one line. */
export function joinLines(head: Line, tail: Line): Line {
  if (head.text === '') return tail;
  const shift = head.text.length;
  const spans: Span[] = [...(head.spans ?? [])];
  for (const span of tail.spans ?? []) {
    appendSpan(spans, { ...span, start: span.start + shift, end: span.end + shift });
  }
  const text = head.text + tail.text;
  return spans.length === 0 ? { text } : { text, spans };
}

function sameStyle(a: Span, b: Span): boolean {
  return a.fg === b.fg && a.bg === b.bg && a.flags === b.flags && a.link === b.link;
}
