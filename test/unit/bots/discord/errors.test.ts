// What became of a call to Discord, decided by code and status alone.

import { DiscordAPIError, HTTPError, RateLimitError } from 'discord.js';
import { describe, expect, it } from 'vitest';
import {
  classifyError,
  classifyRejection,
  fatalClose,
  rateLimitOf,
} from '../../../../src/bots/discord/errors.ts';

function answered(code: number, status: number) {
  const raw = { code, message: 'words nobody reads' };
  return new DiscordAPIError(raw, code, status, 'POST', 'http://x/secret', {});
}

const noHeaders = () => null;

describe('errors of Discord', () => {
  it.each([
    [10_003, 404, { kind: 'refused', because: 'place-gone' }],
    [10_008, 404, { kind: 'gone' }],
    [50_001, 403, { kind: 'refused', because: 'not-permitted' }],
    [50_013, 403, { kind: 'refused', because: 'not-permitted' }],
    [50_083, 400, { kind: 'refused', because: 'archived' }],
    [160_005, 403, { kind: 'refused', because: 'locked' }],
    [160_006, 400, { kind: 'refused', because: 'not-permitted' }],
    [50_035, 400, { kind: 'refused', because: 'invalid', detail: '50035' }],
    [50_006, 400, { kind: 'refused', because: 'invalid' }],
    [40_005, 413, { kind: 'refused', because: 'invalid' }],
    [30_046, 429, { kind: 'refused', because: 'rate-limited', scope: 'place' }],
    [0, 401, { kind: 'refused', because: 'credentials' }],
    [50_014, 401, { kind: 'refused', because: 'credentials' }],
  ])('%i', (code, status, expected) => {
    const failure = classifyError(answered(code, status));
    expect(failure).toMatchObject(expected);
    expect(JSON.stringify(failure)).not.toMatch(/secret|words/);
  });

  it('calls a 403 without a code a block by the proxy, for a long time and for everything', () => {
    expect(classifyError(answered(Number.NaN, 403))).toMatchObject({
      because: 'rate-limited',
      scope: 'app',
      retryAfterMs: 600_000,
    });
  });

  it('calls server errors, resets and time-outs in doubt', () => {
    expect(classifyError(new HTTPError(502, 'x', 'POST', 'http://x', {}))).toMatchObject({
      kind: 'in-doubt',
    });
    const reset = Object.assign(new Error('x'), { code: 'ECONNRESET' });
    expect(classifyError(reset)).toEqual({ kind: 'in-doubt', detail: 'ECONNRESET' });
    expect(classifyError(new DOMException('x', 'AbortError')).kind).toBe('in-doubt');
    expect(classifyError(new Error('anything')).kind).toBe('in-doubt');
  });

  it('calls a connection that was never made not sent', () => {
    const refused = Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
    expect(classifyError(refused)).toMatchObject({ kind: 'refused', because: 'not-sent' });
  });

  it("calls the SDK's own forecast a rate limit", () => {
    const error = new RateLimitError({
      timeToReset: 900,
      limit: 5,
      method: 'POST',
      hash: 'h',
      url: 'u',
      route: '/r',
      majorParameter: '1',
      global: false,
      retryAfter: 1_200,
      sublimitTimeout: 0,
      scope: 'user',
    });
    expect(classifyError(error)).toMatchObject({
      because: 'rate-limited',
      retryAfterMs: 1_200,
      scope: 'place',
    });
  });

  it('reads a 429: what it limits, for how long, and the code in it', () => {
    const place = rateLimitOf(noHeaders, '{"retry_after":1.5,"global":false}');
    expect(classifyError(place)).toMatchObject({ retryAfterMs: 1_500, scope: 'place' });
    const all = rateLimitOf(noHeaders, '{"retry_after":2,"global":true}');
    expect(classifyError(all)).toMatchObject({ scope: 'app' });
    const old = rateLimitOf(noHeaders, '{"message":"x","code":30046}');
    expect(classifyError(old)).toMatchObject({ detail: '30046', scope: 'place' });
    expect(old.retryAfterMs).toBeGreaterThan(0);
  });

  it('does not ask again soon after a page instead of an answer', () => {
    expect(classifyError(rateLimitOf(noHeaders, '<html>'))).toMatchObject({
      retryAfterMs: 600_000,
      scope: 'app',
    });
    expect(rateLimitOf(() => '30', '<html>').retryAfterMs).toBe(30_000);
  });

  it('knows rejections of the SDK', () => {
    expect(classifyRejection(answered(10_008, 404))).toBe('ours');
    expect(classifyRejection(Object.assign(new Error('x'), { code: 'ENOTFOUND' }))).toBe('ours');
    expect(classifyRejection(new TypeError('x'))).toBe('not-ours');
    expect(classifyRejection(undefined)).toBe('not-ours');
  });

  it('gives up at the close codes that no reconnect heals, and says what to do', () => {
    expect(fatalClose(4_014)).toContain('Message Content Intent');
    expect(fatalClose(4_004)).toContain('token');
    for (const code of [1_000, 1_001, 1_006, 4_000, 4_007, 4_008, 4_009]) {
      expect(fatalClose(code)).toBeUndefined();
    }
  });
});
