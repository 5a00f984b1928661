// The one writer of a thread: asks the plan, makes the one call, commits what became of it. Every
// message of ours in the thread goes through here. It never decides what to show (plan.ts) nor what
// an outcome means for a row (outcomes.ts); it owns the order of commit and call.

import type { Clock, Timer } from '../../base/clock.ts';
import { errorCode, errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { activateBinding, type Binding, parkBinding } from '../../store/bindings.ts';
import {
  knownMessageIds,
  type OutboxRow,
  type QueueOutcome,
  queueNotice,
  reviseNotice,
  rootInFlight,
  rowByName,
  rowOfMessage,
} from '../../store/outbox-rows.ts';
import type { Store } from '../../store/store.ts';
import type { Frame, Line, Mark } from '../../term/values.ts';
import type {
  ChatPlatform,
  Content,
  Found,
  Outcome,
  RowName,
  ThreadRoot,
} from '../chat-platform.ts';
import { type Redact, redactFrame } from '../render/redact.ts';
import { type DeliveryLimits, deliveryLimits } from './limits.ts';
import {
  edited,
  editInDoubt,
  editing,
  editRefused,
  isNewerMessage,
  posted,
  vanished,
} from './outcomes.ts';
import { Pacing, type PacingLimits, pacingLimits } from './pacing.ts';
import { frontier, type Lane, type OutboxState, plan, type Step } from './plan.ts';
import {
  atLine,
  type FileBody,
  hashOf,
  type Look,
  type NoticeBody,
  noticeContent,
  type TextBody,
} from './rows.ts';
import type { Need, Scheduler, Seat } from './scheduler.ts';
import { marksUpTo, plainText, ThreadState } from './state.ts';
import { type Transcript, TranscriptReader, type TranscriptSource } from './transcript.ts';

export interface ThreadOutboxOptions {
  readonly binding: Binding;
  readonly store: Store;
  readonly platform: ChatPlatform;
  /** `gone`: the session can never be read again; what is shown stays as it is. */
  readonly source: TranscriptSource | 'gone';
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly log: Log;
  /** Title and content of the root message; the bridge's words. */
  readonly root: () => { readonly title: string; readonly content: Content };
  /** Makes the bytes of files that are not plain lines. `failed` is told in the thread. */
  readonly makeFile: (what: unknown) => Promise<MadeFile>;
  readonly redact: Redact;
  readonly decorate?: Look['decorate'];
  readonly colour?: boolean;
  readonly limits?: Partial<DeliveryLimits>;
  readonly pacing?: Partial<PacingLimits>;
  /** Called when `status` changed. */
  readonly onStatus?: (status: OutboxStatus) => void;
  /** Called once the root stands and the binding is active. */
  readonly onRoot?: (binding: Binding) => void;
}

export type MadeFile =
  | { readonly kind: 'made'; readonly mediaType: string; readonly bytes: Uint8Array }
  | { readonly kind: 'failed'; readonly because: string };

export type OutboxStatus =
  | { readonly kind: 'ok' }
  /** Waits alone, and is tried again then or when something changes. */
  | { readonly kind: 'parked'; readonly because: string; readonly untilMs: number }
  /** Calls fail for reasons that are not this thread's. */
  | { readonly kind: 'failing'; readonly because: string };

export interface NoticeOptions {
  /** `end`: below all that is visible now; `cursor`: above the line the cursor is on. */
  readonly at?: 'end' | 'cursor' | { readonly line: number };
  readonly lane?: Lane;
  /** Told at most once in the life of the binding under this key. */
  readonly once?: string;
}

/** When to look again after a call. */
type Ended = number | 'again';

const HEAD_MESSAGES = 2;
const MARKS_READ_MAX = 500;
const PARK_FIRST_MS = 15_000;
const PARK_MAX_MS = 15 * 60_000;
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** Calls have failed for this long: what piles up meanwhile is summed up, not replayed. */
const AWAY_MS = 60_000;
/** Lines before a piece of a file that a masked block may reach back. */
const CONTEXT_LINES = 60;
const FILE_BYTES_MAX = 8_000_000;

export class ThreadOutbox {
  readonly #options: ThreadOutboxOptions;
  readonly #limits: DeliveryLimits;
  readonly #look: Look;
  readonly #state: ThreadState;
  readonly #pacing: Pacing;
  readonly #seat: Seat;
  readonly #startedWallMs: number;
  readonly #startedMs: number;
  #binding: Binding;
  #source: TranscriptSource | 'gone';
  #reader: TranscriptReader | undefined;
  #status: OutboxStatus = { kind: 'ok' };
  #parkCount: number;
  #retryAtMs = 0;
  #retryCount = 0;
  #failingSinceMs: number | undefined;
  #droppedNotices = 0;
  #wake: (() => void) | undefined;
  #isWoken = false;
  /** Set while nothing but the transcript may have changed since the last plan said wait. */
  #waitsForGate = false;
  #waitMs: number | undefined;
  #closing: { readonly flushUntilMs: number } | undefined;
  #running: Promise<void> | undefined;
  #idleWaiters: (() => void)[] = [];

  constructor(options: ThreadOutboxOptions) {
    const { clock, platform, binding } = options;
    this.#options = options;
    this.#binding = binding;
    this.#limits = {
      ...deliveryLimits(platform.kind, platform.repeatWindowMs),
      ...options.limits,
    };
    this.#startedWallMs = clock.wallMs();
    this.#startedMs = clock.monotonicMs();
    this.#source = options.source;
    this.#reader = this.#readerOf(options.source);
    this.#look = {
      budget: platform.budget,
      colour: options.colour ?? false,
      decorate: options.decorate ?? (() => ({})),
      root: () => options.root().content,
      floodLastLines: this.#limits.floodLastLines,
    };
    this.#pacing = new Pacing({ ...pacingLimits(platform.kind), ...options.pacing });
    this.#seat = { name: binding.b, wake: () => this.#poke() };
    this.#state = new ThreadState(options.store, binding, this.#nowMs(), this.#limits.editSettleMs);
    this.#parkCount = binding.park?.count ?? 0;
    if (binding.park !== undefined && binding.park.untilWallMs > this.#nowMs()) {
      this.#status = {
        kind: 'parked',
        because: binding.park.reason,
        untilMs: Math.min(binding.park.untilWallMs, this.#nowMs() + PARK_MAX_MS),
      };
    }
    const newest = this.#state.value.lastCovering;
    if (newest !== undefined && this.#nowMs() - newest.sentAtMs > AWAY_MS) {
      this.#state.note({ away: true });
    }
  }

  get binding(): Binding {
    return this.#binding;
  }

  get status(): OutboxStatus {
    return this.#status;
  }

  /** Begins to work. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** The transcript moved. */
  notify(): void {
    this.#pacing.changed(this.#nowMs());
    this.#wakeUp();
  }

  /** Something outside the transcript changed: the root's words, a decoration, the platform. */
  refresh(): void {
    this.#poke();
  }

  /** The session is reachable by another feed, or is proven gone. */
  setSource(source: TranscriptSource | 'gone'): void {
    this.#source = source;
    this.#reader = this.#readerOf(source);
    this.notify();
    this.#poke();
  }

  /** Says something in its place in the transcript. Durable when this returns. */
  notice(body: NoticeBody, options: NoticeOptions = {}): QueueOutcome {
    return this.#queue('notice', body, options);
  }

  /** Attaches a file in its place in the transcript. Durable when this returns. */
  file(body: FileBody, options: NoticeOptions = {}): QueueOutcome {
    return this.#queue('file', body, options);
  }

  /**
   * Changes a notice that was queued with `keep` under `name`, or withdraws it (undefined) if it is
   * not shown yet. False when there is none.
   */
  revise(name: string, body: NoticeBody | undefined): boolean {
    const queued = this.#state.value.notices.find(
      (notice) => notice.kind === 'notice' && (notice.body as NoticeBody).name === name,
    );
    if (queued !== undefined) {
      if (body === undefined) this.#state.drop(queued.id);
      else reviseNotice(this.#options.store, queued.id, body);
      this.#state.reloadNotices();
      this.#poke();
      return true;
    }
    const row = this.#state.value.rows.find(
      (one) => one.kind === 'notice' && (one.body as NoticeBody).name === name,
    );
    if (row === undefined || body === undefined) return false;
    this.#state.save({ ...row, body });
    this.#poke();
    return true;
  }

  /** A person wrote in the thread: what comes now belongs below their message. */
  personSpoke(): void {
    const view = this.#source === 'gone' ? undefined : this.#source.view;
    this.#pacing.reset();
    this.#options.scheduler.gotInput(this.#seat);
    if (view !== undefined) this.#state.note({ closeLine: view.cursor.line });
    this.#unpark();
    this.#poke();
  }

  /** HEAL: one of our messages was seen. A second one of a row is deleted, the newer of the two. */
  ownMessage(messageId: string, name: RowName): void {
    if (name.b !== this.#state.b) return;
    const row = this.#state.row(name.s) ?? rowByName(this.#options.store, name.b, name.s);
    const known = row?.messageId;
    if (row === undefined || known === undefined || known === messageId) return;
    if (row.kind === 'file' || row.state === 'gone') return;
    // Posted is when both are known. A sealed row keeps its message whatever turns up later.
    const isOlder = isNewerMessage(known, messageId) && row.state === 'posted';
    if (isOlder) this.#state.save(posted(row, messageId, undefined));
    const surplus = isOlder ? known : messageId;
    this.#options.log.warn('outbox.duplicate-found', { b: name.b, s: name.s });
    this.#state.note({ duplicates: [...this.#state.value.duplicates, surplus] });
    this.#poke();
  }

  /** The platform reports a change of the thread: whatever was parked for it is tried again. */
  placeChanged(change: string, messageId: string | undefined): void {
    if (change === 'message-deleted' && messageId !== undefined) this.#deleted(messageId);
    this.#unpark();
    this.#poke();
  }

  /** Masks what this thread may not show: for answers that are not a row. */
  redacted(lines: readonly Line[]): readonly Line[] {
    return this.#options.redact(lines, []);
  }

  /** As `redacted`, for a screen that is drawn. */
  maskedFrame(frame: Frame): Frame {
    return redactFrame(this.#options.redact, frame);
  }

  /** Resolves when there is nothing to do but wait for the transcript or a person. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
      this.#poke();
    });
  }

  /** Shows what can be shown within `flushMs`, then stops. A call in flight is always waited for. */
  async close(flushMs: number): Promise<void> {
    this.#closing ??= { flushUntilMs: this.#nowMs() + flushMs };
    this.#poke();
    await this.#running;
    this.#options.scheduler.leave(this.#seat);
  }

  // The loop.

  async #run(): Promise<void> {
    for (;;) {
      let atMs: number | 'again' | undefined;
      const isClosing = this.#closing !== undefined;
      try {
        atMs = this.#isOver() ? undefined : await this.#turn();
      } catch (error) {
        atMs = this.#failed(error);
      }
      // What was planned before closing began is not the last word.
      if (this.#isOver() || (isClosing && this.#isNothingDue(atMs))) break;
      if (atMs !== 'again') await this.#sleepUntil(atMs);
    }
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  /** Stopping, and what comes next comes after the grace: waiting it out would only delay the stop. */
  #isNothingDue(atMs: number | 'again' | undefined): boolean {
    if (this.#closing === undefined || atMs === 'again') return false;
    return atMs === undefined || atMs >= this.#closing.flushUntilMs;
  }

  #isOver(): boolean {
    return this.#closing !== undefined && this.#nowMs() >= this.#closing.flushUntilMs;
  }

  /** Host or store trouble: tried again, slower each time. */
  #failed(error: unknown): number {
    const code = errorCode(error);
    const fields = { b: this.#state.b, code: code ?? 'unexpected', because: errorText(error) };
    if (code === 'host-unreachable') this.#options.log.info('outbox.waits-for-host', fields);
    else this.#options.log.error('outbox.turn-failed', fields);
    return this.#retryLater();
  }

  #retryLater(): number {
    const delayMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** this.#retryCount);
    this.#retryCount += 1;
    this.#retryAtMs = this.#nowMs() + delayMs;
    return this.#retryAtMs;
  }

  /** One plan, at most one call. Answers when to look again. */
  async #turn(): Promise<number | 'again' | undefined> {
    const blockedMs = this.#blockedUntilMs();
    if (blockedMs !== undefined) return blockedMs;
    if (this.#binding.state === 'opening') return this.#rootTurn();
    const transcript = await this.#readAll();
    if (transcript === undefined) return undefined;
    const step = this.#plan(transcript);
    if (step.kind !== 'wait') {
      this.#waitsForGate = false;
      return this.#do(step, transcript);
    }
    return this.#caughtUp(step.atMs);
  }

  #blockedUntilMs(): number | undefined {
    const nowMs = this.#nowMs();
    if (this.#status.kind === 'parked' && this.#status.untilMs > nowMs) return this.#status.untilMs;
    if (this.#retryAtMs > nowMs) return this.#retryAtMs;
    if (!this.#waitsForGate) return undefined;
    const gateMs = this.#gateMs()[this.#modeKind()];
    if (gateMs === undefined || gateMs <= nowMs) return undefined;
    const atMs = Math.min(gateMs, this.#waitMs ?? gateMs);
    return atMs > nowMs ? atMs : undefined;
  }

  /** The newest transcript, and what else the plan wants to know at its offset. */
  async #readAll(): Promise<Transcript | undefined> {
    for (let round = 0; ; round += 1) {
      const transcript = await this.#capture();
      if (transcript === undefined) return undefined;
      await this.#readMarks(transcript);
      await this.#readQuotes();
      if (round === 2 || !this.#isStale(transcript)) return transcript;
    }
  }

  #isStale(transcript: Transcript): boolean {
    return this.#source !== 'gone' && this.#source.view?.offset !== transcript.offset;
  }

  /** Places that were named by a newer transcript than this wait for one that has them. */
  #placesIn(transcript: Transcript): Pick<OutboxState, 'notices' | 'closeLine'> {
    const { notices, closeLine } = this.#state.value;
    if (!this.#isStale(transcript)) return { notices, closeLine };
    const isKnown = (line: number | undefined): boolean => (line ?? 0) <= transcript.total;
    return {
      notices: notices.filter(({ line }) => isKnown(line)),
      closeLine: isKnown(closeLine) ? closeLine : undefined,
    };
  }

  #plan(transcript: Transcript): Step {
    const marks = marksUpTo(this.#state.value.marks, transcript.offset);
    return plan({
      state: { ...this.#state.value, ...this.#placesIn(transcript), marks },
      transcript,
      look: this.#look,
      limits: this.#limits,
      nowMs: this.#nowMs(),
      gateMs: this.#closing === undefined ? this.#gateMs() : { text: undefined, screen: undefined },
      quietMs: this.#closing === undefined ? this.#pacing.quietMs(this.#nowMs()) : Infinity,
    });
  }

  /** Nothing to do now: when to look again. */
  #caughtUp(plannedMs: number | undefined): number | undefined {
    const atMs = this.#isFloodOpen() ? this.#floodEndMs(plannedMs) : plannedMs;
    this.#waitsForGate = true;
    this.#waitMs = atMs;
    this.#options.scheduler.withdraw(this.#seat);
    const nothingLeft = atMs === undefined;
    if (nothingLeft && this.#failingSinceMs === undefined) this.#state.note({ away: false });
    if (!nothingLeft && atMs - this.#nowMs() < RETRY_MAX_MS) return atMs;
    if (this.#droppedNotices > 0) this.#tellDropped();
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
    return atMs;
  }

  #isFloodOpen(): boolean {
    const last = this.#state.value.lastCovering;
    return last?.kind === 'flood' && last.end === undefined;
  }

  #floodEndMs(atMs: number | undefined): number {
    const nowMs = this.#nowMs();
    const quietMs = Math.min(this.#limits.floodQuietMs, this.#pacing.quietMs(nowMs));
    return Math.min(atMs ?? Infinity, nowMs + this.#limits.floodQuietMs - quietMs);
  }

  #tellDropped(): void {
    const count = this.#droppedNotices;
    this.#droppedNotices = 0;
    this.notice({ head: `${count} more notices were left out here.` }, { lane: 'final' });
  }

  // What it reads.

  #readerOf(source: TranscriptSource | 'gone'): TranscriptReader | undefined {
    return source === 'gone' ? undefined : new TranscriptReader(source, this.#options.redact);
  }

  async #capture(): Promise<Transcript | undefined> {
    if (this.#reader === undefined) return this.#frozenTranscript();
    const { budget } = this.#options.platform;
    const headMax = budget.linesMax * (this.#limits.floodMessages + HEAD_MESSAGES);
    const lastMax = this.#limits.floodLastLines + 5;
    return this.#reader.capture({ from: this.#firstNeeded(), headMax, lastMax });
  }

  #firstNeeded(): number {
    const { rows } = this.#state.value;
    let from = frontier(this.#state.value).line;
    for (const row of rows) {
      if (row.kind === 'text') from = Math.min(from, row.start.line);
      if (row.kind === 'flood' && row.omitTo !== undefined) from = Math.min(from, row.omitTo);
    }
    return from;
  }

  /** The session is gone: nothing more can be read, what is shown stays. */
  #frozenTranscript(): Transcript {
    const last = this.#state.value.lastCovering;
    const isOpen = last !== undefined && last.end === undefined && last.state !== 'gone';
    const end = frontier(this.#state.value).line + (isOpen ? 1 : 0);
    return {
      offset: Number.MAX_SAFE_INTEGER,
      finalCount: end,
      total: end,
      mode: 'log',
      frame: undefined,
      markCount: 0,
      lostBefore: end,
      lineAt: () => undefined,
    };
  }

  async #readMarks(transcript: Transcript): Promise<void> {
    if (this.#source === 'gone') return;
    const { marks, nextMark } = this.#state.value;
    const next = marks.at(-1)?.seq ?? nextMark - 1;
    if (next + 1 < transcript.markCount && marks.length < 4 * MARKS_READ_MAX) {
      const read = await this.#source.readMarks(next + 1, MARKS_READ_MAX);
      this.#state.note({ marks: [...marks, ...read.map((mark) => this.#maskedMark(mark))] });
    }
    await this.#readFrames(this.#source);
  }

  #maskedMark(mark: Mark): Mark {
    if (mark.what.kind !== 'mode' || mark.what.mode !== 'log') return mark;
    const frame = redactFrame(this.#options.redact, mark.what.frame);
    this.#state.noteFrame(mark.seq, frame);
    return { ...mark, what: { ...mark.what, frame } };
  }

  /** After a restart: the last frames of rows that were not sealed. */
  async #readFrames(source: TranscriptSource): Promise<void> {
    for (const { frameMark } of this.#state.value.rows) {
      if (frameMark === undefined || this.#state.value.frames.has(frameMark)) continue;
      const [mark] = await source.readMarks(frameMark, 1);
      if (mark !== undefined) this.#maskedMark(mark);
    }
  }

  async #readQuotes(): Promise<void> {
    const doubtful = this.#state.value.rows.find((row) => row.state === 'intent');
    const body = (doubtful?.kind === 'notice' ? doubtful : this.#state.value.notices[0])?.body;
    const ranges = ((body ?? {}) as NoticeBody).quote ?? [];
    if (ranges.length === 0 || this.#source === 'gone') {
      if (this.#state.value.quoted.length > 0) this.#state.note({ quoted: [] });
      return;
    }
    const lines = [];
    for (const [from, to] of ranges.slice(0, 200)) {
      const read = await this.#source.readLines(from, Math.min(to, from + 500));
      lines.push(...this.#options.redact(read.lines, []));
    }
    this.#state.note({ quoted: lines.slice(0, 1_000) });
  }

  // What it does.

  async #do(step: Exclude<Step, { kind: 'wait' }>, transcript: Transcript) {
    switch (step.kind) {
      case 'change':
        this.#state.apply(step.change, this.#nowMs());
        return 'again' as const;
      case 'post':
        return this.#post(step, transcript);
      case 'repost':
        return this.#repost(step.row, step.content, transcript);
      case 'edit':
        return this.#edit(step, transcript);
      case 'look':
        return this.#lookFor(step.row);
      case 'upload':
        return this.#upload(step);
      case 'reupload':
        return this.#reupload(step.row, step.body);
      case 'delete':
        return this.#delete(step.messageId);
    }
  }

  async #post(step: Extract<Step, { kind: 'post' }>, transcript: Transcript) {
    const need = this.#need('post', step.lane);
    if (!this.#options.scheduler.tryTake(this.#seat, need)) return undefined;
    const nowMs = this.#nowMs();
    const row = this.#state.intend(step.row, step.change, step.notice, nowMs);
    this.#state.note({ lastPostMs: nowMs });
    if (step.isLive || step.row.kind === 'text') this.#pacing.flushed(nowMs);
    const outcome = await this.#options.platform.post({
      place: this.#place(),
      row: { b: row.b, s: row.s },
      content: step.content,
    });
    const version = { hash: hashOf(step.content), offset: transcript.offset };
    return this.#posted(row, outcome, version, need);
  }

  async #repost(row: OutboxRow, content: Content, transcript: Transcript) {
    const need = this.#need('post', 'final');
    if (!this.#options.scheduler.tryTake(this.#seat, need)) return undefined;
    const nowMs = this.#nowMs();
    const isFirst = this.#state.value.refused.has(row.s);
    const sent = isFirst ? { ...row, sentAtMs: nowMs } : row;
    if (isFirst) this.#state.save(sent);
    this.#state.noteRefused(row.s, false);
    this.#state.note({ lastPostMs: nowMs });
    const outcome = await this.#options.platform.post({
      place: this.#place(),
      row: { b: row.b, s: row.s },
      content,
    });
    // The answer may be the message of an earlier try, with the text it had then.
    const version = isFirst ? { hash: hashOf(content), offset: transcript.offset } : undefined;
    return this.#posted(sent, outcome, version, need);
  }

  #posted(
    row: OutboxRow,
    outcome: Outcome<{ readonly messageId: string }>,
    version: OutboxRow['shown'],
    need: Need,
  ): Ended | Promise<Ended> {
    switch (outcome.kind) {
      case 'ok':
        this.#succeeded();
        this.#adopt(row, outcome.value.messageId, version);
        return 'again';
      case 'gone':
        this.#state.save(vanished(row));
        return 'again';
      case 'in-doubt':
        return this.#doubted(outcome.detail);
      case 'refused':
        // A refused repeat says nothing about the try before it: the row stays in doubt.
        if (version !== undefined) this.#state.noteRefused(row.s, true);
        return this.#refused(row, outcome, need);
    }
  }

  /** TX2, and HEAL when the event of another message of this row came first. */
  #adopt(row: OutboxRow, messageId: string, version: OutboxRow['shown']): void {
    const current = this.#state.row(row.s) ?? row;
    const isConstant = row.kind === 'notice' && (row.body as NoticeBody).keep !== true;
    const constant = (): OutboxRow['shown'] => ({
      hash: hashOf(noticeContent(row.body as NoticeBody, [], undefined, this.#look)),
      offset: 0,
    });
    this.#state.save(posted(current, messageId, version ?? (isConstant ? constant() : undefined)));
  }

  async #edit(step: Extract<Step, { kind: 'edit' }>, transcript: Transcript) {
    const { messageId } = step.row;
    if (messageId === undefined) return undefined;
    const need = this.#need('edit', step.lane);
    if (!this.#options.scheduler.tryTake(this.#seat, need)) return undefined;
    const nowMs = this.#nowMs();
    const version = { hash: step.hash, offset: transcript.offset };
    const row = editing(step.row, version, nowMs);
    this.#state.save(row);
    if (step.isLive) this.#pacing.flushed(nowMs);
    const outcome = await this.#options.platform.edit({
      place: this.#place(),
      row: { b: row.b, s: row.s },
      messageId,
      content: step.content,
    });
    // A person's act may have changed the row meanwhile: only the call's own fields are ours.
    const current = this.#state.row(row.s) ?? row;
    switch (outcome.kind) {
      case 'ok':
        this.#succeeded();
        this.#state.save(edited(current));
        return 'again';
      case 'gone':
        this.#state.save(vanished(current));
        return 'again';
      case 'in-doubt':
        this.#state.save(editInDoubt(current, this.#limits.editSettleMs));
        return this.#doubted(outcome.detail);
      case 'refused':
        this.#state.save(editRefused(current));
        return this.#refused(current, outcome, need);
    }
  }

  // In doubt.

  async #lookFor(row: OutboxRow) {
    const need = this.#need('look', 'final');
    if (!this.#options.scheduler.tryTake(this.#seat, need)) return undefined;
    const found = await this.#find(row);
    switch (found.kind) {
      case 'found':
        this.#succeeded();
        this.#adopt(row, found.messageId, undefined);
        return 'again';
      case 'unknown':
        return this.#doubted(found.detail);
      case 'none':
        this.#succeeded();
        if (row.fileId !== undefined) return this.#missingUpload(row, row.fileId);
        // Known not to be there: sent anew, and only now.
        this.#state.noteRefused(row.s, true);
        return 'again';
    }
  }

  #find(row: OutboxRow): Promise<Found> {
    const { platform, store } = this.#options;
    if (row.fileId !== undefined) return platform.findUpload(this.#place(), row.fileId);
    return platform.findPosted({
      place: this.#place(),
      row: { b: row.b, s: row.s },
      anchor: row.anchor,
      sentAtPlatformMs: row.sentAtMs + (platform.clockSkewMs() ?? 0),
      knownIds: knownMessageIds(store, row.b),
    });
  }

  async #missingUpload(row: OutboxRow, fileId: string) {
    const readyMs = row.sentAtMs + this.#limits.uploadSettleMs;
    if (this.#nowMs() < readyMs) {
      this.#retryAtMs = Math.min(readyMs, this.#nowMs() + this.#limits.settleMs);
      return this.#retryAtMs;
    }
    const outcome = await this.#options.platform.discardUpload(fileId);
    if (outcome.kind === 'in-doubt' || outcome.kind === 'refused')
      return this.#doubted(outcome.detail);
    this.#state.save({ ...row, fileId: undefined });
    this.#state.noteRefused(row.s, true);
    return 'again';
  }

  // Files.

  async #upload(step: Extract<Step, { kind: 'upload' }>) {
    const made = await this.#bytesOf(step.body);
    if (made.kind === 'failed') {
      this.#state.drop(step.notice);
      this.notice({ head: `${step.body.fileName} could not be attached: ${made.because}` });
      return 'again';
    }
    const need = this.#need('upload', 'final');
    if (!this.#options.scheduler.tryTake(this.#seat, need)) return undefined;
    const row = this.#state.intend(step.row, {}, step.notice, this.#nowMs());
    return this.#send(row, step.body, made, need, true);
  }

  async #reupload(row: OutboxRow, body: FileBody) {
    const made = await this.#bytesOf(body);
    const need = this.#need('upload', 'final');
    if (made.kind === 'failed') return this.#abandon(row, made.because);
    if (!this.#options.scheduler.tryTake(this.#seat, need)) return undefined;
    const isFirst = this.#state.value.refused.has(row.s);
    const sent = isFirst ? { ...row, sentAtMs: this.#nowMs() } : row;
    this.#state.noteRefused(row.s, false);
    this.#state.save(sent);
    return this.#send(sent, body, made, need, isFirst);
  }

  async #send(
    row: OutboxRow,
    body: FileBody,
    made: Extract<MadeFile, { kind: 'made' }>,
    need: Need,
    isFirst: boolean,
  ) {
    this.#state.note({ lastPostMs: this.#nowMs() });
    const outcome = await this.#options.platform.upload(
      {
        place: this.#place(),
        row: { b: row.b, s: row.s },
        fileName: body.fileName,
        mediaType: made.mediaType,
        bytes: made.bytes,
        ...(body.caption === undefined ? {} : { caption: body.caption }),
      },
      async (fileId) => this.#state.save({ ...(this.#state.row(row.s) ?? row), fileId }),
    );
    const current = this.#state.row(row.s) ?? row;
    if (outcome.kind === 'refused' && isFinalRefusal(outcome.because)) {
      return this.#abandon(current, outcome.detail);
    }
    // Without a file id nothing was made visible by this try, nor by any before it (Slack).
    const isKnown = isFirst || outcome.kind === 'ok';
    return this.#posted(current, outcome, isKnown ? { hash: 'file', offset: 0 } : undefined, need);
  }

  /** B1: what was to be in a file is a stated gap instead. */
  #abandon(row: OutboxRow, because: string): 'again' {
    this.#state.save(vanished(row));
    const body = row.body as FileBody;
    this.notice({ head: `${body.fileName} could not be attached: ${because}` });
    return 'again';
  }

  async #bytesOf(body: FileBody): Promise<MadeFile> {
    if (body.source.kind === 'made') return this.#options.makeFile(body.source.what);
    if (this.#source === 'gone') {
      return { kind: 'failed', because: 'its lines can no longer be read' };
    }
    const { from, fromCol = 0, to } = body.source;
    const parts: string[] = [];
    let before: readonly Line[] = [];
    let sizeBytes = 0;
    for (let at = from; at < to && sizeBytes < FILE_BYTES_MAX; ) {
      const read = await this.#source.readLines(at, Math.min(to, at + 1_000));
      if (read.gap !== undefined) {
        parts.push(`[${read.gap.to - at} lines are no longer kept]\n`);
      }
      const lines = this.#options.redact(read.lines, before);
      before = read.lines.slice(-CONTEXT_LINES);
      const text = plainText(lines).slice(at === from ? fromCol : 0);
      parts.push(text);
      sizeBytes += text.length;
      const next = read.from + read.lines.length;
      if (next <= at) break;
      at = next;
      if (sizeBytes >= FILE_BYTES_MAX && at < to) {
        parts.push(`[${to - at} more lines: a file may have ${FILE_BYTES_MAX / 1e6} MB]\n`);
      }
    }
    const bytes = Buffer.from(parts.join(''));
    if (bytes.length === 0) return { kind: 'failed', because: 'it is empty' };
    return { kind: 'made', mediaType: 'text/plain', bytes };
  }

  // HEAL.

  async #delete(messageId: string) {
    const need = this.#need('delete', 'final');
    if (!this.#options.scheduler.tryTake(this.#seat, need)) return undefined;
    const outcome = await this.#options.platform.delete(this.#place(), messageId);
    if (outcome.kind === 'in-doubt') return this.#doubted(outcome.detail);
    if (outcome.kind === 'refused') return this.#refused(undefined, outcome, need);
    this.#state.note({
      duplicates: this.#state.value.duplicates.filter((other) => other !== messageId),
    });
    return 'again' as const;
  }

  #deleted(messageId: string): void {
    const row = rowOfMessage(this.#options.store, this.#state.b, messageId);
    const open = row === undefined ? undefined : this.#state.row(row.s);
    if (open?.state === 'posted') this.#state.save(vanished(open));
  }

  // ROOT.

  async #rootTurn(): Promise<number | 'again' | undefined> {
    const { store, platform, scheduler } = this.#options;
    const nowMs = this.#nowMs();
    const row = this.#state.value.rows.find((one) => one.kind === 'root');
    // A root in doubt is found by being the one new message: one at a time in a channel.
    if (row === undefined && rootInFlight(store, this.#binding.channel, this.#binding.b)) {
      return nowMs + RETRY_FIRST_MS;
    }
    if (row !== undefined && this.#rootIsDoubtful(row, nowMs)) return this.#lookForRoot(row, nowMs);
    const need = this.#need('post', 'prompt');
    if (!scheduler.tryTake(this.#seat, need)) return undefined;
    const { title, content } = this.#options.root();
    const isFirst = row === undefined || this.#state.value.refused.has(row.s);
    const intent = this.#rootIntent(row, nowMs);
    const outcome = await platform.postRoot(
      { place: this.#place(), row: { b: intent.b, s: intent.s }, content },
      title,
    );
    const version = isFirst ? { hash: hashOf(content), offset: 0 } : undefined;
    if (outcome.kind !== 'ok') return this.#posted(intent, outcome, version, need);
    const { messageId, root } = outcome.value;
    this.#rooted(intent, messageId, root, version);
    return 'again';
  }

  #rootIsDoubtful(row: OutboxRow, nowMs: number): boolean {
    const isRepeatable = nowMs - row.sentAtMs < this.#limits.repeatWindowMs;
    return !this.#state.value.refused.has(row.s) && !isRepeatable;
  }

  #rootIntent(row: OutboxRow | undefined, nowMs: number): OutboxRow {
    this.#state.note({ lastPostMs: nowMs });
    if (row !== undefined) {
      const isFirst = this.#state.value.refused.has(row.s);
      this.#state.noteRefused(row.s, false);
      const sent = isFirst ? { ...row, sentAtMs: nowMs } : row;
      this.#state.save(sent);
      return sent;
    }
    const at = atLine(0);
    const fresh = { kind: 'root' as const, start: at, end: at };
    return this.#state.intend(
      { ...fresh, omitTo: undefined, frameMark: undefined, body: undefined },
      {},
      undefined,
      nowMs,
    );
  }

  async #lookForRoot(row: OutboxRow, nowMs: number) {
    const readyMs =
      Math.max(row.sentAtMs, this.#limits.repeatWindowMs > 0 ? this.#state.value.lastPostMs : 0) +
      this.#limits.settleMs;
    if (nowMs < readyMs) return readyMs;
    const need = this.#need('look', 'prompt');
    if (!this.#options.scheduler.tryTake(this.#seat, need)) return undefined;
    const found = await this.#find(row);
    if (found.kind === 'unknown') return this.#doubted(found.detail);
    this.#succeeded();
    if (found.kind === 'none') {
      this.#state.noteRefused(row.s, true);
      return 'again' as const;
    }
    const proven = await this.#options.platform.proveRoot({
      ...this.#place(),
      root: found.messageId,
    });
    if (proven.kind === 'ok') {
      this.#rooted(row, found.messageId, proven.value.root, undefined);
      return 'again' as const;
    }
    return proven.kind === 'refused'
      ? this.#refused(row, proven, need)
      : this.#doubted(proven.detail);
  }

  /** TX2 of the root: the message and the active binding are one fact. */
  #rooted(row: OutboxRow, messageId: string, root: ThreadRoot, version: OutboxRow['shown']): void {
    const { store } = this.#options;
    this.#binding = store.transaction(() => {
      this.#state.save(posted(row, messageId, version));
      return activateBinding(store, this.#binding, root);
    });
    this.#succeeded();
    this.#options.onRoot?.(this.#binding);
  }

  // How calls end.

  #succeeded(): void {
    this.#retryCount = 0;
    const failedForMs = this.#nowMs() - (this.#failingSinceMs ?? this.#nowMs());
    this.#failingSinceMs = undefined;
    if (failedForMs > AWAY_MS) this.#state.note({ away: true });
    if (this.#parkCount > 0) {
      this.#parkCount = 0;
      parkBinding(this.#options.store, this.#state.b, undefined);
    }
    this.#setStatus({ kind: 'ok' });
  }

  #doubted(detail: string): number {
    this.#failingSinceMs ??= this.#nowMs();
    if (this.#nowMs() - this.#failingSinceMs > RETRY_MAX_MS) {
      this.#setStatus({ kind: 'failing', because: detail });
    }
    return this.#retryLater();
  }

  #refused(
    row: OutboxRow | undefined,
    outcome: Extract<Outcome<never>, { kind: 'refused' }>,
    need: Need,
  ): Ended | Promise<Ended> {
    switch (outcome.because) {
      case 'rate-limited':
        this.#options.scheduler.limited(need, {
          retryAfterMs: outcome.retryAfterMs,
          scope: outcome.scope,
          detail: outcome.detail,
        });
        return 'again';
      case 'not-sent':
        return this.#doubted(outcome.detail);
      case 'archived':
        return this.#unarchive(outcome.detail);
      case 'invalid':
        return row === undefined ? this.#park(outcome.detail) : this.#degrade(row, outcome.detail);
      case 'locked':
      case 'place-gone':
      case 'credentials':
      case 'not-permitted':
        return this.#park(`${outcome.because}: ${outcome.detail}`);
    }
  }

  async #unarchive(detail: string): Promise<Ended> {
    const outcome = await this.#options.platform.unarchive(this.#place());
    if (outcome.kind === 'ok') return 'again';
    return this.#park(`archived: ${detail}`);
  }

  /** Our formatting was refused: a bug of ours must not silence the thread. */
  #degrade(row: OutboxRow, detail: string): number | 'again' {
    this.#options.log.error('outbox.content-refused', {
      b: row.b,
      s: row.s,
      kind: row.kind,
      detail,
    });
    const body = (row.body ?? {}) as TextBody;
    if (row.kind !== 'text') {
      if (row.kind === 'root') return this.#park(`invalid: ${detail}`);
      const lost =
        row.messageId === undefined ? vanished(row) : { ...row, state: 'sealed' as const };
      this.#state.save(lost);
      return 'again';
    }
    if (body.degraded === undefined) {
      this.#state.save({ ...row, body: { ...body, degraded: 1 } });
      return 'again';
    }
    if (body.degraded === 2) return this.#park(`invalid: ${detail}`);
    const end = row.end ?? atLine(row.start.line + 1);
    const source = {
      kind: 'lines' as const,
      from: row.start.line,
      to: end.col > 0 ? end.line + 1 : end.line,
    };
    const file = {
      line: end.line,
      body: { fileName: `lines-${source.from + 1}-${source.to}.txt`, source },
    };
    this.#state.apply(
      { rows: [{ ...row, end, body: { ...body, degraded: 2 } }], file },
      this.#nowMs(),
    );
    return 'again';
  }

  #park(because: string): number {
    const forMs = Math.min(PARK_MAX_MS, PARK_FIRST_MS * 2 ** this.#parkCount);
    this.#parkCount += 1;
    const untilMs = this.#nowMs() + forMs;
    parkBinding(this.#options.store, this.#state.b, {
      untilWallMs: Math.round(untilMs),
      count: this.#parkCount,
      reason: because,
    });
    this.#setStatus({ kind: 'parked', because, untilMs });
    return untilMs;
  }

  #unpark(): void {
    if (this.#status.kind === 'parked') this.#setStatus({ kind: 'ok' });
    this.#retryAtMs = 0;
  }

  #setStatus(status: OutboxStatus): void {
    const isSame = JSON.stringify(status) === JSON.stringify(this.#status);
    this.#status = status;
    if (isSame) return;
    this.#options.log.info('outbox.status-changed', { b: this.#state.b, ...status });
    this.#options.onStatus?.(status);
  }

  // Small things.

  #queue(kind: 'notice' | 'file', body: unknown, options: NoticeOptions): QueueOutcome {
    const outcome = queueNotice(
      this.#options.store,
      {
        b: this.#state.b,
        line: this.#lineOf(options.at ?? 'end'),
        kind,
        lane: options.lane ?? 'final',
        body,
        queuedAtMs: Math.round(this.#nowMs()),
      },
      options.once,
    );
    if (outcome === 'full') this.#droppedNotices += 1;
    if (outcome === 'queued') this.#state.reloadNotices();
    this.#poke();
    return outcome;
  }

  #lineOf(at: NonNullable<NoticeOptions['at']>): number {
    if (typeof at === 'object') return at.line;
    const view = this.#source === 'gone' ? undefined : this.#source.view;
    if (view === undefined) return frontier(this.#state.value).line + 1;
    if (at === 'cursor') return view.cursor.line;
    // What is yet to be printed into an empty line belongs below.
    return view.finalCount + 1 + view.tail.findLastIndex((line) => line.text.trim() !== '');
  }

  #place(): ThreadRoot {
    const { space, channel, root } = this.#binding;
    return { space, channel, root: root ?? '' };
  }

  #need(method: Need['method'], lane: Lane): Need {
    const { channel, root } = this.#place();
    return { method, lane, channel, thread: root };
  }

  #gateMs(): { readonly text: number | undefined; readonly screen: number | undefined } {
    const tokens = this.#options.scheduler.tokens(this.#need('edit', 'live'));
    return {
      text: this.#pacing.earliestMs('text', tokens),
      screen: this.#pacing.earliestMs('screen', tokens),
    };
  }

  #modeKind(): 'text' | 'screen' {
    return this.#source !== 'gone' && this.#source.view?.mode === 'screen' ? 'screen' : 'text';
  }

  /** Wall time at the start plus monotonic time since: it never jumps in a process's life. */
  #nowMs(): number {
    return Math.round(this.#startedWallMs + this.#options.clock.monotonicMs() - this.#startedMs);
  }

  /** Something other than the transcript changed. */
  #poke(): void {
    this.#waitsForGate = false;
    this.#wakeUp();
  }

  #wakeUp(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  async #sleepUntil(atMs: number | undefined): Promise<void> {
    if (!this.#isWoken) {
      await new Promise<void>((resolve) => {
        let timer: Timer | undefined;
        this.#wake = () => {
          timer?.cancel();
          resolve();
        };
        if (atMs !== undefined && Number.isFinite(atMs)) {
          timer = this.#options.clock.timer(Math.max(0, Math.ceil(atMs - this.#nowMs())), resolve);
        }
      });
    }
    this.#wake = undefined;
    this.#isWoken = false;
  }
}

function isFinalRefusal(because: string): boolean {
  return because === 'invalid' || because === 'not-permitted';
}
