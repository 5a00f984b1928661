// What host and clients say to each other: frame types, control messages and their bounds.
// docs/protocol.md is the same in words; golden files hold the bytes still.

import { Packr } from 'msgpackr';
import * as z from 'zod/mini';
import { ChatdError } from '../base/errors.ts';
import { encodeFrame, FRAME_HEADER_BYTES } from '../base/frame-codec.ts';
import type { View } from '../term/values.ts';
import type { SessionInfo, SessionState, Snapshot } from './session-values.ts';

/** Versions of this protocol that this code speaks. */
export const PROTOCOL_MIN = 1;
export const PROTOCOL_MAX = 1;

/** No frame is larger, in either direction. */
export const FRAME_BYTES_MAX = 8 * 1024 * 1024;
/** A connection that has not said hello by then is closed. */
export const HELLO_DEADLINE_MS = 5_000;
/** Before hello a peer is a stranger: it gets little memory. */
export const HELLO_BYTES_MAX = 16 * 1024;

/** Types of frames. Bulk frames begin with u32 LE handle and f64 LE offset. */
export const FRAME_CONTROL = 1;
export const FRAME_OUTPUT = 2;
export const FRAME_VIEW = 3;

/** What this code can do beyond version 1; a peer's unknown ones are ignored. */
export const CAPABILITIES = ['lines', 'bytes', 'marks', 'tty-state', 'only-if'] as const;

const BULK_HEADER_BYTES = 12;

// Plain maps: every msgpack library reads them. moreTypes would add extensions.
const packr = new Packr({ useRecords: false, moreTypes: false, int64AsType: 'number' });

export function packValue(value: unknown): Buffer {
  return packr.pack(value);
}

/** @throws {ChatdError} protocol-violation */
export function unpackValue(bytes: Uint8Array): unknown {
  try {
    return packr.unpack(bytes) as unknown;
  } catch (cause) {
    throw new ChatdError('protocol-violation', 'Cannot read message: not msgpack', { cause });
  }
}

export function encodeControl(message: ControlMessage): Buffer {
  return encodeFrame(FRAME_CONTROL, packValue(message));
}

/** A bulk frame: `handle` names the attachment, `offset` where `bytes` begin in the session. */
export function encodeBulk(
  type: number,
  handle: number,
  offset: number,
  bytes: Uint8Array,
): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + BULK_HEADER_BYTES + bytes.length);
  frame.writeUInt32LE(1 + BULK_HEADER_BYTES + bytes.length, 0);
  frame[4] = type;
  frame.writeUInt32LE(handle, FRAME_HEADER_BYTES);
  frame.writeDoubleLE(offset, FRAME_HEADER_BYTES + 4);
  frame.set(bytes, FRAME_HEADER_BYTES + BULK_HEADER_BYTES);
  return frame;
}

/** @throws {ChatdError} protocol-violation */
export function decodeBulk(payload: Buffer): { handle: number; offset: number; bytes: Buffer } {
  if (payload.length < BULK_HEADER_BYTES) {
    throw new ChatdError('protocol-violation', 'Cannot read bulk frame: too short');
  }
  return {
    handle: payload.readUInt32LE(0),
    offset: payload.readDoubleLE(4),
    bytes: payload.subarray(BULK_HEADER_BYTES),
  };
}

// ── What a client says ────────────────────────────────────────────────────────────────────────

const shortText = z.string().check(z.maxLength(256));
const pathText = z.string().check(z.maxLength(4096));
const count = z.int().check(z.nonnegative());
const handle = z.int().check(z.nonnegative(), z.maximum(0xffffffff));
const cells = z.int().check(z.minimum(1), z.maximum(1000));
const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array);
const target = { sessionId: shortText, incarnation: shortText };

const hello = z.strictObject({
  t: z.literal('hello'),
  min: count,
  max: count,
  role: z.enum(['cli', 'bot', 'attach']),
  capabilities: z.array(shortText).check(z.maxLength(64)),
});

const request = <Op extends string, Shape extends z.core.$ZodShape>(op: Op, shape: Shape) =>
  z.strictObject({ t: z.literal('req'), id: count, op: z.literal(op), ...shape });

