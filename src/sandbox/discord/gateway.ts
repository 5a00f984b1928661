// Gateway v10: sessions with numbered, replayable events, and the connections that carry them.
// What a frame may say is decided here; sockets are given in and can be told to misbehave.

import type { Timer } from '../../base/clock.ts';
import { mintId } from '../../base/ids.ts';
import { Windows } from './buckets.ts';
import type { Dispatch, Guild } from './guild.ts';
import { isRecord, type Json, listOf, numberOf, parseJson, stringOf } from './json.ts';
import { INTENT } from './records.ts';
import { guildCreateJson, memberWithUserJson, userJson } from './wire.ts';

/** What a connection needs of its socket. */
export interface GatewaySocket {
  send(text: string): void;
  close(code: number, reason: string): void;
  /** RST, no close frame. */
  reset(): void;
  /** Stop reading: the peer is there and says nothing more. */
  freeze(): void;
}

export interface GatewaySettings {
  heartbeatMs: number;
  /** How long a broken session can be resumed; undisclosed by Discord. */
  resumeWindowMs: number;
  /** Identify: `max_concurrency` is 1 per this time. */
  identifySpacingMs: number;
  identifyBudget: number;
  /** Instead of the sandbox's own addresses: a dead port or name makes reconnects fail. */
  url: string | undefined;
  resumeUrl: string | undefined;
}

const CLOSE = {
  UNKNOWN_OP: 4001,
  DECODE: 4002,
  NOT_AUTHENTICATED: 4003,
  AUTH_FAILED: 4004,
  ALREADY: 4005,
  BAD_SEQ: 4007,
  RATE: 4008,
  TIMEOUT: 4009,
  BAD_SHARD: 4010,
  BAD_INTENTS: 4013,
  DISALLOWED_INTENTS: 4014,
} as const;

const REASONS: Readonly<Record<number, string>> = {
  4000: 'Unknown error.',
  4001: 'Unknown opcode.',
  4002: 'Error while decoding payload.',
  4003: 'Not authenticated.',
  4004: 'Authentication failed.',
  4005: 'Already authenticated.',
  4007: 'Invalid seq.',
  4008: 'Rate limited.',
  4009: 'Session timed out.',
  4010: 'Invalid shard.',
  4013: 'Invalid intent(s).',
  4014: 'Disallowed intent(s).',
};

const PAYLOAD_MAX_BYTES = 4_096;
const BUFFERED_EVENTS = 1_000;
const KNOWN_INTENTS = (1 << 26) - 1;
const PRIVILEGED = INTENT.GUILD_MEMBERS | INTENT.GUILD_PRESENCES;

interface Session {
  readonly id: string;
  readonly intents: number;
  readonly buffer: { readonly seq: number; readonly text: string }[];
  seq: number;
  connection: Connection | undefined;
  brokenMs: number | undefined;
  /** An event held back to arrive after the next one. */
  held: string | undefined;
}

export class Gateway {
  readonly guild: Guild;
  readonly windows: Windows;
  readonly settings: GatewaySettings = {
    heartbeatMs: 41_250,
    resumeWindowMs: 120_000,
    identifySpacingMs: 5_000,
    identifyBudget: 1_000,
    url: undefined,
    resumeUrl: undefined,
  };
  readonly connections = new Set<Connection>();
  readonly #sessions = new Map<string, Session>();

  constructor(guild: Guild) {
    this.guild = guild;
    this.windows = new Windows(() => guild.core.clock.wallMs());
    guild.onDispatch((event) => this.#deliver(event));
  }

  /** True while a bot is connected and identified. */
  get hasReadySession(): boolean {
    return this.readySessions().size > 0;
  }

  /** The sessions that hear events now. */
  readySessions(): ReadonlySet<string> {
    const ready = [...this.#sessions.values()].filter(
      (session) => session.connection?.isMute === false,
    );
    return new Set(ready.map((session) => session.id));
  }

  identifiesLeft(): number {
    return Math.max(0, this.settings.identifyBudget - this.windows.used('identify-day'));
  }

  /** A socket has been accepted. `hello`: false withholds it, a number delays it. */
  accept(socket: GatewaySocket, hello: boolean | number): Connection {
    const connection = new Connection(this, socket);
    this.connections.add(connection);
    if (hello === true) connection.hello();
    else if (hello !== false) connection.later(hello, () => connection.hello());
    return connection;
  }

  openSession(connection: Connection, intents: number): Session {
    const session: Session = {
      id: mintId(this.guild.core.random, 32),
      intents,
      buffer: [],
      seq: 0,
      connection,
      brokenMs: undefined,
      held: undefined,
    };
    this.#forgetExpired();
    this.#sessions.set(session.id, session);
    return session;
  }

  /** The session if it can still be resumed. */
  session(id: string): Session | undefined {
    this.#forgetExpired();
    return this.#sessions.get(id);
  }

  endSession(id: string): void {
    this.#sessions.delete(id);
  }

  /** Everything dispatched to the bot so far is not resumable any more. */
  endAllSessions(): void {
    this.#sessions.clear();
  }

  #forgetExpired(): void {
    const nowMs = this.guild.core.clock.wallMs();
    for (const session of this.#sessions.values()) {
      if (session.brokenMs !== undefined && nowMs - session.brokenMs > this.settings.resumeWindowMs)
        this.#sessions.delete(session.id);
    }
  }

