// Bolt's receiver, ours: two sockets started apart, one bounded line for what arrives on both, and
// acknowledgements sent only after the event is claimed. Bolt by itself acknowledges events before
// any listener ran, and knows one socket that leaves gaps at every refresh.

import type { App, Receiver, ReceiverEvent } from '@slack/bolt';
import type { Clock, Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { Mailbox } from '../../base/mailbox.ts';
import type { Random } from '../../base/random.ts';
import { type ConnectionState, ConnectionSupervisor } from '../connection-supervisor.ts';
import { fieldsOf, textField } from '../fields.ts';
import { Reorder } from './reorder.ts';
import { type Envelope, openSocket, type SocketOptions } from './socket.ts';

/** Envelopes waiting to be handled. One more is not acknowledged: Slack delivers it again. */
const WAITING_MAX = 1_000;
/** People see an error when an interaction is not acknowledged within 3 s. */
const INTERACTION_ACK_MS = 2_000;
/** A name is worth this much waiting, no more. */
const NAME_WAIT_MS = 700;
/** A claim that takes longer no longer holds up those behind it. */
const CLAIM_WAIT_MS = 2_000;
const HELLO_WITHIN_MS = 15_000;
/** Slack pings every 10 to 30 s. */
const SILENCE_MS = 90_000;
const OPEN_GAP_MS = 5_000;
/** So that both sockets are not refreshed at the same moment. */
const STAGGER_MS = 7_000;

export interface ReceiverOptions {
  readonly socket: Omit<SocketOptions, 'onEnvelope'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Makes the names of an event's people known; may fail silently. */
  readonly warm: (userId: string) => Promise<unknown>;
  readonly onState: (states: readonly ConnectionState[]) => void;
}

export class SlackReceiver implements Receiver {
  readonly #options: ReceiverOptions;
  readonly #sockets: readonly ConnectionSupervisor[];
  readonly #line: Mailbox<Arrived>;
  readonly #order: Reorder<Arrived>;
  #app: App | undefined;
  #refusedCount = 0;

  constructor(options: ReceiverOptions) {
    this.#options = options;
    const { clock, random, log } = options;
    this.#line = new Mailbox<Arrived>({
      capacity: WAITING_MAX,
      handle: (arrived) => this.#handle(arrived),
      onError: (error) => log.error('slack-event.failed', { reason: errorText(error) }),
    });
    this.#order = new Reorder(clock, (arrived) => this.#take(arrived));
    this.#sockets = ['slack-1', 'slack-2'].map(
      (name, socket) =>
        new ConnectionSupervisor({
          name,
          clock,
          random,
          log,
          open: (hooks) =>
            openSocket(
              { ...options.socket, onEnvelope: (envelope) => this.#arrive(envelope, socket) },
              hooks,
            ),
          readyWithinMs: HELLO_WITHIN_MS,
          silenceMs: SILENCE_MS,
          openGapMs: OPEN_GAP_MS,
          backoff: { initialMs: 1_000, maxMs: 30_000, factor: 2 },
          onState: () => options.onState(this.states),
        }),
    );
  }

  get states(): readonly ConnectionState[] {
    return this.#sockets.map((socket) => socket.state);
  }

  get lastTrafficMs(): number {
    return Math.max(...this.#sockets.map((socket) => socket.lastTrafficMs));
  }

  init(app: App): void {
    this.#app = app;
  }

  async start(): Promise<void> {
    this.#sockets.forEach((socket, index) => {
      socket.start(index * STAGGER_MS);
    });
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.stop();
  }

  rebuild(reason: string): void {
    for (const socket of this.#sockets) socket.rebuild(reason);
  }

  #arrive(envelope: Envelope, socket: number): void {
    const arrived = new Arrived(envelope);
    if (envelope.type !== 'events_api') arrived.ackWithin(this.#options.clock, INTERACTION_ACK_MS);
    const ts = typedAt(envelope);
    if (ts === undefined) this.#take(arrived);
    else this.#order.offer({ item: arrived, socket, ts });
  }

  #take(arrived: Arrived): void {
    if (this.#line.post(arrived)) return;
    this.#refusedCount += 1;
    this.#options.log.warn('slack-event.refused', {
      waiting: WAITING_MAX,
      total: this.#refusedCount,
    });
  }

  async #handle(arrived: Arrived): Promise<void> {
    const { envelope } = arrived;
    if (envelope.type === 'events_api' && envelope.body['event'] === undefined) {
      this.#options.log.warn('slack-events.rate-limited', {
        type: textField(envelope.body, 'type') ?? 'unknown',
      });
      arrived.ack({});
      return;
    }
    const userId = actorIdOf(envelope);
    if (userId !== undefined) await this.#within(NAME_WAIT_MS, this.#options.warm(userId));
    await this.#within(CLAIM_WAIT_MS, this.#feed(arrived));
  }

  /** Hands an event to Bolt's listeners and acknowledges it when they have claimed it. */
  async #feed(arrived: Arrived): Promise<void> {
    const { envelope } = arrived;
    const isEvent = envelope.type === 'events_api';
    const event: ReceiverEvent = {
      body: envelope.body,
      retryNum: envelope.retryAttempt,
      retryReason: envelope.retryReason,
      customProperties: { receivedAtMonotonicMs: envelope.receivedAtMonotonicMs },
      // Bolt acknowledges events before its listeners: that one is not passed on.
      ack: async (response: unknown) => {
        if (!isEvent) arrived.ack(fieldsOf(response));
      },
    };
    try {
      await this.#app?.processEvent(event);
      arrived.ack({});
    } catch (error) {
      this.#options.log.warn('slack-event.not-claimed', {
        type: envelope.type,
        reason: errorText(error),
      });
    }
  }

  async #within(limitMs: number, work: Promise<unknown>): Promise<void> {
    let timer: Timer | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = this.#options.clock.timer(limitMs, resolve);
    });
    await Promise.race([work.catch(() => undefined), limit]);
    timer?.cancel();
  }
}

/** An envelope and its one acknowledgement. */
class Arrived {
  readonly envelope: Envelope;
  #acked = false;
  #timer: Timer | undefined;

  constructor(envelope: Envelope) {
    this.envelope = envelope;
  }

  ackWithin(clock: Clock, ms: number): void {
    this.#timer = clock.timer(ms, () => this.ack({}));
  }

  ack(payload: Readonly<Record<string, unknown>>): void {
    if (this.#acked) return;
    this.#acked = true;
    this.#timer?.cancel();
    this.envelope.ack(payload);
  }
}

/** The ts of what a person wrote: our own posts would keep everything in the order of both sockets. */
function typedAt({ type, body }: Envelope): string | undefined {
  if (type !== 'events_api') return undefined;
  const event = fieldsOf(body['event']);
  const isTyped = event['type'] === 'message' || event['type'] === 'app_mention';
  return isTyped && event['bot_id'] === undefined ? textField(event, 'ts') : undefined;
}

function actorIdOf({ type, body }: Envelope): string | undefined {
  if (type === 'slash_commands') return textField(body, 'user_id');
  if (type === 'interactive') return textField(fieldsOf(body['user']), 'id');
  const event = fieldsOf(body['event']);
  // Names are wanted of people alone.
  return event['bot_id'] === undefined ? textField(event, 'user') : undefined;
}
