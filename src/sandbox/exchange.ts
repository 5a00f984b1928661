// One HTTP request from its bytes to its answer, with the faults that strike it. The platform says
// how to process it and how its own errors look; what is done about faults is the same for both.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorText } from '../base/errors.ts';
import { httpDate } from './dates.ts';
import type { HttpFault } from './faults.ts';
import type { SandboxCore } from './module.ts';
import type { SandboxPlatform } from './platform.ts';

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** The platform's error code, for the request log. */
  readonly error?: string;
}

export interface Exchange {
  readonly platform: SandboxPlatform;
  /** As RecordedRequest.target. Faults match `platform:target`. */
  readonly target: string;
  /** Without tokens: goes into the request log. */
  readonly args: unknown;
  process(): Promise<Reply> | Reply;
  /** How this platform says an error code. */
  errorReply(code: string): Reply;
  /** How this platform says 429. */
  rateLimitReply(retryAfterSec: number | undefined): Reply;
}

const HTTP_FAULTS = ['reply', 'rate-limit', 'error', 'reset', 'hang', 'delay', 'truncate'] as const;

/** Reads a request's body; undefined when it is longer than `maxBytes` or broke off. */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of request) {
      const bytes: Buffer = Buffer.isBuffer(part) ? part : Buffer.from(String(part));
      length += bytes.length;
      if (length > maxBytes) return undefined;
      parts.push(bytes);
    }
  } catch {
    return undefined; // The client went away in the middle: there is no request.
  }
  return Buffer.concat(parts);
}

/** Processes, records and answers one request whose body has been read. Never rejects. */
export async function runExchange(
  core: SandboxCore,
  response: ServerResponse,
  exchange: Exchange,
): Promise<void> {
  const fault = core.faults.take(`${exchange.platform}:${exchange.target}`, HTTP_FAULTS);
  const atMs = core.clock.wallMs();
  const outcome = await settle(core, exchange, fault);
  core.requests.add({
    platform: exchange.platform,
    target: exchange.target,
    atMs,
    args: exchange.args,
    status: outcome.reply?.status ?? 0,
    ...(outcome.reply?.error === undefined ? {} : { error: outcome.reply.error }),
    ...(fault === undefined ? {} : { fault: fault.kind }),
    processed: outcome.processed,
  });
  if (outcome.reply === undefined) {
    // A hang keeps the connection until the client or the server's end closes it.
    if (fault?.kind !== 'hang') reset(response);
    return;
  }
  send(core, response, outcome.reply, fault?.kind === 'truncate');
}

interface Settled {
  readonly reply: Reply | undefined;
  readonly processed: boolean;
}

async function settle(
  core: SandboxCore,
  exchange: Exchange,
  fault: HttpFault | undefined,
): Promise<Settled> {
  if (fault === undefined || fault.kind === 'truncate')
    return { reply: await processed(exchange), processed: true };
  if (fault.kind === 'rate-limit') return { reply: rateLimited(exchange, fault), processed: false };
  if (fault.kind === 'delay') return delayed(core, exchange, fault);
  const takesEffect = fault.processed === true;
  if (takesEffect) await processed(exchange);
  return { reply: replyOf(exchange, fault), processed: takesEffect };
}

async function delayed(
  core: SandboxCore,
  exchange: Exchange,
  fault: Extract<HttpFault, { kind: 'delay' }>,
): Promise<Settled> {
  if (fault.processedFirst !== true) {
    await core.clock.sleep(fault.ms);
    return { reply: await processed(exchange), processed: true };
  }
  const reply = await processed(exchange);
  await core.clock.sleep(fault.ms);
  return { reply, processed: true };
}

function replyOf(
  exchange: Exchange,
  fault: Extract<HttpFault, { kind: 'reply' | 'error' | 'reset' | 'hang' }>,
): Reply | undefined {
  if (fault.kind === 'reset' || fault.kind === 'hang') return undefined;
  if (fault.kind === 'error') return exchange.errorReply(fault.code);
  return { status: fault.status, body: fault.body ?? '', headers: fault.headers ?? {} };
}

function rateLimited(exchange: Exchange, fault: Extract<HttpFault, { kind: 'rate-limit' }>): Reply {
  if (fault.html !== true) return exchange.rateLimitReply(fault.retryAfterSec);
  return {
    status: 429,
    headers: {
      'content-type': 'text/html; charset=UTF-8',
      ...(fault.retryAfterSec === undefined ? {} : { 'retry-after': String(fault.retryAfterSec) }),
    },
    body: '<!DOCTYPE html><html><head><title>Too Many Requests</title></head><body>You are being rate limited</body></html>',
  };
}

async function processed(exchange: Exchange): Promise<Reply> {
  try {
    return await exchange.process();
  } catch (error) {
    // A bug of the sandbox must fail the test that met it, loudly, and not look like a platform fault.
    return { status: 500, body: `sandbox bug: ${errorText(error)}`, error: 'sandbox_bug' };
  }
}

function send(core: SandboxCore, response: ServerResponse, reply: Reply, truncated: boolean): void {
  if (response.destroyed) return;
  const body = Buffer.isBuffer(reply.body) ? reply.body : Buffer.from(reply.body);
  response.sendDate = false;
  response.writeHead(reply.status, {
    date: httpDate(core.clock.wallMs()),
    'content-length': String(body.length),
    ...(reply.headers ?? {}),
  });
  if (!truncated) {
    response.end(body);
    return;
  }
  response.write(body.subarray(0, Math.floor(body.length / 2)), () => reset(response));
}

/** RST where the platform allows it: the client sees ECONNRESET, not an orderly end. */
function reset(response: ServerResponse): void {
  const socket = response.socket;
  if (socket === null) response.destroy();
  else socket.resetAndDestroy();
}
