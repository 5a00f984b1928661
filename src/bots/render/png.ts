// Draws a screen as a PNG, as a terminal of today would show it, one picture at a time on one canvas:
// the canvas' synchronous encoder, used in a loop, kept 3.9 GB (OUTPUT.md §3). Takes frames as
// values, already redacted; knows no platform.

import { Canvas, type SKRSContext2D } from '@napi-rs/canvas';
import { ChatdError } from '../../base/errors.ts';
import { Mailbox } from '../../base/mailbox.ts';
import {
  BOLD,
  type Color,
  DIM,
  type Frame,
  type FrameRow,
  INVERSE,
  ITALIC,
  type Span,
  STRIKE,
  UNDERLINE,
} from '../../term/values.ts';
import { glyphShapes, type Shape } from './box-glyphs.ts';
import { type Cell, rowCells } from './cells.ts';
import { Fonts, type MonoStyle } from './fonts.ts';
import { encodePng } from './png-encoder.ts';
import {
  BACKGROUND,
  blend,
  CURSOR,
  css,
  FOREGROUND,
  type Rgb,
  readable,
  TITLE_BACKGROUND,
  TITLE_FOREGROUND,
  toRgb,
} from './theme.ts';

const CELL_WIDTH = 10;
const CELL_HEIGHT = 20;
/** DejaVu Sans Mono advances 1,233 of 2,048 units: at this size exactly one cell. */
const FONT_PX = (CELL_WIDTH * 2_048) / 1_233;
/** Script, emoji and icons: the script font's own grid is 16 pixels. */
const WIDE_PX = 16;
const BASELINE = 15;
const PADDING = 8;
const TITLE_HEIGHT = 24;
/** A larger screen is cut: a chat shows pictures a few thousand pixels wide at most. */
const COLS_MAX = 300;
const ROWS_MAX = 120;
/** Pictures waiting for their turn; above it the caller is told to do without. */
const WAITING_MAX = 16;

export interface PictureOptions {
  /** Default: the frame's own title; '' for no title bar. */
  readonly title?: string;
}

interface Job {
  readonly frame: Frame;
  readonly options: PictureOptions;
  readonly done: (png: Buffer) => void;
  readonly failed: (error: Error) => void;
}

export class ScreenPainter {
  #fonts: Fonts | undefined;
  #canvas: Canvas | undefined;
  readonly #jobs = new Mailbox<Job>({
    capacity: WAITING_MAX,
    handle: async (job) => job.done(await this.#paint(job.frame, job.options)),
    onError: (cause, job) =>
      job.failed(new ChatdError('capability-missing', 'Cannot draw screen: no picture', { cause })),
  });

  /** @throws {ChatdError} refused when too many wait already, capability-missing when it cannot. */
  paint(frame: Frame, options: PictureOptions = {}): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#jobs.post({ frame, options, done: resolve, failed: reject })) return;
      reject(new ChatdError('refused', 'Cannot draw screen: too many pictures wait'));
    });
  }

  /** Resolves when the pictures asked for are drawn. */
  close(): Promise<void> {
    return this.#jobs.close();
  }

  async #paint(frame: Frame, options: PictureOptions): Promise<Buffer> {
    this.#fonts ??= new Fonts();
    const title = options.title ?? frame.title;
    const cols = Math.min(frame.cols, COLS_MAX);
    const rows = frame.rows.slice(0, ROWS_MAX);
    const top = title === '' ? PADDING : TITLE_HEIGHT + PADDING;
    const width = cols * CELL_WIDTH + 2 * PADDING;
    const height = top + rows.length * CELL_HEIGHT + PADDING;
    const context = this.#context(width, height);
    context.fillStyle = css(BACKGROUND);
    context.fillRect(0, 0, width, height);
    if (title !== '') paintTitle(context, title, width);
    const pen = new ScreenPen(context, this.#fonts, cols);
    for (const [index, row] of rows.entries()) pen.row(row, PADDING, top + index * CELL_HEIGHT);
    pen.cursor(frame, PADDING, top);
    return await this.#encode(width, height);
  }

  /** One canvas, reused while the size is the same. */
  #context(width: number, height: number): SKRSContext2D {
    if (this.#canvas?.width !== width || this.#canvas.height !== height) {
      this.#canvas = new Canvas(width, height);
    }
    return this.#canvas.getContext('2d');
  }

  async #encode(width: number, height: number): Promise<Buffer> {
    const bytes = this.#canvas?.data();
    if (bytes === undefined) throw new Error('nothing drawn');
    const pixels = new Uint32Array(bytes.buffer, bytes.byteOffset, width * height);
    return await encodePng(pixels, width, height);
  }
}