  #deliver(event: Dispatch): void {
    this.#forgetExpired();
    const channel =
      event.channelId === undefined ? undefined : this.guild.channels.get(event.channelId);
    if (channel !== undefined && !this.guild.may(this.guild.botId, 'VIEW_CHANNEL', channel)) return;
    for (const session of this.#sessions.values()) {
      if (event.intents !== 0 && (session.intents & event.intents) === 0) continue;
      const view = { messageContent: (session.intents & INTENT.MESSAGE_CONTENT) !== 0 };
      this.#deliverTo(session, event.name, event.data(view));
    }
  }

  #deliverTo(session: Session, name: string, data: Json): void {
    const fault = this.guild.core.faults.take(`discord:event ${name}`, [
      'duplicate',
      'reorder',
      'late',
      'lose',
    ]);
    if (fault?.kind === 'lose') return;
    if (fault?.kind === 'late') {
      this.guild.core.clock.timer(fault.ms, () => this.emit(session, name, data)).unref();
      return;
    }
    if (fault?.kind === 'reorder') {
      const flush = session.held;
      session.held = this.#number(session, name, data);
      if (flush !== undefined) this.#push(session, flush);
      return;
    }
    this.emit(session, name, data);
    if (fault?.kind === 'duplicate') this.emit(session, name, data);
  }

  /** Numbers, remembers and sends one event. */
  emit(session: Session, name: string, data: Json): void {
    this.#push(session, this.#number(session, name, data));
    if (session.held === undefined) return;
    const held = session.held;
    session.held = undefined;
    this.#push(session, held);
  }

  #number(session: Session, name: string, data: Json): string {
    session.seq += 1;
    const text = JSON.stringify({ t: name, s: session.seq, op: 0, d: data });
    session.buffer.push({ seq: session.seq, text });
    if (session.buffer.length > BUFFERED_EVENTS) session.buffer.shift();
    return text;
  }

  #push(session: Session, text: string): void {
    session.connection?.sendText(text);
  }

  /** Roles of a member changed. */
  memberChanged(userId: string): void {
    this.guild.dispatch({
      name: 'GUILD_MEMBER_UPDATE',
      // The bot's own member comes with GUILDS, others need the privileged intent.
      intents: userId === this.guild.botId ? INTENT.GUILDS : INTENT.GUILD_MEMBERS,
      data: () => ({ ...memberWithUserJson(this.guild, userId), guild_id: this.guild.id }),
    });
    this.guild.changed('people', { user: userId });
  }

  gatewayUrl(path: string): string {
    return `${this.guild.core.baseUrl().replace(/^http/, 'ws')}${path}`;
  }

  close(): void {
    for (const connection of this.connections) connection.drop();
    this.#sessions.clear();
  }
}

/** One socket from hello to its end. */
export class Connection {
  readonly #gateway: Gateway;
  readonly #socket: GatewaySocket;
  readonly #windows: Windows;
  #session: Session | undefined;
  #heartbeat: Timer | undefined;
  #missedBeats = 0;
  #closed = false;
  /** A zombie: reads nothing, says nothing, keeps its TCP connection. */
  isMute = false;

  constructor(gateway: Gateway, socket: GatewaySocket) {
    this.#gateway = gateway;
    this.#socket = socket;
    this.#windows = new Windows(() => gateway.guild.core.clock.wallMs());
  }

  get sessionId(): string | undefined {
    return this.#session?.id;
  }

