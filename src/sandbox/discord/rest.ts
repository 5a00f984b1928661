// REST v10 on the wire: who is asking, whether they are too fast, what they sent, what they get.
// Order as Discord's: the proxy's ban, the token, the limits, then the route itself.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Reply, readBody, runExchange } from '../exchange.ts';
import type { SandboxCore } from '../module.ts';
import {
  GLOBAL_LIMIT,
  INVALID_LIMIT,
  LIMITS,
  type Limit,
  type LimitTable,
  limitHeaders,
  OLD_EDIT_AGE_MS,
  OLD_EDIT_LIMIT,
  RENAME_LIMIT,
  type Taken,
  Windows,
} from './buckets.ts';
import { ApiError, notFound, requestTooLarge, unauthorized } from './errors.ts';
import { type Answer, findRoute, genericTemplate, type Route, type Services } from './routes.ts';
import { snowflakeTimeMs } from './snowflake.ts';
import { type ParsedBody, parseBody } from './upload.ts';

const PREFIX = '/api/v10';
/** Whole requests above this are refused by the proxy. */
const REQUEST_MAX_BYTES = 25 * 1024 * 1024;
// Read a bit more than is allowed, so that the refusal reaches the client as an answer.
const READ_MAX_BYTES = 64 * 1024 * 1024;

const HTML_BAN =
  '<!DOCTYPE html><html><head><title>Access denied | discord.com used Cloudflare to restrict access</title></head><body><h1>Error 1015</h1><p>You are being rate limited</p></body></html>';

interface Located {
  readonly route: Route | undefined;
  /** Why there is no route. */
  readonly refusal: ApiError;
  readonly params: Readonly<Record<string, string>>;
  readonly target: string;
  /** Shares a limit: method, route and the top-level resource. */
  readonly bucketKey: string;
}

export interface RestSettings {
  limits: LimitTable;
  global: Limit;
  rename: Limit;
  oldEdit: Limit;
  invalid: Limit;
  /** Multiplies every limit but the one on invalid requests. */
  factor: number;
  /** Whether 30046 says how long to wait in a header; not known, so by default it does not. */
  oldEditRetryAfter: boolean;
}

export class Rest {
  readonly #core: SandboxCore;
  readonly #services: Services;
  readonly windows: Windows;
  readonly settings: RestSettings = {
    limits: LIMITS,
    global: GLOBAL_LIMIT,
    rename: RENAME_LIMIT,
    oldEdit: OLD_EDIT_LIMIT,
    invalid: INVALID_LIMIT,
    factor: 1,
    oldEditRetryAfter: false,
  };

  constructor(core: SandboxCore, services: Services) {
    this.#core = core;
    this.#services = services;
    this.windows = new Windows(() => core.clock.wallMs());
  }

  /** Requests that counted as invalid in the current 10 minutes. */
  invalidCount(): number {
    return this.windows.used('invalid');
  }

