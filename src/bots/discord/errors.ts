// From what Discord's SDK throws to the outcome classes of the port, by code and status and never by
// message text: PLATFORM §3.2. The one question is whether the request may have been processed.

import { DiscordAPIError, DiscordjsError, HTTPError, RateLimitError } from 'discord.js';
import { errnoCode } from '../../base/errors.ts';
import type { Outcome, Refusal } from '../chat-platform.ts';

export type Failure = Exclude<Outcome<never>, { kind: 'ok' }>;

/** Thrown by our request function for any 429: the SDK hides its body and loops without a header. */
export class DiscordRateLimited extends Error {
  readonly retryAfterMs: number;
  readonly scope: 'app' | 'place';
  /** Discord's code, where the body had one. */
  readonly code: number;

  constructor(fields: { retryAfterMs: number; scope: 'app' | 'place'; code: number }) {
    super('Rate limited');
    this.name = 'DiscordRateLimited';
    this.retryAfterMs = fields.retryAfterMs;
    this.scope = fields.scope;
    this.code = fields.code;
  }
}

/** Edits of messages older than an hour: three in six seconds. */
const OLD_MESSAGE_EDIT = 30_046;
const OLD_MESSAGE_WAIT_MS = 6_000;
/** A block by Discord's proxy: asking again makes it longer. */
const BLOCKED_WAIT_MS = 10 * 60_000;
const UNSTATED_WAIT_MS = 5_000;

const GONE = new Set([10_008, 10_014]);

const REFUSALS: ReadonlyMap<number, Refusal> = new Map<number, Refusal>([
  [10_003, 'place-gone'],
  [10_004, 'place-gone'],
  [50_083, 'archived'],
  [160_005, 'locked'],
  [50_001, 'not-permitted'],
  [50_013, 'not-permitted'],
  [160_002, 'not-permitted'],
  [160_006, 'not-permitted'],
  [20_028, 'rate-limited'],
  [20_029, 'rate-limited'],
  [40_062, 'rate-limited'],
  [OLD_MESSAGE_EDIT, 'rate-limited'],
  [50_014, 'credentials'],
]);

/** Errors of a connection that was never made: the request cannot have arrived. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

/** Classifies what a REST call threw. */
export function classifyError(error: unknown): Failure {
  if (error instanceof DiscordRateLimited) return limited(error);
  if (error instanceof RateLimitError) {
    // The SDK's own forecast: nothing was sent.
    return {
      kind: 'refused',
      because: 'rate-limited',
      retryAfterMs: Math.max(error.retryAfter, error.timeToReset, 0),
      scope: error.global ? 'app' : 'place',
      detail: 'rate limited',
    };
  }
  if (error instanceof DiscordAPIError) return classifyAnswer(error.status, Number(error.code));
  if (error instanceof HTTPError) return { kind: 'in-doubt', detail: `HTTP ${error.status}` };
  const code = causeCode(error);
  return code !== undefined && NOT_SENT.has(code)
    ? { kind: 'refused', because: 'not-sent', detail: code }
    : { kind: 'in-doubt', detail: code ?? 'no answer' };
}

function limited(error: DiscordRateLimited): Failure {
  const isOld = error.code === OLD_MESSAGE_EDIT;
  return {
    kind: 'refused',
    because: 'rate-limited',
    retryAfterMs: Math.max(error.retryAfterMs, isOld ? OLD_MESSAGE_WAIT_MS : 0),
    scope: error.scope,
    detail: error.code === 0 ? 'rate limited' : `${error.code}`,
  };
}

