// Socket Mode: tickets, hello, envelopes to a random open socket, acknowledgements and redelivery,
// the disconnect kinds. It knows envelopes, not what they mean.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { BoundedQueue } from '../../base/bounded-queue.ts';
import type { Timer } from '../../base/clock.ts';
import { mintId, mintUuid } from '../../base/ids.ts';
import { type Fields, isFields } from '../fields.ts';
import type { SandboxCore } from '../module.ts';

/** Simultaneous connections of one app. */
export const SOCKETS_MAX = 10;
/** An envelope not acknowledged within this counts as not delivered. */
export const ACK_WINDOW_MS = 3_000;
/** After the first failure, second, third (PLATFORM §2.1; the sandbox's clock scales them). */
export const REDELIVERY_MS = [1_000, 60_000, 300_000] as const;
/** What could not be delivered for two hours is dropped. */
export const EVENT_LIFE_MS = 2 * 3_600_000;
const TICKET_LIFE_MS = 30_000;
const DEBUG_LIFE_MS = 360_000;
const WARNING_AHEAD_MS = 10_000;
const QUEUE_MAX = 10_000;

export type EnvelopeType = 'events_api' | 'slash_commands' | 'interactive';

export interface Delivery {
  readonly type: EnvelopeType;
  readonly payload: Fields;
  readonly acceptsResponse: boolean;
  /** Events are repeated; interactions fail before the person's eyes. */
  readonly isRepeated: boolean;
  /** The payload of the acknowledgement. */
  onAck(payload: Fields): void;
  /** No acknowledgement in time, or nobody there: `no-socket` | `timeout`. */
  onFailure(reason: 'no-socket' | 'timeout'): void;
}

interface Live {
  readonly delivery: Delivery;
  createdMs: number;
  readonly envelopeIds: Set<string>;
  attempt: number;
  acked: boolean;
  timer: Timer | undefined;
}

interface Connection {
  readonly id: string;
  readonly socket: WebSocket;
  readonly transport: Duplex;
  readonly timers: Timer[];
  isReady: boolean;
  isHalfOpen: boolean;
  suppressesPongs: boolean;
}

export interface SocketModeOptions {
  readonly core: SandboxCore;
  readonly appId: string;
  readonly pingIntervalMs: number;
  readonly connectionLifeMs: number;
  readonly lingerAfterClose: boolean;
  /** Told whenever the set of open sockets changes. */
  changed(): void;
}

export type DisconnectReason =
  | 'warning'
  | 'refresh_requested'
  | 'link_disabled'
  | 'too_many_websockets';

export class SocketMode {
  readonly #options: SocketModeOptions;
  readonly #server = new WebSocketServer({ noServer: true, autoPong: false });
  readonly #tickets = new Map<string, number>();
  readonly #connections = new Set<Connection>();
  readonly #waiting = new BoundedQueue<Live>({ capacity: QUEUE_MAX, overflow: 'drop-oldest' });
  readonly #live = new Map<string, Live>();
  #held: Live | undefined;
  #isEnabled = true;

  constructor(options: SocketModeOptions) {
    this.#options = options;
  }

