// Everything a real platform would have refused, warned about or silently mangled. End-to-end tests
// assert that there are none.

import type { Clock } from '../base/clock.ts';
import type { SandboxPlatform } from './platform.ts';
import { Ring } from './ring.ts';

/** What the real platform does about it. */
export type Severity = 'refused' | 'warned' | 'mangled';

export interface Violation {
  readonly platform: SandboxPlatform;
  /** Kebab-case name of the rule that was broken, stable for tests. */
  readonly rule: string;
  readonly severity: Severity;
  /** The method or route. */
  readonly target: string;
  readonly detail: string;
  readonly atMs: number;
}

export class Violations {
  // 5,000 is far above what a test should ever see and still a few MB at most.
  readonly #ring = new Ring<Violation>(5_000);
  readonly #clock: Clock;
  readonly #onAdd: (violation: Violation) => void;

  constructor(clock: Clock, onAdd: (violation: Violation) => void) {
    this.#clock = clock;
    this.#onAdd = onAdd;
  }

  add(violation: Omit<Violation, 'atMs'>): void {
    const entry = { ...violation, atMs: this.#clock.wallMs() };
    this.#ring.push(entry);
    this.#onAdd(entry);
  }

  list(): readonly Violation[] {
    return this.#ring.after(0).map((entry) => entry.value);
  }

  /** All ever added, also those the ring no longer holds. */
  get totalCount(): number {
    return this.#ring.lastSeq;
  }

  clear(): void {
    this.#ring.clear();
  }
}
