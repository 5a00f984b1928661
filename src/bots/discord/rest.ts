// Discord's REST API as outcomes. Retries are off and every wait of the SDK is a rejection: a call is
// made once and what became of it is said. Also the one place that sees response headers.

import { DefaultRestOptions, type RawFile, REST, RequestMethod } from 'discord.js';
import type { Clock } from '../../base/clock.ts';
import type { Outcome } from '../chat-platform.ts';
import { type Fields, fieldsOf } from '../fields.ts';
import type { PlatformClock } from '../platform-clock.ts';
import { classifyError, rateLimitOf } from './errors.ts';

/** DELIVERY's settle time (10 s) is this plus a margin. */
export const HTTP_TIMEOUT_MS = 5_000;
/** Bytes travel slower than calls. */
const TRANSFER_TIMEOUT_MS = 60_000;

export interface DiscordRestOptions {
  readonly token: string;
  /** Without the version: the SDK adds `/v10`. */
  readonly apiUrl: string;
  readonly clock: Clock;
  readonly platformClock: PlatformClock;
  readonly requestsPerSecond: number;
  /** Discord refused the token, twice. */
  readonly onCredentials: () => void;
}

export interface Request {
  readonly body?: unknown;
  readonly files?: readonly RawFile[];
  readonly query?: Readonly<Record<string, string>>;
  /** False for interactions: their address is the permission. */
  readonly auth?: boolean;
}

type MakeRequest = (typeof DefaultRestOptions)['makeRequest'];

const METHODS = {
  GET: RequestMethod.Get,
  POST: RequestMethod.Post,
  PATCH: RequestMethod.Patch,
  PUT: RequestMethod.Put,
  DELETE: RequestMethod.Delete,
} as const;
type Method = keyof typeof METHODS;

/** A request function that reads Discord's clock and tells every 429 by its status. */
export function observingRequest(clock: PlatformClock): MakeRequest {
  return async (url, init) => {
    const response = await DefaultRestOptions.makeRequest(url, init);
    clock.observe(response.headers.get('date'));
    if (response.status === 429) {
      throw rateLimitOf((name) => response.headers.get(name), await response.text());
    }
    return response;
  };
}

/** Options for a REST object of the SDK: ours, and the one inside a gateway client. */
export function restOptions(
  apiUrl: string,
  clock: PlatformClock,
): {
  api: string;
  retries: number;
  timeout: number;
  rejectOnRateLimit: () => boolean;
  makeRequest: MakeRequest;
} {
  return {
    api: apiUrl.replace(/\/+$/, ''),
    retries: 0,
    timeout: TRANSFER_TIMEOUT_MS,
    rejectOnRateLimit: () => true,
    makeRequest: observingRequest(clock),
  };
}

/** Makes one call. */
export type RestCall = DiscordRest['call'];

export class DiscordRest {
  readonly #options: DiscordRestOptions;
  #rest: REST;
  #refused = false;

  constructor(options: DiscordRestOptions) {
    this.#options = options;
    this.#rest = this.#newRest();
  }

  /** Makes one call. Never throws. An answer without a body is an empty object. */
  async call(method: Method, route: `/${string}`, request: Request = {}): Promise<Outcome<Fields>> {
    const answer = await this.#send(method, route, request);
    return answer.kind === 'ok' ? { kind: 'ok', value: fieldsOf(answer.value) } : answer;
  }

  /** As `call`, for routes that answer with a list. */
  async list(
    route: `/${string}`,
    query: Readonly<Record<string, string>> = {},
  ): Promise<Outcome<readonly Fields[]>> {
    const answer = await this.#send('GET', route, { query });
    if (answer.kind !== 'ok') return answer;
    if (!Array.isArray(answer.value)) return { kind: 'in-doubt', detail: 'answer not understood' };
    return { kind: 'ok', value: answer.value.map(fieldsOf) };
  }

  async #send(method: Method, route: `/${string}`, request: Request): Promise<Outcome<unknown>> {
    if (this.#refused) {
      return { kind: 'refused', because: 'credentials', detail: 'token refused' };
    }
    const answer = await this.#attempt(method, route, request);
    const isRefused = answer.kind === 'refused' && answer.because === 'credentials';
    if (!isRefused || request.auth === false) return answer;
    return await this.#afterRefusal(answer);
  }

  /**
   * The SDK forgets its token at the first 401 and is dead from then on. One 401 may be a proxy's:
   * a new object asks again before anything is called wrong.
   */
  async #afterRefusal(
    answer: Extract<Outcome<never>, { kind: 'refused' }>,
  ): Promise<Outcome<never>> {
    this.#rest = this.#newRest();
    const again = await this.#attempt('GET', '/users/@me', {});
    if (again.kind === 'refused' && again.because === 'credentials') {
      this.#refused = true;
      this.#options.onCredentials();
      return answer;
    }
    return { kind: 'refused', because: 'not-sent', detail: answer.detail };
  }

  async #attempt(method: Method, route: `/${string}`, request: Request): Promise<Outcome<unknown>> {
    const limitMs = request.files === undefined ? HTTP_TIMEOUT_MS : TRANSFER_TIMEOUT_MS;
    const abort = new AbortController();
    // Ours covers the body too; the SDK's ends with the headers.
    const timer = this.#options.clock.timer(limitMs, () => abort.abort());
    try {
      const value = await this.#rest.request({
        fullRoute: route,
        method: METHODS[method],
        signal: abort.signal,
        ...(request.body === undefined ? {} : { body: request.body }),
        ...(request.files === undefined ? {} : { files: [...request.files] }),
        ...(request.query === undefined ? {} : { query: new URLSearchParams(request.query) }),
        ...(request.auth === undefined ? {} : { auth: request.auth }),
      });
      return { kind: 'ok', value };
    } catch (error) {
      return classifyError(error);
    } finally {
      timer.cancel();
    }
  }

  #newRest(): REST {
    const { apiUrl, platformClock, requestsPerSecond, token } = this.#options;
    return new REST({
      version: '10',
      ...restOptions(apiUrl, platformClock),
      globalRequestsPerSecond: requestsPerSecond,
    }).setToken(token);
  }
}
