// state.json and control.json: what an owner says about itself, and what a controller asks of exactly
// one owner. Read tolerantly (unknown keys are kept out), bounded, and never believed without the lock.

import * as z from 'zod/mini';
import { readBounded, readBoundedSync } from '../base/bounded-file.ts';
import {
  type ProcessIncarnation,
  ProcessIncarnationSchema,
} from '../ownership/process-incarnation.ts';
import { ageMs, type MachineTime, type Stamp } from './machine-time.ts';
import { incarnationText, type OwnerTuple, ownerTupleSchema } from './owner-tuple.ts';

/** Ours have about 1 KiB; what is larger was not written by us. */
const STATE_BYTES_MAX = 16 * 1024;
const CONTROL_BYTES_MAX = 4096;
/** A lifecycle request that waited longer is no longer what its author meant. */
export const CONTROL_AGE_MAX_MS = 20_000;

const short = z.string().check(z.maxLength(256));
const line = z.string().check(z.maxLength(1024));
const wallMs = z.number().check(z.gte(0));
const kindSchema = z.enum(['slack', 'discord']);

const stampSchema = z.object({
  bootId: short,
  bootMs: z.number().check(z.gte(0)),
});

const heartbeatSchema = z.extend(stampSchema, {
  seq: z.int().check(z.gte(0)),
  wallMs,
  monotonicMs: z.number().check(z.gte(0)),
});

export const PHASES = ['starting', 'running', 'stopping', 'stopped'] as const;

const stateSchema = z.object({
  version: z.literal(1),
  kind: kindSchema,
  ownerId: short.check(z.minLength(1)),
  pid: z.int().check(z.gte(1)),
  incarnation: ProcessIncarnationSchema,
  /** Absent in records of the first days: such an owner is replaceable. */
  generation: z.optional(z.int().check(z.gte(0))),
  identity: short,
  configHash: short,
  /** The lock record's: only then do both speak of the same owner. */
  nonce: short.check(z.minLength(1)),
  startedAtWallMs: wallMs,
  heartbeat: heartbeatSchema,
  phase: z.enum(PHASES),
  transportHealthy: z.boolean(),
  transportReason: line,
  lastEventAtWallMs: z.optional(wallMs),
  connectionsSeen: z.optional(z.int()),
  connectionsOwn: z.optional(z.int()),
  degraded: z.optional(line),
  programVersion: short,
  interpreter: short,
  /** What the store was when it was last opened, so that a lost one is told from a new one. */
  store: z.optional(z.object({ storeId: short, openings: z.int().check(z.gte(0)) })),
  stoppedAtWallMs: z.optional(wallMs),
  stopCause: z.optional(z.object({ code: short, reason: line })),
});

export type StateRecord = z.infer<typeof stateSchema>;

/** Records from before incarnations could be had; exactly these keys, or it is none of them. */
const OLD_KEYS = ['heartbeatAt', 'identity', 'incarnation', 'kind', 'ownerId', 'pid', 'version'];
const oldSchema = z.object({
  version: z.literal(1),
  kind: kindSchema,
  ownerId: short,
  pid: z.int().check(z.gte(1)),
  incarnation: z.literal('unavailable'),
  identity: short,
  heartbeatAt: wallMs,
});

export type ParsedState =
  | { readonly kind: 'record'; readonly record: StateRecord }
  /** Its process can be looked for by number only: proven dead if nothing has that number. */
  | { readonly kind: 'unavailable'; readonly pid: number; readonly identity: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'malformed'; readonly because: string }
  /** Something is there and could not be read: neither absent nor bad. */
  | { readonly kind: 'unreadable'; readonly because: string };