  /** Answers everything below /api/; false for other paths. */
  async http(request: IncomingMessage, response: ServerResponse, url: URL): Promise<boolean> {
    // Not /api/views.open, which is Slack's.
    if (!/^\/api\/v\d+(?:\/|$)/.test(url.pathname)) return false;
    const method = request.method ?? 'GET';
    const located = locate(method, url.pathname);
    const bytes = await readBody(request, READ_MAX_BYTES);
    const contentType = request.headers['content-type'] ?? '';
    const sent = bytes ?? Buffer.alloc(0);
    // The limits are taken when the request arrives, also when a fault keeps it from its effect.
    await runExchange(this.#core, response, {
      platform: 'discord',
      target: located.target,
      args: loggable(sent, contentType, url),
      process: () => this.#process(request, url, located, sent, contentType),
      errorReply: (code) => errorReply(Number(code)),
      rateLimitReply: (secs) =>
        rateLimitReply({ retryAfterSecs: secs, global: false, scope: 'user' }),
    });
    return true;
  }

  async #process(
    request: IncomingMessage,
    url: URL,
    located: Located,
    bytes: Buffer,
    contentType: string,
  ): Promise<Reply> {
    if (this.windows.used('invalid') >= this.settings.invalid.limit) {
      this.#violation(
        'invalid-request-budget',
        located,
        'banned by the proxy for too many invalid requests',
      );
      return {
        status: 429,
        headers: { 'content-type': 'text/html; charset=UTF-8' },
        body: HTML_BAN,
        error: 'banned',
      };
    }
    const reply = await this.#admitted(request, url, located, bytes, contentType);
    if (isInvalid(reply))
      this.windows.take('invalid', { ...this.settings.invalid, limit: Number.MAX_SAFE_INTEGER });
    return reply;
  }

  async #admitted(
    request: IncomingMessage,
    url: URL,
    located: Located,
    bytes: Buffer,
    contentType: string,
  ): Promise<Reply> {
    const { route } = located;
    this.#checkUserAgent(request, located);
    if (route === undefined) return this.#refused(located, undefined, located.refusal);
    if (route.open !== true && !this.#isBot(request))
      return this.#refused(located, undefined, unauthorized());
    const taken = this.#takeLimits(located, route);
    if (!taken.allowed) return this.#limited(located, taken);
    try {
      if (bytes.length > REQUEST_MAX_BYTES) throw requestTooLarge();
      const body = await parseBody(bytes, contentType);
      const hidden = this.#hiddenLimit(located, body);
      if (hidden !== undefined) return hidden;
      const answer = route.run(this.#services, {
        target: located.target,
        params: located.params,
        query: url.searchParams,
        value: body.value,
        form: body.form,
        files: body.files,
      });
      return this.#reply(located, taken, answer);
    } catch (error) {
      if (error instanceof ApiError) return this.#refused(located, taken, error);
      throw error;
    }
  }

  #isBot(request: IncomingMessage): boolean {
    return request.headers.authorization === `Bot ${this.#services.guild.token}`;
  }

  #checkUserAgent(request: IncomingMessage, located: Located): void {
    if (/^DiscordBot \(.+, .+\)/.test(request.headers['user-agent'] ?? '')) return;
    this.#services.guild.violation(
      'user-agent',
      'warned',
      located.target,
      'the User-Agent must start with DiscordBot (url, version)',
    );
  }

  #takeLimits(located: Located, route: Route): Taken & { readonly scope?: 'global' } {
    const isCallback =
      located.target.includes('/interactions/') || located.target.includes('/webhooks/');
    if (!isCallback && route.open !== true) {
      const whole = this.#take('global', this.settings.global);
      if (!whole.allowed) return { ...whole, scope: 'global' };
    }
    const limit = this.settings.limits[located.target] ??
      this.settings.limits['default'] ?? { limit: 10, windowMs: 1_000 };
    return this.#take(`bucket ${located.bucketKey}`, limit);
  }

  #take(key: string, limit: Limit): Taken {
    const scaled = Math.max(1, Math.floor(limit.limit * this.settings.factor));
    return this.windows.take(key, { ...limit, limit: scaled });
  }

  #limited(located: Located, taken: Taken & { readonly scope?: 'global' }): Reply {
    if (taken.ignoredWait)
      this.#violation(
        'ignored-retry-after',
        located,
        'a request inside the time it was told to wait',
      );
    const secs = taken.resetAfterMs / 1000;
    const global = taken.scope === 'global';
    const reply = rateLimitReply({
      retryAfterSecs: secs,
      global,
      scope: global ? 'global' : 'user',
    });
    return { ...reply, headers: { ...this.#headers(located, taken), ...reply.headers } };
  }

  /** Limits the headers never mention. */
  #hiddenLimit(located: Located, body: ParsedBody): Reply | undefined {
    if (
      located.target === 'PATCH /channels/:id' &&
      (body.form['name'] !== undefined || body.form['topic'] !== undefined)
    )
      return this.#renameLimit(located);
    if (located.target === 'PATCH /channels/:id/messages/:id') return this.#oldEditLimit(located);
    return undefined;
  }

  #renameLimit(located: Located): Reply | undefined {
    const taken = this.#take(`rename ${located.params['channel'] ?? ''}`, this.settings.rename);
    if (taken.allowed) return undefined;
    this.#violation('rename-limit', located, 'more than two renames in ten minutes');
    return rateLimitReply({
      retryAfterSecs: taken.resetAfterMs / 1000,
      global: false,
      scope: 'user',
    });
  }

  #oldEditLimit(located: Located): Reply | undefined {
    const id = located.params['message'] ?? '';
    if (!/^\d{17,19}$/.test(id)) return undefined;
    if (this.#core.clock.wallMs() - snowflakeTimeMs(id) < OLD_EDIT_AGE_MS) return undefined;
    this.#violation('old-edit', located, 'an edit of a message older than an hour', 'warned');
    const taken = this.#take(`old-edit ${located.params['channel'] ?? ''}`, this.settings.oldEdit);
    if (taken.allowed) return undefined;
    const secs = taken.resetAfterMs / 1000;
    const body = {
      message: 'Maximum number of edits to messages older than 1 hour reached. Try again later',
      code: 30046,
      retry_after: secs,
      global: false,
    };
    const headers = this.settings.oldEditRetryAfter
      ? { 'retry-after': String(Math.ceil(secs)) }
      : {};
    return {
      status: 429,
      headers: { ...JSON_TYPE, 'x-ratelimit-scope': 'user', ...headers },
      body: JSON.stringify(body),
      error: '30046',
    };
  }

  #headers(located: Located, taken: Taken): Record<string, string> {
    return limitHeaders(taken, located.target, this.#core.clock.wallMs());
  }

  #reply(located: Located, taken: Taken, answer: Answer): Reply {
    const headers = this.#headers(located, taken);
    if (answer.json === undefined) return { status: answer.status, headers, body: '' };
    return {
      status: answer.status,
      headers: { ...headers, ...JSON_TYPE },
      body: JSON.stringify(answer.json),
    };
  }

  #refused(located: Located, taken: Taken | undefined, error: ApiError): Reply {
    if (!MET_BY_CORRECT_BOTS.has(error.code))
      this.#violation(`discord-${error.code}`, located, `${error.status} ${error.message}`);
    const headers = taken === undefined ? {} : this.#headers(located, taken);
    return {
      status: error.status,
      headers: { ...headers, ...JSON_TYPE },
      body: JSON.stringify(error.body()),
      error: String(error.code),
    };
  }

  #violation(
    rule: string,
    located: Located,
    detail: string,
    severity: 'refused' | 'warned' = 'refused',
  ): void {
    this.#services.guild.violation(rule, severity, located.target, detail);
  }
}

