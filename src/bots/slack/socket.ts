// One Socket Mode connection on a client object of its own. The SDK opens the socket and watches its
// pongs; reconnecting and reading frames is ours: its own reader dies of payloads without an event,
// and its own reconnecting leaves seconds without a socket (PLATFORM §2.2).

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { SocketModeClient } from '@slack/socket-mode';
import type { Clock } from '../../base/clock.ts';
import type { Connection, ConnectionHooks, Down } from '../connection-supervisor.ts';
import { type Fields, fieldsOf, textField } from '../fields.ts';
import { classifyError } from './errors.ts';
import { quietLogger } from './quiet-logger.ts';
import { webClientOptions } from './web.ts';

type Fetch = ReturnType<typeof webClientOptions>['fetch'];

/** What Slack sent, and the means to acknowledge it on the socket it came by. */
export interface Envelope {
  readonly id: string;
  readonly type: string;
  readonly body: Fields;
  readonly retryAttempt: number;
  readonly retryReason: string;
  readonly receivedAtMonotonicMs: number;
  /** False when the socket is gone; Slack delivers again then. */
  ack(payload: Fields): boolean;
}

export interface Hello {
  /** Sockets Slack counts for this app, this one included. */
  readonly connectionCount: number | undefined;
  readonly appId: string | undefined;
}

export interface SocketOptions {
  readonly appToken: string;
  readonly apiUrl: string;
  readonly fetch: NonNullable<Fetch>;
  readonly clock: Clock;
  readonly onEnvelope: (envelope: Envelope) => void;
  /** Returns why this is not our app, or undefined. */
  readonly onHello: (hello: Hello) => string | undefined;
}

/** 5 s, the SDK's default, drops the link whenever the machine is busy for a moment (S12). */
const PONG_WITHIN_MS = 20_000;
const PING_WITHIN_MS = 60_000;
/** An 11th socket is refused at once; the ten others are somebody's. */
const TOO_MANY_WAIT_MS = 60_000;
const PING_CHANNELS = ['undici:websocket:ping', 'undici:websocket:pong'];

class FrameClient extends SocketModeClient {
  onFrame: (text: string) => void = () => undefined;

  protected override async onWebSocketMessage(
    data: string | ArrayBuffer,
    isBinary: boolean,
  ): Promise<void> {
    if (!isBinary && typeof data === 'string') this.onFrame(data);
  }
}

/** Opens a socket; what becomes of it arrives at `hooks`. */
export function openSocket(options: SocketOptions, hooks: ConnectionHooks): Connection {
  return new Socket(options, hooks);
}

class Socket implements Connection {
  readonly #options: SocketOptions;
  readonly #hooks: ConnectionHooks;
  readonly #client: FrameClient;
  #address: string | undefined;
  #discarded = false;
  readonly #onPing = (message: unknown): void => {
    const url = urlOf(message);
    if (url !== undefined && url === this.#address) this.#hooks.traffic();
  };

