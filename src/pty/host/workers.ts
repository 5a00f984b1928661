// The host's two threads as the main thread sees them: typed messages, wake-ups, slots, answers.

import { MessageChannel, Worker } from 'node:worker_threads';
import { ChatdError } from '../../base/errors.ts';
import { openPipe } from '../../sys/fd.ts';
import { writeSome } from '../../sys/tty.ts';
import type { FromModel, ModelQuery, ToModel } from './model-messages.ts';
import type { FromReader, ToReader } from './reader-messages.ts';
import { SharedState, SLOTS_MAX } from './shared-state.ts';

const WAKE = Buffer.from([1]);

export interface WorkerEvents {
  reader(message: FromReader): void;
  model(message: Exclude<FromModel, { t: 'result' | 'refused' | 'prepared' | 'stopped' }>): void;
  /** A thread ended by itself: the host cannot go on. */
  failed(thread: 'reader' | 'model', because: string): void;
}

interface Pending {
  resolve(payload: Uint8Array): void;
  reject(error: Error): void;
}

export class Workers {
  readonly shared = new SharedState();
  readonly #reader: Worker;
  readonly #model: Worker;
  readonly #commands: MessageChannel['port1'];
  readonly #wakeFd: number;
  readonly #pending = new Map<number, Pending>();
  readonly #freeSlots: number[] = Array.from(
    { length: SLOTS_MAX },
    (_, index) => SLOTS_MAX - 1 - index,
  );
  #nextId = 1;

  constructor(entries: { readonly reader: URL; readonly model: URL }, events: WorkerEvents) {
    const wake = openPipe({ nonBlocking: true });
    const commands = new MessageChannel();
    const between = new MessageChannel();
    this.#wakeFd = wake.write;
    this.#commands = commands.port1;
    const shared = this.shared.buffer;
    this.#reader = new Worker(entries.reader, {
      workerData: { shared, wakeFd: wake.read, commands: commands.port2, model: between.port1 },
      transferList: [commands.port2, between.port1],
    });
    this.#model = new Worker(entries.model, {
      workerData: { shared, wakeFd: wake.write, reader: between.port2 },
      transferList: [between.port2],
    });
    this.#reader.on('message', (message: FromReader) => {
      if (message.t === 'stopped') this.#onReaderStopped();
      else if (message.t === 'failed') events.failed('reader', message.message);
      else events.reader(message);
    });
    this.#model.on('message', (message: FromModel) => {
      if (message.t === 'result') this.#take(message.id)?.resolve(message.payload);
      else if (message.t === 'refused') {
        const error = new ChatdError('host-unreachable', `Cannot ask model: ${message.message}`);
        this.#take(message.id)?.reject(error);
      } else if (message.t === 'prepared') this.#onPrepared();
      else if (message.t === 'stopped') this.#onModelStopped();
      else events.model(message);
    });
    this.#reader.on('error', (error) => events.failed('reader', error.message));
    this.#model.on('error', (error) => events.failed('model', error.message));
  }

  /** Undefined when there are more sessions than the host has room for. */
  takeSlot(length: number, modelOffset: number): number | undefined {
    const slot = this.#freeSlots.pop();
    if (slot !== undefined) this.shared.reset(slot, length, modelOffset);
    return slot;
  }

  giveSlot(slot: number): void {
    this.#freeSlots.push(slot);
  }

  toReader(message: ToReader): void {
    this.#commands.postMessage(message);
    writeSome(this.#wakeFd, WAKE);
  }

  toModel(message: ToModel): void {
    this.#model.postMessage(message);
  }

  /** The model's answer, packed. @throws {ChatdError} host-unreachable */
  query(slot: number, query: ModelQuery): Promise<Uint8Array> {
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.toModel({ t: 'query', id, slot, query });
    });
  }

  /** Checkpoints first, while reading goes on: they take the longest of a hand-over. */
  prepareToStop(prepared: () => void): void {
    this.#onPrepared = prepared;
    this.toModel({ t: 'prepare' });
  }

  /** First the reader, then the model. */
  stop(readingStopped: () => void, done: () => void): void {
    this.#onReaderStopped = () => {
      readingStopped();
      this.toModel({ t: 'stop' });
    };
    this.#onModelStopped = done;
    this.toReader({ t: 'stop' });
  }

  #onPrepared: () => void = () => undefined;
  #onReaderStopped: () => void = () => undefined;
  #onModelStopped: () => void = () => undefined;

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }
}
