// The one place that knows @xterm/headless: creates an emulator without scrollback and names the
// internals of exactly version 6.0.0 that chatd reads, checked when an emulator is made. Why
// internals: a synchronous parser, rows as typed arrays (lines are read at the scroll that ends
// them, 10 times faster than through the public cells), and state the public API cannot give.

import { Unicode11Addon } from '@xterm/addon-unicode11';
import headless, { type Terminal } from '@xterm/headless';
import { ChatdError } from '../base/errors.ts';

/** Attributes of one cell or of the pen: see the masks in row-reader.ts. */
export interface Attributes {
  fg: number;
  bg: number;
  extended: ExtendedAttributes;
  updateExtended(): void;
}

export interface ExtendedAttributes {
  /** Underline style and colour. */
  ext: number;
  urlId: number;
  clone(): ExtendedAttributes;
}

/** One row: three 32-bit words a cell (content, fg, bg). */
export interface Row {
  _data: Uint32Array;
  /** Text of cells that hold more than one code point, by column. */
  _combined: Record<number, string>;
  _extendedAttrs: Record<number, ExtendedAttributes | undefined>;
  length: number;
  isWrapped: boolean;
}

export interface RowList {
  readonly length: number;
  get(index: number): Row | undefined;
  trimStart(count: number): void;
}

/** A charset maps ASCII to what is shown; undefined is ASCII itself. */
export type Charset = Record<string, string | undefined> | undefined;

export interface ScreenBuffer {
  readonly lines: RowList;
  x: number;
  y: number;
  ybase: number;
  ydisp: number;
  scrollTop: number;
  scrollBottom: number;
  savedX: number;
  savedY: number;
  savedCurAttrData: Attributes;
  savedCharset: Charset;
  tabs: Record<number, boolean | undefined>;
}

export interface Params {
  readonly params: Int32Array;
  readonly length: number;
}

interface HandlerId {
  readonly prefix?: string;
  readonly intermediates?: string;
  readonly final: string;
}

export interface InputHandler {
  print(data: Uint32Array, start: number, end: number): void;
  lineFeed(): boolean;
  parse(data: string): unknown;
  _curAttrData: Attributes;
  _windowTitle: string;
  _iconName: string;
  _windowTitleStack: string[];
  _iconNameStack: string[];
  _parser: {
    /** 0 is ground. */
    currentState: number;
    precedingJoinState: number;
  };
}

export interface BufferService {
  readonly cols: number;
  readonly rows: number;
  readonly buffer: ScreenBuffer;
  readonly buffers: {
    readonly normal: ScreenBuffer;
    readonly alt: ScreenBuffer;
    activateAltBuffer(): void;
  };
  scroll(eraseAttributes: Attributes, isWrapped?: boolean): void;
  resize(cols: number, rows: number): void;
}

export interface Core {
  readonly _bufferService: BufferService;
  readonly _inputHandler: InputHandler;
  readonly _charsetService: { charset: Charset; glevel: number; _charsets: Charset[] };
  readonly coreService: {
    isCursorHidden: boolean;
    isCursorInitialized: boolean;
    modes: Record<string, unknown>;
    decPrivateModes: {
      applicationCursorKeys: boolean;
      applicationKeypad: boolean;
      bracketedPasteMode: boolean;
      cursorBlink: boolean | undefined;
      cursorStyle: string | undefined;
      origin: boolean;
      reverseWraparound: boolean;
      sendFocus: boolean;
      synchronizedOutput: boolean;
      wraparound: boolean;
    };
  };
  readonly coreMouseService: { activeProtocol: string; activeEncoding: string };
  registerCsiHandler(id: HandlerId, handle: (params: Params) => boolean): void;
  registerEscHandler(id: HandlerId, handle: () => boolean): void;
  registerOscHandler(id: number, handle: (data: string) => boolean): void;
}

export interface Emulator {
  readonly terminal: Terminal;
  readonly core: Core;
}

/** xterm.js allows no fewer columns; one row is not a screen that scrolls. */
export const COLS_MIN = 2;
export const ROWS_MIN = 2;
/** Bounds what one session's screen may cost: 1,000 × 1,000 cells are 12 MB. */
export const COLS_MAX = 1_000;
export const ROWS_MAX = 1_000;

export function clampSize(
  cols: number,
  rows: number,
): { readonly cols: number; readonly rows: number } {
  return {
    cols: Math.min(COLS_MAX, Math.max(COLS_MIN, Math.trunc(cols))),
    rows: Math.min(ROWS_MAX, Math.max(ROWS_MIN, Math.trunc(rows))),
  };
}

/** @throws {ChatdError} capability-missing when the emulator is not the one this was written for. */
export function createEmulator(cols: number, rows: number): Emulator {
  const terminal = new headless.Terminal({
    ...clampSize(cols, rows),
    // Lines are taken when they scroll off: nothing has to be kept.
    scrollback: 0,
    reflowCursorLine: true,
    allowProposedApi: true,
    // At any other level a stray DEL prints a dump of the parser to the daemon's stdout.
    logLevel: 'off',
    windowOptions: { getWinSizeChars: true, pushTitle: true, popTitle: true },
  });
  terminal.loadAddon(new Unicode11Addon());
  terminal.unicode.activeVersion = '11';
  return { terminal, core: internalsOf(terminal) };
}

function internalsOf(terminal: Terminal): Core {
  const core: unknown = Reflect.get(terminal, '_core');
  if (!isCore(core)) {
    throw new ChatdError('capability-missing', 'Cannot use terminal emulator: unknown version', {
      details: { capability: 'xterm-headless-6.0.0' },
    });
  }
  return core;
}

/** Looks at each internal once, deep enough to notice another layout. */
function isCore(core: unknown): core is Core {
  const row: unknown = callAt(core, ['_bufferService', 'buffers', 'normal', 'lines'], 'get', 0);
  return (
    at(row, ['_data']) instanceof Uint32Array &&
    typeof at(row, ['_combined']) === 'object' &&
    typeof at(row, ['_extendedAttrs']) === 'object' &&
    typeof at(core, ['_inputHandler', 'print']) === 'function' &&
    typeof at(core, ['_inputHandler', 'parse']) === 'function' &&
    typeof at(core, ['_inputHandler', 'lineFeed']) === 'function' &&
    typeof at(core, ['_bufferService', 'scroll']) === 'function' &&
    at(core, ['_inputHandler', '_parser', 'currentState']) === 0 &&
    typeof at(core, ['_inputHandler', '_curAttrData', 'extended', 'urlId']) === 'number' &&
    Array.isArray(at(core, ['_inputHandler', '_windowTitleStack'])) &&
    Array.isArray(at(core, ['_charsetService', '_charsets'])) &&
    typeof at(core, ['coreService', 'isCursorHidden']) === 'boolean' &&
    typeof at(core, ['coreService', 'decPrivateModes', 'synchronizedOutput']) === 'boolean' &&
    typeof at(core, ['coreMouseService', 'activeEncoding']) === 'string'
  );
}

function at(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = Reflect.get(current, key);
  }
  return current;
}

function callAt(
  value: unknown,
  path: readonly string[],
  method: string,
  argument: number,
): unknown {
  const target = at(value, path);
  const found = at(target, [method]);
  return typeof found === 'function' ? Reflect.apply(found, target, [argument]) : undefined;
}
