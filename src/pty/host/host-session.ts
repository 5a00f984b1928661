// One session in the host's main thread: its record, files, writer, readers and its end. Knows no
// socket: whoever is attached is told through `Attached`.

import { join } from 'node:path';
import type { Clock, Timer } from '../../base/clock.ts';
import { ChatdError, errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { closeFd } from '../../sys/fd.ts';
import {
  readForegroundGroup,
  readTerminalFlags,
  readTerminalSize,
  writeSome,
} from '../../sys/tty.ts';
import type { WaitStatus } from '../keeper-protocol.ts';
import type {
  InputOutcome,
  InputRequest,
  SessionInfo,
  SessionState,
  TtyState,
} from '../session-values.ts';
import { InputLedger } from './input-ledger.ts';
import { hasOverlongLine, INPUT_QUEUE_BYTES_MAX, InputWriter } from './input-writer.ts';
import type { SessionFds } from './keeper-client.ts';
import type { ModelProgress } from './model-messages.ts';
import type { FromReader } from './reader-messages.ts';
import { JournalReader, journalRange, SEGMENT_BYTES } from './segments.ts';
import { SessionFiles } from './session-files.ts';
import { type SessionRecord, stateOf, writeSessionRecord } from './session-record.ts';
import { isBlockedReading } from './tty-reader.ts';
import type { Workers } from './workers.ts';

/** A background process may hold the terminal for ever (DETAILS.md "Exit"). */
const QUIET_MS = 250;
/** A terminal's foreground is asked for no more often than this. */
const FOREGROUND_MS = 200;
/** How long a record write is tried again on a full disk. */
const RECORD_RETRY_MS = 2_000;

/** Someone who follows a session. */
export interface Attached {
  readonly want: 'lines' | 'bytes';
  /** The journal grew, or the exit is known. */
  grew(session: HostSession): void;
  view(payload: Uint8Array, offset: number): void;
  exited(session: HostSession): void;
}

export interface SessionPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly workers: Workers;
  mintNonce(): string;
  forget(sessionId: string, incarnation: string): void;
  readonly limits: { readonly journalBytes: number };
}

type Terminal = {
  readonly fds: SessionFds;
  readonly files: SessionFiles;
  readonly writer: InputWriter;
};

export class HostSession {
  readonly directory: string;
  readonly attached = new Set<Attached>();
  readonly journal: JournalReader;
  record: SessionRecord;
  readonly #ports: SessionPorts;
  #terminal: Terminal | undefined;
  #slot: number | undefined;
  #modelOpen = false;
  #modelBroken = false;
  #ledger: InputLedger | undefined;
  readonly #inflight = new Map<string, Promise<InputOutcome>>();
  #progress: ModelProgress;
  #length: number;
  #size: { cols: number; rows: number };
  /** Offset of the last change of size: earlier bytes were laid out for another one. */
  #resizedAt = 0;
  #resizeWaiters: (() => void)[] = [];
  #status: WaitStatus | undefined;
  #closedAt: number | undefined;
  #exitShown = false;
  #quiet: Timer | undefined;
  #exitWaiters: (() => void)[] = [];
  #diskErrno = '';

  constructor(directory: string, record: SessionRecord, ports: SessionPorts) {
    this.directory = directory;
    this.record = record;
    this.#ports = ports;
    this.journal = new JournalReader(directory);
    this.#length = record.exitOffset ?? 0;
    this.#size = { cols: record.cols, rows: record.rows };
    this.#progress = { offset: 0, finalCount: 0, markCount: 0, checkpointOffset: 0, firstLine: 0 };
    this.#exitShown = record.state.kind === 'exited';
  }

  get id(): string {
    return this.record.sessionId;
  }

  get incarnation(): string {
    return this.record.incarnation;
  }

  get state(): SessionState {
    return stateOf(this.record);
  }

  get length(): number {
    return this.#length;
  }

  /** The oldest byte kept. */
  get from(): number {
    return this.#terminal?.files.from ?? journalRange(this.directory).from;
  }

  get resizedAt(): number {
    return this.#resizedAt;
  }

  get slot(): number | undefined {
    return this.#slot;
  }

