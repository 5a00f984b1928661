// The whole state of an emulator as a value, taken from it and put into a fresh one, word for word:
// a restored emulator is the same function of the bytes that follow. Everything the emulator keeps
// between two sequences is listed here; what it keeps inside one is not, so it is taken at ground.

import { z } from 'zod/mini';
import type { Attributes, Charset, Emulator, Row, ScreenBuffer } from './emulator.ts';

/** Content, foreground and background of a cell that was never written. */
const NULL_CONTENT = 1 << 22;
const COMBINED = 0x200000;
const HAS_EXTENDED = 0x10000000;

const attributesSchema = z.object({
  fg: z.number(),
  bg: z.number(),
  ext: z.number(),
  urlId: z.number(),
});
type AttributesState = z.infer<typeof attributesSchema>;

const charsetSchema = z.nullable(z.record(z.string(), z.string()));

const rowSchema = z.object({
  /** Number of cells stored; the rest were never written. */
  cells: z.int().check(z.minimum(0)),
  wrapped: z.boolean(),
  combined: z.array(z.tuple([z.int(), z.string()])),
  extended: z.array(z.tuple([z.int(), z.number(), z.number()])),
});

const bufferSchema = z.object({
  x: z.int(),
  y: z.int(),
  scrollTop: z.int(),
  scrollBottom: z.int(),
  savedX: z.int(),
  savedY: z.int(),
  saved: attributesSchema,
  savedCharset: charsetSchema,
  tabs: z.array(z.int()),
  rows: z.array(rowSchema),
});
type BufferState = z.infer<typeof bufferSchema>;

export const emulatorStateSchema = z.object({
  cols: z.int(),
  rows: z.int(),
  normal: bufferSchema,
  alternate: z.nullable(bufferSchema),
  pen: attributesSchema,
  title: z.string(),
  iconName: z.string(),
  titleStack: z.array(z.string()),
  iconNameStack: z.array(z.string()),
  joinState: z.number(),
  charset: charsetSchema,
  charsetLevel: z.int(),
  charsets: z.array(charsetSchema),
  cursorHidden: z.boolean(),
  cursorBlinkOption: z.boolean(),
  insert: z.boolean(),
  applicationCursorKeys: z.boolean(),
  applicationKeypad: z.boolean(),
  bracketedPasteMode: z.boolean(),
  cursorBlink: z.nullable(z.boolean()),
  cursorStyle: z.nullable(z.string()),
  origin: z.boolean(),
  reverseWraparound: z.boolean(),
  sendFocus: z.boolean(),
  synchronizedOutput: z.boolean(),
  wraparound: z.boolean(),
  mouseProtocol: z.string(),
  mouseEncoding: z.string(),
});
export type EmulatorState = z.infer<typeof emulatorStateSchema>;

/** The state, and the cells of all rows in order (three words each). */
export function dumpEmulator(emulator: Emulator): { state: EmulatorState; cells: Uint32Array } {
  const { core, terminal } = emulator;
  const { buffer, buffers } = core._bufferService;
  const handler = core._inputHandler;
  const { cursorBlink, cursorStyle, ...modes } = core.coreService.decPrivateModes;
  const cells: Uint32Array[] = [];
  const alternate = buffer === buffers.alt ? dumpBuffer(buffers.alt, cells) : null;
  const normal = dumpBuffer(buffers.normal, cells);
  const state: EmulatorState = {
    cols: terminal.cols,
    rows: terminal.rows,
    normal,
    alternate,
    pen: dumpAttributes(handler._curAttrData),
    title: handler._windowTitle,
    iconName: handler._iconName,
    titleStack: [...handler._windowTitleStack],
    iconNameStack: [...handler._iconNameStack],
    joinState: handler._parser.precedingJoinState,
    charset: dumpCharset(core._charsetService.charset),
    charsetLevel: core._charsetService.glevel,
    charsets: Array.from(core._charsetService._charsets, dumpCharset),
    cursorHidden: core.coreService.isCursorHidden,
    cursorBlinkOption: terminal.options.cursorBlink === true,
    insert: core.coreService.modes['insertMode'] === true,
    ...modes,
    cursorBlink: cursorBlink ?? null,
    cursorStyle: cursorStyle ?? null,
    mouseProtocol: core.coreMouseService.activeProtocol,
    mouseEncoding: core.coreMouseService.activeEncoding,
  };
  return { state, cells: concat(cells) };
}

function dumpBuffer(buffer: ScreenBuffer, cells: Uint32Array[]): BufferState {
  const rows: BufferState['rows'] = [];
  for (let y = 0; y < buffer.lines.length; y += 1) {
    const row = buffer.lines.get(y);
    if (row !== undefined) rows.push(dumpRow(row, cells));
  }
  return {
    x: buffer.x,
    y: buffer.y,
    scrollTop: buffer.scrollTop,
    scrollBottom: buffer.scrollBottom,
    savedX: buffer.savedX,
    savedY: buffer.savedY,
    saved: dumpAttributes(buffer.savedCurAttrData),
    savedCharset: dumpCharset(buffer.savedCharset),
    tabs: Object.keys(buffer.tabs)
      .map(Number)
      .filter((column) => buffer.tabs[column] === true),
    rows,
  };
}