/**
 * Refusals a correct bot meets too, because people delete, archive, lock and take rights away while
 * it works; the rest are its own mistakes.
 */
const MET_BY_CORRECT_BOTS: ReadonlySet<number> = new Set([
  10_003, 10_007, 10_008, 10_013, 10_015, 10_062, 40_060, 50_001, 50_007, 50_013, 50_027, 50_083,
  160_004, 160_005, 160_006,
]);

const JSON_TYPE = { 'content-type': 'application/json' };

function locate(method: string, pathname: string): Located {
  const isVersion = pathname.startsWith(`${PREFIX}/`);
  const path = isVersion ? pathname.slice(PREFIX.length) : '';
  try {
    const { route, params } = findRoute(method, path);
    const target = `${method} ${genericTemplate(route.template)}`;
    const token = params['token'];
    const hook = token === undefined ? '' : `${params['application'] ?? ''}/${token}`;
    const top = params['channel'] ?? params['guild'] ?? hook;
    return { route, params, target, bucketKey: `${target} ${top}`, refusal: notFound() };
  } catch (error) {
    // Unknown paths go into the log without what may be a token in them.
    const named = path.replaceAll(/\d{17,20}/g, ':id').replaceAll(/[\w-]{60,}/g, ':token');
    const target = `${method} ${named}`;
    const known = error instanceof ApiError ? error : notFound();
    const refusal = isVersion ? known : new ApiError(400, 50041, 'Invalid API version');
    return { route: undefined, params: {}, target, bucketKey: target, refusal };
  }
}

/** 401, 403 and 429 count against the caller's address, except shared limits. */
function isInvalid(reply: Reply): boolean {
  if (reply.status === 401 || reply.status === 403) return true;
  return reply.status === 429 && reply.headers?.['x-ratelimit-scope'] !== 'shared';
}

function rateLimitReply(options: {
  readonly retryAfterSecs: number | undefined;
  readonly global: boolean;
  readonly scope: string;
}): Reply {
  const secs = options.retryAfterSecs;
  return {
    status: 429,
    headers: {
      ...JSON_TYPE,
      'x-ratelimit-scope': options.scope,
      ...(options.global ? { 'x-ratelimit-global': 'true' } : {}),
      ...(secs === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(secs))) }),
    },
    body: JSON.stringify({
      message: 'You are being rate limited.',
      retry_after: secs ?? 0,
      global: options.global,
    }),
    error: 'rate-limited',
  };
}

const STATUS_OF: Readonly<Record<number, number>> = {
  0: 401,
  10003: 404,
  10004: 404,
  10008: 404,
  10015: 404,
  10062: 404,
  40001: 401,
  50001: 403,
  50013: 403,
  50027: 401,
  130000: 503,
};

function errorReply(code: number): Reply {
  return {
    status: STATUS_OF[code] ?? 400,
    headers: JSON_TYPE,
    body: JSON.stringify({ message: `Injected error ${code}`, code }),
    error: String(code),
  };
}

/** What the request log keeps: no header, no token, no file's bytes. */
function loggable(bytes: Buffer, contentType: string, url: URL): unknown {
  const query = url.search === '' ? {} : { query: Object.fromEntries(url.searchParams) };
  if (contentType.startsWith('multipart/')) return { ...query, multipartBytes: bytes.length };
  if (bytes.length === 0) return query;
  const text = bytes.toString('utf8');
  try {
    const body: unknown = JSON.parse(text);
    return { ...query, body };
  } catch {
    return { ...query, bytes: bytes.length };
  }
}
