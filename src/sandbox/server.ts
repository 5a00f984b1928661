// The loopback server: gives each request to the platform half that claims it, or to the control
// API, or to the page's files. It knows no platform.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize, sep } from 'node:path';
import type { Duplex } from 'node:stream';
import { errorText } from '../base/errors.ts';
import { readBody } from './exchange.ts';
import {
  ControlError,
  type ControlHandler,
  type SandboxCore,
  type SandboxModule,
} from './module.ts';
import { vendorFile } from './vendor.ts';

const CONTROL_BODY_MAX_BYTES = 64 * 1024 * 1024; // Files uploaded by a simulated person come in base64.

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};

export interface ServerOptions {
  readonly core: SandboxCore;
  /** Asked in this order; the first that claims a request answers it. */
  readonly modules: readonly SandboxModule[];
  readonly control: ReadonlyMap<string, ControlHandler>;
  readonly webDirectory: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

export interface SandboxServer {
  readonly url: string;
  close(): Promise<void>;
}

/** @throws {Error} when the port cannot be had. */
export async function startServer(options: ServerOptions): Promise<SandboxServer> {
  const server = createServer({ keepAliveTimeout: 30_000 }, (request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      if (!response.headersSent) sendJson(response, 500, { ok: false, error: errorText(error) });
      else response.destroy();
    });
  });
  const upgraded = new Set<Duplex>();
  server.on('upgrade', (request, socket, head) => {
    upgraded.add(socket);
    socket.on('close', () => upgraded.delete(socket));
    socket.on('error', () => socket.destroy());
    upgrade(options, request, socket, head);
  });
  await listen(server, options.port);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      await closed;
    },
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function urlOf(request: IncomingMessage): URL {
  // An absolute or broken target must not throw here: it becomes a path nobody claims.
  const target = request.url ?? '/';
  return URL.canParse(target, 'http://127.0.0.1')
    ? new URL(target, 'http://127.0.0.1')
    : new URL('http://127.0.0.1/');
}

async function answer(
  options: ServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = urlOf(request);
  if (url.pathname.startsWith('/control/')) {
    await answerControl(options, request, response, url);
    return;
  }
  for (const module of options.modules) {
    if (await module.http(request, response, url)) return;
  }
  await sendAsset(options.webDirectory, url.pathname, response);
}

function upgrade(
  options: ServerOptions,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  const url = urlOf(request);
  for (const module of options.modules) {
    if (module.upgrade(request, socket, head, url)) return;
  }
  socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
}

async function answerControl(
  options: ServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  if (!isSameOrigin(request)) {
    sendJson(response, 403, { ok: false, error: 'another origin may not control the sandbox' });
    return;
  }
  const name = url.pathname.slice('/control/'.length);
  if (name === 'events') {
    options.core.changes.serve(request, response, url);
    return;
  }
  const handler = options.control.get(name);
  if (handler === undefined) {
    sendJson(response, 404, { ok: false, error: `no control call named ${name}` });
    return;
  }
  const body = await readBody(request, CONTROL_BODY_MAX_BYTES);
  try {
    sendJson(response, 200, { ok: true, result: (await handler(parseControlBody(body))) ?? null });
  } catch (error) {
    const status = error instanceof ControlError ? 400 : 500;
    sendJson(response, status, { ok: false, error: errorText(error) });
  }
}

/** A page of some other site must not be able to type into the sandbox from a person's browser. */
function isSameOrigin(request: IncomingMessage): boolean {
  const origin = request.headers.origin;
  return origin === undefined || origin === `http://${request.headers.host ?? ''}`;
}

function parseControlBody(body: Buffer | undefined): unknown {
  if (body === undefined) throw new ControlError('the body is too long or broke off');
  if (body.length === 0) return {};
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'));
    return parsed;
  } catch {
    throw new ControlError('the body is not JSON');
  }
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(value));
}

async function sendAsset(
  directory: string,
  pathname: string,
  response: ServerResponse,
): Promise<void> {
  const name = normalize(pathname === '/' ? 'index.html' : `.${pathname}`);
  const vendored = vendorFile(pathname);
  const file = vendored ?? join(directory, name);
  const type = MEDIA_TYPES[extname(name)];
  const inside =
    vendored !== undefined ||
    file.startsWith(directory.endsWith(sep) ? directory : directory + sep);
  const isFile =
    inside &&
    type !== undefined &&
    (await stat(file).then(
      (found) => found.isFile(),
      () => false,
    ));
  if (!isFile) {
    sendJson(response, 404, { ok: false, error: 'not found' });
    return;
  }
  response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache' });
  createReadStream(file).pipe(response);
}
