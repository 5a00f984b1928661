// Starts a long-lived process so that its starter learns exactly one of: ready, occupied, ended
// with the tail of what it said, or not ready in time. Readiness is a line on an inherited pipe; the
// pipe's end without a line means that the process ended or gave up.

import { spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { ChatdError, errnoCode } from '../base/errors.ts';
import { closeFd, openPipe, setCloseOnExec } from '../sys/fd.ts';
import { type Failpoints, noFailpoints } from './failpoints.ts';
import { type AcquireOptions, acquireKeptLock, type KeptLock } from './kept-lock.ts';

/** An exit code rides the event the starter waits for anyway. 1 to 13 are Node's own. */
export const EXIT_OCCUPIED = 20;
/** Tells the child which descriptor to write its line to. */
export const READY_FD_VARIABLE = 'CHATD_READY_FD';
const READY_FD = 3;
const READY_LINE_BYTES_MAX = 1024;
const STDERR_TAIL_BYTES = 4096;
/** After the pipe's end the exit follows at once; a process that lives on has given no answer. */
const EXIT_AFTER_EOF_MS = 2000;
const SPAWN_LOCK_POLL_MS = 25;

export interface SpawnReadyRequest {
  readonly file: string;
  /** Without argv[0]. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Receives the child's stderr for its whole life; emptied first. 0600. */
  readonly stderrPath: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly failpoints?: Failpoints;
}

export type SpawnReadyOutcome =
  | { readonly kind: 'ready'; readonly pid: number; readonly line: string }
  /** Exit code 20: somebody else owns what it was to own. Adopt that. */
  | { readonly kind: 'occupied' }
  | { readonly kind: 'ended'; readonly status: string; readonly stderrTail: string }
  /** It may still become ready: neither killed nor waited for any longer. */
  | { readonly kind: 'timed-out'; readonly pid: number; readonly stderrTail: string };

/**
 * Starts `file` detached in a session of its own and waits for its line.
 * @throws {ChatdError} spawn-failed when nothing was started
 */
export async function spawnReady(request: SpawnReadyRequest): Promise<SpawnReadyOutcome> {
  const failpoints = request.failpoints ?? noFailpoints;
  const stderrFd = openStderr(request.stderrPath);
  const pipe = openPipe();
  let child: ReturnType<typeof spawn>;
  try {
    child = spawn(request.file, request.args, {
      cwd: request.cwd,
      detached: true,
      env: { ...request.environment, [READY_FD_VARIABLE]: String(READY_FD) },
      stdio: ['ignore', 'ignore', stderrFd, pipe.write],
    });
  } catch (error) {
    closeFd(pipe.read);
    throw spawnFailed(request.file, error);
  } finally {
    closeFd(pipe.write);
    closeSync(stderrFd);
  }
  child.unref();
  const { pid } = child;
  const exited = new Promise<string | Error>((resolve) => {
    child.once('error', resolve);
    child.once('exit', (code, signal) => resolve(signal ?? `code ${code ?? 'unknown'}`));
  });
  if (pid === undefined) {
    closeFd(pipe.read);
    throw spawnFailed(request.file, await exited);
  }
  failpoints.hit('spawn.started');
  const line = await readLine(pipe.read, request.clock, request.timeoutMs);
  if (line.kind === 'line') return { kind: 'ready', pid, line: line.text };
  if (line.kind === 'timed-out') {
    return { kind: 'timed-out', pid, stderrTail: readTail(request.stderrPath) };
  }
  const status = await within(request.clock, EXIT_AFTER_EOF_MS, exited);
  if (status === `code ${EXIT_OCCUPIED}`) return { kind: 'occupied' };
  const text = typeof status === 'string' ? status : 'still running without having become ready';
  return { kind: 'ended', status: text, stderrTail: readTail(request.stderrPath) };
}

function spawnFailed(file: string, error: unknown): ChatdError {
  const code = errnoCode(error) ?? 'unknown error';
  return new ChatdError('spawn-failed', `Cannot start ${file}: ${code}`, { cause: error });
}

function openStderr(path: string): number {
  const flags =
    constants.O_WRONLY |
    constants.O_CREAT |
    constants.O_TRUNC |
    constants.O_APPEND |
    constants.O_NOFOLLOW |
    constants.O_NONBLOCK;
  try {
    const fd = openSync(path, flags, 0o600);
    if (fstatSync(fd).isFile()) return fd;
    closeSync(fd);
  } catch (error) {
    throw new ChatdError('spawn-failed', `Cannot open ${path}: ${errnoCode(error) ?? 'unknown'}`, {
      cause: error,
    });
  }
  throw new ChatdError('spawn-failed', `Cannot open ${path}: not a regular file`);
}

type Line =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'end' }
  | { readonly kind: 'timed-out' };

