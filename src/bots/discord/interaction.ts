// One interaction and its answers. Discord gives 3 s for the first and 15 min for the rest; a modal
// can only be the first. The token in the address is the permission: it is never logged.

import type { Clock, Timer } from '../../base/clock.ts';
import { ChatdError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { InteractionReply, ModalSpec, Outcome } from '../chat-platform.ts';
import { type Fields, numberField, textField } from '../fields.ts';
import { discordPlain } from '../render/discord-format.ts';
import type { RestCall } from './rest.ts';

const EPHEMERAL = 64;
const NO_MENTIONS = { parse: [] };
/** Before Discord gives up on us, whatever the bridge does. */
const ACK_BEFORE_MS = 2_000;
/** After the claim: time for the bridge to open a modal, which must be the first answer. */
const MODAL_GRACE_MS = 500;
/** A command whose outcome shows elsewhere does not stay at "thinking" for a quarter of an hour. */
const THINKING_MAX_MS = 60_000;
const TITLE_MAX = 45;
const LABEL_MAX = 45;

/** What was answered so far. */
type State = 'nothing' | 'thinking' | 'quiet' | 'answered';

export interface InteractionOptions {
  readonly payload: Fields;
  readonly applicationId: string;
  readonly call: RestCall;
  readonly clock: Clock;
  readonly log: Log;
}

export class Interaction implements InteractionReply {
  readonly #options: InteractionOptions;
  #state: State = 'nothing';
  #timer: Timer | undefined;
  /** One answer after the other: which one is the first decides how it is sent. */
  #line: Promise<unknown> = Promise.resolve();

  constructor(options: InteractionOptions) {
    this.#options = options;
    this.#ackAfter(ACK_BEFORE_MS);
  }

  /** The bridge has it: what it wants to answer first comes now or not at all. */
  claimed(): void {
    if (this.#state === 'nothing') this.#ackAfter(MODAL_GRACE_MS);
  }

  async privately(text: string): Promise<void> {
    const body = { content: discordPlain(text), flags: EPHEMERAL, allowed_mentions: NO_MENTIONS };
    await this.#next(async () => {
      const before = this.#enter('answered');
      if (before === 'nothing') return await this.#callback({ type: 4, data: body });
      if (before === 'thinking') {
        return await this.#webhook('PATCH', '/messages/@original', body);
      }
      return await this.#webhook('POST', '', body);
    });
  }

  async modal(spec: ModalSpec): Promise<void> {
    await this.#next(async () => {
      if (this.#state !== 'nothing') {
        return { kind: 'refused', because: 'invalid', detail: 'already answered' };
      }
      this.#enter('answered');
      return await this.#callback({ type: 9, data: modalOf(spec) });
    });
  }

  #ackAfter(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.timer(ms, () => {
      this.#acknowledge().catch((error: unknown) => {
        this.#options.log.warn('discord-interaction.not-acknowledged', { error });
      });
    });
  }

  async #acknowledge(): Promise<void> {
    await this.#next(async () => {
      if (this.#state !== 'nothing') return { kind: 'ok', value: {} };
      // What came from a message can be acknowledged without a word; a command cannot.
      if (this.#options.payload['message'] !== undefined) {
        this.#enter('quiet');
        return await this.#callback({ type: 6 });
      }
      this.#enter('thinking');
      this.#timer = this.#options.clock.timer(THINKING_MAX_MS, () => {
        if (this.#state !== 'thinking') return;
        this.privately('Taken.').catch(() => undefined);
      });
      this.#timer.unref();
      return await this.#callback({ type: 5, data: { flags: EPHEMERAL } });
    });
  }

  #enter(state: State): State {
    const before = this.#state;
    this.#state = state;
    this.#timer?.cancel();
    return before;
  }

  async #next(answer: () => Promise<Outcome<Fields>>): Promise<void> {
    const turn = this.#line.then(answer);
    this.#line = turn.catch(() => undefined);
    const outcome = await turn;
    if (outcome.kind === 'ok') return;
    throw new ChatdError(
      'platform-rejected',
      `Cannot answer an interaction of type ${numberField(this.#options.payload, 'type') ?? 0}: ${outcome.detail}`,
    );
  }

  async #callback(body: unknown): Promise<Outcome<Fields>> {
    const { call, payload } = this.#options;
    const id = textField(payload, 'id') ?? '';
    const token = textField(payload, 'token') ?? '';
    return await call('POST', `/interactions/${id}/${token}/callback`, { body, auth: false });
  }

  async #webhook(method: 'POST' | 'PATCH', path: string, body: unknown): Promise<Outcome<Fields>> {
    const { applicationId, call, payload } = this.#options;
    const token = textField(payload, 'token') ?? '';
    return await call(method, `/webhooks/${applicationId}/${token}${path}`, {
      body,
      auth: false,
    });
  }
}

function modalOf(spec: ModalSpec): Record<string, unknown> {
  return {
    custom_id: spec.id,
    title: spec.title.slice(0, TITLE_MAX),
    components: spec.fields.map((field) => ({
      type: 18,
      label: field.label.slice(0, LABEL_MAX),
      component: {
        type: 4,
        custom_id: field.id,
        style: field.multiline ? 2 : 1,
        required: true,
      },
    })),
  };
}
