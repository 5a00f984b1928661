// Every request the sandbox received, newest kept. Tokens never enter it: callers pass arguments
// already stripped of them.

import type { SandboxPlatform } from './platform.ts';
import { type Numbered, Ring } from './ring.ts';

export interface RecordedRequest {
  readonly platform: SandboxPlatform;
  /** Slack: the method (`chat.postMessage`). Discord: verb and route (`POST /channels/:id/messages`). */
  readonly target: string;
  readonly atMs: number;
  readonly args: unknown;
  /** Of the answer; 0 when none was sent (reset, hang). */
  readonly status: number;
  /** Platform's error code in the answer, if any. */
  readonly error?: string;
  /** Kind of the fault that was applied, if any. */
  readonly fault?: string;
  /** False when a fault kept the request from having any effect. */
  readonly processed: boolean;
}

export class RequestLog {
  readonly #ring: Ring<RecordedRequest>;
  readonly #onAdd: (entry: Numbered<RecordedRequest>) => void;

  constructor(onAdd: (entry: Numbered<RecordedRequest>) => void, capacity = 2_000) {
    this.#ring = new Ring(capacity);
    this.#onAdd = onAdd;
  }

  add(request: RecordedRequest): void {
    this.#onAdd(this.#ring.push(request));
  }

  /** Kept requests after number `seq`, optionally of one target, oldest first. */
  list(
    filter: { readonly after?: number; readonly target?: string } = {},
  ): readonly (RecordedRequest & {
    readonly seq: number;
  })[] {
    return this.#ring
      .after(filter.after ?? 0)
      .filter((entry) => filter.target === undefined || entry.value.target === filter.target)
      .map((entry) => ({ seq: entry.seq, ...entry.value }));
  }

  get totalCount(): number {
    return this.#ring.lastSeq;
  }

  clear(): void {
    this.#ring.clear();
  }
}
