// The Slack adapter: the port in terms of the Web API and Socket Mode. It translates and classifies;
// it schedules, repeats and remembers nothing (the outbox does).

import { App } from '@slack/bolt';
import { Backoff } from '../../base/backoff.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import type {
  ChatPlatform,
  EditRequest,
  Found,
  Inbound,
  InboundFile,
  Outcome,
  Person,
  PlatformEvents,
  Posted,
  PostRequest,
  Reaction,
  RowName,
  ThreadRoot,
  UploadRequest,
} from '../chat-platform.ts';
import { fieldsOf, textField } from '../fields.ts';
import { PlatformClock } from '../platform-clock.ts';
import { slackBudget, slackMessage } from '../render/slack-format.ts';
import { catchUp, type Wanted } from './catch-up.ts';
import {
  type DecodeContext,
  type Decoded,
  decodeCommand,
  decodeEvent,
  decodeInteractive,
  isTs,
  METADATA_TYPE,
} from './decode.ts';
import { SlackFiles } from './files.ts';
import { findRow } from './find.ts';
import { SlackPeople } from './people.ts';
import { quietLogger } from './quiet-logger.ts';
import { SlackReceiver } from './receiver.ts';
import { ephemeralArgs, slackReply } from './reply.ts';
import type { Hello } from './socket.ts';
import { HTTP_TIMEOUT_MS, MISSHAPEN, observingFetch, SlackWeb } from './web.ts';

export interface SlackConfig {
  readonly botToken: string;
  readonly appToken: string;
  readonly teamId: string;
  readonly appId: string;
  /** `https://slack.com/api/`, or the sandbox's. */
  readonly apiUrl: string;
  /** User groups whose members have rights. */
  readonly groups: readonly string[];
}

export interface SlackOptions {
  readonly config: SlackConfig;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Default: the runtime's. */
  readonly fetch?: typeof fetch;
}

/** Who we are, as Slack says. */
interface Account {
  readonly botId: string;
  readonly botUserId: string;
  readonly workspaceUrl: string;
}

const EMOJI: Readonly<Record<Reaction, string>> = {
  written: 'white_check_mark',
  refused: 'no_entry_sign',
  unknown: 'question',
};
/** What is sent with every message: nothing in it is parsed, linked or unfurled. */
const INERT = { parse: 'none', link_names: false, unfurl_links: false, unfurl_media: false };
/** Status shows when something last arrived: this often it is brought up to date. */
const HEALTH_EVERY_MS = 10_000;
/** Two sockets of ours, and one that is being replaced. */
const OWN_SOCKETS_MAX = 3;

export class SlackPlatform implements ChatPlatform {
  readonly kind = 'slack';
  readonly budget = slackBudget;
  readonly identity: string;
  readonly repeatWindowMs = 0;

  readonly #config: SlackConfig;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #log: Log;
  readonly #fetch: typeof fetch;
  readonly #platformClock: PlatformClock;
  readonly #web: SlackWeb;
  readonly #people: SlackPeople;
  readonly #files: SlackFiles;
  readonly #stopping = new AbortController();
  #events: PlatformEvents | undefined;
  #account: Account | undefined;
  #receiver: SlackReceiver | undefined;
  #wasHealthy = false;
  #connectionsSeen: number | undefined;
  #fatalSaid = false;
  #health = { healthy: false, reason: 'starting' };
  #report: Timer | undefined;

