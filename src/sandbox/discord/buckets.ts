// Discord's rate limits: fixed windows per (route, top-level resource) with headers on every
// response, a global limit, limits the headers hide, and the count of invalid requests. Numbers are
// the observed ones where somebody published them; the rest is marked [?] and all are knobs.

import { createHash } from 'node:crypto';

export interface Limit {
  readonly limit: number;
  readonly windowMs: number;
}

export type LimitTable = Readonly<Record<string, Limit>>;

export const LIMITS: LimitTable = {
  'POST /channels/:id/messages': { limit: 5, windowMs: 5_000 },
  'PATCH /channels/:id/messages/:id': { limit: 5, windowMs: 5_000 },
  'DELETE /channels/:id/messages/:id': { limit: 5, windowMs: 1_000 }, // [?]
  'GET /channels/:id/messages': { limit: 5, windowMs: 1_000 }, // [?]
  'PATCH /channels/:id': { limit: 5, windowMs: 15_000 },
  'POST /channels/:id/messages/:id/threads': { limit: 10, windowMs: 10_000 }, // [?]
  'POST /channels/:id/threads': { limit: 10, windowMs: 10_000 }, // [?]
  'PUT /channels/:id/messages/:id/reactions/:reaction': { limit: 1, windowMs: 250 },
  'POST /channels/:id/typing': { limit: 5, windowMs: 5_000 }, // [?]
  'POST /webhooks/:id/:token': { limit: 5, windowMs: 2_000 },
  'GET /gateway/bot': { limit: 2, windowMs: 5_000 }, // [?]
  default: { limit: 10, windowMs: 1_000 }, // [?]
};

/** Renames: 2 in 10 minutes, while the headers go on promising more. */
export const RENAME_LIMIT: Limit = { limit: 2, windowMs: 600_000 };
/** Edits of messages older than an hour. */
export const OLD_EDIT_LIMIT: Limit = { limit: 3, windowMs: 6_000 };
export const OLD_EDIT_AGE_MS = 3_600_000;
export const GLOBAL_LIMIT: Limit = { limit: 50, windowMs: 1_000 };
export const INVALID_LIMIT: Limit = { limit: 10_000, windowMs: 600_000 };

interface Window {
  startMs: number;
  used: number;
}

export interface Taken {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly resetAfterMs: number;
  /** The caller had been told to wait and did not. */
  readonly ignoredWait: boolean;
}

/** Fixed windows by key. Keys that have been idle for a window are forgotten. */
export class Windows {
  readonly #byKey = new Map<string, Window & { windowMs: number; blockedUntilMs: number }>();
  readonly #nowMs: () => number;
  #operations = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  take(key: string, limit: Limit): Taken {
    const nowMs = this.#nowMs();
    this.#operations += 1;
    if (this.#operations % 1_000 === 0) this.#sweep(nowMs);
    let window = this.#byKey.get(key);
    if (window === undefined || nowMs - window.startMs >= limit.windowMs) {
      window = { startMs: nowMs, used: 0, windowMs: limit.windowMs, blockedUntilMs: 0 };
      this.#byKey.set(key, window);
    }
    const resetAfterMs = Math.max(1, window.startMs + limit.windowMs - nowMs);
    const ignoredWait = nowMs < window.blockedUntilMs;
    if (window.used >= limit.limit) {
      window.blockedUntilMs = nowMs + resetAfterMs;
      return { allowed: false, limit: limit.limit, remaining: 0, resetAfterMs, ignoredWait };
    }
    window.used += 1;
    const remaining = limit.limit - window.used;
    return { allowed: true, limit: limit.limit, remaining, resetAfterMs, ignoredWait };
  }

  /** How many were taken in the window that is open now. */
  used(key: string): number {
    const window = this.#byKey.get(key);
    if (window === undefined) return 0;
    return this.#nowMs() - window.startMs >= window.windowMs ? 0 : window.used;
  }

  clear(): void {
    this.#byKey.clear();
  }

  #sweep(nowMs: number): void {
    for (const [key, window] of this.#byKey)
      if (nowMs - window.startMs >= window.windowMs) this.#byKey.delete(key);
  }
}

/** The bucket's name on the wire: it hides the top-level resource, as Discord's does. */
export function bucketHash(route: string): string {
  return createHash('md5').update(route).digest('hex');
}

/** The X-RateLimit headers of a response. */
export function limitHeaders(taken: Taken, route: string, nowMs: number): Record<string, string> {
  return {
    'x-ratelimit-limit': String(taken.limit),
    'x-ratelimit-remaining': String(taken.remaining),
    'x-ratelimit-reset': ((nowMs + taken.resetAfterMs) / 1000).toFixed(3),
    'x-ratelimit-reset-after': (taken.resetAfterMs / 1000).toFixed(3),
    'x-ratelimit-bucket': bucketHash(route),
  };
}
