// PLAN of DELIVERY.md: from transcript, rows, limits and clock to at most one next step. Pure. It
// decides what should be done next, never how a call ends; outcomes.ts does that.

import type { NewRow, OutboxRow, QueuedNotice } from '../../store/outbox-rows.ts';
import type { Frame, Line, Mark } from '../../term/values.ts';
import type { Content } from '../chat-platform.ts';
import { fitEnd, isBefore, type Position, samePosition } from '../render/chunks.ts';
import type { DeliveryLimits } from './limits.ts';
import {
  atLine,
  contentOf,
  earlier,
  type FileBody,
  floodShownFrom,
  hashOf,
  isBlankBetween,
  isBlankFrame,
  isCovering,
  isFinal,
  type Look,
  later,
  type NoticeBody,
  noticeContent,
  type TextBody,
} from './rows.ts';
import type { Transcript } from './transcript.ts';

/** What one thread's writer knows. Follows the committed rows. */
export interface OutboxState {
  /** First line that is this thread's to show. */
  readonly firstLine: number;
  /** Rows in state intent or posted, by sequence. */
  readonly rows: readonly OutboxRow[];
  /** The newest row that covers lines, whatever its state. */
  readonly lastCovering: OutboxRow | undefined;
  readonly notices: readonly QueuedNotice[];
  /** Marks from the first one not acted on, up to the transcript's offset. */
  readonly marks: readonly Mark[];
  readonly nextMark: number;
  /** Line of the newest prompt, where a command's chunk starts. */
  readonly promptLine: number | undefined;
  /** Line at which a person's message closes the chunk. */
  readonly closeLine: number | undefined;
  /** Last frames by mark, for rows that show one. */
  readonly frames: ReadonlyMap<number, Frame>;
  /** Lines quoted by the first notice. */
  readonly quoted: readonly Line[];
  /** Intents that are known not to have been processed. */
  readonly refused: ReadonlySet<number>;
  /** Messages to delete: second ones of a row. */
  readonly duplicates: readonly string[];
  /** What a frozen live screen showed last: it is not posted again unchanged. */
  readonly lastScreenHash: string | undefined;
  /** The backlog was made while nobody served the thread. */
  readonly away: boolean;
  /** When this thread last sent a post; at first the start of the process. */
  readonly lastPostMs: number;
}

export interface PlanInput {
  readonly state: OutboxState;
  readonly transcript: Transcript;
  readonly look: Look;
  readonly limits: DeliveryLimits;
  readonly nowMs: number;
  /** Earliest moment for live changes; undefined when none is known. */
  readonly gateMs: { readonly text: number | undefined; readonly screen: number | undefined };
  /** Time without change. */
  readonly quietMs: number;
}

export type Lane = 'prompt' | 'exit' | 'final' | 'live' | 'screen';

export interface Change {
  readonly rows?: readonly OutboxRow[];
  readonly nextMark?: number;
  readonly promptLine?: number | undefined;
  readonly closed?: true;
  readonly lastScreenHash?: string | undefined;
  /** A file to queue, after the lines before `line`. */
  readonly file?: { readonly line: number; readonly body: FileBody };
}

export type Step =
  /** Nothing to do before `atMs`, or at all. */
  | { readonly kind: 'wait'; readonly atMs: number | undefined }
  | { readonly kind: 'change'; readonly change: Change; readonly why: string }
  | {
      readonly kind: 'post';
      readonly row: Omit<NewRow, 'anchor' | 'sentAtMs'>;
      readonly content: Content;
      readonly lane: Lane;
      /** Committed together with the intent. */
      readonly change: Change;
      readonly notice?: number;
      readonly isLive: boolean;
    }
  | { readonly kind: 'repost'; readonly row: OutboxRow; readonly content: Content }
  | {
      readonly kind: 'edit';
      readonly row: OutboxRow;
      readonly content: Content;
      readonly hash: string;
      readonly lane: Lane;
      readonly isLive: boolean;
    }
  | { readonly kind: 'look'; readonly row: OutboxRow }
  | {
      readonly kind: 'upload';
      readonly row: Omit<NewRow, 'anchor' | 'sentAtMs'>;
      readonly body: FileBody;
      readonly notice: number;
    }
  | { readonly kind: 'reupload'; readonly row: OutboxRow; readonly body: FileBody }
  | { readonly kind: 'delete'; readonly messageId: string };

