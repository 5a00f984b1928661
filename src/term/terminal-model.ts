// One session's terminal: bytes in, final lines, tail, frames, marks and answers out. Synchronous
// and pure of time, files and processes; made for a worker that feeds it. Decides the mode (log or
// screen) once and says so in marks; a replay takes those decisions from the marks instead.

import { StringDecoder } from 'node:string_decoder';
import { ChatdError } from '../base/errors.ts';
import {
  type Checkpoint,
  decodeCheckpoint,
  encodeCheckpoint,
  type ModelState,
  restoredFrame,
  restoredLine,
  storedFrame,
  storedLine,
} from './checkpoint.ts';
import {
  clampSize,
  createEmulator,
  type Emulator,
  type Params,
  type ScreenBuffer,
} from './emulator.ts';
import { dumpEmulator, loadEmulator } from './emulator-state.ts';
import { LineEngine } from './line-engine.ts';
import { LinkTable } from './link-table.ts';
import { ModeRules, type ScreenFlags } from './mode-rules.ts';
import {
  oneLine,
  parseLink,
  parseOsc9,
  parseOsc99,
  parseOsc133,
  parseOsc777,
  parseWorkingDirectory,
} from './osc.ts';
import { cursorPlace, putCursor } from './reflow-cursor.ts';
import { isFull, readRow } from './row-reader.ts';
import { drawScreen } from './snapshot.ts';
import { StreamScanner } from './stream-scanner.ts';
import type { Frame, FrameRow, Line, Mark, MarkKind, Mode, View } from './values.ts';

/** Answers wait here until taken; a program that asks more than this at once gets no answer. */
const ANSWER_UNITS_MAX = 4_096;
/** Bells nearer than this to the last one are the same bell: bounds marks by bytes. */
const BELL_BYTES_APART = 1_024;

/** Write `ansi` to a terminal of `cols` × `rows` in any state: it shows this screen. */
export interface ModelSnapshot {
  readonly offset: number;
  readonly cols: number;
  readonly rows: number;
  readonly ansi: string;
  readonly title: string;
}

/** A frame costs about 25 us: a program that only erases must not cost more than its bytes do. */
const FRAME_BYTES_APART = 2_048;

/** `alternate`: the program has its own buffer. `repaint`: it repaints the normal one. */
type ScreenKind = 'alternate' | 'repaint';

export interface TerminalModelOptions {
  readonly cols: number;
  readonly rows: number;
}

export class TerminalModel {
  readonly #emulator: Emulator;
  readonly #lines: LineEngine;
  readonly #links: LinkTable;
  readonly #rules = new ModeRules();
  readonly #scanner = new StreamScanner();
  readonly #decoder = new StringDecoder('utf8');
  #offset = 0;
  /** Where what is being parsed now ends: the offset of what it says. */
  #sliceEnd = 0;
  #nowMs = 0;
  #screen: ScreenKind | undefined;
  /** Rows of the normal screen are left-overs of a program that repainted it. */
  #normalIsFrame = false;
  /** The full screen before the program last erased it: what it showed, if it leaves it blank. */
  #clearedFrame: Frame | undefined;
  /** The cursor was put to the top left corner and nothing was printed since. */
  #atHome = false;
  #title = '';
  #lastBellOffset = Number.NEGATIVE_INFINITY;
  #marks: Mark[] = [];
  #markCount = 0;
  #answers: string[] = [];
  #answerUnits = 0;
  #answering = true;
  /** Mode marks of the stretch being replayed; undefined when modes are decided here. */
  #decided: readonly Mark[] | undefined;

  constructor(options: TerminalModelOptions) {
    this.#emulator = createEmulator(options.cols, options.rows);
    this.#links = new LinkTable(this.#emulator);
    this.#lines = new LineEngine((id) => this.#links.target(id));
    this.#watchRows();
    this.#watchLineFeeds();
    this.#watchErasing();
    this.#watchMoves();
    this.#watchModes();
    this.#watchCommands();
    this.#emulator.terminal.onData((data) => this.#answer(data));
    this.#emulator.terminal.onTitleChange((title) => this.#titled(title));
    this.#emulator.terminal.onBell(() => this.#rang());
  }

  /**
   * The model as it was when `checkpoint` was taken; feed it the bytes from `checkpoint.offset` on.
   * @throws {ChatdError} version-mismatch when it cannot be used: replay from an older one.
   */
  static restore(bytes: Uint8Array): TerminalModel {
    const { state, cells } = decodeCheckpoint(bytes);
    const model = new TerminalModel({ cols: state.emulator.cols, rows: state.emulator.rows });
    try {
      model.#load(state, cells);
    } catch (cause) {
      throw new ChatdError('version-mismatch', 'Cannot use checkpoint: not a state', { cause });
    }
    return model;
  }

