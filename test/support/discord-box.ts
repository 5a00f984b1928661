// A sandbox with its Discord half, and the clients tests drive it with: the real discord.js, plain
// fetch, plain WebSocket.

import { Client, GatewayIntentBits, Options } from 'discord.js';
import { WebSocket } from 'ws';
import { seededRandom } from '../../src/base/random.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import type { ShownMessage } from '../../src/sandbox/discord/readback.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';

/** The `id` of anything that has one. */
export function idOf(value: unknown): string {
  const id = (value as { id?: unknown } | null)?.id;
  if (typeof id !== 'string') throw new Error(`No id in ${JSON.stringify(value)}`);
  return id;
}

export interface Info {
  readonly token: string;
  readonly applicationId: string;
  readonly guildId: string;
  readonly apiUrl: string;
  readonly channels: Readonly<Record<string, string>>;
  readonly users: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: unknown;
}

export class DiscordBox {
  readonly sandbox: Sandbox;
  readonly info: Info;
  readonly #clients: Client[] = [];
  readonly #sockets: WebSocket[] = [];

  private constructor(sandbox: Sandbox, info: Info) {
    this.sandbox = sandbox;
    this.info = info;
  }

  static async start(
    options: { readonly timeScale?: number; readonly seed?: number } = {},
  ): Promise<DiscordBox> {
    const sandbox = await startSandbox({
      clock: systemClock,
      random: seededRandom(options.seed ?? 7),
      ...(options.timeScale === undefined ? {} : { timeScale: options.timeScale }),
    });
    return new DiscordBox(sandbox, (await sandbox.control('discord/info')) as Info);
  }

  get ops(): string {
    return this.info.channels['ops'] ?? '';
  }

  user(name: string): string {
    return this.info.users[name] ?? '';
  }

  /** A control call whose result the test does not look at, or looks at with a matcher. */
  async control(name: string, body: object = {}): Promise<unknown> {
    return this.sandbox.control(`discord/${name}`, body);
  }

  /** Types as a person and returns the message's id. */
  async typed(user: string, channel: string, text: string): Promise<string> {
    return idOf(await this.control('type', { user, channel, text }));
  }

  /** The messages of a channel or thread, as `viewer` sees them. */
  async messages(id: string, viewer?: string): Promise<readonly ShownMessage[]> {
    const body = viewer === undefined ? { id } : { id, viewer };
    const read = (await this.control('thread', body)) as { messages: readonly ShownMessage[] };
    return read.messages;
  }

  rules(): readonly string[] {
    return this.sandbox.core.violations.list().map((entry) => entry.rule);
  }

  /** discord.js as chatd sets it up: no retries, no waiting in its queues. */
  client(
    changes: ConstructorParameters<typeof Client>[0] extends infer T ? Partial<T> : never = {},
  ): Client {
    const client = new Client({
      intents: [
        GatewayIntentBits.Guilds,
        GatewayIntentBits.GuildMessages,
        GatewayIntentBits.MessageContent,
        GatewayIntentBits.GuildMessageReactions,
      ],
      enforceNonce: true,
      allowedMentions: { parse: [], repliedUser: false },
      makeCache: Options.cacheEverything(),
      rest: { api: this.info.apiUrl, timeout: 15_000, retries: 0, rejectOnRateLimit: () => true },
      ...changes,
    });
    client.on('error', () => undefined);
    client.on('shardError', () => undefined);
    this.#clients.push(client);
    return client;
  }

  async loggedIn(changes: Parameters<DiscordBox['client']>[0] = {}): Promise<Client<true>> {
    const client = this.client(changes);
    const ready = new Promise<void>((resolve) => client.once('clientReady', () => resolve()));
    await client.login(this.info.token);
    await ready;
    return client as Client<true>;
  }

  /** One REST call as the bot. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const isForm = body instanceof FormData;
    const response = await fetch(`${this.info.apiUrl}/v10${path}`, {
      method,
      headers: {
        authorization: `Bot ${this.info.token}`,
        'user-agent': 'DiscordBot (https://example.com, 1.0)',
        ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const type = response.headers.get('content-type') ?? '';
    const json: unknown = type.includes('json') ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, json };
  }

  /** A plain gateway socket that keeps every frame. */
  async gateway(path = '/discord-gateway/?v=10&encoding=json'): Promise<RawGateway> {
    const socket = new WebSocket(`${this.sandbox.url.replace('http', 'ws')}${path}`);
    this.#sockets.push(socket);
    const raw = new RawGateway(socket);
    await raw.opened;
    return raw;
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.destroy().catch(() => undefined);
    for (const socket of this.#sockets) socket.terminate();
    await this.sandbox.close();
  }
}

export interface Frame {
  readonly op: number;
  readonly t: string | null;
  readonly s: number | null;
  readonly d: unknown;
}

export class RawGateway {
  readonly socket: WebSocket;
  readonly frames: Frame[] = [];
  readonly opened: Promise<void>;
  closeCode: number | undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    this.opened = new Promise((resolve, reject) => {
      socket.once('open', () => resolve());
      socket.once('error', reject);
    });
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer) =>
      this.frames.push(JSON.parse(data.toString('utf8')) as Frame),
    );
    socket.on('close', (code) => {
      this.closeCode = code;
    });
  }

  send(op: number, d: unknown): void {
    this.socket.send(JSON.stringify({ op, d }));
  }

  identify(token: string, intents = 1 + 512 + 1024 + 32_768): void {
    this.send(2, {
      token,
      intents,
      properties: { os: 'linux', browser: 'test', device: 'test' },
      shard: [0, 1],
    });
  }

  async event(name: string): Promise<Frame> {
    return until(() => this.frames.find((frame) => frame.t === name), `event ${name}`);
  }

  async op(op: number): Promise<Frame> {
    return until(() => this.frames.find((frame) => frame.op === op), `op ${op}`);
  }

  closed(): Promise<number> {
    return until(() => this.closeCode, 'close');
  }
}

/** Waits for a fact with a deadline. */
export async function until<T>(
  look: () => T | undefined | Promise<T | undefined>,
  what: string,
  deadlineMs = 30_000,
): Promise<NonNullable<T>> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found as NonNullable<T>;
    if (performance.now() > endMs) throw new Error(`Did not happen in ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