type Barrier =
  | { readonly kind: 'close'; readonly at: Position }
  | { readonly kind: 'command'; readonly at: Position; readonly mark: Mark }
  | { readonly kind: 'screen'; readonly at: Position; readonly mark: Mark }
  | { readonly kind: 'notice'; readonly at: Position; readonly notice: QueuedNotice };

/** The next step of a thread. */
export function plan(input: PlanInput): Step {
  const { state } = input;
  const barrier = nextBarrier(input);
  const total = atLine(input.transcript.total);
  const reach = barrier === undefined ? total : earlier(barrier.at, total);
  const change = planMarks(state) ?? planBounds(input, barrier, reach) ?? planSeals(input, reach);
  if (change !== undefined) return change;
  const doubt = planDoubt(input, reach);
  if (doubt !== undefined && doubt.kind !== 'wait') return doubt;
  const duplicate = state.duplicates[0];
  if (duplicate !== undefined) return { kind: 'delete', messageId: duplicate };
  const edit = planEdits(input, reach);
  if (edit.step !== undefined) return edit.step;
  // A post in doubt may stand on the platform already: nothing is posted before it is found.
  if (doubt !== undefined) return waitFor([edit.wakeMs, doubt.atMs]);
  const next = edit.isBehind ? undefined : planNew(input, reach, barrier);
  if (next !== undefined && next.kind !== 'wait') return next;
  return waitFor([edit.wakeMs, next?.atMs]);
}

/** What is below everything that is shown: text first, then what stands at the barrier. */
function planNew(
  input: PlanInput,
  reach: Position,
  barrier: Barrier | undefined,
): Step | undefined {
  const text = planText(input, reach, barrier);
  if (text !== undefined) return text;
  return barrier === undefined ? planScreen(input) : planBarrier(input, barrier);
}

function waitFor(times: readonly (number | undefined)[]): Step {
  const known = times.filter((time) => time !== undefined);
  return { kind: 'wait', atMs: known.length === 0 ? undefined : Math.min(...known) };
}

// In doubt.

/** LOOK, or the repeated post where the platform makes that safe; at most one row is in doubt. */
function planDoubt(input: PlanInput, reach: Position): Step | undefined {
  const { state, limits, nowMs } = input;
  const row = state.rows.find((one) => one.state === 'intent');
  if (row === undefined) return undefined;
  const isKnown = state.refused.has(row.s);
  if (row.kind === 'file') return planFileDoubt(row, isKnown, input);
  const isRepeatable = nowMs - row.sentAtMs < limits.repeatWindowMs;
  if (isKnown || isRepeatable) {
    const content = contentOfRow(row, input, reach);
    if (content !== undefined) return { kind: 'repost', row, content };
  }
  return lookAt(row, lookMs(row, input), nowMs);
}

function lookAt(row: OutboxRow, readyMs: number, nowMs: number): Step {
  return nowMs >= readyMs ? { kind: 'look', row } : { kind: 'wait', atMs: readyMs };
}

/** A repeated post does not move `sentAt`, which its window counts from, but may land late too. */
function lookMs(row: OutboxRow, { state, limits }: PlanInput): number {
  const last = limits.repeatWindowMs > 0 ? Math.max(row.sentAtMs, state.lastPostMs) : row.sentAtMs;
  return last + limits.settleMs;
}

function planFileDoubt(row: OutboxRow, isKnown: boolean, input: PlanInput): Step {
  const { limits, nowMs } = input;
  const body = row.body as FileBody;
  if (isKnown) return { kind: 'reupload', row, body };
  if (row.fileId !== undefined) return lookAt(row, row.sentAtMs + limits.settleMs, nowMs);
  // Without a file id nothing has been made visible, unless the upload is one request.
  if (!limits.uploadIsOneRequest || nowMs - row.sentAtMs < limits.repeatWindowMs) {
    return { kind: 'reupload', row, body };
  }
  return lookAt(row, lookMs(row, input), nowMs);
}