  constructor(options: SlackOptions) {
    this.#config = options.config;
    this.identity = options.config.teamId;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#log = options.log;
    this.#fetch = options.fetch ?? fetch;
    this.#platformClock = new PlatformClock(options.clock);
    this.#web = new SlackWeb({
      botToken: options.config.botToken,
      apiUrl: options.config.apiUrl,
      clock: this.#platformClock,
      fetch: this.#fetch,
      onCredentials: (code) => this.#fatal(`Slack refuses the bot token: ${code}`),
    });
    const call = this.#web.call.bind(this.#web);
    this.#people = new SlackPeople({
      call,
      clock: options.clock,
      log: options.log,
      groups: options.config.groups,
    });
    this.#files = new SlackFiles({
      call,
      clock: options.clock,
      fetch: this.#fetch,
      botToken: options.config.botToken,
      apiUrl: options.config.apiUrl,
      signal: this.#stopping.signal,
    });
  }

  async start(events: PlatformEvents): Promise<void> {
    this.#events = events;
    this.#reportHealth();
    this.#logIn().catch((error: unknown) => {
      if (!this.#stopping.signal.aborted) this.#fatal(`cannot start: ${errorText(error)}`);
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#events = undefined;
    this.#report?.cancel();
    await this.#receiver?.stop();
  }

  /** For an unhandled rejection that came out of the SDK: new clients instead of the old ones. */
  rebuild(reason: string): void {
    this.#receiver?.rebuild(reason);
  }

  /** Asks who we are until Slack says so, then opens the sockets. */
  async #logIn(): Promise<void> {
    const backoff = new Backoff({ initialMs: 1_000, maxMs: 30_000, factor: 2 }, this.#random);
    for (;;) {
      const answer = await this.#web.call('auth.test', {});
      if (this.#stopping.signal.aborted || this.#fatalSaid) return;
      if (answer.kind === 'ok') {
        const account = this.#accountOf(answer.value);
        if (account !== undefined) await this.#connect(account);
        return;
      }
      this.#sayHealth(false, `Slack does not answer: ${answer.detail}`);
      const waitMs = answer.kind === 'refused' ? (answer.retryAfterMs ?? 0) : 0;
      await this.#clock.sleep(Math.max(backoff.nextMs(), waitMs), this.#stopping.signal);
    }
  }

  #accountOf(answer: Readonly<Record<string, unknown>>): Account | undefined {
    const teamId = textField(answer, 'team_id');
    const botId = textField(answer, 'bot_id');
    const botUserId = textField(answer, 'user_id');
    if (teamId !== this.#config.teamId) {
      this.#fatal(
        `wrong account: the bot token is of team ${teamId ?? '?'}, the configuration names ${this.#config.teamId}`,
      );
      return undefined;
    }
    if (botId === undefined || botUserId === undefined) {
      this.#fatal('wrong account: the bot token is not a bot token (xoxb-)');
      return undefined;
    }
    return { botId, botUserId, workspaceUrl: textField(answer, 'url') ?? 'https://slack.com/' };
  }

  async #connect(account: Account): Promise<void> {
    this.#account = account;
    await this.#people.refreshGroups();
    const receiver = new SlackReceiver({
      socket: {
        appToken: this.#config.appToken,
        apiUrl: this.#config.apiUrl,
        fetch: observingFetch(this.#fetch, this.#platformClock),
        clock: this.#clock,
        onHello: (hello) => this.#hello(hello),
      },
      clock: this.#clock,
      random: this.#random,
      log: this.#log,
      warm: async (userId) => {
        await this.#people.refreshGroups();
        await this.#people.lookUp(userId);
      },
      onState: () => this.#judge(),
    });
    this.#receiver = receiver;
    const app = new App({
      receiver,
      // Both ids given: Bolt asks nobody who we are, so that no failure of that is cached (S17).
      authorize: async () => ({
        botToken: this.#config.botToken,
        botId: account.botId,
        botUserId: account.botUserId,
      }),
      logger: quietLogger,
      // Own messages are wanted: they heal duplicates.
      ignoreSelf: false,
      convoStore: false,
      clientOptions: { retryConfig: { retries: 0 }, rejectRateLimitedCalls: true },
    });
    this.#listen(app);
    if (!this.#stopping.signal.aborted) await app.start();
  }

  #listen(app: App): void {
    app.error(async (error) => {
      // Back to the receiver: what was not claimed is not acknowledged.
      throw error;
    });
    app.event(/.*/, async ({ body, context }) => {
      this.#aside(fieldsOf(fieldsOf(body)['event']));
      await this.#claim(decodeEvent(body, this.#context(context)), {});
    });
    app.action(/.*/, async ({ body, context, ack }) => {
      await this.#claim(decodeInteractive(body, this.#context(context)), fieldsOf(body));
      await ack();
    });
    app.view(/.*/, async ({ body, context, ack }) => {
      await this.#claim(decodeInteractive(body, this.#context(context)), fieldsOf(body));
      await ack();
    });
    app.command(/.*/, async ({ body, context, ack }) => {
      await this.#claim(decodeCommand(body, this.#context(context)), fieldsOf(body));
      await ack();
    });
  }

  /** Events that change what we know instead of being somebody's act. */
  #aside(event: Readonly<Record<string, unknown>>): void {
    switch (event['type']) {
      case 'tokens_revoked':
      case 'app_uninstalled':
        this.#fatal(`Slack says: ${event['type']}`);
        break;
      case 'user_change':
        this.#people.forget(textField(fieldsOf(event['user']), 'id') ?? '');
        break;
      case 'subteam_updated':
      case 'subteam_members_changed':
        this.#people.groupsChanged();
        break;
      default:
    }
  }

  async #claim(
    decoded: Decoded | undefined,
    body: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    if (decoded === undefined) return;
    await this.#events?.inbound(this.#answerable(decoded, body));
  }

  #answerable(decoded: Decoded, body: Readonly<Record<string, unknown>>): Inbound {
    switch (decoded.kind) {
      case 'action':
      case 'command':
      case 'modal':
        return {
          ...decoded,
          reply: slackReply({
            call: this.#web.call.bind(this.#web),
            place: decoded.place,
            personId: decoded.author.id,
            triggerId: textField(body, 'trigger_id'),
            responseUrl: textField(body, 'response_url'),
            respond: (url, answer) => this.#respond(url, answer),
          }),
        };
      default:
        return decoded;
    }
  }

  async #respond(url: string, body: Record<string, unknown>): Promise<boolean> {
    try {
      const response = await this.#fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        redirect: 'error',
        signal: AbortSignal.timeout(HTTP_TIMEOUT_MS),
      });
      await response.text();
      return response.status === 200;
    } catch {
      return false;
    }
  }

  #context(custom: Readonly<Record<string, unknown>> | undefined): DecodeContext {
    const receivedAt = custom?.['receivedAtMonotonicMs'];
    return {
      teamId: this.#config.teamId,
      botId: this.#account?.botId ?? '',
      botUserId: this.#account?.botUserId ?? '',
      receivedAtMonotonicMs:
        typeof receivedAt === 'number' ? receivedAt : this.#clock.monotonicMs(),
      platformNowMs: this.#platformClock.nowMs(),
      caughtUp: custom === undefined,
      nameOf: (id) => this.#people.nameOf(id),
      rolesOf: (id) => this.#people.rolesOf(id),
    };
  }

  #hello(hello: Hello): string | undefined {
    this.#connectionsSeen = hello.connectionCount;
    if (hello.appId !== undefined && hello.appId !== this.#config.appId) {
      return `wrong account: the app token is of app ${hello.appId}, the configuration names ${this.#config.appId}`;
    }
    return undefined;
  }

  #judge(): void {
    const states = this.#receiver?.states ?? [];
    const fatal = states.find((state) => state.kind === 'fatal');
    if (fatal?.kind === 'fatal') {
      this.#fatal(fatal.reason);
      return;
    }
    const healthy = states.some((state) => state.kind === 'up');
    const waiting = states.find((state) => state.kind === 'waiting' || state.kind === 'connecting');
    const down = waiting !== undefined && 'reason' in waiting ? waiting.reason : 'stopped';
    this.#sayHealth(healthy, healthy ? this.#upReason() : down);
    if (healthy && !this.#wasHealthy) this.#events?.connected();
    this.#wasHealthy = healthy;
  }

  #upReason(): string {
    const seen = this.#connectionsSeen ?? 0;
    if (seen <= OWN_SOCKETS_MAX) return 'connected';
    return `connected, but Slack counts ${seen} sockets: another program may use this app token and take events away`;
  }

  #reportHealth(): void {
    this.#report = this.#clock.timer(HEALTH_EVERY_MS, () => {
      this.#sayHealth(this.#health.healthy, this.#health.reason);
      this.#reportHealth();
    });
    this.#report.unref();
  }

  #sayHealth(healthy: boolean, reason: string): void {
    this.#health = { healthy, reason };
    this.#events?.health({
      healthy,
      reason,
      lastEventAtMonotonicMs: this.#receiver?.lastTrafficMs ?? 0,
      ...(this.#connectionsSeen === undefined ? {} : { connectionsSeen: this.#connectionsSeen }),
    });
  }

  #fatal(reason: string): void {
    if (this.#fatalSaid) return;
    this.#fatalSaid = true;
    this.#log.error('slack.refused', { reason });
    this.#sayHealth(false, reason);
    this.#events?.fatal(reason);
    this.#receiver?.stop().catch(() => undefined);
  }

  async postRoot(
    request: PostRequest,
    _title: string,
  ): Promise<Outcome<{ messageId: string; root: ThreadRoot }>> {
    const posted = await this.post({ ...request, place: { ...request.place, root: '' } });
    if (posted.kind !== 'ok') return posted;
    const { messageId } = posted.value;
    return { kind: 'ok', value: { messageId, root: { ...request.place, root: messageId } } };
  }

  async post(request: PostRequest): Promise<Outcome<Posted>> {
    const { place } = request;
    const answer = await this.#web.call('chat.postMessage', {
      channel: place.channel,
      ...(place.root === '' ? {} : { thread_ts: place.root, reply_broadcast: false }),
      ...slackMessage(request.content),
      metadata: metadataOf(request.row),
      ...INERT,
    });
    return postedOf(answer);
  }

  async edit(request: EditRequest): Promise<Outcome<Posted>> {
    const answer = await this.#web.call('chat.update', {
      channel: request.place.channel,
      ts: request.messageId,
      ...slackMessage(request.content),
      metadata: metadataOf(request.row),
      parse: INERT.parse,
      link_names: INERT.link_names,
    });
    return postedOf(answer);
  }

  async delete(place: ThreadRoot, messageId: string): Promise<Outcome<void>> {
    const args = { channel: place.channel, ts: messageId };
    return nothingOf(await this.#web.call('chat.delete', args));
  }

  async findPosted(request: {
    place: ThreadRoot;
    row: RowName;
    anchor: string | undefined;
    sentAtPlatformMs: number;
    knownIds: ReadonlySet<string>;
  }): Promise<Found> {
    if (this.#account === undefined) return { kind: 'unknown', detail: 'not logged in yet' };
    return await findRow(request, this.#account, this.#web.call.bind(this.#web));
  }

  async upload(
    request: UploadRequest,
    known: (fileId: string) => Promise<void>,
  ): Promise<Outcome<Posted>> {
    return await this.#files.upload(request, known);
  }

  async findUpload(place: ThreadRoot, fileId: string): Promise<Found> {
    return await this.#files.find(place, fileId);
  }

  async discardUpload(fileId: string): Promise<Outcome<void>> {
    return await this.#files.discard(fileId);
  }

  async react(
    place: ThreadRoot,
    messageId: string,
    reaction: Reaction,
    on: boolean,
  ): Promise<Outcome<void>> {
    const answer = await this.#web.call(on ? 'reactions.add' : 'reactions.remove', {
      channel: place.channel,
      timestamp: messageId,
      name: EMOJI[reaction],
    });
    const isSo = answer.kind === 'refused' && /^(already_reacted|no_reaction)$/.test(answer.detail);
    return isSo ? { kind: 'ok', value: undefined } : nothingOf(answer);
  }

  async whisper(place: ThreadRoot, personId: string, text: string): Promise<Outcome<void>> {
    const args = ephemeralArgs(place, personId, text);
    return nothingOf(await this.#web.call('chat.postEphemeral', args));
  }

  async download(file: InboundFile, maxBytes: number): Promise<Outcome<Uint8Array>> {
    return await this.#files.download(file, maxBytes);
  }

  async catchUp(places: readonly Wanted[]): Promise<Outcome<readonly Inbound[]>> {
    if (this.#account === undefined) {
      return { kind: 'refused', because: 'not-sent', detail: 'not logged in yet' };
    }
    return await catchUp(places, {
      read: this.#web.call.bind(this.#web),
      clock: this.#clock,
      context: this.#context(undefined),
      signal: this.#stopping.signal,
      warm: async (ids) => {
        // Names of the first few people; the others go by id rather than hold everything up.
        for (const id of ids.slice(0, 20)) await this.#people.lookUp(id);
      },
    });
  }

  async proveRoot(place: ThreadRoot): Promise<Outcome<{ readonly root: ThreadRoot }>> {
    if (!isTs(place.root)) return { kind: 'refused', because: 'invalid', detail: 'not a ts' };
    const info = await this.#web.call('conversations.info', { channel: place.channel });
    if (info.kind !== 'ok') return info;
    const channel = fieldsOf(info.value['channel']);
    if (channel['is_archived'] === true) {
      return { kind: 'refused', because: 'archived', detail: 'is_archived' };
    }
    if (channel['is_member'] !== true) {
      return { kind: 'refused', because: 'not-permitted', detail: 'not_in_channel' };
    }
    const args = { channel: place.channel, ts: place.root, limit: 1 };
    const thread = await this.#web.call('conversations.replies', args);
    if (thread.kind !== 'ok') return thread;
    const messages = thread.value['messages'];
    const first = fieldsOf(Array.isArray(messages) ? messages[0] : undefined);
    // Asked with a reply, Slack answers with the thread it is in, or with the reply alone.
    const root = textField(first, 'thread_ts') ?? textField(first, 'ts');
    if (root === undefined) {
      return { kind: 'refused', because: 'place-gone', detail: 'thread_not_found' };
    }
    return { kind: 'ok', value: { root: { ...place, space: this.#config.teamId, root } } };
  }

  /** Threads of Slack are not archived, and a channel is brought back by people alone. */
  async unarchive(_place: ThreadRoot): Promise<Outcome<void>> {
    return { kind: 'refused', because: 'not-permitted', detail: 'Slack has no archived threads' };
  }

  async person(id: string): Promise<Person | undefined> {
    await this.#people.refreshGroups();
    return await this.#people.lookUp(id);
  }

  linkOf(place: ThreadRoot): string {
    const workspace = this.#account?.workspaceUrl ?? 'https://slack.com/';
    const channel = `${workspace}archives/${place.channel}`;
    return place.root === '' ? channel : `${channel}/p${place.root.replace('.', '')}`;
  }

  clockSkewMs(): number | undefined {
    return this.#platformClock.skewMs();
  }
}

function metadataOf(row: RowName): Record<string, unknown> {
  return { event_type: METADATA_TYPE, event_payload: { b: row.b, s: row.s } };
}

function postedOf(answer: Outcome<Readonly<Record<string, unknown>>>): Outcome<Posted> {
  if (answer.kind !== 'ok') return answer;
  const messageId = textField(answer.value, 'ts');
  return messageId === undefined ? MISSHAPEN : { kind: 'ok', value: { messageId } };
}

function nothingOf(answer: Outcome<unknown>): Outcome<void> {
  return answer.kind === 'ok' ? { kind: 'ok', value: undefined } : answer;
}