function classifyAnswer(status: number, code: number): Failure {
  const detail = Number.isSafeInteger(code) && code > 0 ? `${code}` : `HTTP ${status}`;
  if (GONE.has(code)) return { kind: 'gone', detail };
  const because = REFUSALS.get(code);
  if (because === 'rate-limited') {
    const retryAfterMs = code === OLD_MESSAGE_EDIT ? OLD_MESSAGE_WAIT_MS : UNSTATED_WAIT_MS;
    return { kind: 'refused', because, retryAfterMs, scope: 'place', detail };
  }
  if (because !== undefined) return { kind: 'refused', because, detail };
  if (status === 401) return { kind: 'refused', because: 'credentials', detail };
  if (status === 403 && detail.startsWith('HTTP')) {
    // No code of Discord's: its proxy has had enough of this address.
    return {
      kind: 'refused',
      because: 'rate-limited',
      retryAfterMs: BLOCKED_WAIT_MS,
      scope: 'app',
      detail: 'blocked by the proxy',
    };
  }
  if (status === 408) return { kind: 'in-doubt', detail };
  return { kind: 'refused', because: 'invalid', detail };
}

/** Reads a 429. A page instead of JSON is a block by the proxy. */
export function rateLimitOf(
  header: (name: string) => string | null,
  body: string,
): DiscordRateLimited {
  let parsed: { retry_after?: unknown; global?: unknown; code?: unknown } | undefined;
  try {
    const value: unknown = JSON.parse(body);
    parsed = typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    parsed = undefined;
  }
  if (parsed === undefined) {
    const seconds = Number.parseFloat(header('retry-after') ?? '');
    const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : BLOCKED_WAIT_MS;
    return new DiscordRateLimited({ retryAfterMs, scope: 'app', code: 0 });
  }
  const stated =
    typeof parsed.retry_after === 'number'
      ? parsed.retry_after
      : Number.parseFloat(header('retry-after') ?? '');
  const isGlobal = parsed.global === true || header('x-ratelimit-global') !== null;
  return new DiscordRateLimited({
    retryAfterMs: Number.isFinite(stated) && stated >= 0 ? stated * 1_000 : UNSTATED_WAIT_MS,
    scope: isGlobal ? 'app' : 'place',
    code: typeof parsed.code === 'number' ? parsed.code : 0,
  });
}

function causeCode(error: unknown): string | undefined {
  let found: string | undefined;
  let at: unknown = error;
  for (let depth = 0; depth < 6; depth += 1) {
    found = errnoCode(at) ?? found;
    const next = innerOf(at);
    if (next === undefined) break;
    at = next;
  }
  return found ?? (at instanceof Error ? at.name : undefined);
}

function innerOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  if ('cause' in error && error.cause !== undefined) return error.cause;
  return 'errors' in error && Array.isArray(error.errors) ? error.errors[0] : undefined;
}

/**
 * Whether an unhandled rejection came out of Discord's SDK, so that rebuilding the connection is the
 * right answer and ending the process is not.
 */
export function classifyRejection(error: unknown): 'ours' | 'not-ours' {
  const isTheirs =
    error instanceof DiscordAPIError ||
    error instanceof HTTPError ||
    error instanceof RateLimitError ||
    error instanceof DiscordjsError ||
    error instanceof DiscordRateLimited;
  if (isTheirs) return 'ours';
  const code = causeCode(error) ?? '';
  return code.startsWith('UND_ERR_') || NOT_SENT.has(code) ? 'ours' : 'not-ours';
}

/** Close codes after which connecting again cannot help, and what to do about each. */
const FATAL_CLOSES: ReadonlyMap<number, string> = new Map([
  [4_004, 'Discord refuses the bot token: reset it in the Developer Portal under Bot'],
  [4_010, 'Discord refuses the shard'],
  [4_011, 'the bot is in too many guilds for one connection'],
  [4_012, 'Discord no longer serves this gateway version'],
  [4_013, 'Discord refuses the intents as invalid'],
  [
    4_014,
    'MESSAGE_CONTENT intent missing: switch on "Message Content Intent" in the Developer Portal under Bot, Privileged Gateway Intents',
  ],
]);

/** What a gateway close code means for us, or undefined when reconnecting is right. */
export function fatalClose(code: number): string | undefined {
  return FATAL_CLOSES.get(code);
}
