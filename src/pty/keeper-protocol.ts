// What keeper and host say to each other, and the two requests of keeper.sock. JSON in frames: the
// keeper loads no codec. Masters travel beside it on a SOCK_SEQPACKET pair, sent before the frame
// that names them (docs/protocol.md "Keeper pair").

import type { Socket } from 'node:net';
import type { Clock, Timer } from '../base/clock.ts';
import { ChatdError, errorText } from '../base/errors.ts';
import { encodeFrame, FrameDecoder } from '../base/frame-codec.ts';
import { receiveFds, sendFds } from '../sys/fd-passing.ts';

/** Version of this file's messages; each side says its own and the newer one adapts. */
export const KEEPER_PROTOCOL = 1;

/** How a keeper is started: one JSON argument. */
export interface KeeperOptions {
  readonly state: string;
  readonly runtime?: string;
  readonly interpreter: string;
  /** Absolute path of the host's bundle. */
  readonly hostEntry: string;
  /** The host's own argument, opaque here. */
  readonly hostOptions: string;
  /** Soft limit of open files of whoever started us, before Node raised it. */
  readonly openFiles?: number;
  /** In the foreground (`chatd host run`): a host is started at once. */
  readonly startHost?: boolean;
  /** Pid of a host that outlived its keeper and started us: its pair is on the two descriptors. */
  readonly inheritHostPid?: number;
}

/** Largest frame: a spawn request holds a whole environment. */
export const KEEPER_FRAME_BYTES_MAX = 4 * 1024 * 1024;
/** SCM_RIGHTS carries 253 descriptors (254 gives EINVAL); a session has three. */
export const SESSIONS_PER_MESSAGE = 66;
export const FDS_PER_SESSION = 3;

/** Descriptors at which the keeper gives the host its two ends. */
export const HOST_CONTROL_FD = 3;
export const HOST_MASTERS_FD = 4;

export const FRAME_MESSAGE = 1;

/** What wait(2) said, or that nobody could ask. */
export type WaitStatus =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'unknown' };

/** A session as the keeper knows it. Its three descriptors are master, pipe read, pipe write. */
export interface KeptSession {
  readonly sessionId: string;
  readonly incarnation: string;
  readonly token: string;
  readonly pid: number;
  /** Process incarnation of the shell, as src/ownership writes it. */
  readonly process: unknown;
  /** What the host wants to know again after its own death; opaque to the keeper. */
  readonly record: string;
  readonly status?: WaitStatus;
}

export type SignalTarget = 'leader' | 'group' | 'foreground';

export interface SpawnRequest {
  readonly t: 'spawn';
  readonly id: number;
  readonly sessionId: string;
  readonly incarnation: string;
  readonly token: string;
  readonly record: string;
  /** Absolute path of the program, and its argument vector. */
  readonly file: string;
  readonly argv: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly cols: number;
  readonly rows: number;
}

export type ToKeeper =
  | { readonly t: 'hello'; readonly version: number; readonly pid: number }
  | { readonly t: 'ready' }
  | { readonly t: 'pong'; readonly seq: number }
  | SpawnRequest
  /** `to`: the leader, its own process group, or the terminal's foreground group. */
  | {
      readonly t: 'signal';
      readonly id: number;
      readonly sessionId: string;
      readonly incarnation: string;
      readonly signal: string;
      readonly to: SignalTarget;
    }
  /** Exit recorded and terminal closed: the keeper may let go of the descriptors. */
  | { readonly t: 'forget'; readonly sessionId: string; readonly incarnation: string }
  | {
      readonly t: 'reload';
      readonly id: number;
      readonly interpreter: string;
      readonly entry: string;
    }
  /** Answer to `stop-reading`: no descriptor of this host is read any more. */
  | { readonly t: 'stopped-reading' }
  /** The host wants to end and not be replaced. */
  | { readonly t: 'shutdown'; readonly reason: string }
  /** To a new keeper: sessions whose descriptors were sent just before. */
  | { readonly t: 'adopt'; readonly sessions: readonly KeptSession[]; readonly last: boolean };

