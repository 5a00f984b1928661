// Who may call next: the budgets of one platform and app, shared by all threads. Lanes order the
// threads that wait for one budget, fair shares order those of one lane, and whoever last got input
// counts more. A 429 delays only what shares its limit, and outlives the process.

import type { Clock, Timer } from '../../base/clock.ts';
import type { PlatformKind } from '../chat-platform.ts';

export type Method = 'post' | 'edit' | 'upload' | 'look' | 'delete';
export type Lane = 'prompt' | 'exit' | 'final' | 'live' | 'screen';

export interface Need {
  readonly method: Method;
  readonly lane: Lane;
  readonly channel: string;
  /** Empty for a root message. */
  readonly thread: string;
}

/** A thread's place in the queues. One call in flight each, so one need at a time. */
export interface Seat {
  readonly name: string;
  /** Called when a budget has been set aside for this thread's need. */
  readonly wake: () => void;
}

export interface BackoffMemory {
  /** Scopes still closed, with the milliseconds left. */
  load(): readonly { readonly scope: string; readonly leftMs: number }[];
  save(scope: string, forMs: number, detail: string): void;
}

interface BucketShape {
  readonly key: string;
  readonly capacity: number;
  readonly perSecond: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
  readonly shape: BucketShape;
}

interface Waiter {
  readonly seat: Seat;
  need: Need;
  sinceMs: number;
  /** Set aside until then. */
  reservedUntilMs: number | undefined;
}

interface Share {
  /** Virtual time: grows with each call, slower for whoever counts more. */
  virtual: number;
  inputAtMs: number;
}

const LANES: readonly Lane[] = ['prompt', 'exit', 'final', 'live', 'screen'];
/** A budget set aside and not taken by then goes to the next. */
const RESERVATION_MS = 500;
/** Whoever got input this recently counts three times. */
const INPUT_MS = 30_000;
const INPUT_WEIGHT = 3;
/** Waiting this long lifts a need by one lane: nothing starves. */
const AGING_MS = 10_000;
/** A limit without a time: what both platforms mean by "a moment". */
const UNKNOWN_RETRY_MS = 5_000;
/** An answer of hours would park a thread for good; it is asked again instead. */
const RETRY_MAX_MS = 15 * 60_000;

/** Buckets a call draws from. Slack's edits are one budget for all threads of the app. */
export function bucketsOf(kind: PlatformKind, need: Need): readonly BucketShape[] {
  const place = need.thread === '' ? need.channel : need.thread;
  if (kind === 'slack') {
    const perMinute = (key: string, count: number, capacity: number): BucketShape => ({
      key,
      capacity,
      perSecond: count / 60,
    });
    switch (need.method) {
      case 'post':
        return [{ key: `post:${need.channel}`, capacity: 3, perSecond: 1 }];
      case 'upload':
        return [
          { key: `post:${need.channel}`, capacity: 3, perSecond: 1 },
          perMinute('upload', 30, 5),
        ];
      case 'edit':
        return [perMinute('edit', 50, 5)];
      case 'look':
        return [perMinute('look', 50, 5)];
      case 'delete':
        return [perMinute('delete', 50, 5)];
    }
  }
  const global = { key: 'global', capacity: 40, perSecond: 40 };
  const method = need.method === 'upload' ? 'post' : need.method;
  return [{ key: `${method}:${place}`, capacity: 5, perSecond: 1 }, global];
}

export class Scheduler {
  readonly #kind: PlatformKind;
  readonly #clock: Clock;
  readonly #memory: BackoffMemory;
  readonly #buckets = new Map<string, Bucket>();
  readonly #closedUntilMs = new Map<string, number>();
  readonly #waiters = new Map<Seat, Waiter>();
  readonly #shares = new Map<Seat, Share>();
  #virtualNow = 0;
  #timer: Timer | undefined;

  constructor(options: { kind: PlatformKind; clock: Clock; memory: BackoffMemory }) {
    this.#kind = options.kind;
    this.#clock = options.clock;
    this.#memory = options.memory;
    for (const { scope, leftMs } of this.#memory.load()) {
      this.#closedUntilMs.set(scope, this.#clock.monotonicMs() + Math.min(leftMs, RETRY_MAX_MS));
    }
  }

