// Trigger ids, response URLs and open modals: what an interaction may still do, and until when.

import type { Clock } from '../../base/clock.ts';
import { mintId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import type { Fields } from '../fields.ts';
import type { SlackView } from './model.ts';

export const TRIGGER_LIFE_MS = 3_000;
export const RESPONSE_URL_LIFE_MS = 30 * 60_000;
export const RESPONSE_URL_USES = 5;
/** Views on top of each other. */
export const VIEW_STACK_MAX = 3;
const KEPT_MAX = 2_000;

interface Trigger {
  readonly user: string;
  readonly expiresAtMs: number;
  used: boolean;
}

/** Where a response URL leads. */
export interface ResponseTarget {
  readonly channel: string;
  readonly user: string;
  readonly threadTs: string | undefined;
  /** The message the interaction came from, unless it was ephemeral or a command. */
  readonly messageTs: string | undefined;
  /** The ephemeral note it came from. */
  readonly noteTs: string | undefined;
}

interface ResponseUrl extends ResponseTarget {
  readonly expiresAtMs: number;
  usesLeft: number;
}

export type TriggerVerdict =
  | { readonly kind: 'ok'; readonly user: string }
  | { readonly kind: 'refused'; readonly error: string };

export type ResponseUrlVerdict =
  | { readonly kind: 'ok'; readonly target: ResponseTarget }
  | { readonly kind: 'refused'; readonly error: 'expired_url' | 'used_url' | 'no_such_url' };

export class Interactivity {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #triggers = new Map<string, Trigger>();
  readonly #urls = new Map<string, ResponseUrl>();
  /** By view id. */
  readonly views = new Map<string, SlackView>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  mintTrigger(user: string): string {
    const id = `${mintId(this.#random, 8)}.${mintId(this.#random, 8)}.${mintId(this.#random, 16)}`;
    this.#triggers.set(id, {
      user,
      expiresAtMs: this.#clock.monotonicMs() + TRIGGER_LIFE_MS,
      used: false,
    });
    dropOldest(this.#triggers);
    return id;
  }

  useTrigger(id: unknown): TriggerVerdict {
    const trigger = typeof id === 'string' ? this.#triggers.get(id) : undefined;
    if (trigger === undefined) return { kind: 'refused', error: 'invalid_trigger_id' };
    if (trigger.used) return { kind: 'refused', error: 'exchanged_trigger_id' };
    if (this.#clock.monotonicMs() > trigger.expiresAtMs)
      return { kind: 'refused', error: 'expired_trigger_id' };
    trigger.used = true;
    return { kind: 'ok', user: trigger.user };
  }

  /** Returns the path of a new response URL. */
  mintResponsePath(kind: 'actions' | 'commands' | 'app', target: ResponseTarget): string {
    const id = mintId(this.#random, 24);
    this.#urls.set(id, {
      ...target,
      expiresAtMs: this.#clock.monotonicMs() + RESPONSE_URL_LIFE_MS,
      usesLeft: RESPONSE_URL_USES,
    });
    dropOldest(this.#urls);
    return `/hooks/${kind}/${id}`;
  }

  useResponsePath(path: string): ResponseUrlVerdict {
    const url = this.#urls.get(path.split('/').at(-1) ?? '');
    if (url === undefined) return { kind: 'refused', error: 'no_such_url' };
    if (this.#clock.monotonicMs() > url.expiresAtMs)
      return { kind: 'refused', error: 'expired_url' };
    if (url.usesLeft === 0) return { kind: 'refused', error: 'used_url' };
    url.usesLeft -= 1;
    return { kind: 'ok', target: url };
  }

  /** Views of a person, the topmost last. */
  stackOf(user: string): readonly SlackView[] {
    return [...this.views.values()].filter((view) => view.user === user);
  }

  openView(view: SlackView): void {
    this.views.set(view.id, view);
    dropOldest(this.views);
  }

  mintHash(): string {
    return `${Math.floor(this.#clock.wallMs() / 1000)}.${mintId(this.#random, 8)}`;
  }

  /** The view as the API sends it. */
  viewShape(view: SlackView, teamId: string, appId: string, botId: string, values: Fields): Fields {
    return {
      id: view.id,
      team_id: teamId,
      type: 'modal',
      callback_id: '',
      private_metadata: '',
      clear_on_close: false,
      notify_on_close: false,
      external_id: '',
      submit: null,
      close: null,
      ...view.view,
      state: { values },
      hash: view.hash,
      root_view_id: view.rootId,
      previous_view_id: view.previousId ?? null,
      app_id: appId,
      app_installed_team_id: teamId,
      bot_id: botId,
    };
  }
}

function dropOldest<T>(map: Map<string, T>): void {
  if (map.size <= KEPT_MAX) return;
  const oldest = map.keys().next();
  if (oldest.done !== true) map.delete(oldest.value);
}
