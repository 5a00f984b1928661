// POST /api/<method>: who asks, may they, are they too fast, and then the method's handler. Errors
// are answers with HTTP 200, as Slack gives them.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Reply, readBody, runExchange } from '../exchange.ts';
import type { Fields } from '../fields.ts';
import { type ApiCall, ApiError, type ApiHandler, type SlackApp, textArg } from './api-call.ts';
import { METHODS, type MethodContract, neededScopes } from './methods.ts';
import type { RateLimiter } from './rate-limiter.ts';
import { parseArgs, tokenOf } from './request-args.ts';

const BODY_MAX_BYTES = 4 * 1024 * 1024;

/** Errors about the state of the world, which a correct bot meets too. All others are its mistakes. */
const NOT_THE_BOTS_FAULT = new Set(
  `already_reacted no_reaction message_not_found channel_not_found not_in_channel is_archived
   thread_not_found user_not_found user_not_in_channel file_not_found file_deleted
   expired_trigger_id exchanged_trigger_id hash_conflict not_found cant_update_message
   edit_window_closed restricted_action_read_only_channel restricted_action_thread_only_channel
   restricted_action_non_threadable_channel restricted_action_thread_locked token_revoked
   message_not_in_streaming_state stopped_by_user streaming_state_conflict invalid_auth
   account_inactive bot_not_found link_disabled`.split(/\s+/),
);

export interface Tokens {
  readonly bot: string;
  readonly app: string;
  /** Error each token answers with, once it has lost its power. */
  readonly dead: Map<string, string>;
}

export interface WebApi {
  readonly app: SlackApp;
  readonly tokens: Tokens;
  readonly limiter: () => RateLimiter;
  readonly handlers: Readonly<Record<string, ApiHandler>>;
}

/** Answers one request below /api/. */
export async function serveApi(
  api: WebApi,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const body = await readBody(request, BODY_MAX_BYTES);
  if (body === undefined) {
    response.destroy();
    return;
  }
  const method = decodeURIComponent(url.pathname.slice('/api/'.length));
  const parsed = await parseArgs(request, url, body);
  const args = parsed.kind === 'ok' ? parsed.args : {};
  const { token: _token, ...loggedArgs } = args;
  const caller = tokenOf(request, args);
  const { app } = api;
  await runExchange(app.core, response, {
    platform: 'slack',
    target: method,
    args: loggedArgs,
    process: async () => {
      if (parsed.kind === 'error') return errorReply(app, method, parsed.error, {});
      const contract = METHODS.get(method);
      const handler = Object.hasOwn(api.handlers, method) ? api.handlers[method] : undefined;
      if (contract === undefined || handler === undefined)
        return errorReply(app, method, 'unknown_method', { req_method: method });
      // A form-only method does not see what is in a JSON body.
      const seen =
        contract.isFormOnly && parsed.isJson ? Object.fromEntries(url.searchParams) : args;
      const call: ApiCall = { app, method, args: seen, warnings: [...parsed.warnings] };
      return answer(api, call, contract, handler, caller);
    },
    errorReply: (code) => reply(200, { ok: false, error: code }, code),
    rateLimitReply: (retryAfterSec) => rateLimitReply(retryAfterSec),
  });
}

async function answer(
  api: WebApi,
  call: ApiCall,
  contract: MethodContract,
  handler: ApiHandler,
  caller: ReturnType<typeof tokenOf>,
): Promise<Reply> {
  const { app, method } = call;
  try {
    checkToken(api, contract, caller);
    const limited = checkRate(api, call, contract);
    if (limited !== undefined) return limited;
    const channel = app.workspace.findChannel(textArg(call.args, 'channel') ?? '');
    const needed = neededScopes(contract, channel?.kind);
    checkScopes(api, contract, needed);
    checkRequired(call, contract);
    const result = await handler(call);
    return reply(200, { ok: true, ...result, ...warningFields(call) }, undefined, {
      'x-oauth-scopes': app.settings.scopes.join(','),
      'x-accepted-oauth-scopes': needed.join(','),
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return errorReply(app, method, error.code, { ...error.more, ...warningFields(call) });
  }
}

function warningFields(call: ApiCall): Fields {
  if (call.warnings.length === 0) return {};
  return {
    warning: call.warnings.join(','),
    response_metadata: { warnings: call.warnings },
  };
}

function checkToken(
  api: WebApi,
  contract: MethodContract,
  caller: ReturnType<typeof tokenOf>,
): void {
  const { token, isInHeader } = caller;
  if (token === undefined) throw new ApiError('not_authed');
  const wanted = contract.token === 'bot' ? 'xoxb-' : 'xapp-';
  if (!/^(xoxb|xoxp|xapp|xwfp|xoxe)[-.]/.test(token)) throw new ApiError('invalid_auth');
  if (!token.startsWith(wanted)) throw new ApiError('not_allowed_token_type');
  const dead = api.tokens.dead.get(token);
  if (dead !== undefined) throw new ApiError(dead);
  if (token !== api.tokens[contract.token]) throw new ApiError('invalid_auth');
  // App-level tokens count in the header only.
  if (contract.token === 'app' && !isInHeader) throw new ApiError('invalid_auth');
}

function checkScopes(api: WebApi, contract: MethodContract, needed: readonly string[]): void {
  if (needed.length === 0 || contract.token === 'app') return;
  const { scopes } = api.app.settings;
  if (needed.some((scope) => scopes.includes(scope))) return;
  throw new ApiError('missing_scope', { needed: needed.join(','), provided: scopes.join(',') });
}

function checkRequired(call: ApiCall, contract: MethodContract): void {
  for (const name of contract.required) {
    const value = call.args[name];
    if (value !== undefined && value !== null && value !== '') continue;
    if (name === 'channel') throw new ApiError('channel_not_found');
    // An empty status clears it.
    if (name === 'status' && value === '') continue;
    throw new ApiError('invalid_arguments', {
      response_metadata: { messages: [`[ERROR] missing required field: ${name}`] },
    });
  }
}

function checkRate(api: WebApi, call: ApiCall, contract: MethodContract): Reply | undefined {
  const channel = textArg(call.args, 'channel');
  const verdict = api.limiter().take(call.method, contract.tier, channel);
  if (verdict.kind === 'pass') return undefined;
  const { violations } = api.app.core;
  const found = { platform: 'slack' as const, target: call.method };
  if (verdict.ignoredRetryAfter)
    violations.add({
      ...found,
      rule: 'retry-after-ignored',
      severity: 'warned',
      detail: 'called again before Retry-After had passed',
    });
  violations.add({
    ...found,
    rule: 'rate-limited',
    severity: 'refused',
    detail: `retry after ${verdict.retryAfterSec} s`,
  });
  return rateLimitReply(verdict.retryAfterSec);
}

function errorReply(app: SlackApp, method: string, code: string, more: Fields): Reply {
  if (!NOT_THE_BOTS_FAULT.has(code)) {
    app.core.violations.add({
      platform: 'slack',
      rule: code.replaceAll('_', '-'),
      severity: 'refused',
      target: method,
      detail: JSON.stringify(more),
    });
  }
  return reply(200, { ok: false, error: code, ...more }, code);
}

function rateLimitReply(retryAfterSec: number | undefined): Reply {
  const headers =
    retryAfterSec === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterSec)) };
  return reply(429, { ok: false, error: 'ratelimited' }, 'ratelimited', headers);
}

function reply(
  status: number,
  body: Fields,
  error?: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(body),
    ...(error === undefined ? {} : { error }),
  };
}