/** Read at once: it is small, on a local disk, and every `status` waits for it. */
export function readState(path: string): ParsedState {
  const read = readBoundedSync(path, STATE_BYTES_MAX);
  if (read.kind === 'absent') return { kind: 'absent' };
  if (read.kind === 'content') return parseState(read.bytes);
  const irregular = /^(not a regular file|larger than .*|ELOOP|ENXIO)$/.test(read.because);
  return { kind: irregular ? 'malformed' : 'unreadable', because: read.because };
}

export function parseState(bytes: Uint8Array): ParsedState {
  const document = parseJson(bytes);
  if (document === undefined) return { kind: 'malformed', because: 'not JSON' };
  const parsed = stateSchema.safeParse(document);
  if (parsed.success) return { kind: 'record', record: parsed.data };
  const old = oldSchema.safeParse(document);
  if (old.success && Object.keys(document).sort().join() === OLD_KEYS.join()) {
    return { kind: 'unavailable', pid: old.data.pid, identity: old.data.identity };
  }
  const field = parsed.error.issues[0]?.path.join('.') ?? '?';
  return { kind: 'malformed', because: `bad field ${field}` };
}

function parseJson(bytes: Uint8Array): object | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The exact owner a record speaks of. A legacy record counts as generation 0. */
export function tupleOf(record: {
  readonly ownerId: string;
  readonly incarnation: ProcessIncarnation;
  readonly generation?: number | undefined;
}): OwnerTuple {
  return {
    ownerId: record.ownerId,
    pid: record.incarnation.pid,
    incarnation: incarnationText(record.incarnation),
    generation: record.generation ?? 0,
  };
}

export type LifecycleAction = 'stop' | 'reload';
const actionSchema = z.enum(['stop', 'reload']);

const controlSchema = z.object({
  version: z.literal(1),
  id: short.check(z.minLength(1)),
  kind: kindSchema,
  action: actionSchema,
  owner: ownerTupleSchema,
  created: stampSchema,
});

export type ControlRequest = z.infer<typeof controlSchema>;

const controlResponseSchema = z.object({
  version: z.literal(1),
  id: short.check(z.minLength(1)),
  kind: kindSchema,
  action: actionSchema,
  owner: ownerTupleSchema,
  /** `accepted`: it is stopping now. Its death is proven otherwise. */
  outcome: z.enum(['accepted', 'expired']),
});

export type ControlResponse = z.infer<typeof controlResponseSchema>;

export type Read<T> =
  | { readonly kind: 'document'; readonly document: T; readonly bytes: Buffer }
  | { readonly kind: 'absent' }
  | { readonly kind: 'malformed'; readonly because: string }
  | { readonly kind: 'unreadable'; readonly because: string };

export function readControl(path: string): Promise<Read<ControlRequest>> {
  return readDocument(path, controlSchema);
}

async function readDocument<S extends z.ZodMiniType>(
  path: string,
  schema: S,
): Promise<Read<z.infer<S>>> {
  const read = await readBounded(path, CONTROL_BYTES_MAX);
  if (read.kind === 'absent') return { kind: 'absent' };
  if (read.kind === 'unusable') {
    const irregular = /^(not a regular file|larger than .*|ELOOP|ENXIO)$/.test(read.because);
    return { kind: irregular ? 'malformed' : 'unreadable', because: read.because };
  }
  const parsed = schema.safeParse(parseJson(read.bytes));
  if (!parsed.success) return { kind: 'malformed', because: 'not a request' };
  return { kind: 'document', document: parsed.data, bytes: read.bytes };
}

export function isControlExpired(machine: MachineTime, request: ControlRequest): boolean {
  const created: Stamp = request.created;
  return ageMs(machine, created) > CONTROL_AGE_MAX_MS;
}

/** Suspend-free age of a heartbeat; infinite when it is of another boot. */
export function heartbeatAgeMs(machine: MachineTime, heartbeat: StateRecord['heartbeat']): number {
  if (heartbeat.bootId !== machine.bootId) return Number.POSITIVE_INFINITY;
  return Math.max(0, machine.monotonicMs() - heartbeat.monotonicMs);
}