function paintTitle(context: SKRSContext2D, title: string, width: number): void {
  context.fillStyle = css(TITLE_BACKGROUND);
  context.fillRect(0, 0, width, TITLE_HEIGHT);
  context.fillStyle = css(TITLE_FOREGROUND);
  context.font = `13px chatd-regular`;
  const fits = Math.max(0, Math.floor((width - 2 * PADDING) / 8));
  const text = [...title];
  const shown = text.length > fits ? `${text.slice(0, Math.max(0, fits - 1)).join('')}…` : title;
  context.fillText(shown, PADDING, 17);
}

/** What one cell looks like. */
interface Look {
  readonly foreground: Rgb;
  readonly background: Rgb | undefined;
  readonly style: MonoStyle;
  readonly underline: boolean;
  readonly strike: boolean;
}

const PLAIN: Look = {
  foreground: FOREGROUND,
  background: undefined,
  style: 'regular',
  underline: false,
  strike: false,
};

const STYLES: readonly MonoStyle[] = ['regular', 'bold', 'italic', 'boldItalic'];

/** Bold text of the eight base colours is bright, as terminals draw it. */
function inkOf(color: Color | undefined, bold: boolean): Rgb {
  if (color === undefined) return FOREGROUND;
  return toRgb(bold && color < 8 ? color + 8 : color);
}

function lookOf(span: Span): Look {
  const flags = span.flags ?? 0;
  let foreground = inkOf(span.fg, (flags & BOLD) !== 0);
  let background = span.bg === undefined ? undefined : toRgb(span.bg);
  if ((flags & INVERSE) !== 0) [foreground, background] = [background ?? BACKGROUND, foreground];
  if ((flags & DIM) !== 0) foreground = blend(foreground, background ?? BACKGROUND, 0.55);
  return {
    foreground: readable(foreground, background ?? BACKGROUND),
    background,
    style: STYLES[(flags & BOLD) / BOLD + (2 * (flags & ITALIC)) / ITALIC] ?? 'regular',
    underline: (flags & UNDERLINE) !== 0 || span.link !== undefined,
    strike: (flags & STRIKE) !== 0,
  };
}

/** Draws rows and cursor at a place of the canvas. */
class ScreenPen {
  readonly #context: SKRSContext2D;
  readonly #fonts: Fonts;
  readonly #cols: number;

  constructor(context: SKRSContext2D, fonts: Fonts, cols: number) {
    this.#context = context;
    this.#fonts = fonts;
    this.#cols = cols;
  }

  row(row: FrameRow, left: number, top: number): void {
    const runs = lookRuns(row, this.#cols);
    for (const { look, cells } of runs) this.#background(look, cells, left, top);
    for (const { look, cells } of runs) this.#run(look, cells, left, top);
  }

  #background(look: Look, cells: readonly Cell[], left: number, top: number): void {
    const first = cells[0];
    const last = cells.at(-1);
    if (look.background === undefined || first === undefined || last === undefined) return;
    this.#context.fillStyle = css(look.background);
    const width = last.column + last.width - first.column;
    this.#context.fillRect(left + first.column * CELL_WIDTH, top, width * CELL_WIDTH, CELL_HEIGHT);
  }

