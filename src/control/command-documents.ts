// The two documents of a command on disk: request and response. Strict, bounded, pure. What cannot
// be parsed as a whole response counts as a claim in progress, never as an answer.

import { join } from 'node:path';
import * as z from 'zod/mini';
import type { Kind } from '../base/paths.ts';
import { field, requiredField, type Scalar } from './commands/command.ts';
import { type OwnerTuple, ownerTupleSchema } from './owner-tuple.ts';

/** DETAILS.md "Command channel numbers" and OWNERSHIP.md §1.1. */
export const DOCUMENT_BYTES_MAX = 8192;
export const SUBMIT_TIMEOUT_MS = 15_000;
export const SUBMIT_POLL_MS = 25;
export const SETTLE_MS = 5000;
const LIFE_MIN_MS = 30_000;
const LIFE_MAX_MS = 10 * 60_000;
/** Longer than any request lives, so that a response never goes before its request can be served. */
export const RESPONSE_RETENTION_MS = 15 * 60_000;

/** How long a request may be served: twice the submitter's patience, within bounds. */
export function requestLifeMs(timeoutMs: number): number {
  return Math.min(LIFE_MAX_MS, Math.max(2 * timeoutMs, LIFE_MIN_MS));
}

export interface CommandRequest {
  readonly version: 1;
  readonly requestId: string;
  readonly kind: Kind;
  readonly command: string;
  readonly owner: OwnerTuple;
  readonly args: Readonly<Record<string, Scalar>>;
  readonly bootId: string;
  readonly createdBootMs: number;
  readonly expiresBootMs: number;
}

export interface Answer {
  readonly outcome: 'ok' | 'rejected' | 'owner_changed' | 'expired' | 'outcome_unknown';
  readonly code: string;
  readonly result: Readonly<Record<string, Scalar>>;
}

/** `cancelled` is written by a submitter that gave up; all else by the owner. */
export type ResponseBody = Answer | (Omit<Answer, 'outcome'> & { readonly outcome: 'cancelled' });

export interface CommandResponse {
  readonly version: 1;
  readonly requestId: string;
  readonly kind: Kind;
  readonly command: string;
  /** The owner the request was addressed to: an echo, it proves correlation and not authorship. */
  readonly owner: OwnerTuple;
  readonly body: ResponseBody;
}

const scalars = z
  .record(requiredField, z.union([field, z.number(), z.boolean()]))
  .check(z.refine((value) => Object.keys(value).length <= 32));
const kind = z.enum(['slack', 'discord']);
const uuid = z.string().check(z.regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/));
const owner = z.extend(z.strictObject({}), ownerTupleSchema.shape);

const requestSchema = z.strictObject({
  version: z.literal(1),
  requestId: uuid,
  kind,
  command: requiredField,
  owner,
  args: scalars,
  bootId: requiredField,
  createdBootMs: z.number().check(z.gte(0)),
  expiresBootMs: z.number().check(z.gte(0)),
});

const responseSchema = z.strictObject({
  version: z.literal(1),
  requestId: uuid,
  kind,
  command: requiredField,
  owner,
  body: z.strictObject({
    outcome: z.enum(['ok', 'rejected', 'owner_changed', 'expired', 'outcome_unknown', 'cancelled']),
    code: requiredField,
    result: scalars,
  }),
});

/** Parses a request; undefined when it is not one, or lives longer than any request may. */
export function parseRequest(bytes: Uint8Array): CommandRequest | undefined {
  const request = parseWith(requestSchema, bytes);
  if (request === undefined) return undefined;
  const lifeMs = request.expiresBootMs - request.createdBootMs;
  return lifeMs >= 0 && lifeMs <= LIFE_MAX_MS ? request : undefined;
}

/** Parses a response; undefined for the reserved, the empty and the torn. */
export function parseResponse(bytes: Uint8Array): CommandResponse | undefined {
  return parseWith(responseSchema, bytes);
}

function parseWith<S extends z.ZodMiniType>(schema: S, bytes: Uint8Array): z.infer<S> | undefined {
  if (bytes.length > DOCUMENT_BYTES_MAX) return undefined;
  let document: unknown;
  try {
    document = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return undefined;
  }
  const parsed = schema.safeParse(document);
  return parsed.success ? parsed.data : undefined;
}

/** True if the response is about this very request. */
export function answersRequest(response: CommandResponse, request: CommandRequest): boolean {
  return (
    response.requestId === request.requestId &&
    response.kind === request.kind &&
    response.command === request.command &&
    JSON.stringify(response.owner) === JSON.stringify(request.owner)
  );
}

export function responseTo(request: CommandRequest, body: ResponseBody): CommandResponse {
  const { requestId, kind: requestKind, command, owner: addressed } = request;
  return { version: 1, requestId, kind: requestKind, command, owner: addressed, body };
}

/**
 * A document of exactly the reserved size: blanks after the JSON are JSON too. Overwriting a
 * reservation of the same size needs no new block.
 */
export function encodePadded(response: CommandResponse): Buffer {
  const bytes = Buffer.alloc(DOCUMENT_BYTES_MAX, ' ');
  const json = Buffer.from(JSON.stringify(response));
  if (json.length > bytes.length) throw new Error('Invariant broken: response over its bound');
  json.copy(bytes);
  return bytes;
}

/** What a claim holds before its answer: blanks, which no reader takes for a document. */
export function reservation(): Buffer {
  return Buffer.alloc(DOCUMENT_BYTES_MAX, ' ');
}

const ENTRY = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(request|response)\.json$/;

/** Which document a directory entry is; undefined for every other name. */
export function parseEntry(
  name: string,
): { readonly requestId: string; readonly part: 'request' | 'response' } | undefined {
  const [, requestId, part] = ENTRY.exec(name) ?? [];
  if (requestId === undefined || (part !== 'request' && part !== 'response')) return undefined;
  return { requestId, part };
}

export function requestPath(directory: string, requestId: string): string {
  return join(directory, `${requestId}.request.json`);
}

export function responsePath(directory: string, requestId: string): string {
  return join(directory, `${requestId}.response.json`);
}