  /** Takes the budget for one call, or queues the need: `seat.wake` is called when it is its turn. */
  tryTake(seat: Seat, need: Need): boolean {
    const nowMs = this.#clock.monotonicMs();
    const waiter = this.#waiters.get(seat);
    const isReserved = waiter?.reservedUntilMs !== undefined && waiter.reservedUntilMs >= nowMs;
    if (isReserved && this.#sharesBudget(waiter.need, need)) {
      this.#waiters.delete(seat);
      this.#spend(seat, need, nowMs);
      return true;
    }
    if (this.#isFree(seat, need, nowMs)) {
      this.#waiters.delete(seat);
      this.#spend(seat, need, nowMs);
      return true;
    }
    if (waiter === undefined) {
      this.#waiters.set(seat, { seat, need, sinceMs: nowMs, reservedUntilMs: undefined });
    } else {
      waiter.need = need;
      waiter.reservedUntilMs = undefined;
    }
    this.#arm(nowMs);
    return false;
  }

  /** Calls left right now, for the pacing of a thread. */
  tokens(need: Need): number {
    const nowMs = this.#clock.monotonicMs();
    if (this.#closedFor(need, nowMs) > 0) return 0;
    const left = bucketsOf(this.#kind, need).map((shape) => this.#bucket(shape, nowMs).tokens);
    return Math.floor(Math.min(...left));
  }

  /** The platform refused a call for its rate. */
  limited(
    need: Need,
    limit: {
      readonly retryAfterMs: number | undefined;
      readonly scope: 'app' | 'place' | 'method' | undefined;
      readonly detail: string;
    },
  ): void {
    const forMs = Math.min(RETRY_MAX_MS, Math.max(0, limit.retryAfterMs ?? UNKNOWN_RETRY_MS));
    const scope = scopeKey(limit.scope ?? 'method', need);
    this.#closedUntilMs.set(scope, this.#clock.monotonicMs() + forMs);
    this.#memory.save(scope, forMs, limit.detail);
    this.#arm(this.#clock.monotonicMs());
  }

  /** A person typed into this thread. */
  gotInput(seat: Seat): void {
    this.#share(seat).inputAtMs = this.#clock.monotonicMs();
  }

  /** The thread needs nothing any more. */
  withdraw(seat: Seat): void {
    if (this.#waiters.delete(seat)) this.#arm(this.#clock.monotonicMs());
  }

  leave(seat: Seat): void {
    this.withdraw(seat);
    this.#shares.delete(seat);
  }

  get waitingCount(): number {
    return this.#waiters.size;
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#waiters.clear();
  }

  #sharesBudget(a: Need, b: Need): boolean {
    const keys = new Set(bucketsOf(this.#kind, a).map(({ key }) => key));
    return bucketsOf(this.#kind, b).every(({ key }) => keys.has(key));
  }

  /** Budget is left beyond what is set aside, and nobody waits for it who goes first. */
  #isFree(seat: Seat, need: Need, nowMs: number): boolean {
    if (this.#closedFor(need, nowMs) > 0) return false;
    for (const shape of bucketsOf(this.#kind, need)) {
      if (this.#bucket(shape, nowMs).tokens - this.#setAside(shape.key, seat, nowMs) < 1)
        return false;
    }
    return !this.#others(seat).some((other) => this.#goesFirst(other, seat, need, nowMs));
  }

  #others(seat: Seat): readonly Waiter[] {
    return [...this.#waiters.values()].filter((waiter) => waiter.seat !== seat);
  }

  #goesFirst(other: Waiter, seat: Seat, need: Need, nowMs: number): boolean {
    if (other.reservedUntilMs !== undefined || !this.#sharesAny(other.need, need)) return false;
    // Who could not call now anyway, for want of another budget, holds nobody up.
    if (this.#closedFor(other.need, nowMs) > 0 || this.#refillMs(other, nowMs) > 0) return false;
    const mine = this.#waiters.get(seat) ?? {
      seat,
      need,
      sinceMs: nowMs,
      reservedUntilMs: undefined,
    };
    return this.#compare(other, { ...mine, need }, nowMs) < 0;
  }

  #sharesAny(a: Need, b: Need): boolean {
    const keys = new Set(bucketsOf(this.#kind, a).map(({ key }) => key));
    return bucketsOf(this.#kind, b).some(({ key }) => keys.has(key));
  }

  #setAside(key: string, except: Seat, nowMs: number): number {
    let count = 0;
    for (const waiter of this.#waiters.values()) {
      if (waiter.seat === except || (waiter.reservedUntilMs ?? 0) < nowMs) continue;
      if (bucketsOf(this.#kind, waiter.need).some((shape) => shape.key === key)) count += 1;
    }
    return count;
  }

  #compare(a: Waiter, b: Waiter, nowMs: number): number {
    const lane = laneOf(a, nowMs) - laneOf(b, nowMs);
    if (lane !== 0) return lane;
    const share = this.#share(a.seat).virtual - this.#share(b.seat).virtual;
    return share !== 0 ? share : a.sinceMs - b.sinceMs;
  }

  #spend(seat: Seat, need: Need, nowMs: number): void {
    for (const shape of bucketsOf(this.#kind, need)) this.#bucket(shape, nowMs).tokens -= 1;
    const share = this.#share(seat);
    const weight = nowMs - share.inputAtMs < INPUT_MS ? INPUT_WEIGHT : 1;
    // Whoever was idle starts from now: silence earns no credit.
    share.virtual = Math.max(share.virtual, this.#virtualNow) + 1 / weight;
    this.#virtualNow = Math.max(this.#virtualNow, share.virtual - 1);
    if (this.#waiters.size > 0) this.#arm(nowMs);
  }

  #share(seat: Seat): Share {
    let share = this.#shares.get(seat);
    if (share === undefined) {
      share = { virtual: this.#virtualNow, inputAtMs: Number.NEGATIVE_INFINITY };
      this.#shares.set(seat, share);
    }
    return share;
  }

  #bucket(shape: BucketShape, nowMs: number): Bucket {
    let bucket = this.#buckets.get(shape.key);
    if (bucket === undefined) {
      bucket = { tokens: shape.capacity, atMs: nowMs, shape };
      this.#buckets.set(shape.key, bucket);
      this.#forgetFull(nowMs);
    }
    const gained = ((nowMs - bucket.atMs) / 1_000) * shape.perSecond;
    bucket.tokens = Math.min(shape.capacity, bucket.tokens + gained);
    bucket.atMs = nowMs;
    return bucket;
  }

  /** A full bucket is as good as none: threads come and go. */
  #forgetFull(nowMs: number): void {
    if (this.#buckets.size < 1_000) return;
    for (const [key, { tokens, atMs, shape }] of this.#buckets) {
      const full = tokens + ((nowMs - atMs) / 1_000) * shape.perSecond >= shape.capacity;
      if (full && atMs < nowMs) this.#buckets.delete(key);
    }
  }

  /** Milliseconds until no back-off stands in the way of this need. */
  #closedFor(need: Need, nowMs: number): number {
    let leftMs = 0;
    for (const scope of ['app', 'method', 'place'] as const) {
      const untilMs = this.#closedUntilMs.get(scopeKey(scope, need));
      if (untilMs === undefined) continue;
      if (untilMs <= nowMs) this.#closedUntilMs.delete(scopeKey(scope, need));
      else leftMs = Math.max(leftMs, untilMs - nowMs);
    }
    return leftMs;
  }

  /** Sets budget aside for whoever is first, and wakes again when the next token is due. */
  #arm(nowMs: number): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#waiters.size === 0) return;
    this.#timer = this.#clock.timer(Math.max(1, this.#nextMs(nowMs)), () => this.#serve());
  }

  #serve(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.monotonicMs();
    const waiting = [...this.#waiters.values()].sort((a, b) => this.#compare(a, b, nowMs));
    const woken: Waiter[] = [];
    for (const waiter of waiting) {
      if (waiter.reservedUntilMs !== undefined && waiter.reservedUntilMs < nowMs) {
        waiter.reservedUntilMs = undefined;
      }
      if (waiter.reservedUntilMs === undefined && this.#isFree(waiter.seat, waiter.need, nowMs)) {
        waiter.reservedUntilMs = nowMs + RESERVATION_MS;
        woken.push(waiter);
      }
    }
    this.#arm(nowMs);
    for (const waiter of woken) waiter.seat.wake();
  }

  #nextMs(nowMs: number): number {
    let nextMs = RESERVATION_MS;
    for (const waiter of this.#waiters.values()) {
      if (waiter.reservedUntilMs !== undefined && waiter.reservedUntilMs >= nowMs) continue;
      nextMs = Math.min(
        nextMs,
        Math.max(this.#closedFor(waiter.need, nowMs), this.#refillMs(waiter, nowMs)),
      );
    }
    return Math.ceil(nextMs);
  }

  #refillMs({ need, seat }: Waiter, nowMs: number): number {
    let waitMs = 0;
    for (const shape of bucketsOf(this.#kind, need)) {
      const left = this.#bucket(shape, nowMs).tokens - this.#setAside(shape.key, seat, nowMs);
      if (left < 1) waitMs = Math.max(waitMs, ((1 - left) / shape.perSecond) * 1_000);
    }
    return waitMs;
  }
}

function laneOf(waiter: Waiter, nowMs: number): number {
  return LANES.indexOf(waiter.need.lane) - Math.floor((nowMs - waiter.sinceMs) / AGING_MS);
}

function scopeKey(scope: 'app' | 'place' | 'method', need: Need): string {
  if (scope === 'app') return 'app';
  if (scope === 'method') return `method:${need.method}`;
  return `place:${need.method}:${need.channel}:${need.thread}`;
}