  #load(state: ModelState, cells: Uint32Array): void {
    loadEmulator(this.#emulator, state.emulator, cells);
    this.#lines.restore({
      finalCount: state.finalCount,
      prefix: restoredLine(state.prefix),
      floor: state.floor,
    });
    this.#links.restore(state.links);
    this.#clearedFrame = restoredFrame(state.clearedFrame);
    this.#rules.restore({ upwardMs: state.upwardMs, clearMs: state.clearMs });
    this.#scanner.restore(state.kittyBytes);
    this.#offset = state.offset;
    this.#sliceEnd = state.offset;
    this.#screen = state.screen ?? undefined;
    this.#normalIsFrame = state.normalIsFrame;
    this.#atHome = state.atHome;
    this.#title = state.title;
    this.#lastBellOffset = state.lastBellOffset ?? Number.NEGATIVE_INFINITY;
    this.#markCount = state.markCount;
  }

  /**
   * The whole state, at the newest offset that no sequence or character spans; undefined when there
   * is none right now. Lines and marks that were not taken yet are not in it.
   */
  checkpoint(): Checkpoint | undefined {
    const pending = this.#pendingBytes();
    if (pending === undefined) return undefined;
    const { state: emulator, cells } = dumpEmulator(this.#emulator);
    const { prefix, floor } = this.#lines.state;
    const bell = this.#lastBellOffset;
    const state: ModelState = {
      offset: this.#offset - pending,
      finalCount: this.finalCount,
      markCount: this.#markCount,
      prefix: storedLine(prefix),
      floor,
      screen: this.#screen ?? null,
      normalIsFrame: this.#normalIsFrame,
      atHome: this.#atHome,
      title: this.#title,
      lastBellOffset: Number.isFinite(bell) ? bell : null,
      clearedFrame: storedFrame(this.#clearedFrame),
      upwardMs: [...this.#rules.state.upwardMs],
      clearMs: [...this.#rules.state.clearMs],
      kittyBytes: this.#scanner.kittyBytes,
      links: this.#links.entries.map(([id, target]) => [id, target]),
      emulator,
    };
    return encodeCheckpoint(state, cells);
  }

  /** A redrawable screen; the bytes from its `offset` on continue it. */
  snapshot(): ModelSnapshot {
    const { terminal } = this.#emulator;
    return {
      // A sequence that has begun has had no effect, but for controls inside it, shown already.
      offset: this.#offset - (this.#pendingBytes() ?? 0),
      cols: terminal.cols,
      rows: terminal.rows,
      ansi: drawScreen(this.#emulator, (id) => this.#links.target(id)),
      title: this.#title,
    };
  }

  /** Bytes of an incomplete sequence or character; undefined when it acted already. */
  #pendingBytes(): number | undefined {
    const pending = this.#scanner.pendingBytes;
    return pending === 0 ? heldBytes(this.#decoder) : pending;
  }

  get offset(): number {
    return this.#offset;
  }

  get finalCount(): number {
    return this.#lines.finalCount;
  }

  get markCount(): number {
    return this.#markCount;
  }

  get mode(): Mode {
    return this.#screen === undefined ? 'log' : 'screen';
  }

  get title(): string {
    return this.#title;
  }

  /** Synchronized output is open: what is on the screen is half a frame. */
  get synchronizing(): boolean {
    return this.#emulator.core.coreService.decPrivateModes.synchronizedOutput;
  }

  /** Live output. `nowMs` is on one clock per session that does not jump. */
  write(bytes: Uint8Array, nowMs: number): void {
    this.#answering = true;
    this.#decided = undefined;
    this.#feed(bytes, nowMs);
  }

  /**
   * Output that was seen before: nothing is answered. Modes change exactly where `decided` says, or,
   * when that is undefined (bytes whose decisions were lost), are decided again.
   */
  replay(bytes: Uint8Array, nowMs: number, decided: readonly Mark[] | undefined): void {
    this.#answering = false;
    this.#decided = decided?.filter((mark) => mark.what.kind === 'mode');
    this.#feed(bytes, nowMs);
    this.#decided = undefined;
  }

  #feed(bytes: Uint8Array, nowMs: number): void {
    this.#nowMs = nowMs;
    let from = 0;
    while (from < bytes.length) {
      const cut = this.#scanner.next(bytes, from);
      const end = Math.min(cut.end, from + this.#bytesToDecision());
      this.#sliceEnd = this.#offset + end - from;
      const text = this.#decoder.write(bytes.subarray(from, end));
      if (text !== '') this.#parse(text);
      this.#offset = this.#sliceEnd;
      if (end === cut.end && cut.picture !== undefined) {
        const { protocol, sizeBytes } = cut.picture;
        this.#mark({ kind: 'image', protocol, sizeBytes }, this.#cursorLine());
      }
      this.#applyDecision();
      from = end;
    }
  }

  #parse(text: string): void {
    // No handler is asynchronous, so the parser never is.
    this.#emulator.core._inputHandler.parse(text);
  }

  /** Slices also end at each journaled decision. */
  #bytesToDecision(): number {
    const next = this.#decided?.find((mark) => mark.offset > this.#offset);
    return next === undefined ? Number.POSITIVE_INFINITY : next.offset - this.#offset;
  }

  /** A journaled decision that no control sequence was found for: it came from outside. */
  #applyDecision(): void {
    for (const mark of this.#decided ?? []) {
      if (mark.offset !== this.#offset || mark.what.kind !== 'mode') continue;
      if (mark.what.mode === 'screen' && this.mode === 'log') this.#enterScreen('repaint', 'above');
      else if (mark.what.mode === 'log' && this.mode === 'screen') this.#leaveScreen();
    }
  }

  /** What is true of the mode now: `live` when deciding, the journal's word when replaying. */
  #decide(mode: Mode, live: () => boolean): boolean {
    const lived = live();
    if (this.#decided === undefined) return lived;
    return this.#decided.some(
      (mark) =>
        mark.offset === this.#sliceEnd && mark.what.kind === 'mode' && mark.what.mode === mode,
    );
  }

  get #normal(): ScreenBuffer {
    return this.#emulator.core._bufferService.buffers.normal;
  }

  get #normalIsActive(): boolean {
    const { buffer, buffers } = this.#emulator.core._bufferService;
    return buffer === buffers.normal;
  }

  get #isLog(): boolean {
    return this.#screen === undefined;
  }

  get #flags(): ScreenFlags {
    const { isCursorHidden, decPrivateModes } = this.#emulator.core.coreService;
    return {
      cursorHidden: isCursorHidden,
      applicationCursor: decPrivateModes.applicationCursorKeys,
      synchronizing: decPrivateModes.synchronizedOutput,
    };
  }

  // What happens to rows.

  #watchRows(): void {
    const { _bufferService: service, _inputHandler: handler } = this.#emulator.core;
    const scroll = service.scroll.bind(service);
    service.scroll = (eraseAttributes, isWrapped) => {
      if (this.#isLog && this.#normal.scrollTop === 0) this.#lines.topRowLeaves(this.#normal);
      scroll(eraseAttributes, isWrapped);
    };
    const print = handler.print.bind(handler);
    handler.print = (data, start, end) => {
      this.#atHome = false;
      if (this.#isLog) this.#lines.printsAt(this.#normal.y);
      if (this.#emulator.core.coreService.decPrivateModes.wraparound) print(data, start, end);
      // Without wrapping, what the emulator does with a wide character in the last column depends on
      // how the text was cut: one character at a time is one way for all.
      else for (let at = start; at < end; at += 1) print(data, at, at + 1);
    };
  }

  /**
   * The emulator takes a line feed onto a wrapped row for the end of the line above. A line editor
   * that moves down through its own wrapped line ends nothing: the row above is still full.
   */
  #watchLineFeeds(): void {
    const { _bufferService: service, _inputHandler: handler } = this.#emulator.core;
    const lineFeed = handler.lineFeed.bind(handler);
    handler.lineFeed = () => {
      const { buffer } = service;
      const next = buffer.lines.get(buffer.y + 1);
      if (next?.isWrapped !== true) return lineFeed();
      const above = buffer.lines.get(buffer.y);
      const wasAt = buffer.y;
      const done = lineFeed();
      if (buffer.y === wasAt + 1 && above !== undefined && isFull(above)) next.isWrapped = true;
      return done;
    };
  }

  #watchErasing(): void {
    const { core } = this.#emulator;
    core.registerCsiHandler({ final: 'J' }, (params) => this.#erase(params.params[0] ?? 0));
    core.registerCsiHandler({ prefix: '?', final: 'J' }, (params) =>
      this.#erase(params.params[0] ?? 0),
    );
    for (const final of ['L', 'M', 'S', 'T', 'I', 'Z']) {
      core.registerCsiHandler({ final }, (params) => this.#moveRows(final, params));
    }
    core.registerEscHandler({ final: 'M' }, () => {
      const { y, scrollTop } = this.#normal;
      if (this.#isLog && y === scrollTop) this.#lines.movesFrom(y);
      return false;
    });
    core.registerCsiHandler({ final: 'b' }, (params) => {
      const { cols, rows } = core._bufferService;
      clampParam(params, cols * rows);
      return false;
    });
    core.registerEscHandler({ final: 'c' }, () => {
      this.#reset();
      return false;
    });
  }

  /** 3J, the scrollback, is not here: there is none to erase, and the transcript is chatd's. */
  #erase(what: number): false {
    const { x, y } = this.#emulator.core._bufferService.buffer;
    const all = what === 2 || (what === 0 && this.#atHome && x === 0 && y === 0);
    if (!all) return false;
    if (!this.#isLog) {
      this.#keepFrame();
      return false;
    }
    if (this.#decide('screen', () => this.#rules.cleared(this.#nowMs, this.#flags))) {
      // The cursor's own line is part of the frame, unless the cursor was sent home first.
      this.#enterScreen('repaint', y > 0 ? 'above' : 'all');
      return false;
    }
    this.#lines.finishAll(this.#normal);
    this.#lines.erased();
    return false;
  }

  /** Programs erase their screen just before they leave it: then the one before is the last. */
  #keepFrame(): void {
    const since = this.#sliceEnd - (this.#clearedFrame?.offset ?? Number.NEGATIVE_INFINITY);
    if (since < FRAME_BYTES_APART) return;
    const frame = this.#frameAt(this.#sliceEnd);
    if (!isBlank(frame)) this.#clearedFrame = frame;
  }

  /**
   * Lines inserted, deleted or scrolled, and tabs. The emulator loops as often as it is told:
   * more than a screenful has the same effect as a screenful.
   */
  #moveRows(final: string, params: Params): boolean {
    const { rows, cols } = this.#emulator.core._bufferService;
    const tabs = final === 'I' || final === 'Z';
    const count = clampParam(params, tabs ? cols : rows);
    if (tabs || !this.#isLog) return false;
    const { scrollTop, y } = this.#normal;
    if (final === 'S' && scrollTop === 0) {
      // The emulator drops what scrolls out here; it is as final as after a line feed.
      this.#scrollOut(count);
      return false;
    }
    this.#lines.movesFrom(final === 'S' || final === 'T' ? scrollTop : y);
    return false;
  }

  #scrollOut(count: number): void {
    const { scrollBottom } = this.#normal;
    this.#lines.topRowsLeave(this.#normal, Math.min(count, scrollBottom + 1));
  }

  #reset(): void {
    if (!this.#isLog) this.#leaveScreen();
    this.#lines.finishAll(this.#normal);
    this.#lines.erased();
    this.#rules.reset();
    this.#normalIsFrame = false;
    // The emulator's own reset forgets to show the cursor.
    this.#emulator.core.coreService.isCursorHidden = false;
  }

  // What decides the mode.

  #watchMoves(): void {
    const { core } = this.#emulator;
    for (const final of ['H', 'f']) {
      core.registerCsiHandler({ final }, (params) => {
        this.#movesTo((params.params[0] ?? 0) || 1, (params.params[1] ?? 0) || 1);
        return false;
      });
    }
    core.registerCsiHandler({ final: 'd' }, (params) => {
      this.#movesTo((params.params[0] ?? 0) || 1, undefined);
      return false;
    });
  }

  #movesTo(row: number, col: number | undefined): void {
    const { origin } = this.#emulator.core.coreService.decPrivateModes;
    const target = row - 1 + (origin ? this.#normal.scrollTop : 0);
    this.#atHome = target === 0 && col === 1;
    if (!this.#isLog || target >= this.#normal.y) return;
    if (this.#decide('screen', () => this.#rules.movedUp(this.#nowMs, this.#flags))) {
      this.#enterScreen('repaint', 'above');
    }
  }

  #watchModes(): void {
    const { core } = this.#emulator;
    core.registerCsiHandler({ prefix: '?', final: 'h' }, (params) => {
      const modes = modeNumbers(params);
      if (modes.some(isAlternateBuffer) && this.#normalIsActive)
        this.#enterScreen('alternate', 'above');
      if (modes.includes(2004) && (modes.includes(25) || !this.#flags.cursorHidden))
        this.#prompts();
      return false;
    });
    core.registerCsiHandler({ prefix: '?', final: 'l' }, (params) => {
      const modes = modeNumbers(params);
      if (modes.some(isAlternateBuffer) && !this.#normalIsActive) this.#leaveScreen();
      else if (modes.includes(1) && this.#screen === 'repaint') this.#leaveIfDecided();
      return false;
    });
  }

  /** A line editor is at its prompt: no program repaints the screen now. */
  #prompts(): void {
    this.#rules.reset();
    if (this.#screen === 'repaint') this.#leaveIfDecided();
  }

  #leaveIfDecided(): void {
    if (this.#decide('log', () => true)) this.#leaveScreen();
  }

  /** `finish`: which rows become final first. */
  #enterScreen(kind: ScreenKind, finish: 'above' | 'all'): void {
    const wasLog = this.#isLog;
    if (wasLog) {
      if (finish === 'all') this.#lines.finishAll(this.#normal);
      else this.#lines.finishAbove(this.#normal, this.#normal.y);
    }
    this.#normalIsFrame = kind === 'repaint' || !wasLog;
    this.#screen = kind;
    this.#rules.reset();
    if (wasLog) this.#mark({ kind: 'mode', mode: 'screen' }, this.finalCount);
  }

  #leaveScreen(): void {
    const last = this.#frameAt(this.#sliceEnd);
    const frame = isBlank(last) ? (this.#clearedFrame ?? last) : last;
    this.#clearedFrame = undefined;
    if (this.#normalIsFrame) {
      this.#lines.disown(this.#normal, this.#normalIsActive ? this.#normal.y : 0);
    }
    this.#screen = undefined;
    this.#normalIsFrame = false;
    this.#rules.reset();
    this.#mark({ kind: 'mode', mode: 'log', frame }, this.finalCount);
  }

  /**
   * Another program has the terminal's foreground: one that repainted the normal screen is gone.
   * A fact from outside the stream, journaled as a mark at the current offset.
   */
  programChanged(): void {
    this.#sliceEnd = this.#offset;
    if (this.#screen === 'repaint') this.#leaveScreen();
    this.#rules.reset();
  }

  // What is said to people.

  #watchCommands(): void {
    const { core } = this.#emulator;
    const says = (id: number, parse: (data: string) => MarkKind | undefined): void => {
      core.registerOscHandler(id, (data) => {
        const what = parse(data);
        if (what !== undefined) this.#mark(what, this.finalCount);
        return true;
      });
    };
    says(7, parseWorkingDirectory);
    says(9, parseOsc9);
    says(99, parseOsc99);
    says(777, parseOsc777);
    core.registerOscHandler(133, (data) => {
      const what = parseOsc133(data);
      if (what === undefined) return true;
      if (what.kind === 'prompt-start') this.#prompts();
      this.#mark(what, this.#cursorLine());
      return true;
    });
    core.registerOscHandler(8, (data) => {
      const link = parseLink(data);
      if (link !== undefined) this.#links.open(link.target);
      return true;
    });
  }

  #titled(title: string): void {
    const text = oneLine(title);
    if (text === this.#title) return;
    this.#title = text;
    this.#mark({ kind: 'title', text }, this.finalCount);
  }

  #rang(): void {
    const near = this.#sliceEnd - this.#lastBellOffset < BELL_BYTES_APART;
    this.#lastBellOffset = this.#sliceEnd;
    if (!near) this.#mark({ kind: 'bell' }, this.finalCount);
  }

  #mark(what: MarkKind, line: number): void {
    this.#marks.push({ seq: this.#markCount, offset: this.#sliceEnd, line, what });
    this.#markCount += 1;
  }

  #answer(data: string): void {
    if (!this.#answering || this.#answerUnits + data.length > ANSWER_UNITS_MAX) return;
    this.#answers.push(data);
    this.#answerUnits += data.length;
  }

  // What is taken out.

  /** Lines that became final since the last call; the last of them has number finalCount - 1. */
  takeFinals(): Line[] {
    return this.#lines.takeFinals();
  }

  takeMarks(): Mark[] {
    const marks = this.#marks;
    this.#marks = [];
    return marks;
  }

  /** Answers to the program's queries, to be written to its terminal now or never. */
  takeAnswers(): Uint8Array {
    const answers = Buffer.from(this.#answers.join(''), 'latin1');
    this.#answers = [];
    this.#answerUnits = 0;
    return answers;
  }

  /**
   * The program is gone: all that is on the screen becomes final. Later output (a background
   * process) goes on from here.
   */
  exit(): void {
    this.#sliceEnd = this.#offset;
    if (!this.#isLog) this.#leaveScreen();
    this.#lines.finishAll(this.#normal);
  }

  /** Takes effect between two writes. Lines keep their text in the new layout. */
  resize(cols: number, rows: number): void {
    const { terminal, core } = this.#emulator;
    const size = clampSize(cols, rows);
    if (size.cols === terminal.cols && size.rows === terminal.rows) return;
    const kept = this.#lines.linesAboveFloor(this.#normal);
    const place = cursorPlace(this.#normal);
    const { buffer } = core._bufferService;
    const { x } = buffer;
    // Room for all rows the new layout may need, so that none is dropped unseen.
    terminal.options.scrollback = terminal.cols * terminal.rows;
    const sameCols = size.cols === terminal.cols;
    core._bufferService.resize(size.cols, size.rows);
    if (this.#isLog) putCursor(this.#normal, place, size.rows);
    const column = !this.#isLog && sameCols ? x : buffer.x;
    if (!this.#normalIsFrame) this.#lines.laidOut(this.#normal, kept);
    terminal.options.scrollback = 0;
    // The emulator forgets that the next character wraps.
    buffer.x = column;
  }

  frame(): Frame {
    return this.#frameAt(this.#offset);
  }

  #frameAt(offset: number): Frame {
    const { buffer, cols, rows: rowCount } = this.#emulator.core._bufferService;
    const rows: FrameRow[] = [];
    for (let y = 0; y < rowCount; y += 1) {
      const row = buffer.lines.get(buffer.ybase + y);
      rows.push(
        row === undefined ? { text: '' } : readRow(row, 'visible', (id) => this.#links.target(id)),
      );
    }
    const col = Math.min(buffer.x, cols - 1);
    return {
      offset,
      cols,
      rows,
      cursor: { row: buffer.y, col, visible: !this.#flags.cursorHidden },
      title: this.#title,
      alternate: !this.#normalIsActive,
    };
  }

  view(): View {
    const { terminal, core } = this.#emulator;
    const { bracketedPasteMode, applicationCursorKeys } = core.coreService.decPrivateModes;
    const tail = this.#tail();
    return {
      offset: this.#offset,
      finalCount: this.finalCount,
      tail: tail.lines,
      cursor: {
        line: this.finalCount + tail.cursorIndex,
        column: tail.cursorColumn,
        visible: !this.#flags.cursorHidden,
      },
      mode: this.mode,
      ...(this.#isLog ? {} : { frame: this.frame() }),
      markCount: this.#markCount,
      cols: terminal.cols,
      rowCount: terminal.rows,
      applicationCursor: applicationCursorKeys,
      bracketedPaste: bracketedPasteMode,
    };
  }

  #tail(): ReturnType<LineEngine['tail']> {
    if (this.#normalIsFrame) return { lines: [], cursorIndex: 0, cursorColumn: 0 };
    const { x, y } = this.#normal;
    return this.#lines.tail(this.#normal, this.#normalIsActive ? { x, y } : undefined);
  }

  /** Absolute number of the line the cursor is on. */
  #cursorLine(): number {
    if (this.#normalIsFrame || !this.#normalIsActive) return this.finalCount;
    return this.finalCount + this.#lines.indexOfRow(this.#normal, this.#normal.y);
  }
}

/** Bytes of a character that is not complete; undefined where the runtime does not say. */
function heldBytes(decoder: StringDecoder): number | undefined {
  const need: unknown = Reflect.get(decoder, 'lastNeed');
  const total: unknown = Reflect.get(decoder, 'lastTotal');
  if (typeof need !== 'number' || typeof total !== 'number') return undefined;
  return need === 0 ? 0 : total - need;
}

function isBlank(frame: Frame): boolean {
  return frame.rows.every((row) => row.text.trim() === '');
}

function modeNumbers(params: Params): number[] {
  return Array.from(params.params.subarray(0, params.length));
}

function isAlternateBuffer(mode: number): boolean {
  return mode === 47 || mode === 1047 || mode === 1049;
}

/** Lowers the first parameter to `max`; returns it, 1 when it is missing. */
function clampParam(params: Params, max: number): number {
  const given = params.params[0] ?? 0;
  if (given > max) params.params[0] = max;
  return Math.max(1, Math.min(given, max));
}