  /** The url apps.connections.open answers: for one use, soon. */
  mintUrl(): string {
    const { core, appId } = this.#options;
    const ticket = mintId(core.random, 24);
    this.#tickets.set(ticket, core.clock.monotonicMs() + TICKET_LIFE_MS);
    for (const [old, expiresMs] of this.#tickets)
      if (expiresMs < core.clock.monotonicMs()) this.#tickets.delete(old);
    return `${core.baseUrl().replace('http', 'ws')}/link/?ticket=${ticket}&app_id=${appId}`;
  }

  get isEnabled(): boolean {
    return this.#isEnabled;
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, url: URL): void {
    const { core } = this.#options;
    const refusal = core.faults.take('slack:socket', ['refuse-upgrade']);
    const ticket = url.searchParams.get('ticket') ?? '';
    const expiresMs = this.#tickets.get(ticket);
    this.#tickets.delete(ticket);
    const isValid = expiresMs !== undefined && expiresMs >= core.clock.monotonicMs();
    const status = refusal?.status ?? (isValid ? 0 : 404);
    if (status !== 0) {
      socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (opened) => {
      this.#accept(opened, socket, url.searchParams.get('debug_reconnects') === 'true');
    });
  }

  deliver(delivery: Delivery): void {
    const { core } = this.#options;
    const live: Live = {
      delivery,
      createdMs: core.clock.monotonicMs(),
      envelopeIds: new Set(),
      attempt: 0,
      acked: false,
      timer: undefined,
    };
    if (delivery.isRepeated) {
      if (core.faults.take('slack:event', ['lose']) !== undefined) return;
      const late = core.faults.take('slack:event', ['late']);
      if (late !== undefined) {
        core.clock.timer(late.ms, () => {
          // With "Delayed Events" hours are no reason to drop it.
          live.createdMs = core.clock.monotonicMs();
          this.#dispatch(live);
        });
        return;
      }
      if (core.faults.take('slack:event', ['reorder']) !== undefined && this.#held === undefined) {
        this.#held = live;
        return;
      }
    }
    this.#dispatch(live);
    const held = this.#held;
    if (held !== undefined && held !== live) {
      this.#held = undefined;
      this.#dispatch(held);
    }
  }

  /** Sends a frame of that reason to all sockets, or one; `refresh_requested` and the like also close. */
  disconnect(reason: DisconnectReason, id?: string): number {
    const chosen = this.#chosen(id);
    if (reason === 'link_disabled') this.#isEnabled = false;
    for (const connection of chosen) this.#sayGoodbye(connection, reason);
    return chosen.length;
  }

  enable(): void {
    this.#isEnabled = true;
  }

  /** Ends sockets without a close frame. */
  drop(id?: string): number {
    const chosen = this.#chosen(id);
    for (const connection of chosen) connection.socket.terminate();
    return chosen.length;
  }

  /** Leaves the connections up and stops reading, writing and answering pings on them. */
  halfOpen(id?: string): number {
    const chosen = this.#chosen(id);
    for (const connection of chosen) {
      connection.isHalfOpen = true;
      connection.socket.pause();
    }
    return chosen.length;
  }

  suppressPongs(id?: string): number {
    const chosen = this.#chosen(id);
    for (const connection of chosen) connection.suppressesPongs = true;
    return chosen.length;
  }

  /** Any frame, to see what the client makes of it. */
  sendRaw(data: string | Buffer): number {
    const open = this.#open();
    for (const connection of open) connection.socket.send(data);
    return open.length;
  }

  describe(): readonly Fields[] {
    return [...this.#connections].map((connection) => ({
      id: connection.id,
      ready: connection.isReady,
      half_open: connection.isHalfOpen,
    }));
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  async close(): Promise<void> {
    for (const live of this.#live.values()) live.timer?.cancel();
    this.#live.clear();
    for (const connection of this.#connections) this.#forget(connection);
    for (const client of this.#server.clients) client.terminate();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(socket: WebSocket, transport: Duplex, isDebug: boolean): void {
    const { core } = this.#options;
    const connection: Connection = {
      id: mintId(core.random, 8),
      socket,
      transport,
      timers: [],
      isReady: false,
      isHalfOpen: false,
      suppressesPongs: false,
    };
    if (this.#options.lingerAfterClose) linger(transport);
    socket.on('error', () => socket.terminate());
    socket.on('message', (data, isBinary) => {
      if (!isBinary) this.#received(connection, rawText(data));
    });
    socket.on('ping', (data) => {
      if (!connection.suppressesPongs && !connection.isHalfOpen) socket.pong(data);
    });
    if (this.#connections.size >= SOCKETS_MAX) {
      socket.send(JSON.stringify({ type: 'disconnect', reason: 'too_many_websockets' }));
      socket.close(1000);
      this.#violate('too-many-websockets', 'refused', `more than ${SOCKETS_MAX} connections`);
      return;
    }
    this.#connections.add(connection);
    socket.on('close', () => this.#forget(connection));
    this.#greet(connection, isDebug);
    this.#options.changed();
  }

  #greet(connection: Connection, isDebug: boolean): void {
    const { core } = this.#options;
    const fault = core.faults.take('slack:socket', ['no-hello']);
    if (fault === undefined) this.#hello(connection, isDebug);
    else if (fault.delayMs !== undefined)
      connection.timers.push(
        core.clock.timer(fault.delayMs, () => this.#hello(connection, isDebug)),
      );
  }

  #hello(connection: Connection, isDebug: boolean): void {
    const { core, appId } = this.#options;
    const lifeMs = isDebug ? DEBUG_LIFE_MS : this.#options.connectionLifeMs;
    connection.isReady = true;
    connection.socket.send(
      JSON.stringify({
        type: 'hello',
        num_connections: this.#connections.size,
        connection_info: { app_id: appId },
        debug_info: {
          host: `applink-${connection.id}`,
          build_number: 54,
          approximate_connection_time: Math.floor(lifeMs / 1000),
        },
      }),
    );
    this.#pingLater(connection);
    connection.timers.push(
      core.clock.timer(Math.max(0, lifeMs - WARNING_AHEAD_MS), () =>
        this.#sayGoodbye(connection, 'warning'),
      ),
      core.clock.timer(lifeMs, () => this.#sayGoodbye(connection, 'refresh_requested')),
    );
    this.#drain();
  }

  #pingLater(connection: Connection): void {
    const { core, pingIntervalMs } = this.#options;
    connection.timers[0] = core.clock.timer(pingIntervalMs, () => {
      if (!connection.isHalfOpen && connection.socket.readyState === connection.socket.OPEN)
        connection.socket.ping(`Ping from applink-${connection.id}`);
      this.#pingLater(connection);
    });
  }

  #sayGoodbye(connection: Connection, reason: DisconnectReason): void {
    if (connection.isHalfOpen) return;
    const debug = { debug_info: { host: `applink-${connection.id}` } };
    connection.socket.send(JSON.stringify({ type: 'disconnect', reason, ...debug }));
    if (reason === 'warning') return;
    connection.isReady = false;
    connection.socket.close(1000);
  }

  #forget(connection: Connection): void {
    for (const timer of connection.timers) timer.cancel();
    connection.isReady = false;
    if (this.#connections.delete(connection)) this.#options.changed();
  }

  #chosen(id: string | undefined): readonly Connection[] {
    return [...this.#connections].filter((one) => id === undefined || one.id === id);
  }

  /** Sockets Slack believes to be open; a half-open one is among them, as in life. */
  #open(): readonly Connection[] {
    return [...this.#connections].filter(
      (one) => one.isReady && one.socket.readyState === one.socket.OPEN,
    );
  }

  #drain(): void {
    const waiting = Array.from({ length: this.#waiting.length }, () => this.#waiting.take());
    for (const live of waiting) if (live !== undefined) this.#dispatch(live);
  }

  #dispatch(live: Live): void {
    const { core } = this.#options;
    if (core.clock.monotonicMs() - live.createdMs > EVENT_LIFE_MS) return;
    const open = this.#open();
    const connection = open[Math.floor(core.random.next() * open.length)];
    if (connection === undefined) {
      if (live.delivery.isRepeated) this.#waiting.push(live);
      else live.delivery.onFailure('no-socket');
      return;
    }
    const envelopeId = mintUuid(core.random);
    live.envelopeIds.add(envelopeId);
    this.#live.set(envelopeId, live);
    const frame = JSON.stringify({
      envelope_id: envelopeId,
      type: live.delivery.type,
      accepts_response_payload: live.delivery.acceptsResponse,
      ...(live.delivery.type === 'events_api'
        ? { retry_attempt: live.attempt, retry_reason: live.attempt === 0 ? '' : 'timeout' }
        : {}),
      payload: live.delivery.payload,
    });
    const copies = core.faults.take('slack:event', ['duplicate']) === undefined ? 1 : 2;
    for (let copy = 0; copy < copies; copy += 1)
      if (!connection.isHalfOpen) connection.socket.send(frame);
    live.timer = core.clock.timer(ACK_WINDOW_MS, () => this.#notAcked(live, connection));
  }

  #notAcked(live: Live, connection: Connection): void {
    const { core } = this.#options;
    // A client that is gone or cut off has not been slow.
    if (this.#connections.has(connection) && !connection.isHalfOpen)
      this.#violate('ack-too-late', 'warned', `${live.delivery.type} not acknowledged in 3 s`);
    const waitMs = REDELIVERY_MS[live.attempt];
    if (!live.delivery.isRepeated || waitMs === undefined) {
      this.#finish(live);
      live.delivery.onFailure('timeout');
      return;
    }
    live.attempt += 1;
    live.timer = core.clock.timer(waitMs, () => this.#dispatch(live));
  }

  #received(connection: Connection, text: string): void {
    if (connection.isHalfOpen) return;
    if (this.#options.core.faults.take('slack:socket', ['ignore-ack']) !== undefined) return;
    const frame = parseFrame(text);
    const envelopeId = frame?.['envelope_id'];
    if (frame === undefined || typeof envelopeId !== 'string') {
      this.#violate('socket-frame-invalid', 'warned', 'a frame without envelope_id');
      return;
    }
    const live = this.#live.get(envelopeId);
    if (live === undefined || live.acked) return; // Acknowledged before, or given up: no harm.
    live.acked = true;
    this.#finish(live);
    const payload = frame['payload'];
    const answer = isFields(payload) ? payload : {};
    if (!live.delivery.acceptsResponse && Object.keys(answer).length > 0)
      this.#violate('ack-payload-ignored', 'warned', 'this envelope accepts no response payload');
    live.delivery.onAck(live.delivery.acceptsResponse ? answer : {});
  }

  #finish(live: Live): void {
    live.timer?.cancel();
    for (const id of live.envelopeIds) this.#live.delete(id);
  }

  #violate(rule: string, severity: 'refused' | 'warned', detail: string): void {
    const { violations } = this.#options.core;
    violations.add({ platform: 'slack', rule, severity, target: 'socket', detail });
  }
}

function rawText(data: Buffer | ArrayBuffer | Buffer[]): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8');
  return Buffer.isBuffer(data) ? data.toString('utf8') : Buffer.from(data).toString('utf8');
}

function parseFrame(text: string): Fields | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return isFields(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** After the close handshake the real server leaves TCP to the client; ws would end it. */
function linger(transport: Duplex): void {
  const end = transport.end.bind(transport);
  let hasPeerEnded = false;
  transport.once('end', () => {
    hasPeerEnded = true;
    end();
  });
  Object.defineProperty(transport, 'end', {
    value: () => {
      if (hasPeerEnded) end();
      return transport;
    },
  });
}
