// Draws an emulator's screen as the bytes that make any terminal of its size show it and go on from
// there: cells with styles and links, cursor, and the modes a program may rely on. Rows are placed
// absolutely, but for those that wrap, which wrap again.

import type { Attributes, Charset, Emulator, Row, ScreenBuffer } from './emulator.ts';
import type { LinkTargets } from './row-reader.ts';

const ESC = '\u001b';
const CODE_MASK = 0x1fffff;
const COMBINED = 0x200000;
const CONTENT_MASK = 0x3fffff;
const WIDTH_SHIFT = 22;
const COLOR_MODE_MASK = 0x3000000;
const HAS_EXTENDED = 0x10000000;

/** Back to a known state: primary screen, no margins, no mouse, default pen, empty screen. */
const PREAMBLE = [
  '[?1049l[!p[?6l[r[?9l[?1000l[?1002l[?1003l[?1006l[?1016l[?1004l[?2004l[?1l[4l[?45l[?7h',
  '(B',
  ')B',
]
  .map((part) => part.replaceAll('[', `${ESC}[`).replace(/^([()])/, `${ESC}$1`))
  .join('')
  .concat('\u000f', `${ESC}>`, `${ESC}]8;;${ESC}\\`, `${ESC}[m${ESC}[H${ESC}[2J`);

export function drawScreen(emulator: Emulator, links: LinkTargets): string {
  const { core } = emulator;
  const { buffer, buffers, cols, rows } = core._bufferService;
  const pen = new Pen(links);
  const parts = [PREAMBLE, drawTabs(buffer, cols), drawRows(buffers.normal, rows, pen)];
  if (buffer === buffers.alt) {
    const { normal } = buffers;
    parts.push(moveTo(normal.savedY, normal.savedX), pen.set(normal.savedCurAttrData));
    // The switch fills the new screen with the pen's background.
    parts.push(`${ESC}[?1049h`, pen.style(0, 0, 0, 0), `${ESC}[2J`);
    parts.push(drawRows(buffers.alt, rows, pen));
  }
  parts.push(drawSavedCursor(buffer, pen), drawModes(emulator, rows));
  parts.push(drawCursor(emulator, pen), pen.set(core._inputHandler._curAttrData));
  if (core.coreService.modes['insertMode'] === true) parts.push(`${ESC}[4h`);
  if (!core.coreService.decPrivateModes.wraparound) parts.push(`${ESC}[?7l`);
  parts.push(drawCharsets(core._charsetService));
  parts.push(core.coreService.isCursorHidden ? `${ESC}[?25l` : `${ESC}[?25h`);
  if (core.coreService.decPrivateModes.synchronizedOutput) parts.push(`${ESC}[?2026h`);
  return parts.join('');
}

function moveTo(y: number, x: number): string {
  return `${ESC}[${Math.max(0, y) + 1};${Math.max(0, x) + 1}H`;
}

/** Writes only the attributes that change. */
class Pen {
  readonly #links: LinkTargets;
  #key = '';
  #link = 0;

  constructor(links: LinkTargets) {
    this.#links = links;
  }

  set(attributes: Pick<Attributes, 'fg' | 'bg' | 'extended'>): string {
    const { fg, bg, extended } = attributes;
    const styled = (bg & HAS_EXTENDED) !== 0;
    return this.style(fg, bg, styled ? extended.ext : 0, styled ? extended.urlId : 0);
  }

  style(fg: number, bg: number, ext: number, urlId: number): string {
    const sgr = sgrOf(fg, bg, urlId === 0 ? ext : ext & COLOR_MODE_MASK);
    let out = '';
    if (sgr !== this.#key) {
      this.#key = sgr;
      out += `${ESC}[${sgr}m`;
    }
    if (urlId !== this.#link) {
      this.#link = urlId;
      out += `${ESC}]8;;${this.#links(urlId) ?? ''}${ESC}\\`;
    }
    return out;
  }
}

/** Bits of a cell's words, and the SGR parameter each stands for. */
const FG_FLAGS: readonly (readonly [number, string])[] = [
  [0x8000000, '1'],
  [0x20000000, '5'],
  [0x4000000, '7'],
  [0x40000000, '8'],
  [0x80000000, '9'],
];
const BG_FLAGS: readonly (readonly [number, string])[] = [
  [0x8000000, '2'],
  [0x4000000, '3'],
  [0x40000000, '53'],
];
const FG_UNDERLINE = 0x10000000;

