// Starts a session for a person: the request is durable before the host is asked, so a daemon that
// dies in between finds the same session again by its token and never starts two.

import { ChatdError, errorCode, errorText } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { CreateRequest, Host, SessionInfo } from '../pty/client.ts';
import { type Binding, bind } from '../store/bindings.ts';
import {
  requestedSessions,
  requestSession,
  type StartedSession,
  sessionCreated,
  sessionFailed,
} from '../store/sessions.ts';
import type { Store } from '../store/store.ts';
import type { ThreadRoot } from './chat-platform.ts';
import type { SessionFacts } from './phrases.ts';

/** A profile of chatd.toml, as the bots need it. */
export interface StartProfile {
  readonly name: string;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cols: number;
  readonly rows: number;
  readonly approve: 'never' | 'start';
}

export interface StartDefaults {
  /** Absolute path of the shell that runs commands. */
  readonly shell: string;
  readonly cwd: string;
  readonly cols: number;
  readonly rows: number;
  readonly machine: string;
}

export interface StartWish {
  /** Claim of the act that asked: the idempotency token. */
  readonly token: string;
  readonly actor: string;
  readonly place: Pick<ThreadRoot, 'space' | 'channel'>;
  readonly profile: StartProfile | undefined;
  /** One command line for the shell; empty: the profile's command or the login shell. */
  readonly command: string;
}

export type StartOutcome =
  | { readonly kind: 'started'; readonly binding: Binding; readonly facts: SessionFacts }
  | { readonly kind: 'refused'; readonly because: string }
  /** The host did not answer; asked again with the same token until it does. */
  | { readonly kind: 'not-known'; readonly because: string };

/** Settings of a binding that name its session; written once, read at every start. */
export function factsOf(binding: Binding, machine: string): SessionFacts {
  const { settings } = binding;
  const text = (key: string): string => {
    const value = settings[key];
    return typeof value === 'string' ? value : '';
  };
  const profile = text('profile');
  return {
    sessionId: binding.sessionId,
    incarnation: binding.incarnation,
    machine,
    directory: text('directory'),
    command: text('command'),
    profile: profile === '' ? undefined : profile,
  };
}

export class SessionStarter {
  readonly #host: Host;
  readonly #store: Store;
  readonly #random: Random;
  readonly #log: Log;
  readonly #defaults: StartDefaults;

  constructor(deps: {
    readonly host: Host;
    readonly store: Store;
    readonly random: Random;
    readonly log: Log;
    readonly defaults: StartDefaults;
  }) {
    this.#host = deps.host;
    this.#store = deps.store;
    this.#random = deps.random;
    this.#log = deps.log;
    this.#defaults = deps.defaults;
  }

  /** Starts what a person asked for. */
  async start(wish: StartWish): Promise<StartOutcome> {
    const request = this.#requestOf(wish);
    requestSession(this.#store, {
      token: wish.token,
      actor: wish.actor,
      profile: wish.profile?.name,
      place: wish.place,
      // The environment of a profile may hold secrets: it is read from the configuration again.
      request: { command: wish.command, directory: request.cwd },
    });
    return await this.#create(request, wish.place, wish.command);
  }

  /** Requests whose answer a predecessor never heard. */
  pending(): readonly StartedSession[] {
    return requestedSessions(this.#store);
  }

  /** Asks again for a pending request. */
  async resume(pending: StartedSession, profile: StartProfile | undefined): Promise<StartOutcome> {
    const place = placeOf(pending.place);
    const command = commandOf(pending.request);
    if (place === undefined || (pending.profile !== undefined && profile === undefined)) {
      sessionFailed(this.#store, pending.token);
      return { kind: 'refused', because: 'its profile is no longer in chatd.toml' };
    }
    const request = this.#requestOf({
      token: pending.token,
      actor: pending.actor,
      place,
      profile,
      command,
    });
    return await this.#create(request, place, command);
  }

  #requestOf(wish: StartWish): CreateRequest {
    const { profile } = wish;
    return {
      token: wish.token,
      command: this.#commandLine(wish),
      cwd: profile?.cwd ?? this.#defaults.cwd,
      env: profile?.env ?? {},
      cols: profile?.cols ?? this.#defaults.cols,
      rows: profile?.rows ?? this.#defaults.rows,
      actor: wish.actor,
      ...(profile === undefined ? {} : { profile: profile.name }),
    };
  }

  #commandLine(wish: StartWish): readonly string[] {
    // A login shell runs it, so that PATH and aliases are those of the person's own terminal.
    if (wish.command !== '') return [this.#defaults.shell, '-lc', wish.command];
    return wish.profile?.command ?? [];
  }

  async #create(
    request: CreateRequest,
    place: Pick<ThreadRoot, 'space' | 'channel'>,
    command: string,
  ): Promise<StartOutcome> {
    let session: SessionInfo;
    try {
      session = await this.#host.create(request);
    } catch (error) {
      return this.#failed(request.token, error);
    }
    const shown =
      command === '' ? (request.profile === undefined ? '' : request.command.join(' ')) : command;
    const outcome = this.#store.transaction(() => {
      sessionCreated(this.#store, request.token, session.sessionId, session.incarnation);
      return bind(this.#store, {
        b: mintId(this.#random),
        sessionId: session.sessionId,
        incarnation: session.incarnation,
        space: place.space,
        channel: place.channel,
        root: undefined,
        firstLine: 0,
        nextMark: 0,
        settings: {
          command: shown,
          directory: session.cwd,
          ...(request.profile === undefined ? {} : { profile: request.profile }),
        },
      });
    });
    const binding =
      outcome.kind === 'bound' || outcome.kind === 'already' ? outcome.binding : outcome.holder;
    this.#log.info('session.started', { sessionId: session.sessionId, b: binding.b });
    return { kind: 'started', binding, facts: factsOf(binding, this.#defaults.machine) };
  }

  #failed(token: string, error: unknown): StartOutcome {
    const code = errorCode(error);
    const because =
      error instanceof ChatdError ? errorText(error) : 'an internal error, see the log';
    this.#log.warn('session.not-started', { code, error });
    if (code === 'host-unreachable' || code === 'host-starting' || code === undefined) {
      return { kind: 'not-known', because };
    }
    sessionFailed(this.#store, token);
    return { kind: 'refused', because };
  }
}

function placeOf(stored: unknown): Pick<ThreadRoot, 'space' | 'channel'> | undefined {
  if (typeof stored !== 'object' || stored === null) return undefined;
  if (!('space' in stored && 'channel' in stored)) return undefined;
  if (typeof stored.space !== 'string' || typeof stored.channel !== 'string') return undefined;
  return { space: stored.space, channel: stored.channel };
}

function commandOf(stored: unknown): string {
  if (typeof stored !== 'object' || stored === null || !('command' in stored)) return '';
  return typeof stored.command === 'string' ? stored.command : '';
}