export type ToHost =
  | {
      readonly t: 'hello';
      readonly version: number;
      readonly pid: number;
      readonly process: unknown;
    }
  /** In preflight nothing is given until the predecessor has stopped reading. */
  | { readonly t: 'inventory'; readonly sessions: readonly KeptSession[]; readonly last: boolean }
  | { readonly t: 'ping'; readonly seq: number }
  | { readonly t: 'spawned'; readonly id: number; readonly pid: number; readonly process: unknown }
  | {
      readonly t: 'failed';
      readonly id: number;
      readonly errno: string;
      readonly message: string;
    }
  | { readonly t: 'done'; readonly id: number }
  | {
      readonly t: 'exited';
      readonly sessionId: string;
      readonly incarnation: string;
      readonly status: WaitStatus;
    }
  | { readonly t: 'stop-reading' }
  | { readonly t: 'adopted' };

/** keeper.sock: one request, one answer, the connection is closed. */
export type KeeperRequest = { readonly t: 'start-host' } | { readonly t: 'status' };

export interface KeeperStatus {
  readonly t: 'status';
  readonly pid: number;
  readonly host: 'none' | 'starting' | 'running' | 'not-answering' | 'waiting';
  readonly hostPid?: number;
  readonly reason?: string;
  readonly sessions: number;
  readonly hostStarts: number;
  readonly silentMs: number;
}

export type KeeperAnswer =
  | KeeperStatus
  | { readonly t: 'started'; readonly hostPid: number }
  | { readonly t: 'failed'; readonly message: string; readonly exitCode?: number };

export type KeeperMessage = ToKeeper | ToHost | KeeperRequest | KeeperAnswer;

export function encodeMessage(message: KeeperMessage): Buffer {
  return encodeFrame(FRAME_MESSAGE, Buffer.from(JSON.stringify(message)));
}

type Check = 'string' | 'number' | 'strings' | 'boolean' | 'any' | 'sessions';
type Shape = Readonly<Record<string, Check>>;

const session = { sessionId: 'string', incarnation: 'string' } as const;

const TO_KEEPER: Readonly<Record<ToKeeper['t'], Shape>> = {
  hello: { version: 'number', pid: 'number' },
  ready: {},
  pong: { seq: 'number' },
  spawn: {
    ...session,
    id: 'number',
    token: 'string',
    record: 'string',
    file: 'string',
    argv: 'strings',
    env: 'strings',
    cwd: 'string',
    cols: 'number',
    rows: 'number',
  },
  signal: { ...session, id: 'number', signal: 'string', to: 'string' },
  forget: session,
  reload: { id: 'number', interpreter: 'string', entry: 'string' },
  'stopped-reading': {},
  shutdown: { reason: 'string' },
  adopt: { sessions: 'sessions', last: 'boolean' },
};

const TO_HOST: Readonly<Record<ToHost['t'], Shape>> = {
  hello: { version: 'number', pid: 'number', process: 'any' },
  inventory: { sessions: 'sessions', last: 'boolean' },
  ping: { seq: 'number' },
  spawned: { id: 'number', pid: 'number', process: 'any' },
  failed: { id: 'number', errno: 'string', message: 'string' },
  done: { id: 'number' },
  exited: { ...session, status: 'any' },
  'stop-reading': {},
  adopted: {},
};

const KEEPER_REQUESTS: Readonly<Record<KeeperRequest['t'], Shape>> = {
  'start-host': {},
  status: {},
};

const KEEPER_ANSWERS: Readonly<Record<KeeperAnswer['t'], Shape>> = {
  status: { pid: 'number', host: 'string', sessions: 'number', hostStarts: 'number' },
  started: { hostPid: 'number' },
  failed: { message: 'string' },
};

/** @throws {ChatdError} protocol-violation */
export function parseToKeeper(payload: Uint8Array): ToKeeper {
  return parse(payload, TO_KEEPER) as unknown as ToKeeper;
}

/** @throws {ChatdError} protocol-violation */
export function parseToHost(payload: Uint8Array): ToHost {
  return parse(payload, TO_HOST) as unknown as ToHost;
}

/** @throws {ChatdError} protocol-violation */
export function parseKeeperRequest(payload: Uint8Array): KeeperRequest {
  return parse(payload, KEEPER_REQUESTS) as unknown as KeeperRequest;
}

/** @throws {ChatdError} protocol-violation */
export function parseKeeperAnswer(payload: Uint8Array): KeeperAnswer {
  return parse(payload, KEEPER_ANSWERS) as unknown as KeeperAnswer;
}

