// What became of a call to Slack, decided by code and status alone.

import {
  WebAPIHTTPError,
  WebAPIPlatformError,
  WebAPIRateLimitedError,
  WebAPIRequestError,
} from '@slack/web-api';
import { describe, expect, it } from 'vitest';
import {
  classifyError,
  classifyRejection,
  retryAfterMs,
  SlackRateLimited,
} from '../../../../src/bots/slack/errors.ts';

function answered(error: string, more: Record<string, unknown> = {}) {
  return new WebAPIPlatformError({ ok: false, error, ...more });
}

function failed(code: string) {
  const cause = Object.assign(new Error('x'), { code });
  return new WebAPIRequestError(new TypeError('fetch failed', { cause }));
}

describe('errors of Slack', () => {
  it.each([
    ['invalid_auth', { kind: 'refused', because: 'credentials' }],
    ['token_revoked', { kind: 'refused', because: 'credentials' }],
    ['channel_not_found', { kind: 'refused', because: 'place-gone' }],
    ['not_in_channel', { kind: 'refused', because: 'place-gone' }],
    ['thread_not_found', { kind: 'refused', because: 'place-gone' }],
    ['is_archived', { kind: 'refused', because: 'archived' }],
    ['restricted_action_thread_locked', { kind: 'refused', because: 'locked' }],
    ['restricted_action', { kind: 'refused', because: 'not-permitted' }],
    ['msg_too_long', { kind: 'refused', because: 'invalid' }],
    ['something_new', { kind: 'refused', because: 'invalid' }],
    ['message_not_found', { kind: 'gone' }],
    ['cant_update_message', { kind: 'gone' }],
    ['edit_window_closed', { kind: 'gone' }],
    ['internal_error', { kind: 'in-doubt' }],
    ['fatal_error', { kind: 'in-doubt' }],
    ['service_unavailable', { kind: 'in-doubt' }],
    ['ratelimited', { kind: 'refused', because: 'rate-limited', scope: 'method' }],
  ])('%s', (code, expected) => {
    expect(classifyError(answered(code), 'chat.update')).toMatchObject(expected);
  });

  it('names the scope that is missing', () => {
    expect(classifyError(answered('missing_scope', { needed: 'files:read' }), 'x')).toMatchObject({
      because: 'not-permitted',
      detail: 'missing_scope: needs files:read',
    });
  });

  it.each([
    ['ECONNREFUSED', { kind: 'refused', because: 'not-sent' }],
    ['ENOTFOUND', { kind: 'refused', because: 'not-sent' }],
    ['UND_ERR_CONNECT_TIMEOUT', { kind: 'refused', because: 'not-sent' }],
    ['ECONNRESET', { kind: 'in-doubt', detail: 'ECONNRESET' }],
    ['UND_ERR_SOCKET', { kind: 'in-doubt' }],
    ['ETIMEDOUT', { kind: 'in-doubt' }],
  ])('a connection that ended with %s', (code, expected) => {
    expect(classifyError(failed(code), 'chat.postMessage')).toMatchObject(expected);
  });

  it('calls a refused connection to every address of a name not sent', () => {
    const errors = [Object.assign(new Error('x'), { code: 'ECONNREFUSED' })];
    const cause = Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' });
    const error = new WebAPIRequestError(new TypeError('fetch failed', { cause }));
    expect(classifyError(error, 'x')).toMatchObject({ because: 'not-sent' });
  });

  it('calls a time-out in doubt', () => {
    const error = new WebAPIRequestError(new DOMException('aborted', 'TimeoutError'));
    expect(classifyError(error, 'x').kind).toBe('in-doubt');
  });

  it.each([
    [500, 'in-doubt'],
    [502, 'in-doubt'],
    [408, 'in-doubt'],
    [404, 'refused'],
    [413, 'refused'],
  ])('an answer of status %i', (status, kind) => {
    expect(classifyError(new WebAPIHTTPError(status, '', {}, '<html>'), 'x').kind).toBe(kind);
  });

  it('calls a body that is no JSON in doubt and does not repeat it', () => {
    const failure = classifyError(answered('<html>secret</html>'), 'x');
    expect(failure.kind).toBe('in-doubt');
    expect(JSON.stringify(failure)).not.toContain('secret');
  });

  it('calls every 429 a rate limit: of the place for posts, of the method else', () => {
    const ours = new WebAPIRequestError(new SlackRateLimited(7_000));
    expect(classifyError(ours, 'chat.postMessage')).toMatchObject({
      because: 'rate-limited',
      retryAfterMs: 7_000,
      scope: 'place',
    });
    expect(classifyError(new WebAPIRateLimitedError(3), 'chat.update')).toMatchObject({
      retryAfterMs: 3_000,
      scope: 'method',
    });
  });

  it('reads Retry-After with a bound, and has a number where there is none', () => {
    expect(retryAfterMs('5')).toBe(5_000);
    expect(retryAfterMs('999999')).toBe(3_600_000);
    expect(retryAfterMs(null)).toBeGreaterThan(0);
    expect(retryAfterMs('soon')).toBeGreaterThan(0);
  });

  it('knows rejections of the SDK, the one without a reason included', () => {
    expect(classifyRejection(undefined)).toBe('ours');
    expect(classifyRejection(failed('ECONNRESET'))).toBe('ours');
    expect(classifyRejection(answered('invalid_auth'))).toBe('ours');
    expect(classifyRejection(Object.assign(new Error('x'), { code: 'UND_ERR_SOCKET' }))).toBe(
      'ours',
    );
    expect(classifyRejection(new TypeError('x is not a function'))).toBe('not-ours');
    expect(classifyRejection(Object.assign(new Error('x'), { code: 'ENOSPC' }))).toBe('not-ours');
  });
});
