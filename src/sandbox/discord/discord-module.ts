// The Discord half as the server sees it: REST, gateway sockets, attachments, control calls.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { mintId } from '../../base/ids.ts';
import type { SandboxCore, SandboxModule } from '../module.ts';
import { isCdnPath, readSignedUrl } from './cdn.ts';
import { discordControl } from './control.ts';
import { Gateway, type GatewaySocket } from './gateway.ts';
import { Guild } from './guild.ts';
import { Interactions } from './interactions.ts';
import { Messages } from './messages.ts';
import { People } from './people.ts';
import { shownChannels, shownDialogs, shownPeople } from './readback.ts';
import type { AttachmentRecord } from './records.ts';
import { Rest } from './rest.ts';
import { CommandBook, type Services } from './routes.ts';
import { Threads } from './threads.ts';

const GATEWAY_PATHS = ['/discord-gateway', '/discord-gateway-resume'];

export interface DiscordOptions {
  /** The observed limits, those multiplied by a number, or none. Hidden and global ones included. */
  readonly rateLimits?: 'real' | 'off' | number;
}

export function discordModule(core: SandboxCore, options: DiscordOptions = {}): SandboxModule {
  const guild = new Guild(core, { token: mintToken(core), guildName: 'Sandbox' });
  const threads = new Threads(guild);
  const messages = new Messages(guild, threads);
  const interactions = new Interactions(guild, messages);
  const gateway = new Gateway(guild);
  interactions.listeners = () => gateway.readySessions();
  const services: Services = {
    guild,
    threads,
    messages,
    interactions,
    gateway,
    commands: new CommandBook(),
  };
  const rest = new Rest(core, services);
  rest.settings.factor = factorOf(options.rateLimits ?? 'real');
  const people = new People(services);
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 1024 * 1024 });
  return {
    platform: 'discord',
    http: async (request, response, url) =>
      serveAttachment(services, request, response, url) || rest.http(request, response, url),
    upgrade: (request, socket, head, url) => {
      if (!GATEWAY_PATHS.some((path) => url.pathname === path || url.pathname === `${path}/`))
        return false;
      openGateway(services, sockets, request, socket, head);
      return true;
    },
    control: discordControl({ services, rest, people }),
    state: () => ({
      guild: { id: guild.id, name: guild.name },
      botId: guild.botId,
      connected: gateway.hasReadySession,
      channels: shownChannels(guild),
      people: shownPeople(guild),
      commands: services.commands.all(),
      ...shownDialogs(guild, interactions),
    }),
    close: async () => {
      gateway.close();
      interactions.close();
      sockets.close();
    },
  };
}

function factorOf(limits: 'real' | 'off' | number): number {
  if (limits === 'real') return 1;
  return limits === 'off' ? Number.MAX_SAFE_INTEGER : limits;
}

/** Shaped like a bot token: three parts, the first being the bot's id would tell; any text does. */
function mintToken(core: SandboxCore): string {
  const first = Buffer.from(
    String(1_000_000_000_000_000_000n + BigInt(Math.floor(core.random.next() * 1e9))),
  ).toString('base64url');
  return `${first}.${mintId(core.random, 6)}.${mintId(core.random, 38)}`;
}

function openGateway(
  services: Services,
  sockets: WebSocketServer,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  const { faults } = services.guild.core;
  const refused = faults.take('discord:gateway', ['refuse-upgrade']);
  if (refused !== undefined) {
    socket.end(
      `HTTP/1.1 ${refused.status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    );
    return;
  }
  const silent = faults.take('discord:gateway', ['no-hello']);
  sockets.handleUpgrade(request, socket, head, (webSocket) => {
    const connection = services.gateway.accept(
      gatewaySocket(webSocket, request),
      silent === undefined ? true : (silent.delayMs ?? false),
    );
    webSocket.on('message', (data: Buffer) => connection.receive(data.toString('utf8')));
    webSocket.on('close', (code) => connection.closedByPeer(code));
    webSocket.on('error', () => webSocket.terminate());
  });
}

function gatewaySocket(webSocket: WebSocket, request: IncomingMessage): GatewaySocket {
  return {
    send: (text) => {
      if (webSocket.readyState === webSocket.OPEN) webSocket.send(text);
    },
    close: (code, reason) => webSocket.close(code, reason),
    reset: () => request.socket.resetAndDestroy(),
    freeze: () => webSocket.pause(),
  };
}

/** Attachments need a fresh, unforged address and no token: sending one there is a leak. */
function serveAttachment(
  services: Services,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): boolean {
  if (!isCdnPath(url.pathname)) return false;
  if (request.headers.authorization !== undefined)
    services.guild.violation(
      'token-to-cdn',
      'warned',
      'GET attachment',
      'the bot token was sent to the CDN',
    );
  const named = readSignedUrl(services.guild.core, url);
  const found =
    named === undefined
      ? undefined
      : findAttachment(services.guild, named.channelId, named.attachmentId);
  if (found?.bytes === undefined) {
    response.writeHead(404, { 'content-type': 'text/plain' });
    response.end('This content is no longer available.');
    return true;
  }
  response.writeHead(200, {
    'content-type': found.contentType ?? 'application/octet-stream',
    'content-length': String(found.bytes.length),
    'content-disposition': `inline; filename="${found.filename}"`,
  });
  response.end(found.bytes);
  return true;
}

function findAttachment(
  guild: Guild,
  channelId: string,
  attachmentId: string,
): AttachmentRecord | undefined {
  for (const message of guild.messages(channelId)) {
    const found = message.attachments.find((entry) => entry.id === attachmentId);
    if (found !== undefined) return found;
  }
  return undefined;
}
