// The model thread: all sessions' emulators, fed slice by slice in turn, so that a flood in one
// delays a prompt in another by milliseconds. Sends views when they are wanted, never more.

import type { Clock, Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import { packValue } from '../protocol.ts';
import type { FromModel, ToModel } from './model-messages.ts';
import { MODEL_LAG_RESUME_BYTES } from './reader.ts';
import type { ReaderToModel } from './reader-messages.ts';
import { SessionModel } from './session-model.ts';
import type { SharedState } from './shared-state.ts';

/** Between two views of a session that floods. */
const VIEW_FLOOD_MS = 50;
/** A half-drawn frame (synchronized output) is held this long at most. */
const VIEW_SYNC_MS = 200;
const PROGRESS_MS = 200;
/** A restart replays at most about this much, or what half a second of flood brings. */
const CHECKPOINT_BYTES = 256 * 1024;
const CHECKPOINT_MIN_MS = 500;
const CHECKPOINT_QUIET_MS = 5_000;

interface Entry {
  readonly model: SessionModel;
  queued: boolean;
  wanted: boolean;
  /** Something a view shows has changed since the last one was sent. */
  changed: boolean;
  sentAtMs: number;
  progressAtMs: number;
  timer: Timer | undefined;
  checkpointAtMs: number;
  checkpointTimer: Timer | undefined;
  finishedTold: boolean;
}

export interface ModelLoopPorts {
  readonly clock: Clock;
  readonly shared: SharedState;
  toMain(message: FromModel): void;
  /** Runs after messages that are waiting have been handled. */
  later(run: () => void): void;
  /** The reader may go on with a session it had paused for us. */
  wakeReader(): void;
}

export class ModelLoop {
  readonly #ports: ModelLoopPorts;
  readonly #entries = new Map<number, Entry>();
  #queue: Entry[] = [];
  #running = false;

  constructor(ports: ModelLoopPorts) {
    this.#ports = ports;
  }

  handle(message: ToModel): void {
    switch (message.t) {
      case 'open':
        this.#open(message);
        return;
      case 'close':
        this.#close(message.slot);
        return;
      case 'want-view':
        this.#withEntry(message.slot, (entry) => {
          entry.wanted = true;
          entry.changed ||= message.fresh;
          this.#sendViewIfDue(entry);
        });
        return;
      case 'query':
        this.#query(message);
        return;
      case 'exited':
        this.#withEntry(message.slot, (entry) => {
          entry.model.exitAt(message.offset);
          entry.changed = true;
          this.#enqueue(entry);
        });
        return;
      case 'program-changed':
        this.#withEntry(message.slot, (entry) => {
          entry.model.programChanged();
          entry.changed = true;
          this.#sendViewIfDue(entry);
        });
        return;
      case 'prepare':
        for (const [slot, entry] of this.#entries) {
          this.#withEntry(slot, () => this.#checkpoint(entry));
        }
        this.#ports.toMain({ t: 'prepared' });
        return;
      case 'stop':
        for (const slot of [...this.#entries.keys()]) this.#close(slot);
        this.#ports.toMain({ t: 'stopped' });
    }
  }

  handleReader(message: ReaderToModel): void {
    switch (message.t) {
      case 'grew':
        for (const slot of message.slots) {
          const entry = this.#entries.get(slot);
          if (entry !== undefined) this.#enqueue(entry);
        }
        return;
      case 'resized':
        this.#withEntry(message.slot, (entry) => {
          entry.model.addResize(message);
          entry.changed = true;
          this.#enqueue(entry);
        });
        return;
      case 'lost':
        // The hole reads as NUL bytes, which terminals ignore: offsets and numbers go on.
        return;
    }
  }

  #open(message: Extract<ToModel, { t: 'open' }>): void {
    try {
      const entry: Entry = {
        model: new SessionModel(message),
        queued: false,
        wanted: false,
        changed: true,
        sentAtMs: Number.NEGATIVE_INFINITY,
        progressAtMs: Number.NEGATIVE_INFINITY,
        timer: undefined,
        checkpointAtMs: this.#ports.clock.monotonicMs(),
        checkpointTimer: undefined,
        finishedTold: false,
      };
      this.#entries.set(message.slot, entry);
      this.#ports.shared.setModelOffset(message.slot, entry.model.offset);
      this.#ports.shared.setModelOn(message.slot, true);
      this.#enqueue(entry);
    } catch (error) {
      this.#fail(message.slot, error);
    }
  }

  #close(slot: number): void {
    const entry = this.#entries.get(slot);
    if (entry !== undefined) {
      this.#entries.delete(slot);
      this.#ports.shared.setModelOn(slot, false);
      this.#cancelTimers(entry);
      entry.model.close();
    }
    this.#ports.toMain({ t: 'closed', slot });
  }

  #withEntry(slot: number, run: (entry: Entry) => void): void {
    const entry = this.#entries.get(slot);
    if (entry === undefined) return;
    try {
      run(entry);
    } catch (error) {
      this.#fail(slot, error);
    }
  }

  /** One session's model is broken: its bytes are still journaled, the others go on. */
  #fail(slot: number, error: unknown): void {
    const entry = this.#entries.get(slot);
    this.#entries.delete(slot);
    this.#ports.shared.setModelOn(slot, false);
    if (entry !== undefined) this.#cancelTimers(entry);
    this.#ports.wakeReader();
    this.#ports.toMain({ t: 'session-failed', slot, message: errorText(error) });
  }

  #cancelTimers(entry: Entry): void {
    entry.timer?.cancel();
    entry.checkpointTimer?.cancel();
  }

  /** What cannot be written now is tried again with the next output. */
  #checkpoint(entry: Entry): void {
    entry.checkpointAtMs = this.#ports.clock.monotonicMs();
    entry.checkpointTimer?.cancel();
    entry.checkpointTimer = undefined;
    entry.model.checkpoint();
  }

  #checkpointIfDue(entry: Entry): void {
    const { clock } = this.#ports;
    if (entry.model.sinceCheckpoint === 0) return;
    const sinceMs = clock.monotonicMs() - entry.checkpointAtMs;
    if (entry.model.sinceCheckpoint >= CHECKPOINT_BYTES && sinceMs >= CHECKPOINT_MIN_MS) {
      this.#checkpoint(entry);
      return;
    }
    entry.checkpointTimer ??= clock.timer(CHECKPOINT_QUIET_MS, () => {
      entry.checkpointTimer = undefined;
      this.#withEntry(entry.model.slot, () => this.#checkpoint(entry));
    });
  }

  #query(message: Extract<ToModel, { t: 'query' }>): void {
    const entry = this.#entries.get(message.slot);
    if (entry === undefined) {
      this.#ports.toMain({ t: 'refused', id: message.id, message: 'no model' });
      return;
    }
    try {
      const payload = entry.model.query(message.query);
      this.#ports.toMain({ t: 'result', id: message.id, payload });
    } catch (error) {
      this.#ports.toMain({ t: 'refused', id: message.id, message: errorText(error) });
    }
  }

  #enqueue(entry: Entry): void {
    if (entry.queued) return;
    entry.queued = true;
    this.#queue.push(entry);
    if (this.#running) return;
    this.#running = true;
    this.#ports.later(() => this.#turn());
  }

  #turn(): void {
    const batch = this.#queue;
    this.#queue = [];
    for (const entry of batch) {
      entry.queued = false;
      this.#withEntry(entry.model.slot, () => this.#step(entry));
    }
    if (this.#queue.length > 0) this.#ports.later(() => this.#turn());
    else this.#running = false;
  }

  #step(entry: Entry): void {
    const { shared, clock } = this.#ports;
    const { model } = entry;
    const { slot } = model;
    // Cleared before looking: what comes after is told again.
    shared.clearTold(slot, 'model');
    const before = model.offset;
    const { answers, more } = model.step(shared.length(slot), clock.monotonicMs());
    if (answers.length > 0) this.#ports.toMain({ t: 'answers', slot, bytes: answers });
    if (model.offset !== before) {
      entry.changed = true;
      shared.setModelOffset(slot, model.offset);
      const lag = shared.length(slot) - model.offset;
      if (shared.paused(slot) && lag < MODEL_LAG_RESUME_BYTES) this.#ports.wakeReader();
    }
    if (more && model.offset !== before) this.#enqueue(entry);
    this.#sendViewIfDue(entry);
    this.#checkpointIfDue(entry);
    this.#sendProgressIfDue(entry, more);
    if (model.finished && !entry.finishedTold) {
      entry.finishedTold = true;
      this.#sendProgress(entry);
      this.#ports.toMain({ t: 'finished', slot });
    }
  }

  #sendViewIfDue(entry: Entry): void {
    if (!entry.wanted || !entry.changed) return;
    const { clock, shared } = this.#ports;
    const { model } = entry;
    const sinceMs = clock.monotonicMs() - entry.sentAtMs;
    const behind = shared.length(model.slot) > model.offset;
    const waitMs = Math.max(
      behind ? VIEW_FLOOD_MS - sinceMs : 0,
      model.synchronizing ? VIEW_SYNC_MS - sinceMs : 0,
    );
    if (waitMs > 0) {
      entry.timer ??= clock.timer(waitMs, () => {
        entry.timer = undefined;
        this.#withEntry(model.slot, () => this.#sendViewIfDue(entry));
      });
      return;
    }
    entry.wanted = false;
    entry.changed = false;
    entry.sentAtMs = clock.monotonicMs();
    const payload = packValue(model.view());
    this.#ports.toMain({ t: 'view', slot: model.slot, payload, progress: model.progress });
  }

  #sendProgressIfDue(entry: Entry, more: boolean): void {
    const nowMs = this.#ports.clock.monotonicMs();
    if (more && nowMs - entry.progressAtMs < PROGRESS_MS) return;
    entry.progressAtMs = nowMs;
    this.#sendProgress(entry);
  }

  #sendProgress(entry: Entry): void {
    const { slot, progress } = entry.model;
    this.#ports.toMain({ t: 'progress', slot, progress });
  }
}