  get progress(): ModelProgress {
    return this.#progress;
  }

  /** The exit has been applied to the model, or there is no model any more. */
  get exitShown(): boolean {
    return this.#exitShown;
  }

  get live(): boolean {
    return this.#terminal !== undefined;
  }

  get queuedInputBytes(): number {
    return this.#terminal?.writer.queuedBytes ?? 0;
  }

  get diskErrno(): string {
    return this.#diskErrno;
  }

  get size(): { cols: number; rows: number } {
    return this.#size;
  }

  get fds(): SessionFds | undefined {
    return this.#terminal?.fds;
  }

  info(): SessionInfo {
    const { record } = this;
    return {
      sessionId: record.sessionId,
      incarnation: record.incarnation,
      state: this.state,
      command: record.command,
      cwd: record.cwd,
      pid: record.pid,
      cols: this.#size.cols,
      rows: this.#size.rows,
      startedAtWallMs: record.startedAtWallMs,
      lastOutputAtWallMs: record.lastOutputAtWallMs,
      offset: this.#length,
      finalCount: this.#progress.finalCount,
      lostBytes: record.lostBytes,
      clients: this.attached.size,
      actor: record.actor,
      ...(record.profile === undefined ? {} : { profile: record.profile }),
    };
  }

  // ── Coming alive ────────────────────────────────────────────────────────────────────────────

