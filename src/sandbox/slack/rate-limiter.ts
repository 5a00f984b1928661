// Slack's limits as token buckets: per method for the workspace, and posts also per channel.

import type { Clock } from '../../base/clock.ts';
import { TIER_PER_MINUTE, type Tier } from './methods.ts';
import type { RateLimits } from './options.ts';

interface Bucket {
  tokens: number;
  atMs: number;
  /** A caller told to wait until then, and not before it. */
  refusedUntilMs: number;
}

export type LimitVerdict =
  | { readonly kind: 'pass' }
  | {
      readonly kind: 'limited';
      readonly retryAfterSec: number;
      readonly ignoredRetryAfter: boolean;
    };

const CHANNELS_MAX = 10_000;

export class RateLimiter {
  readonly #clock: Clock;
  readonly #factor: number;
  readonly #postBurst: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock, limits: RateLimits, postBurst: number) {
    this.#clock = clock;
    this.#factor = limits === 'off' ? Infinity : limits === 'real' ? 1 : limits;
    this.#postBurst = postBurst;
  }

  /** One call of `method`; `channel` for methods that post into one. Uses a token when it passes. */
  take(method: string, tier: Tier, channel: string | undefined): LimitVerdict {
    if (this.#factor === Infinity) return { kind: 'pass' };
    const perMinute = TIER_PER_MINUTE[tier] * this.#factor;
    const verdict = this.#from(method, perMinute / 60, perMinute);
    if (verdict.kind === 'limited' || tier !== 'post' || channel === undefined) return verdict;
    return this.#from(`${method} ${channel}`, this.#factor, this.#postBurst * this.#factor);
  }

  #from(key: string, perSecond: number, capacity: number): LimitVerdict {
    const nowMs = this.#clock.monotonicMs();
    const full = Math.max(1, capacity);
    const bucket = this.#buckets.get(key) ?? { tokens: full, atMs: nowMs, refusedUntilMs: 0 };
    if (this.#buckets.size > CHANNELS_MAX) this.#buckets.clear();
    this.#buckets.set(key, bucket);
    bucket.tokens = Math.min(full, bucket.tokens + ((nowMs - bucket.atMs) / 1000) * perSecond);
    bucket.atMs = nowMs;
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return { kind: 'pass' };
    }
    const ignoredRetryAfter = nowMs < bucket.refusedUntilMs;
    const retryAfterSec = Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond));
    bucket.refusedUntilMs = nowMs + retryAfterSec * 1000;
    return { kind: 'limited', retryAfterSec, ignoredRetryAfter };
  }
}