function contentOfRow(row: OutboxRow, input: PlanInput, reach: Position): Content | undefined {
  const { state, transcript, look } = input;
  if (row.kind === 'notice') {
    return noticeContent(row.body as NoticeBody, state.quoted, transcript.frame, look);
  }
  return contentOf(row, transcript, reach, state.frames, look);
}

// What ends the text that may be shown.

function nextBarrier({ state, transcript }: PlanInput): Barrier | undefined {
  const notice = state.notices[0];
  const { total } = transcript;
  const mark = state.marks.find((one) => barrierOf(one, state) !== undefined);
  const candidates: (Barrier | undefined)[] = [
    mark === undefined ? undefined : barrierOf(mark, state),
    state.closeLine === undefined
      ? undefined
      : { kind: 'close', at: atLine(Math.min(state.closeLine, total)) },
    notice === undefined
      ? undefined
      : { kind: 'notice', at: atLine(Math.min(notice.line, total)), notice },
  ];
  let first: Barrier | undefined;
  for (const one of candidates) {
    if (one !== undefined && (first === undefined || isBefore(one.at, first.at))) first = one;
  }
  return first;
}

function barrierOf(mark: Mark, state: OutboxState): Barrier | undefined {
  if (mark.what.kind === 'mode') {
    // Leaving is the screen row's own affair, unless the entering was never seen.
    if (mark.what.mode === 'log' && openScreen(state) !== undefined) return undefined;
    return { kind: 'screen', at: atLine(mark.line), mark };
  }
  if (mark.what.kind !== 'command-start' || state.away) return undefined;
  const prompt = promptBefore(mark, state);
  const at = atLine(Math.min(prompt ?? mark.line, mark.line));
  // Short commands share a message; after a person's message the chunk starts there already.
  const count = at.line - frontier(state).line;
  return count >= COMMAND_LINES_MIN ? { kind: 'command', at, mark } : undefined;
}

/** A message per `cd` would bury a thread, and cost two calls each. */
const COMMAND_LINES_MIN = 20;

function promptBefore(mark: Mark, state: OutboxState): number | undefined {
  const prompt = state.marks.findLast(
    (one) => one.what.kind === 'prompt-start' && one.seq < mark.seq,
  );
  return prompt?.line ?? state.promptLine;
}

function openScreen(state: OutboxState): OutboxRow | undefined {
  return state.rows.find((row) => row.kind === 'screen' && row.frameMark === undefined);
}

function openText(state: OutboxState): OutboxRow | undefined {
  const last = state.lastCovering;
  return last !== undefined && last.end === undefined && isLive(last) ? last : undefined;
}

function isLive(row: OutboxRow): boolean {
  return row.state === 'intent' || row.state === 'posted';
}

/** Where the next chunk starts. */
export function frontier(state: OutboxState): Position {
  const last = state.lastCovering;
  return last === undefined ? atLine(state.firstLine) : (last.end ?? last.start);
}

// Changes without a call.

function planMarks(state: OutboxState): Step | undefined {
  let nextMark = state.nextMark;
  let promptLine = state.promptLine;
  for (const mark of state.marks) {
    const screen = openScreen(state);
    if (mark.what.kind === 'mode' && mark.what.mode === 'log' && screen !== undefined) {
      const left = { ...screen, frameMark: mark.seq };
      return change('screen-left', { rows: [left], nextMark: mark.seq + 1, promptLine });
    }
    if (barrierOf(mark, state) !== undefined) break;
    if (mark.what.kind === 'prompt-start') promptLine = mark.line;
    nextMark = mark.seq + 1;
  }
  return nextMark === state.nextMark ? undefined : change('marks', { nextMark, promptLine });
}

function change(why: string, what: Change): Step {
  return { kind: 'change', change: what, why };
}

/** CLOSE, and new bounds when lines have outgrown their message. */
function planBounds(
  input: PlanInput,
  barrier: Barrier | undefined,
  reach: Position,
): Step | undefined {
  return planOverflow(input, reach) ?? planClose(input, barrier, reach);
}

