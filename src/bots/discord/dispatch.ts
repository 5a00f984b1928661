// What each dispatch of the gateway means: which acts it is, and what it teaches about places. Keeps
// arrival order; asks Discord for a thread it does not know before a message of it is decoded.

import type { Clock } from '../../base/clock.ts';
import type { Inbound } from '../chat-platform.ts';
import { type Fields, fieldsOf, listField, textField } from '../fields.ts';
import {
  type DecodeContext,
  type Decoded,
  decodeInteraction,
  decodeMessage,
  interactionPlace,
  placeChanges,
} from './decode.ts';
import type { Interaction } from './interaction.ts';
import { type KnownPlace, type Places, rootOf } from './places.ts';
import type { DiscordRest } from './rest.ts';

export interface DispatchOptions {
  readonly guildId: string;
  readonly places: Places;
  readonly rest: DiscordRest;
  readonly clock: Clock;
  readonly inbound: (event: Inbound) => Promise<void>;
}

/** One dispatch, waiting for its turn. */
export interface Dispatched {
  readonly type: string;
  readonly data: Fields;
  readonly receivedAtMonotonicMs: number;
  readonly ourUserId: string;
  /** Made on arrival: its time to answer runs already. */
  readonly interaction: Interaction | undefined;
}

export class Dispatcher {
  readonly #options: DispatchOptions;

  constructor(options: DispatchOptions) {
    this.#options = options;
  }

  /** Teaches what a dispatch says about places; to be called on arrival. */
  learn(type: string, data: Fields): void {
    const { places } = this.#options;
    if (type === 'GUILD_CREATE') {
      for (const channel of [...listField(data, 'channels'), ...listField(data, 'threads')]) {
        places.learn(fieldsOf(channel));
      }
    } else if (type === 'THREAD_LIST_SYNC') {
      for (const thread of listField(data, 'threads')) places.learn(fieldsOf(thread));
    } else if (type === 'CHANNEL_CREATE' || type === 'CHANNEL_UPDATE') {
      places.learn(data);
    }
  }

  async handle(dispatched: Dispatched): Promise<void> {
    const { data, type } = dispatched;
    switch (type) {
      case 'MESSAGE_CREATE':
        await this.#message(dispatched);
        break;
      case 'INTERACTION_CREATE':
        await this.#interaction(dispatched);
        break;
      case 'THREAD_CREATE':
      case 'THREAD_UPDATE':
        await this.#thread(data);
        break;
      case 'THREAD_DELETE':
      case 'CHANNEL_DELETE':
        await this.#deleted(data);
        break;
      case 'MESSAGE_DELETE':
        await this.#messagesDeleted(data, [textField(data, 'id')]);
        break;
      case 'MESSAGE_DELETE_BULK':
        await this.#messagesDeleted(data, listField(data, 'ids'));
        break;
      default:
    }
  }

  async #message({ data, ourUserId, receivedAtMonotonicMs }: Dispatched): Promise<void> {
    const channelId = textField(data, 'channel_id');
    const place = channelId === undefined ? undefined : await this.#placeOf(channelId);
    if (place === undefined) return;
    this.#options.places.saw(place.id, textField(data, 'id') ?? '');
    await this.#say(
      decodeMessage(
        data,
        rootOf(this.#options.guildId, place),
        this.#context(ourUserId, receivedAtMonotonicMs),
      ),
    );
  }

  async #interaction(dispatched: Dispatched): Promise<void> {
    const { data, interaction, ourUserId, receivedAtMonotonicMs } = dispatched;
    const channel = fieldsOf(data['channel']);
    const known = this.#options.places.learn(channel)?.now;
    const channelId = textField(data, 'channel_id') ?? '';
    const place = known?.parentId === undefined ? await this.#placeOf(channelId) : known;
    if (place === undefined || interaction === undefined) return;
    const decoded = decodeInteraction(
      data,
      interactionPlace(data, place, this.#options.guildId),
      this.#context(ourUserId, receivedAtMonotonicMs),
    );
    await this.#say(decoded, interaction);
    interaction.claimed();
  }

  async #thread(data: Fields): Promise<void> {
    const learned = this.#options.places.learn(data);
    if (learned === undefined) return;
    const place = rootOf(this.#options.guildId, learned.now);
    for (const change of placeChanges(learned.before, learned.now, place)) await this.#say(change);
  }

  async #deleted(data: Fields): Promise<void> {
    const id = textField(data, 'id');
    if (id === undefined) return;
    const parent = textField(data, 'parent_id') ?? this.#options.places.get(id)?.parentId;
    const isThread = [10, 11, 12].includes(Number(data['type']));
    this.#options.places.forget(id);
    const space = this.#options.guildId;
    const place =
      isThread && parent !== undefined
        ? { space, channel: parent, root: id }
        : { space, channel: id, root: '' };
    await this.#say({ kind: 'place-changed', place, change: 'deleted' });
  }

  async #messagesDeleted(data: Fields, ids: readonly unknown[]): Promise<void> {
    // A deletion of what we know nothing about is not worth a question.
    const known = this.#options.places.get(textField(data, 'channel_id') ?? '');
    if (known === undefined) return;
    const place = rootOf(this.#options.guildId, known);
    for (const messageId of ids.slice(0, 100)) {
      if (typeof messageId !== 'string') continue;
      await this.#say({ kind: 'place-changed', place, change: 'message-deleted', messageId });
    }
  }

  async #say(decoded: Decoded | undefined, reply?: Interaction): Promise<void> {
    if (decoded === undefined) return;
    if (decoded.kind === 'action' || decoded.kind === 'command' || decoded.kind === 'modal') {
      if (reply !== undefined) await this.#options.inbound({ ...decoded, reply });
      return;
    }
    await this.#options.inbound(decoded);
  }

  /** A thread that nothing was said about yet is asked for. */
  async #placeOf(channelId: string): Promise<KnownPlace | undefined> {
    const { places, rest } = this.#options;
    const known = places.get(channelId);
    if (known !== undefined) return known;
    const answer = await rest.call('GET', `/channels/${channelId}`);
    return answer.kind === 'ok' ? places.learn(answer.value)?.now : undefined;
  }

  #context(ourUserId: string, receivedAtMonotonicMs: number): DecodeContext {
    return {
      guildId: this.#options.guildId,
      ourUserId,
      receivedAtMonotonicMs,
      caughtUp: false,
    };
  }
}
