// Slack's Web API as outcomes. The SDK's retries and its queue are off: a call is made once, within
// 5 s, and what became of it is said. Also the one place that sees response headers.

import { WebClient, type WebClientOptions } from '@slack/web-api';
import type { Outcome } from '../chat-platform.ts';
import { type Fields, fieldsOf } from '../fields.ts';
import type { PlatformClock } from '../platform-clock.ts';
import { classifyError, type Failure, retryAfterMs, SlackRateLimited } from './errors.ts';
import { quietLogger } from './quiet-logger.ts';

type Fetch = NonNullable<WebClientOptions['fetch']>;

/** DELIVERY's settle time (10 s) is this plus a margin. */
export const HTTP_TIMEOUT_MS = 5_000;
/** Far above the sessions of one machine: the SDK's own queue never holds a call back. */
const CONCURRENCY_MAX = 1_000;

export interface SlackWebOptions {
  readonly botToken: string;
  readonly apiUrl: string;
  readonly clock: PlatformClock;
  readonly fetch: Fetch;
  /** A call was answered with a code that says the token is refused. */
  readonly onCredentials: (code: string) => void;
}

/** Options for one WebClient. Made anew each time: the SDK writes into the object it is given. */
export function webClientOptions(
  apiUrl: string,
  fetch: Fetch,
): Omit<WebClientOptions, 'logger' | 'logLevel'> {
  return {
    slackApiUrl: apiUrl.endsWith('/') ? apiUrl : `${apiUrl}/`,
    timeout: HTTP_TIMEOUT_MS,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    maxRequestConcurrency: CONCURRENCY_MAX,
    fetch,
  };
}

/** A fetch that reads the platform's clock and tells every 429 by its status. */
export function observingFetch(fetch: Fetch, clock: PlatformClock): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    clock.observe(response.headers.get('date'));
    if (response.status === 429) {
      const waitMs = retryAfterMs(response.headers.get('retry-after'));
      await response.text();
      throw new SlackRateLimited(waitMs);
    }
    return response;
  };
}

export class SlackWeb {
  readonly #client: WebClient;
  readonly #onCredentials: (code: string) => void;
  #refused: string | undefined;

  constructor(options: SlackWebOptions) {
    this.#client = new WebClient(options.botToken, {
      ...webClientOptions(options.apiUrl, observingFetch(options.fetch, options.clock)),
      logger: quietLogger,
    });
    this.#onCredentials = options.onCredentials;
  }

  /** Makes one call. Never throws. */
  async call(method: string, args: Record<string, unknown>): Promise<Outcome<Fields>> {
    if (this.#refused !== undefined) {
      return { kind: 'refused', because: 'credentials', detail: this.#refused };
    }
    try {
      return { kind: 'ok', value: fieldsOf(await this.#client.apiCall(method, args)) };
    } catch (error) {
      const failure = classifyError(error, method);
      if (failure.kind === 'refused' && failure.because === 'credentials') {
        this.#refused = failure.detail;
        this.#onCredentials(failure.detail);
      }
      return failure;
    }
  }
}

/** Answers of a shape that Slack does not give: whether it did the thing is unknown. */
export const MISSHAPEN: Failure = { kind: 'in-doubt', detail: 'answer not understood' };
