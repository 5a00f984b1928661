// Takes lifecycle requests out of control.json. Taking is one rename to a private name, so that a
// request is consumed once and a newer one is never deleted in place of an older; what was taken is
// then judged: for us and fresh, or nobody's.

import { type FSWatcher, watch } from 'node:fs';
import { rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock, Timer } from '../base/clock.ts';
import { errnoCode, errorText } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { DaemonPaths } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import type { MachineTime } from '../control/machine-time.ts';
import { type OwnerTuple, sameOwner } from '../control/owner-tuple.ts';
import {
  type ControlRequest,
  type ControlResponse,
  isControlExpired,
  readControl,
} from '../control/records.ts';
import { writeFenced } from '../ownership/fenced-write.ts';
import type { KeptLock } from '../ownership/kept-lock.ts';

/** The watch is quick; where it misses, a person waits a second. */
const SCAN_MS = 1000;

export interface ControlInboxOptions {
  readonly paths: DaemonPaths;
  readonly lock: KeptLock;
  readonly owner: OwnerTuple;
  readonly clock: Clock;
  readonly machine: MachineTime;
  readonly random: Random;
  readonly log: Log;
  /** Called once for each accepted request, after its answer was written. */
  readonly accept: (request: ControlRequest) => void;
  /** The lock is proven lost: seen here first, since this looks every second. */
  readonly lost: (because: string) => void;
}

export class ControlInbox {
  readonly #options: ControlInboxOptions;
  #watcher: FSWatcher | undefined;
  #timer: Timer | undefined;
  #looking: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: ControlInboxOptions) {
    this.#options = options;
  }

  start(): void {
    const { paths, log } = this.#options;
    try {
      this.#watcher = watch(dirname(paths.control), (_event, name) => {
        if (name === null || paths.control.endsWith(`/${name}`)) this.#wake();
      });
      this.#watcher.on('error', () => this.#watcher?.close());
    } catch (error) {
      log.warn('control-watch.failed', { error: errorText(error) });
    }
    this.#wake();
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#watcher?.close();
    this.#timer?.cancel();
  }

  /** Looks now: after a signal, which is the usual wake-up. Resolves when it has looked. */
  async look(): Promise<void> {
    this.#wake();
    await this.#looking;
  }

  #wake(): void {
    this.#looking = this.#looking
      .then(() => this.#takeOne())
      .catch((error: unknown) => {
        this.#options.log.warn('control-request.unreadable', { error: errorText(error) });
      });
  }

  #schedule(): void {
    if (this.#closed) return;
    this.#timer = this.#options.clock.timer(SCAN_MS, () => {
      this.#wake();
      this.#schedule();
    });
    this.#timer.unref();
  }

  async #takeOne(): Promise<void> {
    const { paths, lock, random, lost } = this.#options;
    const proof = lock.prove();
    if (proof.kind === 'lost') lost(proof.because);
    if (this.#closed || proof.kind !== 'held') return;
    const taken = `${paths.control}.${mintId(random)}.tmp`;
    try {
      await rename(paths.control, taken);
    } catch (error) {
      if (errnoCode(error) === 'ENOENT') return;
      throw error;
    }
    try {
      await this.#judge(taken);
    } finally {
      await unlink(taken).catch(() => undefined);
    }
  }

  async #judge(taken: string): Promise<void> {
    const { log, owner, machine } = this.#options;
    const read = await readControl(taken);
    if (read.kind !== 'document') {
      log.warn('control-request.refused', { because: read.kind });
      return;
    }
    const request = read.document;
    if (!sameOwner(request.owner, owner)) {
      // It names an owner that no longer holds this lock, since we do.
      log.info('control-request.dropped', { id: request.id, because: 'for another owner' });
      return;
    }
    const outcome = isControlExpired(machine, request) ? 'expired' : 'accepted';
    await this.#answer(request, outcome);
    log.info('control-request.answered', { id: request.id, action: request.action, outcome });
    if (outcome === 'accepted') this.#options.accept(request);
  }

  async #answer(request: ControlRequest, outcome: ControlResponse['outcome']): Promise<void> {
    const { paths, lock, random, log } = this.#options;
    const { id, kind, action, owner } = request;
    const response: ControlResponse = { version: 1, id, kind, action, owner, outcome };
    try {
      await writeFenced(lock, paths.controlResponse, `${JSON.stringify(response)}\n`, { random });
    } catch (error) {
      // A full disk must not make an owner unstoppable: the death itself is the proof that counts.
      log.warn('control-response.unwritten', { id, error: errorText(error) });
    }
  }
}