function dumpRow(row: Row, cells: Uint32Array[]): BufferState['rows'][number] {
  const data = row._data;
  let count = row.length;
  while (count > 0 && isNull(data, count - 1)) count -= 1;
  const combined: [number, string][] = [];
  const extended: [number, number, number][] = [];
  for (let x = 0; x < count; x += 1) {
    if (((data[x * 3] ?? 0) & COMBINED) !== 0) combined.push([x, row._combined[x] ?? '']);
    const attributes = row._extendedAttrs[x];
    if (((data[x * 3 + 2] ?? 0) & HAS_EXTENDED) !== 0 && attributes !== undefined) {
      extended.push([x, rawExt(attributes), attributes.urlId]);
    }
  }
  cells.push(data.subarray(0, count * 3));
  return { cells: count, wrapped: row.isWrapped, combined, extended };
}

function isNull(data: Uint32Array, x: number): boolean {
  return data[x * 3] === NULL_CONTENT && data[x * 3 + 1] === 0 && data[x * 3 + 2] === 0;
}

/** `ext` itself reads as dashed while a link is open. */
function rawExt(attributes: Attributes['extended']): number {
  const raw: unknown = Reflect.get(attributes, '_ext');
  return typeof raw === 'number' ? raw : attributes.ext;
}

function dumpAttributes(attributes: Attributes): AttributesState {
  const { fg, bg, extended } = attributes;
  return { fg, bg, ext: rawExt(extended), urlId: extended.urlId };
}

function dumpCharset(charset: Charset): Record<string, string> | null {
  if (charset === undefined) return null;
  const entries = Object.entries(charset).filter((entry): entry is [string, string] => {
    return entry[1] !== undefined;
  });
  return Object.fromEntries(entries);
}

function concat(parts: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Number of words `cells` must have for `state`. */
export function cellWords(state: EmulatorState): number {
  const rows = [...(state.alternate?.rows ?? []), ...state.normal.rows];
  return rows.reduce((sum, row) => sum + row.cells * 3, 0);
}

/** Puts `state` into a fresh emulator of its size. */
export function loadEmulator(emulator: Emulator, state: EmulatorState, cells: Uint32Array): void {
  const { core, terminal } = emulator;
  const { buffers } = core._bufferService;
  const handler = core._inputHandler;
  if (state.alternate !== null) buffers.activateAltBuffer();
  let at = 0;
  if (state.alternate !== null) at = loadBuffer(buffers.alt, state.alternate, cells, at);
  loadBuffer(buffers.normal, state.normal, cells, at);
  loadAttributes(handler._curAttrData, state.pen);
  handler._windowTitle = state.title;
  handler._iconName = state.iconName;
  handler._windowTitleStack.push(...state.titleStack);
  handler._iconNameStack.push(...state.iconNameStack);
  handler._parser.precedingJoinState = state.joinState;
  core._charsetService._charsets.push(...state.charsets.map(loadCharset));
  core._charsetService.glevel = state.charsetLevel;
  core._charsetService.charset = loadCharset(state.charset);
  core.coreService.isCursorHidden = state.cursorHidden;
  terminal.options.cursorBlink = state.cursorBlinkOption;
  core.coreService.modes['insertMode'] = state.insert;
  core.coreMouseService.activeProtocol = state.mouseProtocol;
  core.coreMouseService.activeEncoding = state.mouseEncoding;
  Object.assign(core.coreService.decPrivateModes, {
    applicationCursorKeys: state.applicationCursorKeys,
    applicationKeypad: state.applicationKeypad,
    bracketedPasteMode: state.bracketedPasteMode,
    cursorBlink: state.cursorBlink ?? undefined,
    cursorStyle: state.cursorStyle ?? undefined,
    origin: state.origin,
    reverseWraparound: state.reverseWraparound,
    sendFocus: state.sendFocus,
    synchronizedOutput: state.synchronizedOutput,
    wraparound: state.wraparound,
  });
}

function loadBuffer(
  buffer: ScreenBuffer,
  state: BufferState,
  cells: Uint32Array,
  from: number,
): number {
  let at = from;
  state.rows.forEach((rowState, y) => {
    const row = buffer.lines.get(y);
    const words = rowState.cells * 3;
    if (row !== undefined) loadRow(buffer, row, rowState, cells.subarray(at, at + words));
    at += words;
  });
  buffer.x = state.x;
  buffer.y = state.y;
  buffer.scrollTop = state.scrollTop;
  buffer.scrollBottom = state.scrollBottom;
  buffer.savedX = state.savedX;
  buffer.savedY = state.savedY;
  loadAttributes(buffer.savedCurAttrData, state.saved);
  buffer.savedCharset = loadCharset(state.savedCharset);
  buffer.tabs = Object.fromEntries(state.tabs.map((column) => [column, true]));
  return at;
}

function loadRow(
  buffer: ScreenBuffer,
  row: Row,
  state: BufferState['rows'][number],
  cells: Uint32Array,
): void {
  row._data.set(cells);
  row.isWrapped = state.wrapped;
  for (const [x, text] of state.combined) row._combined[x] = text;
  for (const [x, ext, urlId] of state.extended) {
    const attributes = buffer.savedCurAttrData.extended.clone();
    attributes.ext = ext;
    attributes.urlId = urlId;
    row._extendedAttrs[x] = attributes;
  }
}

function loadAttributes(attributes: Attributes, state: AttributesState): void {
  attributes.fg = state.fg;
  attributes.bg = state.bg;
  attributes.extended = attributes.extended.clone();
  attributes.extended.ext = state.ext;
  attributes.extended.urlId = state.urlId;
}

function loadCharset(charset: Record<string, string> | null): Charset {
  return charset ?? undefined;
}
