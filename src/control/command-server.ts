// The owner's side of the command channel: sees requests, runs each beside the others, answers once,
// and sweeps what is left over. It runs beside lifecycle control and never delays it.

import { type FSWatcher, watch } from 'node:fs';
import { lstat, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { readBounded } from '../base/bounded-file.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Kind } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import { isProvenGone } from './command-claim.ts';
import {
  type CommandRequest,
  DOCUMENT_BYTES_MAX,
  parseEntry,
  parseRequest,
  RESPONSE_RETENTION_MS,
  requestPath,
} from './command-documents.ts';
import { type CommandRun, runCommand, type StepHook } from './command-run.ts';
import type { CommandHandlers } from './commands/registry.ts';
import type { MachineTime } from './machine-time.ts';
import type { OwnerTuple } from './owner-tuple.ts';

/** The watch is quick but may be missing or miss; the scan is the truth. */
const SCAN_MS = 1000;
const SCAN_WITHOUT_WATCH_MS = 250;
/** Served at once; the rest waits for the next scan. */
const IN_FLIGHT_MAX = 8;
/** A directory someone filled must not fill our memory. */
const ENTRIES_MAX = 4096;
/** Somebody else's claim becomes an answer or expires in seconds, not in milliseconds. */
const LEFT_RETRY_MS = 2000;
/** An expired request is answered as such by who serves it; only then is it taken for hung. */
const EXPIRY_GRACE_MS = 1000;
/** A submitter links its temporary file within milliseconds of writing it. */
const TEMPORARY_AGE_MS = 60_000;

export interface CommandServerOptions {
  readonly directory: string;
  readonly kind: Kind;
  readonly owner: OwnerTuple;
  /** True only if this process is proven to be that owner now. */
  readonly proven: () => boolean;
  readonly handlers: CommandHandlers;
  readonly clock: Clock;
  readonly machine: MachineTime;
  readonly random: Random;
  readonly log: Log;
  readonly step?: StepHook | undefined;
}

export interface CommandCounts {
  readonly served: number;
  readonly removedMalformed: number;
  readonly inFlight: number;
}

export class CommandServer {
  readonly #options: CommandServerOptions;
  readonly #inFlight = new Map<string, Promise<void>>();
  /** When this process first saw an entry: ages by our own clock, whatever the file says. */
  readonly #firstSeenMs = new Map<string, number>();
  /** Requests somebody else decides: looked at again after this time, so that new ones get their turn. */
  readonly #notBeforeMs = new Map<string, number>();
  /** Entries that could not be removed or read: said once. */
  readonly #reported = new Set<string>();
  #watcher: FSWatcher | undefined;
  #timer: Timer | undefined;
  #scanning: Promise<void> | undefined;
  #scanAgain = false;
  #closed = false;
  #served = 0;
  #removedMalformed = 0;

  constructor(options: CommandServerOptions) {
    this.#options = options;
  }

  start(): void {
    try {
      this.#watcher = watch(this.#options.directory, () => this.#requestScan());
      this.#watcher.on('error', () => this.#dropWatcher());
    } catch (error) {
      this.#options.log.warn('command-watch.failed', { error: errorText(error) });
    }
    this.#requestScan();
  }

  counts(): CommandCounts {
    return {
      served: this.#served,
      removedMalformed: this.#removedMalformed,
      inFlight: this.#inFlight.size,
    };
  }

  /** Takes no more requests; waits at most `graceMs` for those that run. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    this.#dropWatcher();
    this.#timer?.cancel();
    const done = Promise.allSettled([...this.#inFlight.values()]).then(() => undefined);
    const patience = new AbortController();
    const late = this.#options.clock.sleep(graceMs, patience.signal).catch(() => undefined);
    await Promise.race([done, late]);
    patience.abort();
  }

  #dropWatcher(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #requestScan(): void {
    if (this.#closed) return;
    if (this.#scanning !== undefined) {
      this.#scanAgain = true;
      return;
    }
    this.#timer?.cancel();
    this.#scanning = this.#scan()
      .catch((error: unknown) => {
        this.#options.log.warn('command-scan.failed', { error: errorText(error) });
      })
      .then(() => {
        this.#scanning = undefined;
        this.#scheduleScan();
      });
  }

  #scheduleScan(): void {
    if (this.#closed) return;
    if (this.#scanAgain) {
      this.#scanAgain = false;
      this.#requestScan();
      return;
    }
    const delayMs = this.#watcher === undefined ? SCAN_WITHOUT_WATCH_MS : SCAN_MS;
    this.#timer = this.#options.clock.timer(delayMs, () => this.#requestScan());
    this.#timer.unref();
  }

  async #scan(): Promise<void> {
    const names: string[] = [];
    const directory = await opendir(this.#options.directory);
    for await (const entry of directory) {
      names.push(entry.name);
      if (names.length >= ENTRIES_MAX) break;
    }
    this.#remember(names);
    for (const name of names) {
      const entry = parseEntry(name);
      if (entry?.part === 'request') this.#take(entry.requestId);
      else if (entry?.part === 'response') await this.#sweepResponse(name, entry.requestId);
      else if (name.endsWith('.tmp')) await this.#sweepTemporary(name);
    }
  }

  #remember(names: readonly string[]): void {
    const present = new Set(names);
    for (const name of this.#firstSeenMs.keys()) {
      if (!present.has(name)) this.#firstSeenMs.delete(name);
    }
    for (const requestId of this.#notBeforeMs.keys()) {
      if (!present.has(`${requestId}.request.json`)) this.#notBeforeMs.delete(requestId);
    }
    for (const name of this.#reported) if (!present.has(name)) this.#reported.delete(name);
    const nowMs = this.#options.machine.monotonicMs();
    for (const name of names) {
      if (!this.#firstSeenMs.has(name)) this.#firstSeenMs.set(name, nowMs);
    }
  }

  #ageMs(name: string): number {
    const nowMs = this.#options.machine.monotonicMs();
    return nowMs - (this.#firstSeenMs.get(name) ?? nowMs);
  }

  #take(requestId: string): void {
    if (this.#closed || this.#inFlight.has(requestId)) return;
    if (this.#inFlight.size >= IN_FLIGHT_MAX) return;
    if ((this.#notBeforeMs.get(requestId) ?? 0) > this.#options.machine.monotonicMs()) return;
    const work = this.#serve(requestId)
      .catch((error: unknown) => {
        this.#options.log.error('command.failed', { requestId, error });
      })
      .then(() => {
        this.#inFlight.delete(requestId);
        // A place is free: whoever waited for it need not wait for the next second.
        if (this.#inFlight.size === IN_FLIGHT_MAX - 1) this.#requestScan();
      });
    this.#inFlight.set(requestId, work);
  }

  async #serve(requestId: string): Promise<void> {
    const { directory, kind, log } = this.#options;
    const path = requestPath(directory, requestId);
    const read = await readBounded(path, DOCUMENT_BYTES_MAX);
    if (read.kind === 'absent') return;
    if (read.kind === 'unusable') {
      await this.#refuseEntry(path, requestId, read.because);
      return;
    }
    const request = parseRequest(read.bytes);
    if (request === undefined || request.requestId !== requestId || request.kind !== kind) {
      await this.#refuseEntry(path, requestId, 'not a request of this name and kind');
      return;
    }
    const ran = await this.#unlessExpired(request, runCommand(this.#runOf(request, read.bytes)));
    if (ran === undefined) {
      log.warn('command.hung', { requestId, command: request.command });
      return;
    }
    const { outcome, code } = ran;
    if (outcome === 'left') {
      this.#notBeforeMs.set(requestId, this.#options.machine.monotonicMs() + LEFT_RETRY_MS);
      return;
    }
    this.#served += 1;
    log.info('command.served', { requestId, command: request.command, outcome, code });
  }

  /**
   * A handler that hangs past its request's life gives its place away. Whatever it does later, the
   * response decides: it cannot be granted authority any more.
   */
  async #unlessExpired<T>(request: CommandRequest, run: Promise<T>): Promise<T | undefined> {
    const leftMs = Math.max(0, request.expiresBootMs - this.#options.machine.bootMs());
    const patience = new AbortController();
    const late = this.#options.clock
      .sleep(leftMs + EXPIRY_GRACE_MS, patience.signal)
      .catch(() => undefined);
    try {
      return await Promise.race([run, late.then(() => undefined)]);
    } finally {
      patience.abort();
    }
  }

  #runOf(request: CommandRequest, bytes: Buffer): CommandRun {
    const { directory, owner, proven, handlers, machine, random, log, step } = this.#options;
    return { directory, owner, proven, handlers, machine, random, log, step, request, bytes };
  }

  /** The holder of the lock removes what can never be served; what cannot be told stays. */
  async #refuseEntry(path: string, requestId: string, because: string): Promise<void> {
    const name = `${requestId}.request.json`;
    if (this.#reported.has(name)) return;
    this.#reported.add(name);
    const cannotTell = /^E(ACCES|IO|PERM|MFILE|NFILE|NOMEM)$/.test(because);
    const removed = !cannotTell && this.#options.proven() && (await removeEntry(path));
    if (removed) this.#removedMalformed += 1;
    this.#options.log.warn('command-request.refused', { requestId, because, removed });
  }

  /** A response goes only when it is old by our own watch and its request is proven gone. */
  async #sweepResponse(name: string, requestId: string): Promise<void> {
    if (this.#ageMs(name) < RESPONSE_RETENTION_MS) return;
    const { directory, proven } = this.#options;
    if (!(await isProvenGone(requestPath(directory, requestId))) || !proven()) return;
    await removeEntry(join(directory, name));
  }

  async #sweepTemporary(name: string): Promise<void> {
    if (this.#ageMs(name) < TEMPORARY_AGE_MS || !this.#options.proven()) return;
    await removeEntry(join(this.#options.directory, name));
  }
}

/** Unlinks anything but a directory. */
async function removeEntry(path: string): Promise<boolean> {
  try {
    if ((await lstat(path)).isDirectory()) return false;
    await unlink(path);
    return true;
  } catch {
    return false;
  }
}