/** Takes ownership of `fd`. A line longer than the bound counts as the end. */
function readLine(fd: number, clock: Clock, timeoutMs: number): Promise<Line> {
  return new Promise((resolve) => {
    const socket = new Socket({ fd, readable: true, writable: false });
    let text = '';
    const settle = (line: Line): void => {
      timer.cancel();
      socket.destroy();
      resolve(line);
    };
    const timer = clock.timer(timeoutMs, () => settle({ kind: 'timed-out' }));
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
      const end = text.indexOf('\n');
      if (end >= 0) settle({ kind: 'line', text: text.slice(0, end) });
      else if (text.length > READY_LINE_BYTES_MAX) settle({ kind: 'end' });
    });
    socket.on('error', () => settle({ kind: 'end' }));
    socket.on('end', () => settle({ kind: 'end' }));
  });
}

async function within<T>(
  clock: Clock,
  timeoutMs: number,
  value: Promise<T>,
): Promise<T | undefined> {
  const abort = new AbortController();
  const timeout = clock.sleep(timeoutMs, abort.signal).then(
    () => undefined,
    () => undefined,
  );
  try {
    return await Promise.race([value, timeout]);
  } finally {
    abort.abort();
  }
}

function readTail(path: string): string {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return '';
  }
  try {
    const buffer = Buffer.alloc(STDERR_TAIL_BYTES);
    const from = Math.max(0, fstatSync(fd).size - STDERR_TAIL_BYTES);
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, from)).trim();
  } catch {
    return '';
  } finally {
    closeSync(fd);
  }
}

/** The child's half: says it is ready, once. */
export interface Announcer {
  /** Idempotent; a starter that has gone is no error. */
  announce(line: string): void;
}

/**
 * Takes the descriptor named in the environment, so that no program started later inherits it.
 * Without one (started by hand or by a service manager) announcing does nothing.
 */
export function takeAnnouncer(
  environment: Record<string, string | undefined>,
  failpoints: Failpoints = noFailpoints,
): Announcer {
  const text = environment[READY_FD_VARIABLE];
  delete environment[READY_FD_VARIABLE];
  let fd = text === String(READY_FD) ? READY_FD : undefined;
  try {
    // A descriptor that is no pipe was not meant for us, whatever the variable says.
    if (fd !== undefined && !fstatSync(fd).isFIFO()) fd = undefined;
    if (fd !== undefined) setCloseOnExec(fd, true);
  } catch {
    fd = undefined;
  }
  return {
    announce: (line) => {
      if (fd === undefined) return;
      failpoints.hit('spawn.before-announce');
      const target = fd;
      fd = undefined;
      try {
        writeSync(target, `${line}\n`);
      } catch {
        // EPIPE: nobody waits for it any more.
      }
      closeSync(target);
    },
  };
}

/** What the one who waited for the spawn lock found. */
export type SpawnTurn<T> =
  | { readonly kind: 'adopted'; readonly value: T }
  | { readonly kind: 'started'; readonly value: T }
  /** Somebody else has been starting for all that time. */
  | { readonly kind: 'timed-out' };

export interface SpawnTurnRequest<T> {
  readonly lockPath: string;
  readonly lock: AcquireOptions;
  readonly clock: Clock;
  readonly waitMs: number;
  /** Looks for a running one; called again after each wait and once more under the lock. */
  readonly adopt: () => Promise<T | undefined>;
  /** Starts one, while this process alone may. */
  readonly start: () => Promise<T>;
  readonly failpoints?: Failpoints;
}

/** One starter at a time; the others wait, bounded, and adopt what it started. */
export async function takeSpawnTurn<T>(request: SpawnTurnRequest<T>): Promise<SpawnTurn<T>> {
  const failpoints = request.failpoints ?? noFailpoints;
  const deadline = request.clock.monotonicMs() + request.waitMs;
  for (;;) {
    const running = await request.adopt();
    if (running !== undefined) return { kind: 'adopted', value: running };
    const attempt = acquireKeptLock(request.lockPath, request.lock);
    if (attempt.kind === 'acquired') {
      failpoints.hit('spawn.locked');
      return await useTurn(request, attempt.lock);
    }
    if (request.clock.monotonicMs() >= deadline) return { kind: 'timed-out' };
    await request.clock.sleep(SPAWN_LOCK_POLL_MS);
  }
}

async function useTurn<T>(request: SpawnTurnRequest<T>, lock: KeptLock): Promise<SpawnTurn<T>> {
  try {
    // The one before may have started it between our look and our turn.
    const running = await request.adopt();
    if (running !== undefined) return { kind: 'adopted', value: running };
    return { kind: 'started', value: await request.start() };
  } finally {
    lock.release();
  }
}
