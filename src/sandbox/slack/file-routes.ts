// The routes beside the Web API: upload addresses, private downloads, response URLs.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Reply, readBody, runExchange } from '../exchange.ts';
import { type Fields, isFields } from '../fields.ts';
import type { SlackApp } from './api-call.ts';
import type { Uploads } from './file-methods.ts';
import { respond } from './interactions.ts';
import type { SlackFile } from './model.ts';
import { parseMultipart } from './request-args.ts';
import type { Tokens } from './web-api.ts';

const UPLOAD_MAX_BYTES = 100 * 1024 * 1024;
const HOOK_MAX_BYTES = 1024 * 1024;

export interface Routes {
  readonly app: SlackApp;
  readonly uploads: Uploads;
  readonly tokens: Tokens;
}

function plainReply(status: number, body: string | Buffer, type = 'text/plain'): Reply {
  return { status, headers: { 'content-type': type }, body };
}

async function exchange(
  routes: Routes,
  response: ServerResponse,
  target: string,
  args: unknown,
  process: () => Promise<Reply> | Reply,
): Promise<void> {
  await runExchange(routes.app.core, response, {
    platform: 'slack',
    target,
    args,
    process,
    errorReply: (code) => plainReply(200, JSON.stringify({ ok: false, error: code })),
    rateLimitReply: (retryAfterSec) => ({
      ...plainReply(429, JSON.stringify({ ok: false, error: 'ratelimited' }), 'application/json'),
      headers: retryAfterSec === undefined ? {} : { 'retry-after': String(retryAfterSec) },
    }),
  });
}

/** POST /upload/v1/<token>: raw bytes or multipart, answered in words and not in JSON. */
export async function serveUpload(
  routes: Routes,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const body = await readBody(request, UPLOAD_MAX_BYTES);
  if (body === undefined) {
    response.destroy();
    return;
  }
  const token = url.pathname.split('/').at(-1) ?? '';
  await exchange(routes, response, 'upload', { length: body.length }, async () => {
    const isForm = (request.headers['content-type'] ?? '').startsWith('multipart/form-data');
    const form = isForm ? await parseMultipart(request.headers, body) : undefined;
    const bytes = isForm ? form?.files[0]?.bytes : body;
    if (bytes === undefined) return plainReply(400, 'invalid form');
    if (!routes.uploads.receive(token, bytes)) return plainReply(404, 'not found');
    return plainReply(200, `OK - ${bytes.length}`);
  });
}

const LOGIN_PAGE =
  '<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in</body></html>';

/** GET /files/<team>-<id>/[download/]<name> with the token; /files/as-person/<id>/<name> without. */
export async function serveFile(
  routes: Routes,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const [, , first = '', second = ''] = url.pathname.split('/');
  const isPerson = first === 'as-person';
  const file = routes.app.workspace.files.get(
    isPerson ? second : first.split('-').slice(1).join('-'),
  );
  await exchange(routes, response, 'file', { file: file?.id }, () => {
    if (isPerson) return fileReply(file);
    const token = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
    const isKnown = token === routes.tokens.bot && !routes.tokens.dead.has(token);
    const isAllowed = isKnown && routes.app.settings.scopes.includes('files:read');
    // Not a 401: whoever may not read is shown the way to sign in.
    return isAllowed ? fileReply(file) : plainReply(200, LOGIN_PAGE, 'text/html; charset=utf-8');
  });
}

function fileReply(file: SlackFile | undefined): Reply {
  if (file === undefined || file.isDeleted) return plainReply(404, 'not found');
  return plainReply(200, file.bytes, file.mimetype);
}

/** POST to a response URL. */
export async function serveHook(
  routes: Routes,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const raw = await readBody(request, HOOK_MAX_BYTES);
  const body = parseHookBody(raw);
  await exchange(routes, response, 'response_url', body, () => {
    const verdict = routes.app.interactivity.useResponsePath(url.pathname);
    if (verdict.kind === 'refused') {
      const isOver = verdict.error !== 'no_such_url';
      if (isOver) violate(routes.app, verdict.error);
      return plainReply(
        404,
        JSON.stringify({ ok: false, error: verdict.error }),
        'application/json',
      );
    }
    if (body === undefined) return plainReply(400, 'invalid_payload');
    const outcome = respond(routes.app, { ...verdict.target, body });
    if (outcome === 'ok') return plainReply(200, 'ok');
    return plainReply(outcome === 'no_text' ? 400 : 404, outcome);
  });
}

function violate(app: SlackApp, error: string): void {
  app.core.violations.add({
    platform: 'slack',
    rule: 'response-url-spent',
    severity: 'refused',
    target: 'response_url',
    detail: error,
  });
}

function parseHookBody(raw: Buffer | undefined): Fields | undefined {
  try {
    const parsed: unknown = JSON.parse(raw?.toString('utf8') ?? '');
    return isFields(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}