const requests = z.discriminatedUnion('op', [
  request('create', {
    token: shortText,
    command: z.array(z.string().check(z.maxLength(131_072))).check(z.maxLength(4096)),
    cwd: pathText,
    env: z.record(z.string().check(z.maxLength(1024)), z.string().check(z.maxLength(131_072))),
    cols: cells,
    rows: cells,
    actor: shortText,
    profile: z.exactOptional(shortText),
  }),
  request('list', {}),
  request('status', {}),
  request('ping', {}),
  request('attach', {
    sessionId: shortText,
    incarnation: z.exactOptional(shortText),
    want: z.enum(['lines', 'bytes']),
    handle,
    since: z.exactOptional(count),
    lossless: z.exactOptional(z.boolean()),
  }),
  request('detach', { handle }),
  request('input', {
    ...target,
    messageId: shortText,
    actor: shortText,
    bytes,
    onlyIf: z.exactOptional(
      z.strictObject({
        echo: z.exactOptional(z.boolean()),
        canonical: z.exactOptional(z.boolean()),
      }),
    ),
    secret: z.exactOptional(z.boolean()),
  }),
  request('resize', { ...target, cols: cells, rows: cells }),
  request('signal', { ...target, signal: shortText, actor: shortText }),
  request('tty-state', target),
  request('frame', target),
  request('snapshot', target),
  request('read-lines', { ...target, from: count, to: count }),
  request('read-marks', { ...target, from: count, max: count }),
  request('read-bytes', { ...target, from: count, to: count }),
  request('end', { ...target, actor: shortText }),
  request('kill', { ...target, actor: shortText }),
  request('reload', { interpreter: pathText, entry: pathText, actor: shortText }),
  request('shutdown', { sessions: z.enum(['refuse', 'end']), actor: shortText }),
]);

/** Consumed up to `offset` (bytes), or ready for one more view (lines). Never answered. */
const ack = z.strictObject({ t: z.literal('ack'), handle, offset: count });

const clientMessage = z.discriminatedUnion('t', [hello, requests, ack]);

export type Hello = z.infer<typeof hello>;
export type Request = z.infer<typeof requests>;
export type RequestOp = Request['op'];
export type RequestOf<Op extends RequestOp> = Extract<Request, { op: Op }>;
export type ClientMessage = z.infer<typeof clientMessage>;

/**
 * One message of a client, checked.
 * @throws {ChatdError} protocol-violation
 */
export function parseClientMessage(payload: Uint8Array): ClientMessage {
  const parsed = clientMessage.safeParse(unpackValue(payload));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new ChatdError(
    'protocol-violation',
    `Cannot read message: ${issue?.path.join('.') ?? ''} ${issue?.code ?? 'invalid'}`,
  );
}

// ── What the host says ────────────────────────────────────────────────────────────────────────

export interface Welcome {
  readonly t: 'welcome';
  readonly version: number;
  readonly instance: string;
  readonly pid: number;
  readonly capabilities: readonly string[];
  readonly chatdVersion: string;
}

/** The last message on a connection that was not accepted or is being closed by the host. */
export interface Refused {
  readonly t: 'refused';
  readonly code: string;
  readonly message: string;
  /** Which side must be upgraded, for version-mismatch. */
  readonly older?: 'client' | 'host';
}

export interface Ok {
  readonly t: 'ok';
  readonly id: number;
  /** The host's process incarnation: what it says holds for this instance only. */
  readonly instance: string;
  readonly result: unknown;
}

export interface Failed {
  readonly t: 'failed';
  readonly id: number;
  readonly instance: string;
  readonly code: string;
  readonly message: string;
}

export type HostEvent =
  | { readonly t: 'state'; readonly handle: number; readonly state: SessionState }
  | {
      readonly t: 'skip';
      readonly handle: number;
      readonly to: number;
      readonly snapshot: Snapshot;
      readonly gap?: { readonly from: number; readonly to: number };
    }
  | { readonly t: 'going-away'; readonly reason: string; readonly retryAfterMs: number };

export type HostMessage = Welcome | Refused | Ok | Failed | HostEvent;
export type ControlMessage = HostMessage | ClientMessage;

export interface AttachResult {
  readonly info: SessionInfo;
  /** The first offset that will be sent. */
  readonly from: number;
  readonly gap?: { readonly from: number; readonly to: number };
  readonly snapshot?: Snapshot;
  readonly markCount: number;
}

const HOST_KINDS = new Set(['welcome', 'refused', 'ok', 'failed', 'state', 'skip', 'going-away']);

/**
 * One message of the host. The host is proven by its socket (0600, same uid) and its hello, so
 * the envelope is checked here and each result where it is used.
 * @throws {ChatdError} protocol-violation
 */
export function parseHostMessage(payload: Uint8Array): HostMessage {
  const value = unpackValue(payload);
  if (typeof value === 'object' && value !== null && 't' in value && typeof value.t === 'string') {
    if (HOST_KINDS.has(value.t)) return value as HostMessage;
  }
  throw new ChatdError('protocol-violation', 'Cannot read message: unknown kind');
}

/** @throws {ChatdError} protocol-violation */
export function parseView(payload: Uint8Array): View {
  const value = unpackValue(payload);
  if (
    typeof value === 'object' &&
    value !== null &&
    'finalCount' in value &&
    'tail' in value &&
    Array.isArray(value.tail)
  ) {
    return value as View;
  }
  throw new ChatdError('protocol-violation', 'Cannot read view: wrong shape');
}