function sgrOf(fg: number, bg: number, ext: number): string {
  const codes = ['0'];
  for (const [bit, code] of FG_FLAGS) if ((fg & bit) !== 0) codes.push(code);
  for (const [bit, code] of BG_FLAGS) if ((bg & bit) !== 0) codes.push(code);
  if ((fg & FG_UNDERLINE) !== 0) {
    const style = (ext >>> 26) & 7;
    codes.push(style > 1 ? `4:${style}` : '4');
  }
  codes.push(...colorCodes(fg, '38', 30), ...colorCodes(bg, '48', 40));
  if ((ext & COLOR_MODE_MASK) !== 0) codes.push(...colorCodes(ext, '58', undefined));
  return codes.join(';');
}

function colorCodes(word: number, extended: string, base: number | undefined): readonly string[] {
  const index = word & 0xff;
  switch (word & COLOR_MODE_MASK) {
    case 0:
      return [];
    case 0x3000000:
      return [`${extended};2;${(word >>> 16) & 0xff};${(word >>> 8) & 0xff};${index}`];
    case 0x1000000:
      if (base !== undefined) return [String(index < 8 ? base + index : base + 52 + index)];
      return [`${extended};5;${index}`];
    default:
      return [`${extended};5;${index}`];
  }
}

function drawRows(buffer: ScreenBuffer, rowCount: number, pen: Pen): string {
  let out = '';
  let wraps = false;
  for (let y = 0; y < rowCount; y += 1) {
    const row = buffer.lines.get(y);
    if (row === undefined) continue;
    if (!wraps) out += moveTo(y, 0);
    const next = y + 1 < rowCount ? buffer.lines.get(y + 1) : undefined;
    wraps = next?.isWrapped === true && wrapsByItself(row, next);
    out += drawRow(row, wraps, pen);
  }
  return out;
}

/** Writing `row` and going on with `next` wraps where it did: not after the row was erased since. */
function wrapsByItself(row: Row, next: Row): boolean {
  const first = next._data[0] ?? 0;
  if ((first & CONTENT_MASK) === 0) return false;
  const end = wrapEnd(row);
  if (drawnWidth(row, end) !== end) return false;
  if (end === row.length) return true;
  // The free cell takes the style of the wide character that did not fit.
  const last = (row.length - 1) * 3;
  const sameStyle =
    row._data[last + 1] === next._data[1] &&
    ((row._data[last + 2] ?? 0) & ~HAS_EXTENDED) === ((next._data[2] ?? 0) & ~HAS_EXTENDED);
  return first >>> WIDTH_SHIFT === 2 && sameStyle;
}

function drawRow(row: Row, goesOn: boolean, pen: Pen): string {
  const end = goesOn ? wrapEnd(row) : drawnEnd(row);
  let out = '';
  for (let x = 0; x < end; x += 1) {
    const content = row._data[x * 3] ?? 0;
    if (content >>> WIDTH_SHIFT === 0) continue;
    const ext = row._extendedAttrs[x];
    const bg = row._data[x * 3 + 2] ?? 0;
    const styled = (bg & HAS_EXTENDED) !== 0 && ext !== undefined;
    out += pen.style(row._data[x * 3 + 1] ?? 0, bg, styled ? ext.ext : 0, styled ? ext.urlId : 0);
    out += cellText(row, x, content);
  }
  return out;
}

function cellText(row: Row, x: number, content: number): string {
  if ((content & COMBINED) !== 0) return row._combined[x] ?? ' ';
  const code = content & CODE_MASK;
  return code === 0 ? ' ' : String.fromCodePoint(code);
}

/** Columns the cells before `end` take when written: not `end` where halves of wide ones are left. */
function drawnWidth(row: Row, end: number): number {
  let width = 0;
  for (let x = 0; x < end; x += 1) width += (row._data[x * 3] ?? 0) >>> WIDTH_SHIFT;
  return width;
}

/** A row that wraps is written whole, but for the cell a wide character left free. */
function wrapEnd(row: Row): number {
  const last = (row._data[(row.length - 1) * 3] ?? 0) & CONTENT_MASK;
  return last === 0 ? row.length - 1 : row.length;
}

/** Cells that differ from the erased screen. */
function drawnEnd(row: Row): number {
  let end = row.length;
  while (end > 0) {
    const at = (end - 1) * 3;
    const blank = ((row._data[at] ?? 0) & CONTENT_MASK) === 0;
    if (!blank || row._data[at + 1] !== 0 || row._data[at + 2] !== 0) break;
    end -= 1;
  }
  return end;
}