/** Rows are contiguous: what one message loses, the next one gains. */
function planOverflow(input: PlanInput, reach: Position): Step | undefined {
  const changed: OutboxRow[] = [];
  let moved: Position | undefined;
  for (const row of input.state.rows) {
    if (row.kind !== 'text') continue;
    const start = moved ?? row.start;
    const end = endWithin({ ...row, start }, input, reach);
    const isChanged = !samePosition(start, row.start) || !sameEnd(end, row.end);
    if (isChanged) changed.push({ ...row, start, end });
    moved = isChanged ? end : undefined;
  }
  return changed.length === 0 ? undefined : change('bounds', { rows: changed });
}

function endWithin(row: OutboxRow, input: PlanInput, reach: Position): Position | undefined {
  const { transcript, look } = input;
  const end = later(row.end ?? reach, row.start);
  const inside = earlier(end, atLine(transcript.total));
  const fit = fitEnd(transcript.lineAt, row.start, inside, look.budget, look.colour);
  const isFull = isBefore(fit, inside) && transcript.lineAt(fit.line) !== undefined;
  return isFull ? fit : row.end === undefined ? undefined : end;
}

function sameEnd(a: Position | undefined, b: Position | undefined): boolean {
  return a === undefined || b === undefined ? a === b : samePosition(a, b);
}

function planClose(
  input: PlanInput,
  barrier: Barrier | undefined,
  reach: Position,
): Step | undefined {
  const { state, transcript, nowMs, limits } = input;
  const open = openText(state);
  if (open === undefined) return planPassed(state, barrier);
  if (open.start.line < transcript.lostBefore) {
    return closeAt(input, open, atLine(transcript.lostBefore), 'lost');
  }
  if (barrier !== undefined && isBefore(barrier.at, atLine(transcript.total + 1))) {
    return closeAt(input, open, closingEnd(open, barrier), barrier.kind);
  }
  if (open.kind === 'flood' && input.quietMs >= limits.floodQuietMs) {
    return closeAt(input, open, later(open.start, reach), 'flood-quiet');
  }
  if (open.kind === 'text' && isOld(open, nowMs, limits) && needsEdit(open, input, reach)) {
    return closeAt(input, open, later(open.start, atLine(transcript.finalCount)), 'old');
  }
  return undefined;
}

/** An emptied message says nothing: the line that was answered stays with it. */
function closingEnd(open: OutboxRow, barrier: Barrier): Position {
  if (isBefore(open.start, barrier.at)) return barrier.at;
  return barrier.kind === 'screen' ? open.start : atLine(open.start.line + 1);
}

/** A person's message where nothing is open closes nothing. */
function planPassed(state: OutboxState, barrier: Barrier | undefined): Step | undefined {
  if (barrier?.kind !== 'close' || openScreen(state) !== undefined) return undefined;
  return change('nothing-open', { closed: true });
}

function isOld(row: OutboxRow, nowMs: number, limits: DeliveryLimits): boolean {
  return nowMs - row.firstSentAtMs >= limits.rollAfterMs;
}

function needsEdit(row: OutboxRow, input: PlanInput, reach: Position): boolean {
  const content = contentOfEdit(row, input, reach);
  return content !== undefined && hashOf(content) !== row.shown?.hash;
}

function closeAt(input: PlanInput, open: OutboxRow, end: Position, why: string): Step {
  const closed = why === 'close' ? { closed: true as const } : {};
  if (open.kind === 'text') return change(why, { rows: [{ ...open, end }], ...closed });
  const { transcript, look } = input;
  // Only final lines can go into a file; what does not fit behind them goes on below.
  const shownFrom = floodShownFrom(open.start, end, transcript, look);
  const from = Math.min(shownFrom, Math.max(transcript.finalCount, open.start.line));
  const isPlain = from <= open.start.line;
  const start = isPlain ? open.start : atLine(from);
  const fit = fitEnd(transcript.lineAt, start, later(start, end), look.budget, look.colour);
  if (isPlain) return change(why, { rows: [{ ...open, kind: 'text', end: fit }], ...closed });
  const body: FileBody = {
    fileName: `lines-${open.start.line + 1}-${from}.txt`,
    source: { kind: 'lines', from: open.start.line, fromCol: open.start.col, to: from },
  };
  const row = { ...open, end: fit, omitTo: from };
  return change(why, { rows: [row], ...closed, file: { line: fit.line, body } });
}

