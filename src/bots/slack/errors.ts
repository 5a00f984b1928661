// From what the Slack SDK throws to the outcome classes of the port, by code and status and never
// by message text: PLATFORM §2.6. The one question is whether the request may have been processed.

import { ErrorCode } from '@slack/web-api';
import { errnoCode } from '../../base/errors.ts';
import type { Outcome, Refusal } from '../chat-platform.ts';
import { fieldsOf, textField } from '../fields.ts';

export type Failure = Exclude<Outcome<never>, { kind: 'ok' }>;

/** Thrown by our fetch for any 429: the SDK turns one without Retry-After into a bare Error. */
export class SlackRateLimited extends Error {
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number) {
    super('Rate limited');
    this.name = 'SlackRateLimited';
    this.retryAfterMs = retryAfterMs;
  }
}

/** What Slack asks for when it gives no number: its tiers are judged by the minute. */
const RETRY_AFTER_UNSTATED_MS = 30_000;

const CREDENTIALS = new Set([
  'not_authed',
  'invalid_auth',
  'account_inactive',
  'token_revoked',
  'token_expired',
  'user_removed_from_team',
  'team_disabled',
  'not_allowed_token_type',
  'org_login_required',
  'two_factor_setup_required',
  'accesslimited',
  'enterprise_is_restricted',
]);

const NOT_PERMITTED = [
  'missing_scope',
  'no_permission',
  'app_access_restricted',
  'messages_tab_disabled',
  'feature_disabled',
  'restricted_action',
  'restricted_action_read_only_channel',
  'restricted_action_thread_only_channel',
  'restricted_action_non_threadable_channel',
  'ekm_access_denied',
  'posting_to_channel_denied',
  'file_uploads_disabled',
  'file_uploads_except_images_disabled',
  'storage_limit_reached',
  'access_denied',
  'not_visible',
];

const PLACE_GONE = [
  'channel_not_found',
  'not_in_channel',
  'is_inactive',
  'thread_not_found',
  'cannot_reply_to_message',
  'external_channel_migrating',
  'channel_is_limited_access',
  'invalid_channel',
];

const REFUSALS: ReadonlyMap<string, Refusal> = new Map<string, Refusal>([
  ...NOT_PERMITTED.map((code) => [code, 'not-permitted'] as const),
  ...PLACE_GONE.map((code) => [code, 'place-gone'] as const),
  ['is_archived', 'archived'],
  ['restricted_action_thread_locked', 'locked'],
  ['ratelimited', 'rate-limited'],
  ['rate_limited', 'rate-limited'],
  ['message_limit_exceeded', 'rate-limited'],
  ['too_many_requests', 'rate-limited'],
]);

const GONE = new Set([
  'message_not_found',
  'cant_update_message',
  'cant_delete_message',
  'edit_window_closed',
  'block_mismatch',
  'update_failed',
  'streaming_state_conflict',
  'file_not_found',
  'file_deleted',
]);

/** "Some aspect of the operation may have succeeded" is how Slack describes these. */
const IN_DOUBT = new Set([
  'internal_error',
  'fatal_error',
  'service_unavailable',
  'request_timeout',
  'team_added_to_org',
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

/** Classifies what a Web API call of `method` threw. */
export function classifyError(error: unknown, method: string): Failure {
  const limited = rateLimitOf(error);
  if (limited !== undefined) {
    const scope = method === 'chat.postMessage' ? 'place' : 'method';
    return {
      kind: 'refused',
      because: 'rate-limited',
      retryAfterMs: limited,
      scope,
      detail: 'ratelimited',
    };
  }
  switch (errnoCode(error)) {
    case ErrorCode.PlatformError:
      return classifyCode(fieldsOf(fieldsOf(error)['data']), method);
    case ErrorCode.HTTPError:
      return classifyStatus(fieldsOf(error)['statusCode']);
    default: {
      const code = causeCode(error);
      return code !== undefined && NOT_SENT.has(code)
        ? { kind: 'refused', because: 'not-sent', detail: code }
        : { kind: 'in-doubt', detail: code ?? 'no answer' };
    }
  }
}

function classifyCode(data: Readonly<Record<string, unknown>>, method: string): Failure {
  const code = textField(data, 'error') ?? '';
  // The SDK puts a body that is no JSON here: whose answer that was cannot be known.
  if (!/^[a-z_]{1,64}$/.test(code)) return { kind: 'in-doubt', detail: 'answer not understood' };
  if (IN_DOUBT.has(code)) return { kind: 'in-doubt', detail: code };
  if (GONE.has(code)) return { kind: 'gone', detail: code };
  if (CREDENTIALS.has(code)) return { kind: 'refused', because: 'credentials', detail: code };
  const because = REFUSALS.get(code) ?? 'invalid';
  if (because === 'rate-limited') {
    return {
      kind: 'refused',
      because,
      retryAfterMs: RETRY_AFTER_UNSTATED_MS,
      scope: method === 'chat.postMessage' ? 'place' : 'method',
      detail: code,
    };
  }
  const needed = textField(data, 'needed');
  const named = needed !== undefined && /^[a-z_.:,]{1,200}$/.test(needed);
  return { kind: 'refused', because, detail: named ? `${code}: needs ${needed}` : code };
}

function classifyStatus(status: unknown): Failure {
  const detail = `HTTP ${typeof status === 'number' ? status : '?'}`;
  if (typeof status === 'number' && status >= 400 && status < 500 && status !== 408) {
    return { kind: 'refused', because: 'invalid', detail };
  }
  return { kind: 'in-doubt', detail };
}

function rateLimitOf(error: unknown): number | undefined {
  if (error instanceof SlackRateLimited) return error.retryAfterMs;
  const fields = fieldsOf(error);
  if (fields['original'] instanceof SlackRateLimited) return fields['original'].retryAfterMs;
  if (errnoCode(error) !== ErrorCode.RateLimitedError) return undefined;
  const seconds = fields['retryAfter'];
  return typeof seconds === 'number' ? seconds * 1_000 : RETRY_AFTER_UNSTATED_MS;
}

/** The errno of the innermost cause: undici wraps it once or twice, or in an aggregate. */
function causeCode(error: unknown): string | undefined {
  let found: string | undefined;
  let at: unknown = error;
  for (let depth = 0; depth < 6; depth += 1) {
    const code = errnoCode(at);
    if (code !== undefined && !code.startsWith('slack_')) found = code;
    const next = innerOf(at);
    if (next === undefined) break;
    at = next;
  }
  return found ?? (at instanceof Error ? at.name : undefined);
}

function innerOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  if ('original' in error && error.original !== undefined) return error.original;
  if ('cause' in error && error.cause !== undefined) return error.cause;
  return 'errors' in error && Array.isArray(error.errors) ? error.errors[0] : undefined;
}

/** Retry-After of a response, in ms. */
export function retryAfterMs(header: string | null): number {
  const seconds = header === null ? Number.NaN : Number.parseFloat(header);
  return Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds, 3_600) * 1_000
    : RETRY_AFTER_UNSTATED_MS;
}

/**
 * Whether an unhandled rejection came out of the Slack SDK, so that rebuilding the connection is the
 * right answer and ending the process is not. 3.1.0 also rejects with nothing at all.
 */
export function classifyRejection(error: unknown): 'ours' | 'not-ours' {
  if (error === undefined) return 'ours';
  const code = errnoCode(error) ?? causeCode(error) ?? '';
  return code.startsWith('slack_') || code.startsWith('UND_ERR_') || NOT_SENT.has(code)
    ? 'ours'
    : 'not-ours';
}
