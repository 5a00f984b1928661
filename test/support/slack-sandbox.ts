// A sandbox in this process, a raw caller of its Web API, and a real Bolt app, for tests.

import { App, SocketModeReceiver } from '@slack/bolt';
import { type LogLevel, WebClient } from '@slack/web-api';
import { WebSocket } from 'ws';
import { seededRandom } from '../../src/base/random.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.ts';

/** Started sandboxes and apps, to be ended after each test. */
export class SlackBench {
  readonly #endings: (() => unknown)[] = [];

  async sandbox(options: Partial<SandboxOptions> = {}): Promise<Sandbox> {
    const sandbox = await startSandbox({
      clock: systemClock,
      random: seededRandom(7),
      ...options,
    });
    this.#endings.push(() => sandbox.close());
    return sandbox;
  }

  client(sandbox: Sandbox): WebClient {
    return new WebClient(sandbox.slack.botToken, {
      slackApiUrl: sandbox.slack.apiUrl,
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      logLevel: 'error' as LogLevel,
    });
  }

  /** An unmodified Bolt app over Socket Mode; start it yourself. */
  bolt(sandbox: Sandbox): App {
    const { apiUrl, appToken, botId, botToken, botUserId } = sandbox.slack;
    const receiver = new SocketModeReceiver({
      appToken,
      logLevel: 'error' as LogLevel,
      clientPingTimeout: 20_000,
      serverPingTimeout: 60_000,
      installerOptions: {
        clientOptions: {
          slackApiUrl: apiUrl,
          timeout: 15_000,
          retryConfig: { forever: true, minTimeout: 1_000, maxTimeout: 10_000, factor: 1.5 },
        },
      },
    });
    const app = new App({
      token: botToken,
      receiver,
      botId,
      botUserId,
      logLevel: 'error' as LogLevel,
      clientOptions: {
        slackApiUrl: apiUrl,
        timeout: 15_000,
        rejectRateLimitedCalls: true,
        retryConfig: { retries: 0 },
      },
    });
    this.#endings.push(() => app.stop());
    return app;
  }

  /** Something else to end, in reverse order with the rest. */
  after(ending: () => unknown): void {
    this.#endings.push(ending);
  }

  async close(): Promise<void> {
    for (const ending of this.#endings.splice(0).reverse()) await ending();
  }
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

/** One form POST with the bot's token; values that are no text go as JSON, as the SDK sends them. */
export async function callApi(
  sandbox: Sandbox,
  method: string,
  args: Record<string, unknown> = {},
  token: string | null = sandbox.slack.botToken,
): Promise<ApiAnswer> {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(args))
    form.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  const response = await fetch(`${sandbox.slack.apiUrl}${method}`, {
    method: 'POST',
    headers: token === null ? {} : { authorization: `Bearer ${token}` },
    body: form,
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: parsed(text) };
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { unparsed: text };
  }
}

/** Waits for a fact, with a deadline far above what it takes. */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  deadlineMs = 30_000,
): Promise<T> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`not seen in ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export interface Envelope {
  readonly type: string;
  readonly envelope_id?: string;
  readonly reason?: string;
  readonly num_connections?: number;
  readonly retry_attempt?: number;
  readonly retry_reason?: string;
  readonly accepts_response_payload?: boolean;
  readonly payload?: Record<string, unknown> & { readonly event?: Record<string, unknown> };
}

/** A hand-held Socket Mode connection: shows every frame, acknowledges only when told to. */
export class RawSocket {
  readonly frames: Envelope[] = [];
  readonly pings: string[] = [];
  readonly pongs: string[] = [];
  readonly socket: WebSocket;
  closed: { code: number } | undefined;
  ackAll = true;

  private constructor(url: string) {
    this.socket = new WebSocket(url);
    this.socket.on('message', (data: Buffer) => {
      const frame = JSON.parse(data.toString('utf8')) as Envelope;
      this.frames.push(frame);
      if (this.ackAll && frame.envelope_id !== undefined) this.ack(frame);
    });
    this.socket.on('ping', (data) => this.pings.push(data.toString()));
    this.socket.on('pong', (data) => this.pongs.push(data.toString()));
    this.socket.on('close', (code) => {
      this.closed = { code };
    });
    this.socket.on('error', () => undefined);
  }

  static async open(bench: SlackBench, sandbox: Sandbox, more = ''): Promise<RawSocket> {
    const { body } = await callApi(sandbox, 'apps.connections.open', {}, sandbox.slack.appToken);
    const raw = new RawSocket(`${String(body['url'])}${more}`);
    bench.after(() => raw.socket.terminate());
    return raw;
  }

  /** Opened and greeted. */
  static async ready(bench: SlackBench, sandbox: Sandbox, more = ''): Promise<RawSocket> {
    const raw = await RawSocket.open(bench, sandbox, more);
    await until('hello', () => raw.frames.some((frame) => frame.type === 'hello'));
    return raw;
  }

  ack(frame: Envelope, payload: Record<string, unknown> = {}): void {
    this.socket.send(JSON.stringify({ envelope_id: frame.envelope_id, payload }));
  }

  get envelopes(): readonly Envelope[] {
    return this.frames.filter((frame) => frame.envelope_id !== undefined);
  }

  /** Events of Events API envelopes, in order of arrival. */
  get events(): readonly Record<string, unknown>[] {
    return this.envelopes.flatMap((frame) => {
      const event = frame.payload?.event;
      return event === undefined ? [] : [event];
    });
  }
}
