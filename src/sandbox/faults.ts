// Faults as values: which requests or socket events go wrong, how often, and how. Decides only;
// exchange.ts and the platforms' sockets carry the decision out.

import { type Random, seededRandom } from '../base/random.ts';

/** What goes wrong with one HTTP request. */
export type HttpFault =
  /** This answer instead of the platform's. With `processed` the request takes effect first. */
  | {
      readonly kind: 'reply';
      readonly status: number;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly processed?: boolean;
    }
  /** 429 as the platform says it; without `retryAfterSec` the header is missing; `html` as a proxy says it. */
  | { readonly kind: 'rate-limit'; readonly retryAfterSec?: number; readonly html?: boolean }
  /** The platform's own error answer (Slack: 200 with ok:false), before or after processing. */
  | { readonly kind: 'error'; readonly code: string; readonly processed?: boolean }
  /** The connection is reset, before or after processing. */
  | { readonly kind: 'reset'; readonly processed?: boolean }
  /** Never answered. */
  | { readonly kind: 'hang'; readonly processed?: boolean }
  /** Takes effect `ms` later, also when the client has gone by then; `processedFirst`: only the answer is late. */
  | { readonly kind: 'delay'; readonly ms: number; readonly processedFirst?: boolean }
  /** Processed; half of the answer's body, then a reset. */
  | { readonly kind: 'truncate' };

/** What goes wrong with one socket or one event on it. */
export type SocketFault =
  /** The upgrade is answered with this HTTP status. */
  | { readonly kind: 'refuse-upgrade'; readonly status: number }
  /** No hello, or a late one. */
  | { readonly kind: 'no-hello'; readonly delayMs?: number }
  /** The event is delivered twice (Slack: same envelope; Discord: same dispatch). */
  | { readonly kind: 'duplicate' }
  /** The event waits and is delivered after the next one. */
  | { readonly kind: 'reorder' }
  /** The event is delivered `ms` late. */
  | { readonly kind: 'late'; readonly ms: number }
  /** The event is never delivered. */
  | { readonly kind: 'lose' }
  /** The answer of the client (ack, heartbeat) is treated as not received. */
  | { readonly kind: 'ignore-ack' };

export type Fault = HttpFault | SocketFault;

export interface FaultRule {
  /**
   * `platform:target`, `*` matches any text: `slack:chat.postMessage`, `slack:chat.*`,
   * `discord:POST /channels/:id/messages`, `slack:socket` (opening), `slack:event` (deliveries).
   */
  readonly on: string;
  readonly fault: Fault;
  /** How many times it strikes; default 1, 0 = without end. */
  readonly count?: number;
  /** Matches let through before the first strike; default 0. */
  readonly skip?: number;
  /** Chance of each strike; default 1. */
  readonly probability?: number;
  /** Of the rule's own generator; default drawn from the sandbox's. */
  readonly seed?: number;
}

interface LiveRule {
  readonly id: number;
  readonly rule: FaultRule;
  readonly pattern: RegExp;
  readonly random: Random;
  skipLeft: number;
  strikesLeft: number;
  struck: number;
}

const RULES_MAX = 500;

export class Faults {
  readonly #random: Random;
  readonly #rules: LiveRule[] = [];
  #lastId = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /**
   * Returns the rule's id.
   * @throws {Error} when there are already 500 rules.
   */
  add(rule: FaultRule): number {
    if (this.#rules.length >= RULES_MAX) throw new Error('Cannot add fault: 500 rules already');
    this.#lastId += 1;
    this.#rules.push({
      id: this.#lastId,
      rule,
      pattern: globPattern(rule.on),
      random: seededRandom(rule.seed ?? Math.floor(this.#random.next() * 2 ** 32)),
      skipLeft: rule.skip ?? 0,
      strikesLeft: rule.count === undefined ? 1 : rule.count === 0 ? Infinity : rule.count,
      struck: 0,
    });
    return this.#lastId;
  }

  /** Removes one rule, or all. */
  clear(id?: number): void {
    const kept = id === undefined ? [] : this.#rules.filter((live) => live.id !== id);
    this.#rules.splice(0, this.#rules.length, ...kept);
  }

  list(): readonly (FaultRule & { readonly id: number; readonly struck: number })[] {
    return this.#rules.map((live) => ({ ...live.rule, id: live.id, struck: live.struck }));
  }

  /** The fault that strikes `target` now and is one of `kinds`, or undefined. Uses it up. */
  take<K extends Fault['kind']>(
    target: string,
    kinds: readonly K[],
  ): Extract<Fault, { kind: K }> | undefined {
    for (const live of this.#rules) {
      if (!live.pattern.test(target) || !isOneOf(live.rule.fault, kinds)) continue;
      if (this.#strikes(live)) return live.rule.fault;
    }
    return undefined;
  }

  #strikes(live: LiveRule): boolean {
    if (live.strikesLeft <= 0) return false;
    if (live.random.next() >= (live.rule.probability ?? 1)) return false;
    if (live.skipLeft > 0) {
      live.skipLeft -= 1;
      return false;
    }
    live.strikesLeft -= 1;
    live.struck += 1;
    return true;
  }
}

function isOneOf<K extends Fault['kind']>(
  fault: Fault,
  kinds: readonly K[],
): fault is Extract<Fault, { kind: K }> {
  return kinds.some((kind) => kind === fault.kind);
}

function globPattern(glob: string): RegExp {
  const escaped = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\/]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`);
}
