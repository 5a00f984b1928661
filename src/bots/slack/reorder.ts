// Two sockets deliver in no order between them. Lines typed in quick succession, one on each, are put
// back into the order of their ts; a line that came alone waits for nothing.

import type { Clock, Timer } from '../../base/clock.ts';

export interface Arrival<T> {
  readonly item: T;
  /** Which socket it came by. */
  readonly socket: number;
  /** Its place in the order; ts of Slack compare as text. */
  readonly ts: string;
}

/** Only when both sockets delivered within this time is there anything to put in order. */
const TOGETHER_MS = 300;
const HOLD_MS = 150;

export class Reorder<T> {
  readonly #clock: Clock;
  readonly #release: (item: T) => void;
  readonly #lastAtMs = new Map<number, number>();
  #held: Arrival<T>[] = [];
  #timer: Timer | undefined;

  constructor(clock: Clock, release: (item: T) => void) {
    this.#clock = clock;
    this.#release = release;
  }

  offer(arrival: Arrival<T>): void {
    const nowMs = this.#clock.monotonicMs();
    const together = [...this.#lastAtMs].some(
      ([socket, atMs]) => socket !== arrival.socket && nowMs - atMs <= TOGETHER_MS,
    );
    this.#lastAtMs.set(arrival.socket, nowMs);
    if (!together && this.#held.length === 0) {
      this.#release(arrival.item);
      return;
    }
    this.#held.push(arrival);
    this.#timer ??= this.#clock.timer(HOLD_MS, () => this.#releaseAll());
  }

  #releaseAll(): void {
    const held = this.#held;
    this.#held = [];
    this.#timer = undefined;
    held.sort((a, b) => (a.ts < b.ts ? -1 : Number(a.ts > b.ts)));
    for (const { item } of held) this.#release(item);
  }
}
