// What the host's three threads know of each session without messages: how far its journal and its
// model are, and who has been told. One slot a session; slots are given out by the main thread.

/** More than any machine runs; 40 bytes each. */
export const SLOTS_MAX = 4096;

const MAIN_TOLD = 0;
const MODEL_TOLD = 1;
const PAUSED = 2;
const MODEL_ON = 3;
const FLAGS = 4;

export type Listener = 'main' | 'model';

export class SharedState {
  readonly buffer: SharedArrayBuffer;
  readonly #lengths: BigInt64Array;
  readonly #modelOffsets: BigInt64Array;
  readonly #flags: Int32Array;

  constructor(buffer = new SharedArrayBuffer(SLOTS_MAX * (8 + 8 + FLAGS * 4))) {
    this.buffer = buffer;
    this.#lengths = new BigInt64Array(buffer, 0, SLOTS_MAX);
    this.#modelOffsets = new BigInt64Array(buffer, SLOTS_MAX * 8, SLOTS_MAX);
    this.#flags = new Int32Array(buffer, SLOTS_MAX * 16, SLOTS_MAX * FLAGS);
  }

  /** Where the journal ends: bytes before it can be read from the segments. Reader thread. */
  length(slot: number): number {
    return Number(Atomics.load(this.#lengths, slot));
  }

  setLength(slot: number, length: number): void {
    Atomics.store(this.#lengths, slot, BigInt(length));
  }

  /** What the emulator has consumed. Model thread. */
  modelOffset(slot: number): number {
    return Number(Atomics.load(this.#modelOffsets, slot));
  }

  setModelOffset(slot: number, offset: number): void {
    Atomics.store(this.#modelOffsets, slot, BigInt(offset));
  }

  /** True when the listener has to be told: it has not been since it last looked. */
  claimTelling(slot: number, listener: Listener): boolean {
    return Atomics.exchange(this.#flags, this.#at(slot, listener), 1) === 0;
  }

  /** The listener is about to look: whatever comes later is told again. */
  clearTold(slot: number, listener: Listener): void {
    Atomics.store(this.#flags, this.#at(slot, listener), 0);
  }

  /** The reader waits for the model of this session. */
  paused(slot: number): boolean {
    return Atomics.load(this.#flags, slot * FLAGS + PAUSED) === 1;
  }

  setPaused(slot: number, paused: boolean): void {
    Atomics.store(this.#flags, slot * FLAGS + PAUSED, paused ? 1 : 0);
  }

  /** An emulator follows this session, so reading may not run far ahead of it. */
  modelOn(slot: number): boolean {
    return Atomics.load(this.#flags, slot * FLAGS + MODEL_ON) === 1;
  }

  setModelOn(slot: number, on: boolean): void {
    Atomics.store(this.#flags, slot * FLAGS + MODEL_ON, on ? 1 : 0);
  }

  /** Makes a slot ready for another session. */
  reset(slot: number, length: number, modelOffset: number): void {
    for (let flag = 0; flag < FLAGS; flag += 1) Atomics.store(this.#flags, slot * FLAGS + flag, 0);
    this.setLength(slot, length);
    this.setModelOffset(slot, modelOffset);
  }

  #at(slot: number, listener: Listener): number {
    return slot * FLAGS + (listener === 'main' ? MAIN_TOLD : MODEL_TOLD);
  }
}