  constructor(options: SocketOptions, hooks: ConnectionHooks) {
    this.#options = options;
    this.#hooks = hooks;
    this.#client = new FrameClient({
      appToken: options.appToken,
      autoReconnectEnabled: false,
      clientPingTimeout: PONG_WITHIN_MS,
      serverPingTimeout: PING_WITHIN_MS,
      logger: quietLogger,
      clientOptions: webClientOptions(options.apiUrl, options.fetch),
    });
    this.#client.onFrame = (text) => this.#frame(text);
    this.#client.on('authenticated', (answer: unknown) => {
      this.#address = normalUrl(textField(fieldsOf(answer), 'url'));
    });
    this.#client.on('disconnected', () => this.#down({ kind: 'lost', reason: 'socket closed' }));
    for (const channel of PING_CHANNELS) subscribe(channel, this.#onPing);
    // `disconnected` before the hello rejects this too, with nothing: whichever comes first counts.
    this.#client.start().catch((error: unknown) => this.#down(causeOf(error)));
  }

  discard(): void {
    if (this.#discarded) return;
    this.#discarded = true;
    for (const channel of PING_CHANNELS) unsubscribe(channel, this.#onPing);
    const client = this.#client;
    client.onFrame = () => undefined;
    client.removeAllListeners();
    // Still waiting for apps.connections.open: without this the answer would open a socket that
    // nobody owns, and ten of those end the app (S11).
    client.on('connecting', () => {
      delete client.websocket;
    });
    const socket = client.websocket;
    if (socket === undefined) return;
    // The first call sends a close frame, the second ends the TCP connection, which Slack would leave
    // open: by itself the SDK waits 30 s for it, with a timer it can lose (S3).
    socket.disconnect();
    socket.disconnect();
  }

  #down(cause: Down): void {
    if (!this.#discarded) this.#hooks.down(cause);
  }

  #frame(text: string): void {
    this.#hooks.traffic();
    let frame: Fields;
    try {
      frame = fieldsOf(JSON.parse(text));
    } catch {
      return;
    }
    switch (frame['type']) {
      case 'hello':
        this.#hello(frame);
        break;
      case 'disconnect':
        this.#down(causeOfDisconnect(textField(frame, 'reason') ?? ''));
        break;
      default:
        this.#envelope(frame);
    }
  }

  #hello(frame: Fields): void {
    const count = frame['num_connections'];
    const stranger = this.#options.onHello({
      connectionCount: typeof count === 'number' ? count : undefined,
      appId: textField(fieldsOf(frame['connection_info']), 'app_id'),
    });
    if (stranger !== undefined) {
      this.#down({ kind: 'fatal', reason: stranger });
      return;
    }
    // Settles start(): the SDK's own reader would have said so.
    this.#client.emit('connected');
    this.#hooks.ready();
  }

  #envelope(frame: Fields): void {
    const id = textField(frame, 'envelope_id');
    const type = textField(frame, 'type');
    if (id === undefined || type === undefined) return;
    const attempt = frame['retry_attempt'];
    this.#options.onEnvelope({
      id,
      type,
      body: fieldsOf(frame['payload']),
      retryAttempt: typeof attempt === 'number' ? attempt : 0,
      retryReason: textField(frame, 'retry_reason') ?? '',
      receivedAtMonotonicMs: this.#options.clock.monotonicMs(),
      ack: (payload) => this.#send({ envelope_id: id, payload }),
    });
  }

  #send(frame: Fields): boolean {
    const socket = this.#client.websocket;
    if (socket === undefined || !socket.isActive()) return false;
    let sent = true;
    socket.send(JSON.stringify(frame), (error) => {
      sent = error === undefined;
    });
    return sent;
  }
}

function causeOfDisconnect(reason: string): Down {
  switch (reason) {
    case 'link_disabled':
      return {
        kind: 'fatal',
        reason: 'Socket Mode is switched off in the settings of the Slack app',
      };
    case 'too_many_websockets':
      return {
        kind: 'lost',
        reason: 'ten other sockets use this app token: is another chatd running?',
        atLeastMs: TOO_MANY_WAIT_MS,
      };
    default:
      // `warning` and `refresh_requested`: about ten seconds are left.
      return { kind: 'replace', reason: 'refresh' };
  }
}

function causeOf(error: unknown): Down {
  const failure = classifyError(error, 'apps.connections.open');
  if (failure.kind !== 'refused') {
    return { kind: 'lost', reason: `cannot open a socket: ${failure.detail}` };
  }
  if (failure.because === 'credentials') {
    return { kind: 'fatal', reason: `Slack refuses the app token: ${failure.detail}` };
  }
  return {
    kind: 'lost',
    reason: `cannot open a socket: ${failure.detail}`,
    ...(failure.retryAfterMs === undefined ? {} : { atLeastMs: failure.retryAfterMs }),
  };
}

/** The address of the socket a ping or pong came by: undici reports those of the whole process. */
function urlOf(message: unknown): string | undefined {
  if (typeof message !== 'object' || message === null || !('websocket' in message)) {
    return undefined;
  }
  const socket = message.websocket;
  if (typeof socket !== 'object' || socket === null || !('url' in socket)) return undefined;
  return typeof socket.url === 'string' ? normalUrl(socket.url) : undefined;
}

function normalUrl(url: string | undefined): string | undefined {
  return url !== undefined && URL.canParse(url) ? new URL(url).href : undefined;
}