/** SEAL: final, acknowledged, nothing in doubt. */
function planSeals(input: PlanInput, reach: Position): Step | undefined {
  const sealed = input.state.rows.filter((row) => isSealable(row, input, reach));
  if (sealed.length === 0) return undefined;
  return change('sealed', { rows: sealed.map((row) => ({ ...row, state: 'sealed' as const })) });
}

function isSealable(row: OutboxRow, input: PlanInput, reach: Position): boolean {
  if (row.state !== 'posted' || row.kind === 'root') return false;
  if (row.pending !== undefined || row.doubtUntilMs !== undefined) return false;
  if (row.kind === 'file') return true;
  if (row.kind === 'notice') {
    const isKept = (row.body as NoticeBody).keep === true;
    return !isKept && row.shown !== undefined && !needsEdit(row, input, reach);
  }
  if (row.kind === 'screen' && row.frameMark === undefined) return false;
  if (row.end === undefined || !isFinal(row.end, input.transcript.finalCount)) return false;
  // What can no longer be had can no longer be put right.
  if (isCovering(row) && row.start.line < input.transcript.lostBefore) return true;
  return row.shown !== undefined && !needsEdit(row, input, reach);
}

// Edits.

interface Edits {
  readonly step: Step | undefined;
  readonly wakeMs: number | undefined;
  /** A row does not show yet what it should: what comes after it waits. */
  readonly isBehind: boolean;
}

function planEdits(input: PlanInput, reach: Position): Edits {
  let wakeMs: number | undefined;
  let isBehind = false;
  for (const row of input.state.rows) {
    if (row.state !== 'posted') continue;
    const wish = editOf(row, input, reach);
    if (wish === undefined) continue;
    if (wish.atMs <= input.nowMs) return { step: wish.step, wakeMs, isBehind };
    wakeMs = Math.min(wakeMs ?? wish.atMs, wish.atMs);
    if (wish.isBehind) isBehind = true;
  }
  return { step: undefined, wakeMs, isBehind };
}

interface Wish {
  readonly step: Step;
  readonly atMs: number;
  readonly isBehind: boolean;
}

function editOf(row: OutboxRow, input: PlanInput, reach: Position): Wish | undefined {
  const content = contentOfEdit(row, input, reach);
  if (content === undefined) return undefined;
  const hash = hashOf(content);
  const isShown = row.shown?.hash === hash && row.pending === undefined;
  if (isShown && row.doubtUntilMs === undefined) return undefined;
  const isOpen = isOpenRow(row);
  const isMoving = isOpen || isMovingRow(row, input.transcript);
  const lane: Lane = row.kind === 'screen' ? 'screen' : isMoving ? 'live' : 'final';
  const step: Step = { kind: 'edit', row, content, hash, lane, isLive: isOpen };
  // Shown, but an older edit may still land: repeated once that has become impossible.
  if (isShown) return { step, atMs: row.doubtUntilMs ?? input.nowMs, isBehind: false };
  const isUnknown = row.shown === undefined || row.pending !== undefined;
  const atMs = isMoving && !isUnknown ? gateOf(row, input) : input.nowMs;
  return { step, atMs, isBehind: !isOpen && row.kind !== 'root' };
}

function gateOf(row: OutboxRow, input: PlanInput): number {
  const gate = row.kind === 'screen' ? input.gateMs.screen : input.gateMs.text;
  return gate ?? input.nowMs;
}

function isMovingRow(row: OutboxRow, transcript: Transcript): boolean {
  return isCovering(row) && !isFinal(row.end ?? row.start, transcript.finalCount);
}

function isOpenRow(row: OutboxRow): boolean {
  if (row.kind === 'screen') return row.frameMark === undefined;
  return isCovering(row) && row.end === undefined;
}