  /** Stretches of ASCII are drawn at once, everything else cell by cell: order and widths stay. */
  #run(look: Look, cells: readonly Cell[], left: number, top: number): void {
    this.#context.fillStyle = css(look.foreground);
    let text = '';
    let start = 0;
    for (const cell of cells) {
      if (isAscii(cell.text)) {
        if (text === '') start = cell.column;
        text += cell.text;
        continue;
      }
      this.#ascii(text, look, left + start * CELL_WIDTH, top);
      text = '';
      this.#cell(cell, look, left + cell.column * CELL_WIDTH, top);
    }
    this.#ascii(text, look, left + start * CELL_WIDTH, top);
    this.#lines(look, cells, left, top);
  }

  #ascii(text: string, look: Look, x: number, top: number): void {
    if (text.trim() === '') return;
    this.#context.font = `${FONT_PX}px chatd-${look.style}`;
    this.#context.fillText(text, x, top + BASELINE);
  }

  #cell(cell: Cell, look: Look, x: number, top: number): void {
    const text = drawnText(cell.text);
    if (text.trim() === '') return;
    const width = cell.width * CELL_WIDTH;
    const shapes = glyphShapes(text.codePointAt(0) ?? 0, width, CELL_HEIGHT);
    if (shapes !== undefined) {
      for (const shape of shapes) this.#shape(shape, look, x, top, width);
      return;
    }
    this.#glyph(text, look, x, top, width);
  }

  #glyph(text: string, look: Look, x: number, top: number, width: number): void {
    const context = this.#context;
    const { family, kind } = this.#fonts.pick(text, look.style);
    const size = kind === 'mono' ? FONT_PX : WIDE_PX;
    context.font = `${size}px ${family}`;
    if (kind === 'mono') {
      context.fillText(text, x, top + BASELINE);
      return;
    }
    // A glyph wider than its cells is drawn smaller, never into its neighbours; a narrower one in
    // the middle of them.
    const advance = context.measureText(text).width;
    const scale = advance > width ? width / advance : 1;
    context.save();
    context.translate(x + (width - advance * scale) / 2, top + BASELINE);
    context.scale(scale, kind === 'emoji' ? scale : 1);
    context.fillText(text, 0, 0);
    context.restore();
  }

  #shape(shape: Shape, look: Look, x: number, top: number, width: number): void {
    const context = this.#context;
    switch (shape.kind) {
      case 'rect':
        context.globalAlpha = shape.alpha ?? 1;
        context.fillRect(x + shape.x, top + shape.y, shape.width, shape.height);
        context.globalAlpha = 1;
        return;
      case 'dot':
        context.beginPath();
        context.arc(x + shape.x, top + shape.y, shape.radius, 0, 2 * Math.PI);
        context.fill();
        return;
      case 'polygon':
        context.beginPath();
        for (const [px, py] of shape.points) context.lineTo(x + px, top + py);
        this.#finish(shape.stroke, look);
        return;
      case 'corner':
        this.#corner(shape.right, shape.down, x, top, width);
        this.#finish(true, look);
    }
  }

  #corner(right: boolean, down: boolean, x: number, top: number, width: number): void {
    const middleX = x + Math.floor(width / 2) + 0.5;
    const middleY = top + CELL_HEIGHT / 2 + 0.5;
    const endX = right ? x + width : x;
    const endY = down ? top + CELL_HEIGHT : top;
    const radius = CELL_WIDTH / 2;
    this.#context.beginPath();
    this.#context.moveTo(middleX, endY);
    this.#context.arcTo(middleX, middleY, endX, middleY, radius - 0.5);
    this.#context.lineTo(endX, middleY);
  }

  #finish(stroke: boolean, look: Look): void {
    if (!stroke) {
      this.#context.fill();
      return;
    }
    this.#context.strokeStyle = css(look.foreground);
    this.#context.lineWidth = 1;
    this.#context.stroke();
  }

  #lines(look: Look, cells: readonly Cell[], left: number, top: number): void {
    const first = cells[0];
    const last = cells.at(-1);
    if (first === undefined || last === undefined) return;
    const x = left + first.column * CELL_WIDTH;
    const width = (last.column + last.width - first.column) * CELL_WIDTH;
    if (look.underline) this.#context.fillRect(x, top + BASELINE + 2, width, 1);
    if (look.strike) this.#context.fillRect(x, top + 10, width, 1);
  }

  cursor(frame: Frame, left: number, top: number): void {
    const { row, col, visible } = frame.cursor;
    if (!visible || row >= ROWS_MAX || col >= this.#cols) return;
    const x = left + col * CELL_WIDTH;
    const y = top + row * CELL_HEIGHT;
    const under = rowCells(frame.rows[row] ?? { text: '' }).find((cell) => cell.column === col);
    this.#context.fillStyle = css(CURSOR);
    this.#context.fillRect(x, y, CELL_WIDTH * (under?.width ?? 1), CELL_HEIGHT);
    if (under === undefined) return;
    const look: Look = { ...PLAIN, foreground: BACKGROUND };
    this.#context.fillStyle = css(look.foreground);
    this.#cell(under, look, x, y);
  }
}

function isAscii(text: string): boolean {
  return text.length === 1 && text.charCodeAt(0) < 0x7f;
}

/** Joiners at the end have nothing to join; direction controls would move what follows. */
function drawnText(text: string): string {
  return text.replace(/[\u200d\u202a-\u202e\u2066-\u2069]+/g, '');
}

interface LookRun {
  readonly look: Look;
  readonly cells: Cell[];
}

/** Consecutive cells that look the same. */
function lookRuns(row: FrameRow, cols: number): LookRun[] {
  const runs: LookRun[] = [];
  const spans = new SpanCursor(row.spans ?? []);
  let current: Span | undefined;
  let run: LookRun | undefined;
  for (const cell of rowCells(row)) {
    if (cell.column >= cols) break;
    const span = spans.at(cell.unit);
    if (run === undefined || span !== current) {
      run = { look: span === undefined ? PLAIN : lookOf(span), cells: [] };
      runs.push(run);
      current = span;
    }
    run.cells.push(cell);
  }
  return runs;
}

/** The span at each of a rising sequence of units. */
class SpanCursor {
  readonly #spans: readonly Span[];
  #next = 0;

  constructor(spans: readonly Span[]) {
    this.#spans = spans;
  }

  at(unit: number): Span | undefined {
    while ((this.#spans[this.#next]?.end ?? Number.POSITIVE_INFINITY) <= unit) this.#next += 1;
    const span = this.#spans[this.#next];
    return span !== undefined && span.start <= unit ? span : undefined;
  }
}