  /**
   * Starts reading and writing a terminal that the keeper gave us.
   * @throws the file system's error
   */
  start(fds: SessionFds): void {
    const files = new SessionFiles(this.directory);
    this.#length = files.length;
    this.record.lostBytes += files.lostAtStart;
    const slot = this.#ports.workers.takeSlot(files.length, 0);
    if (slot === undefined) throw new ChatdError('session-limit', 'Cannot follow session: no slot');
    this.#slot = slot;
    const [master, pipeRead, pipeWrite] = fds;
    const writer = new InputWriter((bytes) => writeSome(master, bytes), this.#ports.clock);
    this.#terminal = { fds, files, writer };
    this.#ledger = new InputLedger(join(this.directory, 'inputs.log'));
    this.#readSize(master);
    this.#openModel(slot, files.length);
    this.#ports.workers.toReader({
      t: 'add',
      slot,
      master,
      pipeRead,
      pipeWrite,
      lostFd: files.lostFd,
      from: files.length,
      segments: files.openAround(files.length),
    });
  }

  /** For a session that has ended: its model is rebuilt when somebody asks. */
  needModel(): number | undefined {
    if (this.#modelBroken) return undefined;
    if (this.#slot === undefined) {
      const { to } = journalRange(this.directory);
      this.#length = Math.max(this.#length, to);
      const slot = this.#ports.workers.takeSlot(this.#length, 0);
      if (slot === undefined) throw new ChatdError('session-limit', 'Cannot show session: no slot');
      this.#slot = slot;
    }
    if (!this.#modelOpen) this.#openModel(this.#slot, this.#length);
    return this.#slot;
  }

  #openModel(slot: number, liveFrom: number): void {
    const { cols, rows, exitOffset } = this.record;
    const { workers } = this.#ports;
    this.#modelOpen = true;
    workers.toModel({ t: 'open', slot, directory: this.directory, cols, rows, liveFrom });
    if (exitOffset !== undefined) {
      workers.toModel({ t: 'exited', slot, offset: exitOffset });
    }
  }

  #readSize(master: number): void {
    try {
      this.#size = readTerminalSize(master);
    } catch {
      // Hung up already: the recorded size stays.
    }
  }

  // ── What the threads say ────────────────────────────────────────────────────────────────────

  grew(): void {
    const { workers, clock } = this.#ports;
    if (this.#slot === undefined) return;
    workers.shared.clearTold(this.#slot, 'main');
    const length = workers.shared.length(this.#slot);
    if (length === this.#length) return;
    this.#length = length;
    this.record.lastOutputAtWallMs = clock.wallMs();
    this.lookAtForeground();
    if (this.#status !== undefined && this.record.state.kind === 'running') this.#waitForQuiet();
    for (const attached of this.attached) {
      if (attached.want === 'bytes') attached.grew(this);
    }
  }

  fromReader(message: FromReader): void {
    switch (message.t) {
      case 'closed':
        this.grew();
        this.#closedAt = message.offset;
        this.#exitIfKnown();
        return;
      case 'filled':
        this.#rollSegment(message.index);
        return;
      case 'resized':
        this.#size = { cols: message.cols, rows: message.rows };
        this.#resizedAt = message.offset;
        for (const waiter of this.#resizeWaiters.splice(0)) waiter();
        return;
      case 'lost':
        this.record.lostBytes += message.to - message.from;
        this.grew();
        return;
      case 'disk':
        this.#diskErrno = message.errno;
        this.#ports.log.error('session.disk-refused', { session: this.id, errno: message.errno });
        return;
      case 'removed':
        this.#release();
        return;
      case 'grew':
      case 'stopped':
      case 'failed':
    }
  }

  progressed(progress: ModelProgress): void {
    this.#progress = progress;
  }

  showView(payload: Uint8Array, progress: ModelProgress): void {
    this.#progress = progress;
    for (const attached of this.attached) {
      if (attached.want === 'lines') attached.view(payload, progress.offset);
    }
  }

  /** The model has applied the exit, or cannot. */
  showExit(): void {
    if (this.#exitShown || this.record.state.kind !== 'exited') return;
    this.#exitShown = true;
    for (const attached of this.attached) attached.exited(this);
  }

  answerQuery(bytes: Uint8Array): void {
    // Dropped when the queue is full: an answer is for now or never.
    this.#terminal?.writer.push(bytes)?.catch(() => undefined);
  }

  /** Its bytes are still journaled and served; there is no second try in this host. */
  modelFailed(): void {
    this.#modelOpen = false;
    this.#modelBroken = true;
    this.showExit();
  }

  modelClosed(): void {
    this.#modelOpen = false;
    if (this.#terminal !== undefined || this.#slot === undefined) return;
    this.#ports.workers.giveSlot(this.#slot);
    this.#slot = undefined;
  }

  #rollSegment(index: number): void {
    const { files } = this.#terminal ?? {};
    if (files === undefined || this.#slot === undefined) return;
    files.closeSegment(index);
    try {
      const segment = files.open(index + 2);
      this.#ports.workers.toReader({ t: 'segment', slot: this.#slot, segment });
    } catch (error) {
      this.#diskErrno = errorText(error);
      this.#ports.clock.timer(RECORD_RETRY_MS, () => this.#rollSegment(index));
      return;
    }
    files.evict(this.#length, this.#ports.limits.journalBytes, this.#progress.checkpointOffset);
  }

  // ── Its end ─────────────────────────────────────────────────────────────────────────────────

  /** The keeper reaped it. */
  exitedWith(status: WaitStatus): void {
    if (this.#status !== undefined || this.record.state.kind === 'exited') return;
    this.#status = status;
    if (this.#closedAt === undefined) this.#waitForQuiet();
    else this.#exitIfKnown();
  }

  /** Resolves when the exit is recorded. */
  whenExited(): Promise<void> {
    if (this.record.state.kind === 'exited') return Promise.resolve();
    return new Promise((resolve) => {
      this.#exitWaiters.push(resolve);
    });
  }

  /** Who is about to end it, for the record. */
  setCause(cause: string): void {
    this.#cause ??= cause;
  }

  #cause: string | undefined;

  #waitForQuiet(): void {
    this.#quiet?.cancel();
    this.#quiet = this.#ports.clock.timer(QUIET_MS, () => {
      this.grew();
      if (this.record.state.kind === 'running') this.#recordExit(this.#length, true);
    });
  }

  #exitIfKnown(): void {
    if (this.#closedAt === undefined) return;
    if (this.record.state.kind === 'exited') {
      this.#terminalClosed();
      return;
    }
    if (this.#status === undefined) return;
    this.#quiet?.cancel();
    this.#recordExit(this.#closedAt, false);
  }

  #recordExit(offset: number, terminalOpen: boolean): void {
    const status = this.#status ?? { kind: 'unknown' };
    this.record.exitOffset = offset;
    this.record.state = {
      kind: 'exited',
      ...(status.kind === 'code' ? { code: status.code } : {}),
      ...(status.kind === 'signal' ? { signal: status.signal } : {}),
      terminalOpen,
      atWallMs: this.#ports.clock.wallMs(),
      ...(this.#cause === undefined ? {} : { cause: this.#cause }),
    };
    this.#terminal?.writer.close();
    if (this.#slot !== undefined && this.#modelOpen) {
      this.#ports.workers.toModel({ t: 'exited', slot: this.#slot, offset });
    } else {
      this.showExit();
    }
    for (const attached of this.attached) attached.grew(this);
    for (const waiter of this.#exitWaiters.splice(0)) waiter();
    this.#saveThenForget();
  }

  /** Nobody holds it any more and its program is proven to be gone; how it ended nobody saw. */
  closeUnheld(): void {
    if (this.#terminal !== undefined || this.record.state.kind === 'exited') return;
    this.#length = Math.max(this.#length, journalRange(this.directory).to);
    this.#recordExit(this.#length, false);
  }

  /** The last holder of the terminal went, after the exit was told. */
  #terminalClosed(): void {
    if (this.record.state.kind !== 'exited' || !this.record.state.terminalOpen) return;
    this.record.state.terminalOpen = false;
    for (const attached of this.attached) attached.exited(this);
    this.#saveThenForget();
  }

  /** The keeper lets go only of what is on disk. */
  #saveThenForget(): void {
    this.save().then(
      () => {
        if (this.#closedAt === undefined || this.#slot === undefined) return;
        this.#ports.forget(this.id, this.incarnation);
        this.#ports.workers.toReader({ t: 'remove', slot: this.#slot });
      },
      (error: unknown) => {
        this.#ports.log.error('session.record-failed', {
          session: this.id,
          error: errorText(error),
        });
        this.#ports.clock.timer(RECORD_RETRY_MS, () => this.#saveThenForget());
      },
    );
  }

  /** One write after another: the newest record is the one that stays. @throws its error */
  save(): Promise<void> {
    const { mintNonce } = this.#ports;
    const next = this.#saving.then(() =>
      writeSessionRecord(this.directory, this.record, mintNonce()),
    );
    this.#saving = next.catch(() => undefined);
    return next;
  }

  #saving: Promise<void> = Promise.resolve();

  #release(): void {
    const terminal = this.#terminal;
    if (terminal === undefined) return;
    this.#terminal = undefined;
    terminal.writer.close();
    terminal.files.close();
    for (const fd of terminal.fds) closeFd(fd);
    this.#ledger?.close();
    this.#ledger = undefined;
  }

  // ── Input, size, terminal state ─────────────────────────────────────────────────────────────

  /** A successor takes over: what comes from now on is for it. */
  stopInput(): void {
    this.#stopping = true;
  }

  #stopping = false;

  /** @throws {ChatdError} host-starting: nothing was written, ask the next host. */
  async input(request: InputRequest): Promise<InputOutcome> {
    const before = this.#inflight.get(request.messageId);
    if (before !== undefined) {
      const outcome = await before;
      return outcome.kind === 'written' ? { kind: 'already' } : outcome;
    }
    const seen = this.#ledger?.find(request.messageId);
    if (seen === 'written') return { kind: 'already' };
    if (seen === 'accepted') return { kind: 'unknown' };
    const outcome = this.#write(request);
    this.#inflight.set(request.messageId, outcome);
    try {
      return await outcome;
    } finally {
      this.#inflight.delete(request.messageId);
    }
  }

  async #write(request: InputRequest): Promise<InputOutcome> {
    if (this.#stopping) throw beingReplaced(this.id);
    const terminal = this.#terminal;
    const ledger = this.#ledger;
    if (terminal === undefined || ledger === undefined || this.record.state.kind === 'exited') {
      return { kind: 'refused', because: 'exited' };
    }
    const { messageId, actor } = request;
    const entry = { messageId, actor, sizeBytes: request.bytes.length };
    const { clock } = this.#ports;
    let because: 'terminal-state' | 'line-too-long' | undefined;
    const admit = (): boolean => {
      because = refusalNow(terminal.fds[0], request);
      if (because === undefined) ledger.accept({ ...entry, atWallMs: clock.wallMs() });
      return because === undefined;
    };
    if (terminal.writer.queuedBytes + request.bytes.length > INPUT_QUEUE_BYTES_MAX) {
      return { kind: 'refused', because: 'queue-full' };
    }
    const written = await terminal.writer.push(request.bytes, admit);
    if (written === undefined) return { kind: 'refused', because: 'queue-full' };
    if (written.kind === 'refused') {
      return { kind: 'refused', because: because ?? 'terminal-state' };
    }
    if (written.kind === 'closed') {
      if (written.sizeBytes > 0) return { kind: 'unknown' };
      ledger.forget(messageId);
      if (this.state.kind === 'running') throw beingReplaced(this.id);
      return { kind: 'refused', because: 'exited' };
    }
    ledger.complete({ ...entry, atWallMs: clock.wallMs() });
    return { kind: 'written', sizeBytes: written.sizeBytes };
  }

  /** Resolves when the reader has recorded and set it. */
  resize(cols: number, rows: number): Promise<void> {
    const slot = this.#slot;
    if (slot === undefined || this.#terminal === undefined) return Promise.resolve();
    if (this.#size.cols === cols && this.#size.rows === rows) return Promise.resolve();
    return new Promise((resolve) => {
      this.#resizeWaiters.push(resolve);
      this.#ports.workers.toReader({ t: 'resize', slot, cols, rows });
    });
  }

  ttyState(): TtyState | 'unknown' {
    const fds = this.#terminal?.fds;
    if (fds === undefined) return 'unknown';
    try {
      const { echo, canonical } = readTerminalFlags(fds[0]);
      const foregroundGroup = readForegroundGroup(fds[0]) ?? 0;
      return { echo, canonical, foregroundGroup, blockedRead: isBlockedReading(foregroundGroup) };
    } catch {
      return 'unknown';
    }
  }

  /** Looked at with new output: nothing announces it, and a shell that takes it back prints. */
  lookAtForeground(): void {
    const { clock, workers } = this.#ports;
    const nowMs = clock.monotonicMs();
    if (this.#terminal === undefined || this.#slot === undefined) return;
    if (nowMs - this.#foregroundAtMs < FOREGROUND_MS) return;
    this.#foregroundAtMs = nowMs;
    let group: number | undefined;
    try {
      group = readForegroundGroup(this.#terminal.fds[0]);
    } catch {
      return;
    }
    if (group === this.#foreground) return;
    const first = this.#foreground === undefined;
    this.#foreground = group;
    if (!first && this.#modelOpen) workers.toModel({ t: 'program-changed', slot: this.#slot });
  }

  #foreground: number | undefined;
  #foregroundAtMs = Number.NEGATIVE_INFINITY;

  /** The journal's size on disk. */
  get keptBytes(): number {
    return this.#length - this.from;
  }

  /** Before a hand-over: what a successor would not know. */
  stop(): void {
    this.#terminal?.writer.close();
    this.journal.close();
  }

  get segmentsKept(): number {
    return Math.ceil(this.keptBytes / SEGMENT_BYTES);
  }
}

function beingReplaced(sessionId: string): ChatdError {
  return new ChatdError(
    'host-starting',
    `Cannot write to ${sessionId}: the host is being replaced`,
  );
}

/** Asked on the line before the first byte is written. */
function refusalNow(
  master: number,
  request: InputRequest,
): 'terminal-state' | 'line-too-long' | undefined {
  const { onlyIf, bytes } = request;
  if (onlyIf === undefined && bytes.length < INPUT_LINE_CHECK_BYTES) return undefined;
  try {
    const flags = readTerminalFlags(master);
    if (onlyIf?.echo !== undefined && onlyIf.echo !== flags.echo) return 'terminal-state';
    if (onlyIf?.canonical !== undefined && onlyIf.canonical !== flags.canonical) {
      return 'terminal-state';
    }
    return flags.canonical && hasOverlongLine(bytes) ? 'line-too-long' : undefined;
  } catch {
    return onlyIf === undefined ? undefined : 'terminal-state';
  }
}

/** Shorter input cannot hold a line that a canonical terminal cuts. */
const INPUT_LINE_CHECK_BYTES = 4_096;