  later(delayMs: number, run: () => void): void {
    this.#gateway.guild.core.clock
      .timer(delayMs, () => {
        if (!this.#closed) run();
      })
      .unref();
  }

  hello(): void {
    const interval = this.#gateway.settings.heartbeatMs;
    this.#send({ t: null, s: null, op: 10, d: { heartbeat_interval: interval, _trace: [] } });
    this.#expectHeartbeat();
  }

  sendText(text: string): void {
    if (!this.#closed && !this.isMute) this.#socket.send(text);
  }

  #send(frame: Json): void {
    this.sendText(JSON.stringify(frame));
  }

  /** One frame from the client. */
  receive(text: string): void {
    if (this.#closed || this.isMute) return;
    if (Buffer.byteLength(text) > PAYLOAD_MAX_BYTES) {
      this.#refuse(CLOSE.DECODE);
      return;
    }
    const frame = parseJson(text);
    if (!isRecord(frame)) {
      this.#refuse(CLOSE.DECODE);
      return;
    }
    if (!this.#windows.take('sends', { limit: 120, windowMs: 60_000 }).allowed) {
      this.#gateway.guild.violation(
        'gateway-rate',
        'refused',
        'gateway',
        'more than 120 frames in 60 s',
      );
      this.#refuse(CLOSE.RATE);
      return;
    }
    this.#handle(numberOf(frame['op']), frame['d']);
  }

  #handle(op: number | undefined, data: unknown): void {
    switch (op) {
      case 1:
        this.#beat();
        return;
      case 2:
        this.#identify(isRecord(data) ? data : {});
        return;
      case 6:
        this.#resume(isRecord(data) ? data : {});
        return;
      case 3:
      case 4:
        if (this.#session === undefined) this.#refuse(CLOSE.NOT_AUTHENTICATED);
        return;
      case 8:
        this.#sendMembers(isRecord(data) ? data : {});
        return;
      default:
        this.#refuse(CLOSE.UNKNOWN_OP);
    }
  }

  #beat(): void {
    if (this.#gateway.guild.core.faults.take('discord:heartbeat', ['ignore-ack']) !== undefined)
      return;
    this.#missedBeats = 0;
    this.#send({ t: null, s: null, op: 11, d: null });
  }

  /** Time can be moved ahead in tests: only two silent intervals in a row count. */
  #expectHeartbeat(): void {
    const { clock } = this.#gateway.guild.core;
    // The client beats in real time, this clock may run faster.
    const waitMs = this.#gateway.settings.heartbeatMs * Math.max(1, clock.scale);
    this.#heartbeat = clock.timer(waitMs, () => {
      this.#missedBeats += 1;
      if (this.#missedBeats > 2) this.closeWith(CLOSE.TIMEOUT);
      else this.#expectHeartbeat();
    });
    this.#heartbeat.unref();
  }

  #identify(data: Json): void {
    const { guild, settings, windows } = this.#gateway;
    if (this.#session !== undefined) {
      this.#refuse(CLOSE.ALREADY);
      return;
    }
    const refusal = this.#identifyRefusal(data);
    if (refusal !== undefined) {
      this.#refuse(refusal);
      return;
    }
    const spacing = { limit: 1, windowMs: settings.identifySpacingMs };
    if (settings.identifySpacingMs > 0 && !windows.take('identify', spacing).allowed) {
      this.invalidSession(false);
      return;
    }
    if (
      !windows.take('identify-day', { limit: settings.identifyBudget, windowMs: 86_400_000 })
        .allowed
    ) {
      this.#exhausted();
      return;
    }
    const session = this.#gateway.openSession(this, numberOf(data['intents']) ?? 0);
    this.#session = session;
    this.#gateway.emit(session, 'READY', this.#ready(session));
    if ((session.intents & INTENT.GUILDS) !== 0)
      this.#gateway.emit(session, 'GUILD_CREATE', guildCreateJson(guild));
    guild.changed('gateway', { connected: true });
  }

  #identifyRefusal(data: Json): number | undefined {
    const { guild } = this.#gateway;
    if (stringOf(data['token'])?.replace(/^Bot /, '') !== guild.token) return CLOSE.AUTH_FAILED;
    const shard = listOf(data['shard']);
    if (shard.length > 0 && Number(shard[0]) >= Number(shard[1])) return CLOSE.BAD_SHARD;
    const intents = numberOf(data['intents']);
    if (intents === undefined || (intents & ~KNOWN_INTENTS) !== 0) return CLOSE.BAD_INTENTS;
    const disallowed = PRIVILEGED | (guild.messageContentEnabled ? 0 : INTENT.MESSAGE_CONTENT);
    return (intents & disallowed) !== 0 ? CLOSE.DISALLOWED_INTENTS : undefined;
  }

  /** The thousandth identify of a day ends every session and resets the bot's token. */
  #exhausted(): void {
    const { guild } = this.#gateway;
    guild.violation(
      'identify-budget',
      'refused',
      'gateway',
      'more identifies in a day than allowed: the token was reset',
    );
    guild.token = `${guild.token.split('.').slice(0, 2).join('.')}.${mintId(guild.core.random, 38)}`;
    for (const connection of [...this.#gateway.connections])
      connection.closeWith(CLOSE.AUTH_FAILED);
    this.#gateway.endAllSessions();
  }

  #ready(session: Session): Json {
    const { guild, settings } = this.#gateway;
    const bot = guild.user(guild.botId);
    return {
      v: 10,
      user: {
        ...(bot === undefined ? {} : userJson(bot)),
        verified: true,
        mfa_enabled: false,
        email: null,
      },
      guilds: [{ id: guild.id, unavailable: true }],
      private_channels: [],
      relationships: [],
      session_type: 'normal',
      session_id: session.id,
      resume_gateway_url: settings.resumeUrl ?? this.#gateway.gatewayUrl('/discord-gateway-resume'),
      shard: [0, 1],
      application: { id: guild.botId, flags: guild.messageContentEnabled ? 1 << 19 : 0 },
    };
  }

  #resume(data: Json): void {
    const { guild } = this.#gateway;
    if (this.#session !== undefined) {
      this.#refuse(CLOSE.ALREADY);
      return;
    }
    if (stringOf(data['token'])?.replace(/^Bot /, '') !== guild.token) {
      this.#refuse(CLOSE.AUTH_FAILED);
      return;
    }
    const session = this.#gateway.session(stringOf(data['session_id']) ?? '');
    const seq = numberOf(data['seq']) ?? 0;
    const oldest = session?.buffer[0]?.seq ?? 0;
    if (session === undefined || seq + 1 < oldest) {
      this.invalidSession(false);
      return;
    }
    if (seq > session.seq) {
      this.#refuse(CLOSE.BAD_SEQ);
      return;
    }
    session.connection?.reset();
    session.connection = this;
    session.brokenMs = undefined;
    this.#session = session;
    for (const entry of session.buffer) if (entry.seq > seq) this.sendText(entry.text);
    this.#gateway.emit(session, 'RESUMED', { _trace: [] });
    guild.changed('gateway', { connected: true });
  }

  #sendMembers(data: Json): void {
    const session = this.#session;
    if (session === undefined) {
      this.#refuse(CLOSE.NOT_AUTHENTICATED);
      return;
    }
    const { guild } = this.#gateway;
    this.#gateway.emit(session, 'GUILD_MEMBERS_CHUNK', {
      guild_id: guild.id,
      members: [...guild.members.keys()].map((id) => memberWithUserJson(guild, id)),
      chunk_index: 0,
      chunk_count: 1,
      not_found: [],
      ...(data['nonce'] === undefined ? {} : { nonce: data['nonce'] }),
    });
  }

  /** Op 7. */
  askReconnect(): void {
    this.#send({ t: null, s: null, op: 7, d: null });
  }

  /** Op 1 from the server. */
  askHeartbeat(): void {
    this.#send({ t: null, s: null, op: 1, d: null });
  }

  /** Op 9; without `resumable` the session is over. */
  invalidSession(resumable: boolean): void {
    if (!resumable && this.#session !== undefined) {
      this.#gateway.endSession(this.#session.id);
      this.#session = undefined;
    }
    this.#send({ t: null, s: null, op: 9, d: resumable });
  }

  /** Closes because of what the client did. */
  #refuse(code: number): void {
    if (this.#closed) return;
    const detail = `${code} ${REASONS[code] ?? ''}`.trim();
    this.#gateway.guild.violation('gateway-close', 'refused', 'gateway', detail);
    this.closeWith(code);
  }

  closeWith(code: number): void {
    if (this.#closed) return;
    // These end the session for good; after the others it can be resumed.
    if (
      code === 1000 ||
      code === 1001 ||
      [4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014].includes(code)
    )
      this.#endSession();
    this.#socket.close(code, REASONS[code] ?? '');
    this.#gone();
  }

  /** RST. */
  reset(): void {
    if (this.#closed) return;
    this.#socket.reset();
    this.#gone();
  }

  /** From now on neither hears nor speaks. */
  freeze(): void {
    this.isMute = true;
    this.#socket.freeze();
  }

  /** The client closed or vanished. */
  closedByPeer(code: number): void {
    if (this.#closed) return;
    if (code === 1000 || code === 1001) this.#endSession();
    this.#gone();
  }

  /** At the sandbox's end. */
  drop(): void {
    this.#socket.reset();
    this.#gone();
  }

  #endSession(): void {
    if (this.#session !== undefined) this.#gateway.endSession(this.#session.id);
  }

  #gone(): void {
    this.#closed = true;
    this.#heartbeat?.cancel();
    this.#gateway.connections.delete(this);
    const session = this.#session;
    if (session === undefined || session.connection !== this) return;
    session.connection = undefined;
    session.brokenMs = this.#gateway.guild.core.clock.wallMs();
    this.#gateway.guild.changed('gateway', { connected: false });
  }
}
