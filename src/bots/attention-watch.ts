// Notices when a program waits for a person: looks again when output has been quiet for a moment, and
// says each prompt once. What it says may be wrong; what is typed is checked again at the write.

import { createHash } from 'node:crypto';
import type { Clock, Timer } from '../base/clock.ts';
import type { Host, LineFeed, SessionTarget, TtyState } from '../pty/client.ts';
import type { Mark, Waiting } from '../term/values.ts';
import { detectWaiting, type ShellPhase } from './render/attention.ts';

/** A little more than the quiet times detectWaiting asks for, so that one look is enough. */
const LOOK_AFTER_MS = [450, 900, 2_500] as const;
/** A notice pushes a live screen down, so a full-screen program is given longer: keys come quickly. */
const SCREEN_QUIET_MS = 2_400;
const MARKS_READ_MAX = 200;
/** A prompt worth a message asks something; `>>> ` and `$ ` are where a person types anyway. */
const ASKS = /[?:\])]\s*$/;

export interface Prompt {
  readonly waiting: Extract<Waiting, { kind: 'password' | 'menu' | 'prompt' }>;
  /** The same for the same prompt, whatever process looks. */
  readonly key: string;
}

export interface WatchDeps {
  readonly host: Host;
  readonly feed: LineFeed;
  readonly target: SessionTarget;
  readonly clock: Clock;
  readonly prompt: (prompt: Prompt) => void;
  readonly failed: (error: unknown) => void;
}

export class AttentionWatch {
  readonly #deps: WatchDeps;
  #timers: readonly Timer[] = [];
  #offset = -1;
  #changedAtMs = 0;
  #nextMark = 0;
  #shell: ShellPhase = 'unknown';
  #told = '';
  #closed = false;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /** The feed changed: a new output begins the quiet anew. */
  changed(): void {
    const { feed, clock } = this.#deps;
    const offset = feed.view?.offset ?? -1;
    if (this.#closed || offset === this.#offset) return;
    this.#offset = offset;
    this.#changedAtMs = clock.monotonicMs();
    this.#cancel();
    this.#timers = LOOK_AFTER_MS.map((delayMs) => clock.timer(delayMs, () => this.#look()));
  }

  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  #cancel(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#timers = [];
  }

  #look(): void {
    this.#lookOnce().catch((error: unknown) => this.#deps.failed(error));
  }

  async #lookOnce(): Promise<void> {
    const { feed, host, target, clock } = this.#deps;
    const offset = this.#offset;
    if (feed.state.kind !== 'running' || feed.status.kind !== 'attached') return;
    const tty: TtyState | 'unknown' = await host.ttyState(target);
    await this.#readMarks();
    const { view } = feed;
    // Output came while the host was asked: another look is already planned.
    if (view === undefined || view.offset !== offset || this.#closed) return;
    const quietMs = clock.monotonicMs() - this.#changedAtMs;
    const waiting = detectWaiting({ view, tty, shell: this.#shell, quietMs });
    if (!isWorthSaying(waiting)) return;
    if (view.mode === 'screen' && quietMs < SCREEN_QUIET_MS) return;
    const key = keyOf(waiting);
    if (key === this.#told) return;
    this.#told = key;
    this.#deps.prompt({ waiting, key });
  }

  async #readMarks(): Promise<void> {
    const { feed } = this.#deps;
    const count = feed.view?.markCount ?? 0;
    while (this.#nextMark < count) {
      const marks = await feed.readMarks(this.#nextMark, MARKS_READ_MAX);
      const last = marks.at(-1);
      if (last === undefined) return;
      for (const mark of marks) this.#shell = phaseAfter(this.#shell, mark);
      this.#nextMark = last.seq + 1;
    }
  }
}

function phaseAfter(phase: ShellPhase, mark: Mark): ShellPhase {
  switch (mark.what.kind) {
    case 'prompt-start':
    case 'prompt-end':
      return 'prompt';
    case 'command-start':
      return 'running';
    default:
      return phase;
  }
}

function isWorthSaying(waiting: Waiting): waiting is Prompt['waiting'] {
  switch (waiting.kind) {
    case 'nothing':
      return false;
    case 'password':
    case 'menu':
      return true;
    case 'prompt':
      return !waiting.shell && ASKS.test(waiting.text);
  }
}

/** Text of a program is never stored: the key holds only its hash. */
function keyOf(waiting: Prompt['waiting']): string {
  const digest = createHash('sha256').update(waiting.text).digest('hex').slice(0, 16);
  return `${waiting.kind}:${waiting.line}:${digest}`;
}