function contentOfEdit(row: OutboxRow, input: PlanInput, reach: Position): Content | undefined {
  const { state, transcript, look } = input;
  if (row.kind !== 'notice') return contentOf(row, transcript, reach, state.frames, look);
  const body = row.body as NoticeBody;
  // What it quoted is as it was when it was posted.
  if (body.quote !== undefined || body.screen === true) return undefined;
  return noticeContent(body, [], undefined, look);
}

// New messages.

function planText(
  input: PlanInput,
  reach: Position,
  barrier: Barrier | undefined,
): Step | undefined {
  const { state, transcript, look, limits, nowMs, gateMs } = input;
  if (openText(state) !== undefined) return undefined;
  const start = frontier(state);
  if (!isBefore(start, reach)) return undefined;
  if (start.line < transcript.lostBefore) {
    const end = atLine(transcript.lostBefore);
    const row = { ...NO_ROW, kind: 'gap' as const, start, end };
    const count = end.line - start.line;
    const content = { head: `${count} lines are missing here: they are no longer kept.` };
    return { kind: 'post', row, content, lane: 'final', change: {}, isLive: false };
  }
  if (isBlankBetween(transcript, start, reach)) return undefined;
  const isClosed = barrier !== undefined && !isBefore(reach, barrier.at);
  const atMs = isClosed ? nowMs : (gateMs.text ?? nowMs);
  if (atMs > nowMs) return { kind: 'wait', atMs };
  const most = state.away ? limits.catchUpMessages : limits.floodMessages;
  const isFlood = isFlooding(input, start, reach, most);
  const fit = fitEnd(transcript.lineAt, start, reach, look.budget, look.colour);
  const end = isBefore(fit, reach) || isClosed ? fit : undefined;
  const body: TextBody | undefined = noteFor(state, isFlood);
  const row = isFlood
    ? { ...NO_ROW, kind: 'flood' as const, start, end: undefined, body }
    : { ...NO_ROW, kind: 'text' as const, start, end, body };
  const content = contentOf({ ...AS_ROW, ...row }, transcript, reach, state.frames, look);
  if (content === undefined) return undefined;
  const isLast = row.end === undefined;
  return {
    kind: 'post',
    row,
    content,
    lane: isLast ? 'live' : 'final',
    change: {},
    isLive: isLast,
  };
}

const NO_ROW = {
  end: undefined,
  omitTo: undefined,
  frameMark: undefined,
  body: undefined,
} as const;
/** Completes a row that is not written yet, to render it. */
const AS_ROW: OutboxRow = {
  ...NO_ROW,
  b: '',
  s: -1,
  kind: 'text',
  state: 'intent',
  start: { line: 0, col: 0 },
  nonce: '',
  anchor: undefined,
  sentAtMs: 0,
  firstSentAtMs: 0,
  messageId: undefined,
  shown: undefined,
  pending: undefined,
  doubtUntilMs: undefined,
  fileId: undefined,
};

function noteFor(state: OutboxState, isFlood: boolean): TextBody | undefined {
  const last = state.lastCovering;
  const isDeleted =
    last?.state === 'gone' && last.end !== undefined && samePosition(last.start, last.end);
  if (isDeleted) return { note: 'deleted' };
  return state.away && isFlood ? { note: 'away' } : undefined;
}

/** True when what waits would take more than `most` new messages. */
function isFlooding(input: PlanInput, start: Position, reach: Position, most: number): boolean {
  const { transcript, look } = input;
  let at = start;
  for (let count = 0; count < most; count += 1) {
    const end = fitEnd(transcript.lineAt, at, reach, look.budget, look.colour);
    if (!isBefore(end, reach)) return false;
    // Stopped at a line that was not even loaded: far more than `most`.
    if (transcript.lineAt(end.line) === undefined) return true;
    at = end;
  }
  return true;
}