function parse(
  payload: Uint8Array,
  shapes: Readonly<Record<string, Shape>>,
): Record<string, unknown> {
  const value = parseJson(payload);
  if (isRecord(value) && typeof value['t'] === 'string' && Object.hasOwn(shapes, value['t'])) {
    const shape = shapes[value['t']] ?? {};
    const wrong = Object.entries(shape).find(([key, check]) => !holds(value[key], check));
    if (wrong === undefined) return value;
    throw new ChatdError(
      'protocol-violation',
      `Cannot read ${value['t']}: ${wrong[0]} is not right`,
    );
  }
  throw new ChatdError('protocol-violation', 'Cannot read keeper message: unknown kind');
}

function parseJson(payload: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(payload).toString('utf8'));
  } catch (cause) {
    throw new ChatdError('protocol-violation', 'Cannot read keeper message: not JSON', { cause });
  }
}

function holds(value: unknown, check: Check): boolean {
  switch (check) {
    case 'string':
    case 'boolean':
      return typeof value === check;
    case 'number':
      return typeof value === 'number' && Number.isFinite(value);
    case 'strings':
      return Array.isArray(value) && value.every((item) => typeof item === 'string');
    case 'sessions':
      return Array.isArray(value) && value.every(isKeptSession);
    case 'any':
      return value !== undefined;
  }
}

function isKeptSession(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['sessionId'] === 'string' &&
    typeof value['incarnation'] === 'string' &&
    typeof value['token'] === 'string' &&
    typeof value['record'] === 'string' &&
    typeof value['pid'] === 'number'
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// ── The pair itself ───────────────────────────────────────────────────────────────────────────

interface Outgoing {
  readonly frame: Buffer;
  readonly fds: readonly number[];
}

/** How long to wait for the peer to make room for descriptors. */
const FDS_RETRY_MS = 1;

/** One end of the pair: frames on a stream, descriptors beside it, in the order they were sent. */
export class KeeperLink {
  readonly #stream: Socket;
  readonly #mastersFd: number;
  readonly #clock: Clock;
  readonly #queue: Outgoing[] = [];
  #timer: Timer | undefined;
  #closed = false;

  constructor(options: {
    readonly stream: Socket;
    /** Our end of the SOCK_SEQPACKET pair; the caller closes it after `onClose`. */
    readonly mastersFd: number;
    readonly clock: Clock;
    readonly onMessage: (payload: Buffer) => void;
    /** Called once. */
    readonly onClose: (because: string) => void;
  }) {
    this.#stream = options.stream;
    this.#mastersFd = options.mastersFd;
    this.#clock = options.clock;
    const decoder = new FrameDecoder(KEEPER_FRAME_BYTES_MAX);
    const end = (because: string): void => {
      if (this.#closed) return;
      this.close();
      options.onClose(because);
    };
    this.#stream.on('data', (chunk: Buffer) => {
      try {
        for (const frame of decoder.push(chunk)) {
          if (!this.#closed) options.onMessage(frame.payload);
        }
      } catch (error) {
        end(errorText(error));
      }
    });
    this.#stream.on('error', (error) => end(error.message));
    this.#stream.on('close', () => end('closed'));
    this.#stream.on('end', () => end('closed'));
  }

  send(message: ToHost | ToKeeper, fds: readonly number[] = []): void {
    if (this.#closed) return;
    this.#queue.push({ frame: encodeMessage(message), fds });
    this.#flush();
  }

  /** The descriptors of the message at hand: they were sent before its frame. */
  takeFds(): readonly number[] {
    const received = receiveFds(this.#mastersFd);
    if (received.kind === 'message') return received.fds;
    throw new ChatdError('protocol-violation', `Cannot take descriptors: ${received.kind}`);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#stream.destroy();
  }

  #flush(): void {
    if (this.#timer !== undefined) return;
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      if (next.fds.length > 0 && !this.#sendFds(next.fds)) return;
      this.#queue.shift();
      if (!this.#closed) this.#stream.write(next.frame);
    }
  }

  #sendFds(fds: readonly number[]): boolean {
    try {
      if (sendFds(this.#mastersFd, Buffer.from([fds.length]), fds) === 'sent') return true;
    } catch {
      // The peer is gone; the stream says so next.
      return true;
    }
    this.#timer = this.#clock.timer(FDS_RETRY_MS, () => {
      this.#timer = undefined;
      this.#flush();
    });
    return false;
  }
}