function drawTabs(buffer: ScreenBuffer, cols: number): string {
  const stops = Object.keys(buffer.tabs)
    .map(Number)
    .filter((column) => buffer.tabs[column] === true && column < cols);
  const usual = Array.from({ length: Math.ceil(cols / 8) }, (_, index) => index * 8);
  if (stops.join() === usual.join()) return '';
  return `${ESC}[3g${stops.map((column) => `${moveTo(0, column)}${ESC}H`).join('')}`;
}

function drawSavedCursor(buffer: ScreenBuffer, pen: Pen): string {
  const { savedX, savedY, savedCurAttrData } = buffer;
  if (savedX === 0 && savedY === 0 && savedCurAttrData.fg === 0 && savedCurAttrData.bg === 0) {
    return '';
  }
  return `${moveTo(savedY, savedX)}${pen.set(savedCurAttrData)}${ESC}7`;
}

function drawModes(emulator: Emulator, rows: number): string {
  const { core } = emulator;
  const { buffer } = core._bufferService;
  const modes = core.coreService.decPrivateModes;
  const parts: string[] = [];
  if (buffer.scrollTop !== 0 || buffer.scrollBottom !== rows - 1) {
    parts.push(`[${buffer.scrollTop + 1};${buffer.scrollBottom + 1}r`);
  }
  if (modes.origin) parts.push('[?6h');
  if (modes.applicationCursorKeys) parts.push('[?1h');
  if (modes.applicationKeypad) parts.push('=');
  if (modes.bracketedPasteMode) parts.push('[?2004h');
  if (modes.reverseWraparound) parts.push('[?45h');
  if (modes.sendFocus) parts.push('[?1004h');
  const mouse = MOUSE_PROTOCOLS[core.coreMouseService.activeProtocol];
  const encoding = MOUSE_ENCODINGS[core.coreMouseService.activeEncoding];
  if (mouse !== undefined) parts.push(mouse);
  if (encoding !== undefined) parts.push(encoding);
  const shape = CURSOR_SHAPES[modes.cursorStyle ?? ''];
  parts.push(shape === undefined ? '[0 q' : `[${shape - (modes.cursorBlink === true ? 1 : 0)} q`);
  return parts.map((part) => ESC + part).join('');
}

const MOUSE_PROTOCOLS: Readonly<Record<string, string>> = {
  X10: '[?9h',
  VT200: '[?1000h',
  DRAG: '[?1002h',
  ANY: '[?1003h',
};
const MOUSE_ENCODINGS: Readonly<Record<string, string>> = {
  SGR: '[?1006h',
  SGR_PIXELS: '[?1016h',
};
/** The steady form; the blinking one is one less. */
const CURSOR_SHAPES: Readonly<Record<string, number>> = { block: 2, underline: 4, bar: 6 };

function drawCursor(emulator: Emulator, pen: Pen): string {
  const { core, terminal } = emulator;
  const { buffer } = core._bufferService;
  const { origin } = core.coreService.decPrivateModes;
  const y = buffer.y - (origin ? buffer.scrollTop : 0);
  const row = buffer.lines.get(buffer.y);
  if (buffer.x < terminal.cols || row === undefined) return moveTo(y, buffer.x);
  // Past the last column: the next character wraps. Only writing the last cell leads there.
  const last = terminal.cols - 1;
  const x = (row._data[last * 3] ?? 0) >>> WIDTH_SHIFT === 0 ? last - 1 : last;
  const content = row._data[x * 3] ?? 0;
  const bg = row._data[x * 3 + 2] ?? 0;
  const ext = (bg & HAS_EXTENDED) === 0 ? undefined : row._extendedAttrs[x];
  const style = pen.style(row._data[x * 3 + 1] ?? 0, bg, ext?.ext ?? 0, ext?.urlId ?? 0);
  return moveTo(y, x) + style + cellText(row, x, content);
}

function drawCharsets(service: {
  readonly charset: Charset;
  readonly glevel: number;
  readonly _charsets: readonly Charset[];
}): string {
  const designations = [service._charsets[0], service._charsets[1]]
    .map((designated, index) => {
      // A restored cursor brings its charset along without designating it.
      const charset = index === service.glevel ? service.charset : designated;
      const name = charsetName(charset);
      return name === undefined ? '' : `${ESC}${index === 0 ? '(' : ')'}${name}`;
    })
    .join('');
  return designations + (service.glevel === 1 ? '\u000e' : '');
}

/** Only line drawing and the British set are told apart; others are not used by programs of today. */
function charsetName(charset: Charset): string | undefined {
  if (charset?.['q'] === '─') return '0';
  return charset?.['#'] === '£' ? 'A' : undefined;
}