/** Everything before the barrier is shown: now it is its turn. */
function planBarrier(input: PlanInput, barrier: Barrier): Step | undefined {
  const { state, transcript, look } = input;
  switch (barrier.kind) {
    case 'close':
      return freezeScreen(input) ?? change('closed', { closed: true });
    case 'command':
      return change('command', {
        nextMark: barrier.mark.seq + 1,
        promptLine: promptBefore(barrier.mark, state),
      });
    case 'screen':
      return planScreenMark(input, barrier.mark);
    case 'notice': {
      const frozen = freezeScreen(input);
      if (frozen !== undefined) return frozen;
      const { notice } = barrier;
      const at = later(frontier(state), atLine(Math.min(notice.line, transcript.total)));
      const row = { ...NO_ROW, kind: notice.kind, start: at, end: at, body: notice.body };
      if (notice.kind === 'file') {
        return { kind: 'upload', row, body: notice.body as FileBody, notice: notice.id };
      }
      const content = noticeContent(
        notice.body as NoticeBody,
        state.quoted,
        transcript.frame,
        look,
      );
      const lane = notice.lane as Lane;
      return { kind: 'post', row, content, lane, change: {}, notice: notice.id, isLive: false };
    }
  }
}

/** A live screen above a new message stays as it is; it goes on below when it changes. */
function freezeScreen(input: PlanInput): Step | undefined {
  const open = openScreen(input.state);
  if (open === undefined) return undefined;
  if (open.shown === undefined || open.pending !== undefined || open.doubtUntilMs !== undefined) {
    return { kind: 'wait', atMs: undefined };
  }
  const sealed = { ...open, state: 'sealed' as const };
  return change('screen-frozen', { rows: [sealed], lastScreenHash: open.shown.hash });
}

/** After an outage, mode changes that may follow a frame that is still shown. */
const SCREENS_CAUGHT_UP = 8;

/** Entering screen mode, or having left one that was never shown. */
function planScreenMark(input: PlanInput, mark: Mark): Step {
  const { state } = input;
  const leaving = state.marks.find(
    (one) => one.seq >= mark.seq && one.what.kind === 'mode' && one.what.mode === 'log',
  );
  const nextMark = (leaving?.seq ?? mark.seq) + 1;
  if (leaving?.what.kind !== 'mode' || leaving.what.mode !== 'log') {
    return change('screen-entered', { nextMark, lastScreenHash: undefined });
  }
  const laterCount = state.marks.filter(
    (one) => one.seq > leaving.seq && one.what.kind === 'mode',
  ).length;
  const isOlder = state.away && laterCount > SCREENS_CAUGHT_UP;
  if (isOlder || isBlankFrame(leaving.what.frame)) return change('screen-skipped', { nextMark });
  const at = atLine(mark.line);
  const row = { ...NO_ROW, kind: 'screen' as const, start: at, end: at, frameMark: leaving.seq };
  const frames = new Map([[leaving.seq, leaving.what.frame]]);
  const content = contentOf({ ...AS_ROW, ...row }, input.transcript, at, frames, input.look);
  if (content === undefined) return change('screen-skipped', { nextMark });
  return { kind: 'post', row, content, lane: 'final', change: { nextMark }, isLive: false };
}

/** The live screen, while the program shows one. */
function planScreen(input: PlanInput): Step | undefined {
  const { state, transcript, look, nowMs, limits } = input;
  if (transcript.mode !== 'screen' || transcript.frame === undefined) return undefined;
  if (state.marks.length > 0 || isBlankFrame(transcript.frame)) return undefined;
  const open = openScreen(state);
  if (open !== undefined) {
    if (!isOld(open, nowMs, limits)) return undefined;
    return freezeScreen(input);
  }
  const at = atLine(Math.min(transcript.finalCount, transcript.total));
  const row = { ...NO_ROW, kind: 'screen' as const, start: at, end: at };
  const content = contentOf({ ...AS_ROW, ...row }, transcript, at, state.frames, look);
  if (content === undefined || hashOf(content) === state.lastScreenHash) return undefined;
  const atMs = input.gateMs.screen ?? nowMs;
  if (atMs > nowMs) return { kind: 'wait', atMs };
  return { kind: 'post', row, content, lane: 'screen', change: {}, isLive: true };
}
