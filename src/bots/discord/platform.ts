// The Discord adapter: the port in terms of REST and the gateway. It translates and classifies; it
// schedules, repeats and remembers nothing (the outbox does).

import type { Clock, Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { Mailbox } from '../../base/mailbox.ts';
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
import { ConnectionSupervisor } from '../connection-supervisor.ts';
import { type Fields, fieldsOf, listField, textField } from '../fields.ts';
import { PlatformClock } from '../platform-clock.ts';
import { RecentMap } from '../recent-map.ts';
import { discordBudget, discordMessage, discordPlain } from '../render/discord-format.ts';
import { isRegistered, TERM_COMMAND } from './commands.ts';
import { isBlank, nonceOf, personOf, SILENT_FLAG } from './decode.ts';
import { type Dispatched, Dispatcher } from './dispatch.ts';
import { downloadAttachment } from './files.ts';
import { type Meaning, openGateway } from './gateway.ts';
import { Interaction } from './interaction.ts';
import { catchUp, channelOf, findUnclaimed } from './messages.ts';
import { Places } from './places.ts';
import { DiscordRest } from './rest.ts';
import { openThread, proveThread } from './threads.ts';

export interface DiscordConfig {
  readonly token: string;
  readonly applicationId: string;
  readonly guildId: string;
  /** `https://discord.com/api`, or the sandbox's. */
  readonly apiUrl: string;
}

export interface DiscordOptions {
  readonly config: DiscordConfig;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Discord's limit for everything a bot asks: 50, unless Discord granted more. */
  readonly requestsPerSecond?: number;
  /** For attachments. Default: the runtime's. */
  readonly fetch?: typeof fetch;
}

const EMOJI: Readonly<Record<Reaction, string>> = {
  written: '✅',
  refused: '🚫',
  unknown: '❓',
};
/** Dispatches waiting for their turn. One more is dropped, and everything is caught up by REST. */
const WAITING_MAX = 1_000;
/** A claim that takes longer no longer holds up those behind it. */
const CLAIM_WAIT_MS = 2_000;
const HELLO_WITHIN_MS = 30_000;
/** Heartbeats come every 41 s. */
const SILENCE_MS = 120_000;
const OPEN_GAP_MS = 5_000;
/** Status shows when something last arrived: this often it is brought up to date. */
const HEALTH_EVERY_MS = 10_000;
/** "The past few minutes", says Discord; two of them are trusted. */
const NONCE_WINDOW_MS = 120_000;
const REQUESTS_PER_SECOND = 50;
const MEMBERS_MAX = 2_000;
const MEMBER_KNOWN_MS = 60_000;

/** Dispatches that are acts of people or changes of places; all others only teach. */
const HANDLED = new Set([
  'MESSAGE_CREATE',
  'MESSAGE_DELETE',
  'MESSAGE_DELETE_BULK',
  'INTERACTION_CREATE',
  'THREAD_CREATE',
  'THREAD_UPDATE',
  'THREAD_DELETE',
  'CHANNEL_DELETE',
]);

export class DiscordPlatform implements ChatPlatform {
  readonly kind = 'discord';
  readonly budget = discordBudget;
  readonly identity: string;
  readonly repeatWindowMs = NONCE_WINDOW_MS;

  readonly #config: DiscordConfig;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #fetch: typeof fetch;
  readonly #platformClock: PlatformClock;
  readonly #rest: DiscordRest;
  readonly #places: Places;
  readonly #dispatcher: Dispatcher;
  readonly #line: Mailbox<Dispatched>;
  readonly #gateway: ConnectionSupervisor;
  readonly #members: RecentMap<string, Person | 'unknown'>;
  readonly #stopping = new AbortController();
  #events: PlatformEvents | undefined;
  #ourUserId = '';
  #wasUp = false;
  #dropped = false;
  #blankSeen = false;
  #guildMissing = false;
  #fatalSaid = false;
  #registered = false;
  #health = { healthy: false, reason: 'starting' };
  #report: Timer | undefined;

  constructor(options: DiscordOptions) {
    const { clock, config, log, random } = options;
    this.#config = config;
    this.identity = config.guildId;
    this.#clock = clock;
    this.#log = log;
    this.#fetch = options.fetch ?? fetch;
    this.#platformClock = new PlatformClock(clock);
    this.#places = new Places(clock);
    this.#members = new RecentMap({ clock, capacity: MEMBERS_MAX, ttlMs: MEMBER_KNOWN_MS });
    this.#rest = new DiscordRest({
      token: config.token,
      apiUrl: config.apiUrl,
      clock,
      platformClock: this.#platformClock,
      requestsPerSecond: options.requestsPerSecond ?? REQUESTS_PER_SECOND,
      onCredentials: () => this.#fatal('Discord refuses the bot token'),
    });
    this.#dispatcher = new Dispatcher({
      guildId: config.guildId,
      places: this.#places,
      rest: this.#rest,
      clock,
      inbound: (event) => this.#claim(event),
    });
    this.#line = new Mailbox({
      capacity: WAITING_MAX,
      handle: (dispatched) => this.#handle(dispatched),
      onError: (error) => log.error('discord-event.failed', { reason: errorText(error) }),
    });
    this.#gateway = new ConnectionSupervisor({
      name: 'discord',
      clock,
      random,
      log,
      open: (hooks) =>
        openGateway(
          {
            token: config.token,
            apiUrl: config.apiUrl,
            clock,
            platformClock: this.#platformClock,
            log,
            rest: this.#rest,
            onDispatch: (type, data) => this.#dispatch(type, data),
          },
          hooks,
        ),
      readyWithinMs: HELLO_WITHIN_MS,
      silenceMs: SILENCE_MS,
      openGapMs: OPEN_GAP_MS,
      backoff: { initialMs: 1_000, maxMs: 60_000, factor: 2 },
      onState: () => this.#judge(),
    });
  }

  async start(events: PlatformEvents): Promise<void> {
    this.#events = events;
    this.#reportHealth();
    this.#gateway.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#events = undefined;
    this.#report?.cancel();
    this.#gateway.stop();
  }

  /** For an unhandled rejection that came out of the SDK: a new client instead of the old one. */
  rebuild(reason: string): void {
    this.#gateway.rebuild(reason);
  }

  #dispatch(type: string, data: Fields): Meaning {
    if (type === 'READY') return this.#ready(data);
    if (type === 'RESUMED') return 'ready';
    const guildId = type.startsWith('GUILD_')
      ? (textField(data, 'id') ?? textField(data, 'guild_id'))
      : textField(data, 'guild_id');
    if (guildId !== this.#config.guildId) return 'nothing';
    this.#dispatcher.learn(type, data);
    if (type === 'GUILD_CREATE') {
      this.#guildMissing = false;
      return 'ready';
    }
    if (type === 'GUILD_DELETE' && data['unavailable'] !== true) {
      this.#guildMissing = true;
      this.#judge();
    }
    if (type === 'GUILD_MEMBER_UPDATE' || type === 'GUILD_ROLE_DELETE') this.#members.clear();
    if (HANDLED.has(type)) this.#arrive(type, data);
    return 'nothing';
  }

  /** Ready is when the guild has come too: only then are its threads known. */
  #ready(data: Fields): Meaning {
    const applicationId = textField(fieldsOf(data['application']), 'id');
    if (applicationId !== this.#config.applicationId) {
      return {
        stranger: `wrong account: the token is of application ${applicationId ?? '?'}, the configuration names ${this.#config.applicationId}`,
      };
    }
    this.#ourUserId = textField(fieldsOf(data['user']), 'id') ?? '';
    this.#places.clear();
    this.#registerCommand();
    const guilds = listField(data, 'guilds').map((guild) => textField(fieldsOf(guild), 'id'));
    this.#guildMissing = !guilds.includes(this.#config.guildId);
    return this.#guildMissing ? 'ready' : 'nothing';
  }

  #arrive(type: string, data: Fields): void {
    if (type === 'MESSAGE_CREATE') this.#watchContent(data);
    const interaction =
      type === 'INTERACTION_CREATE'
        ? new Interaction({
            payload: data,
            applicationId: this.#config.applicationId,
            call: this.#rest.call.bind(this.#rest),
            clock: this.#clock,
            log: this.#log,
          })
        : undefined;
    const taken = this.#line.post({
      type,
      data,
      receivedAtMonotonicMs: this.#clock.monotonicMs(),
      ourUserId: this.#ourUserId,
      interaction,
    });
    if (taken) return;
    if (!this.#dropped) this.#log.warn('discord-event.dropped', { waiting: WAITING_MAX });
    this.#dropped = true;
  }

  /** Without the intent messages arrive empty: said once, until one with content arrives. */
  #watchContent(message: Fields): void {
    const isOurs = textField(fieldsOf(message['author']), 'id') === this.#ourUserId;
    const content = textField(message, 'content') ?? '';
    const blank = isBlank(message);
    if (isOurs || (!blank && content === '') || blank === this.#blankSeen) return;
    // A message that mentions us has its content even without the intent.
    if (!blank && content.includes(this.#ourUserId)) return;
    this.#blankSeen = blank;
    this.#judge();
  }

  async #handle(dispatched: Dispatched): Promise<void> {
    await this.#dispatcher.handle(dispatched);
    if (this.#dropped && this.#line.length === 0) {
      this.#dropped = false;
      this.#events?.connected();
    }
  }

  /** Waits for the claim, so that acts are claimed in order; not for ever. */
  async #claim(event: Inbound): Promise<void> {
    const limit = new AbortController();
    const claimed = this.#events?.inbound(event).catch((error: unknown) => {
      this.#log.warn('discord-event.not-claimed', { kind: event.kind, reason: errorText(error) });
    });
    await Promise.race([
      claimed,
      this.#clock.sleep(CLAIM_WAIT_MS, limit.signal).catch(() => undefined),
    ]);
    limit.abort();
  }

  #judge(): void {
    const { state } = this.#gateway;
    if (state.kind === 'fatal') {
      this.#fatal(state.reason);
      return;
    }
    const up = state.kind === 'up';
    this.#sayHealth(up && !this.#blankSeen && !this.#guildMissing, this.#reason());
    if (up && !this.#wasUp) this.#events?.connected();
    this.#wasUp = up;
  }

  #reason(): string {
    const { state } = this.#gateway;
    if (state.kind === 'stopped') return 'stopped';
    if (state.kind !== 'up') return state.reason;
    if (this.#guildMissing) return `the bot is not in guild ${this.#config.guildId}: invite it`;
    return this.#blankSeen ? 'MESSAGE_CONTENT intent missing: messages arrive empty' : 'connected';
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
      lastEventAtMonotonicMs: this.#gateway.lastTrafficMs,
    });
  }

  #fatal(reason: string): void {
    if (this.#fatalSaid) return;
    this.#fatalSaid = true;
    this.#log.error('discord.refused', { reason });
    this.#sayHealth(false, reason);
    this.#events?.fatal(reason);
    this.#gateway.stop();
  }

  #registerCommand(): void {
    if (this.#registered) return;
    this.#registered = true;
    this.#register().catch(() => undefined);
  }

  async #register(): Promise<void> {
    const { applicationId, guildId } = this.#config;
    const route = `/applications/${applicationId}/guilds/${guildId}/commands` as const;
    const existing = await this.#rest.list(route);
    if (existing.kind === 'ok' && isRegistered(existing.value, TERM_COMMAND)) return;
    const outcome =
      existing.kind === 'ok'
        ? await this.#rest.call('POST', route, { body: TERM_COMMAND })
        : existing;
    if (outcome.kind === 'ok') return;
    // Tried again at the next READY; mentions work without it.
    this.#registered = false;
    this.#log.warn('discord-command.not-registered', { because: outcome.detail });
  }

  async postRoot(
    request: PostRequest,
    title: string,
  ): Promise<Outcome<{ messageId: string; root: ThreadRoot }>> {
    const place = { ...request.place, root: '' };
    const posted = await this.post({ ...request, place });
    if (posted.kind !== 'ok') return posted;
    const { messageId } = posted.value;
    const opened = await openThread(this.#rest, place, messageId, title);
    if (opened.kind === 'ok') {
      return { kind: 'ok', value: { messageId, root: { ...place, root: messageId } } };
    }
    if (opened.kind === 'refused' && !isPassing(opened.because)) {
      // It will not get better: without its thread the message must not stay behind.
      const removed = await this.delete(place, messageId);
      if (removed.kind === 'ok') return opened;
    }
    return { kind: 'in-doubt', detail: `thread not opened: ${opened.detail}` };
  }

  async post(request: PostRequest): Promise<Outcome<Posted>> {
    const nonce = nonceOf(request.row);
    if (nonce === undefined) return { kind: 'refused', because: 'invalid', detail: 'row name' };
    const answer = await this.#rest.call('POST', `/channels/${channelOf(request.place)}/messages`, {
      body: { ...discordMessage(request.content), nonce, enforce_nonce: true },
    });
    return postedOf(answer);
  }

  async edit(request: EditRequest): Promise<Outcome<Posted>> {
    const answer = await this.#rest.call(
      'PATCH',
      this.#messageRoute(request.place, request.messageId),
      {
        body: discordMessage(request.content),
      },
    );
    return postedOf(answer);
  }

  /** A starter message lives in the channel, though its thread has the same id. */
  #messageRoute(place: ThreadRoot, messageId: string): `/${string}` {
    const channel = messageId === place.root ? place.channel : channelOf(place);
    return `/channels/${channel}/messages/${messageId}`;
  }

  async delete(place: ThreadRoot, messageId: string): Promise<Outcome<void>> {
    return nothingOf(await this.#rest.call('DELETE', this.#messageRoute(place, messageId)));
  }

  async findPosted(request: {
    place: ThreadRoot;
    row: RowName;
    anchor: string | undefined;
    sentAtPlatformMs: number;
    knownIds: ReadonlySet<string>;
  }): Promise<Found> {
    if (this.#ourUserId === '') return { kind: 'unknown', detail: 'not logged in yet' };
    const found = await findUnclaimed(request, this.#ourUserId, this.#rest);
    if (found.kind !== 'found') return found;
    const messageId = textField(found.message, 'id') ?? '';
    if (request.place.root !== '' || found.message['thread'] !== undefined) {
      return { kind: 'found', messageId };
    }
    // A root is whole only with its thread; we may have died between the two calls.
    const title = (textField(found.message, 'content') ?? '').split('\n', 1)[0] ?? '';
    const opened = await openThread(this.#rest, request.place, messageId, title);
    return opened.kind === 'ok'
      ? { kind: 'found', messageId }
      : { kind: 'unknown', detail: `thread not opened: ${opened.detail}` };
  }

  /** A file is posted like any message: its nonce is its identity, there is no id before. */
  async upload(
    request: UploadRequest,
    _known: (fileId: string) => Promise<void>,
  ): Promise<Outcome<Posted>> {
    const nonce = nonceOf(request.row);
    if (nonce === undefined) return { kind: 'refused', because: 'invalid', detail: 'row name' };
    const answer = await this.#rest.call('POST', `/channels/${channelOf(request.place)}/messages`, {
      body: {
        content: discordPlain(request.caption ?? ''),
        allowed_mentions: { parse: [], replied_user: false },
        attachments: [{ id: '0', filename: request.fileName }],
        nonce,
        enforce_nonce: true,
      },
      files: [{ name: request.fileName, data: request.bytes, contentType: request.mediaType }],
    });
    return postedOf(answer);
  }

  async findUpload(_place: ThreadRoot, _fileId: string): Promise<Found> {
    return { kind: 'unknown', detail: 'files of Discord are found as messages' };
  }

  async discardUpload(_fileId: string): Promise<Outcome<void>> {
    return { kind: 'ok', value: undefined };
  }

  async react(
    place: ThreadRoot,
    messageId: string,
    reaction: Reaction,
    on: boolean,
  ): Promise<Outcome<void>> {
    const emoji = encodeURIComponent(EMOJI[reaction]);
    const route = `${this.#messageRoute(place, messageId)}/reactions/${emoji}/@me` as `/${string}`;
    return nothingOf(await this.#rest.call(on ? 'PUT' : 'DELETE', route));
  }

  async whisper(place: ThreadRoot, personId: string, text: string): Promise<Outcome<void>> {
    const known = this.#members.get(personId);
    const name = known === undefined || known === 'unknown' ? '' : `${known.name}: `;
    const answer = await this.#rest.call('POST', `/channels/${channelOf(place)}/messages`, {
      body: {
        content: discordPlain(`${name}${text}`),
        flags: SILENT_FLAG,
        allowed_mentions: { parse: [], replied_user: false },
      },
    });
    return nothingOf(answer);
  }

  async download(file: InboundFile, maxBytes: number): Promise<Outcome<Uint8Array>> {
    return await downloadAttachment(file, maxBytes, {
      rest: this.#rest,
      fetch: this.#fetch,
      apiUrl: this.#config.apiUrl,
    });
  }

  async catchUp(
    places: readonly { place: ThreadRoot; sinceMessageId: string | undefined }[],
  ): Promise<Outcome<readonly Inbound[]>> {
    if (this.#ourUserId === '') {
      return { kind: 'refused', because: 'not-sent', detail: 'not logged in yet' };
    }
    return await catchUp(places, {
      rest: this.#rest,
      clock: this.#clock,
      places: this.#places,
      signal: this.#stopping.signal,
      context: {
        guildId: this.#config.guildId,
        ourUserId: this.#ourUserId,
        receivedAtMonotonicMs: this.#clock.monotonicMs(),
        caughtUp: true,
      },
      member: (userId) => this.person(userId),
    });
  }

  async proveRoot(place: ThreadRoot): Promise<Outcome<{ readonly root: ThreadRoot }>> {
    return await proveThread(this.#rest, place, {
      guildId: this.#config.guildId,
      userId: this.#ourUserId,
    });
  }

  async unarchive(place: ThreadRoot): Promise<Outcome<void>> {
    if (place.root === '') return { kind: 'refused', because: 'invalid', detail: 'no thread' };
    const body = { archived: false };
    return nothingOf(await this.#rest.call('PATCH', `/channels/${place.root}`, { body }));
  }

  async person(id: string): Promise<Person | undefined> {
    const known = this.#members.get(id);
    if (known !== undefined) return known === 'unknown' ? undefined : known;
    const { guildId } = this.#config;
    const answer = await this.#rest.call('GET', `/guilds/${guildId}/members/${id}`);
    const person = answer.kind === 'ok' ? personOf(answer.value, guildId) : undefined;
    this.#members.set(id, person ?? 'unknown', person === undefined ? 5_000 : MEMBER_KNOWN_MS);
    return person;
  }

  linkOf(place: ThreadRoot): string {
    return `https://discord.com/channels/${this.#config.guildId}/${channelOf(place)}`;
  }

  clockSkewMs(): number | undefined {
    return this.#platformClock.skewMs();
  }
}

/** What may be otherwise in a moment. */
function isPassing(because: string): boolean {
  return because === 'rate-limited' || because === 'not-sent';
}

function postedOf(answer: Outcome<Fields>): Outcome<Posted> {
  if (answer.kind !== 'ok') return answer;
  const messageId = textField(answer.value, 'id');
  return messageId === undefined
    ? { kind: 'in-doubt', detail: 'answer not understood' }
    : { kind: 'ok', value: { messageId } };
}

function nothingOf(answer: Outcome<unknown>): Outcome<void> {
  return answer.kind === 'ok' ? { kind: 'ok', value: undefined } : answer;
}
