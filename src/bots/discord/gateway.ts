// One gateway connection on a client object of its own. discord.js connects, beats and resumes; what
// it dispatches is taken raw, so that nothing depends on its caches (it drops messages of threads it
// does not know). Rebuilding is the supervisor's.

import { Client, Events, Options } from 'discord.js';
import type { Clock, Timer } from '../../base/clock.ts';
import { errnoCode } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Connection, ConnectionHooks } from '../connection-supervisor.ts';
import { type Fields, fieldsOf, numberField } from '../fields.ts';
import type { PlatformClock } from '../platform-clock.ts';
import { classifyError, fatalClose } from './errors.ts';
import { type DiscordRest, restOptions } from './rest.ts';

/** GUILDS, GUILD_MESSAGES, MESSAGE_CONTENT: 1 + 512 + 32768. */
export const INTENTS = 33_281;

export interface GatewayOptions {
  readonly token: string;
  readonly apiUrl: string;
  readonly clock: Clock;
  readonly platformClock: PlatformClock;
  readonly log: Log;
  readonly rest: DiscordRest;
  /** Every dispatch, READY included; says what it means for the connection. */
  readonly onDispatch: (type: string, data: Fields) => Meaning;
}

export type Meaning =
  | 'nothing'
  /** From here on events arrive, and what there is to know of the guild is known. */
  | 'ready'
  /** Not our application. */
  | { readonly stranger: string };

/** discord.js says nothing about heartbeats but this number: looked at this often. */
const BEAT_LOOK_MS = 5_000;
/** 1,000 identifies a day, or Discord resets the bot's token: the last few are kept. */
const IDENTIFIES_KEPT = 20;
const IDENTIFY_WAIT_MAX_MS = 60 * 60_000;

/** Connects; what becomes of it arrives at `hooks`. */
export function openGateway(options: GatewayOptions, hooks: ConnectionHooks): Connection {
  return new Gateway(options, hooks);
}

class Gateway implements Connection {
  readonly #options: GatewayOptions;
  readonly #hooks: ConnectionHooks;
  readonly #client: Client;
  #beatAt = 0;
  #look: Timer | undefined;
  #discarded = false;
  #loginSettled = false;

  constructor(options: GatewayOptions, hooks: ConnectionHooks) {
    this.#options = options;
    this.#hooks = hooks;
    this.#client = new Client({
      intents: INTENTS,
      enforceNonce: true,
      allowedMentions: { parse: [], repliedUser: false },
      rest: restOptions(options.apiUrl, options.platformClock),
      // Nothing is read from the caches: kept as small as the library can live with.
      makeCache: Options.cacheWithLimits({
        ...Options.DefaultMakeCacheSettings,
        MessageManager: 0,
        GuildMemberManager: { maxSize: 10, keepOverLimit: isOurs },
        UserManager: { maxSize: 10, keepOverLimit: isOurs },
        PresenceManager: 0,
        ReactionManager: 0,
        ReactionUserManager: 0,
        ThreadMemberManager: 0,
        GuildEmojiManager: 0,
        GuildStickerManager: 0,
        VoiceStateManager: 0,
      }),
    });
    this.#listen();
    this.#logIn().catch(() => undefined);
  }

  discard(): void {
    if (this.#discarded) return;
    this.#discarded = true;
    this.#look?.cancel();
    this.#client.removeAllListeners();
    this.#swallowErrors();
    // Destroyed while it logs in, the client would connect all the same and never be closed.
    if (this.#loginSettled) this.#destroy();
  }

  #destroy(): void {
    this.#client.destroy().catch(() => undefined);
  }

  /** Without listeners an error of the client ends the process. */
  #swallowErrors(): void {
    this.#client.on(Events.Error, () => undefined);
    this.#client.on(Events.ShardError, () => undefined);
  }

  async #logIn(): Promise<void> {
    try {
      const waitMs = await this.#identifyWait();
      if (waitMs > 0) {
        this.#hooks.down({
          kind: 'lost',
          reason: 'Discord asks to wait before the next connection',
          atLeastMs: waitMs,
        });
        return;
      }
      if (this.#discarded) return;
      await this.#client.login(this.#options.token);
    } catch (error) {
      if (!this.#discarded) this.#loginFailed(error);
    } finally {
      this.#loginSettled = true;
      if (this.#discarded) this.#destroy();
    }
  }

  #loginFailed(error: unknown): void {
    if (errnoCode(error) === 'TokenInvalid') {
      this.#hooks.down({ kind: 'fatal', reason: fatalClose(4_004) ?? 'token refused' });
      return;
    }
    const failure = classifyError(error);
    const atLeastMs = failure.kind === 'refused' ? failure.retryAfterMs : undefined;
    this.#hooks.down({
      kind: 'lost',
      reason: `cannot connect: ${failure.detail}`,
      ...(atLeastMs === undefined ? {} : { atLeastMs }),
    });
  }

  /** Discord counts identifies over all our restarts: the one budget that survives a crash loop. */
  async #identifyWait(): Promise<number> {
    const answer = await this.#options.rest.call('GET', '/gateway/bot');
    // Logging in asks the same route at once: a limit met here must not be run into again.
    if (answer.kind === 'refused' && answer.retryAfterMs !== undefined) return answer.retryAfterMs;
    if (answer.kind !== 'ok') return 0;
    const limit = fieldsOf(answer.value['session_start_limit']);
    const remaining = numberField(limit, 'remaining');
    if (remaining === undefined || remaining > IDENTIFIES_KEPT) return 0;
    this.#options.log.error('discord.identifies-used-up', { remaining });
    return Math.min(numberField(limit, 'reset_after') ?? 0, IDENTIFY_WAIT_MAX_MS);
  }

  #listen(): void {
    const client = this.#client;
    const { log } = this.#options;
    client.on(Events.Raw, (packet: unknown) => this.#dispatch(fieldsOf(packet)));
    client.on(Events.Error, (error) => log.warn('discord-client.failed', named(error)));
    client.on(Events.ShardError, (error) => log.debug('discord-shard.failed', named(error)));
    client.on(Events.ShardReconnecting, () => this.#hooks.unsettled('reconnecting'));
    client.on(Events.ShardDisconnect, ({ code }) => {
      const reason = fatalClose(code);
      if (reason === undefined) this.#hooks.down({ kind: 'lost', reason: `closed with ${code}` });
      else this.#hooks.down({ kind: 'fatal', reason });
    });
    client.on(Events.Invalidated, () => {
      this.#hooks.down({ kind: 'lost', reason: 'session invalidated' });
    });
    this.#watchBeats();
  }

  #dispatch(packet: Fields): void {
    const type = packet['t'];
    if (typeof type !== 'string') return;
    this.#hooks.traffic();
    const meaning = this.#options.onDispatch(type, fieldsOf(packet['d']));
    if (meaning === 'ready') this.#hooks.ready();
    else if (meaning !== 'nothing') this.#hooks.down({ kind: 'fatal', reason: meaning.stranger });
  }

  #watchBeats(): void {
    this.#look = this.#options.clock.timer(BEAT_LOOK_MS, () => {
      const beatAt = this.#client.ws.shards.first()?.lastPingTimestamp ?? 0;
      if (beatAt > this.#beatAt) this.#hooks.traffic();
      this.#beatAt = beatAt;
      this.#watchBeats();
    });
    this.#look.unref();
  }
}

/** Codes and names only: a message may hold an address with a token in it. */
function named(error: Error): Record<string, string> {
  return { name: error.name, code: errnoCode(error) ?? 'none' };
}

function isOurs(held: { id: string; client: Client }): boolean {
  return held.id === held.client.user?.id;
}
