// The transcript at one offset, as the planner sees it, and the reader that makes it: final lines
// by number from the feed, as few as a plan needs, and the newest view. Bounded whatever is behind.

import type { LineFeed } from '../../pty/client.ts';
import type { Frame, Line, Mode, View } from '../../term/values.ts';
import { type Redact, redactFrame } from '../render/redact.ts';

export type TranscriptSource = Pick<LineFeed, 'view' | 'readLines' | 'readMarks'>;

export interface Transcript {
  readonly offset: number;
  /** Lines before it are final. */
  readonly finalCount: number;
  /** Final lines and tail. */
  readonly total: number;
  readonly mode: Mode;
  readonly frame: Frame | undefined;
  readonly markCount: number;
  /** Lines before it can no longer be had; 0 when all can. */
  readonly lostBefore: number;
  /** Undefined: beyond the end, lost, or in the middle of a flood and not loaded. */
  lineAt(line: number): Line | undefined;
}

export interface Needs {
  /** First line the plan may have to show. */
  readonly from: number;
  /** Final lines wanted from there on. */
  readonly headMax: number;
  /** Newest final lines wanted, for the end of a flood. */
  readonly lastMax: number;
}

/** Lines of context a masked block (a private key) may reach back. */
const CONTEXT_LINES = 60;
const READ_LINES_MAX = 1_000;

export class TranscriptReader {
  readonly #source: TranscriptSource;
  readonly #redact: Redact;
  /** Unmasked lines are the context in which the next ones are masked. */
  readonly #finals = new Map<number, { readonly raw: Line; readonly shown: Line }>();
  #lostBefore = 0;

  constructor(source: TranscriptSource, redact: Redact) {
    this.#source = source;
    this.#redact = redact;
  }

  /**
   * The newest transcript with the lines a plan needs; undefined before the first view.
   * @throws {ChatdError} host-unreachable
   */
  async capture(needs: Needs): Promise<Transcript | undefined> {
    let view = this.#source.view;
    // Final lines never change, so reading on is safe while the view moves; twice is enough to
    // catch up with what scrolled off during the first read, and an older view is also a truth.
    for (let round = 0; view !== undefined && round < 2; round += 1) {
      const read = await this.#load(view.finalCount, needs);
      if (!read) break;
      view = this.#source.view ?? view;
    }
    if (view === undefined) return undefined;
    await this.#load(view.finalCount, needs);
    this.#forget(view.finalCount, needs);
    return this.#at(view);
  }

  /** Loads what is missing; false when nothing was. */
  async #load(finalCount: number, needs: Needs): Promise<boolean> {
    const headEnd = Math.min(finalCount, needs.from + needs.headMax);
    const lastStart = Math.max(headEnd, finalCount - needs.lastMax);
    const head = await this.#loadRange(Math.max(needs.from, this.#lostBefore), headEnd);
    const last = await this.#loadRange(Math.max(lastStart, this.#lostBefore), finalCount);
    return head || last;
  }

  async #loadRange(from: number, to: number): Promise<boolean> {
    let at = from;
    while (at < to && this.#finals.has(at)) at += 1;
    if (at >= to) return false;
    while (at < to) {
      const next = await this.#read(at, Math.min(to, at + READ_LINES_MAX));
      if (next <= at) break;
      at = next;
    }
    return true;
  }

  /** Reads [from, to) with what the masking needs before it; answers where it came to. */
  async #read(from: number, to: number): Promise<number> {
    const start = Math.max(0, from - CONTEXT_LINES);
    const context = this.#known(start, from);
    const read = await this.#source.readLines(context === undefined ? start : from, to);
    if (read.gap !== undefined) this.#lostBefore = Math.max(this.#lostBefore, read.gap.to);
    const before = context ?? read.lines.slice(0, Math.max(0, from - read.from));
    const fresh = context === undefined ? read.lines.slice(before.length) : read.lines;
    const first = Math.max(from, read.from);
    const shown = this.#redact(fresh, before);
    for (const [index, raw] of fresh.entries()) {
      this.#finals.set(first + index, { raw, shown: shown[index] ?? raw });
    }
    return first + fresh.length;
  }

  /** Lines [from, to), unmasked, when all are known. */
  #known(from: number, to: number): readonly Line[] | undefined {
    const lines: Line[] = [];
    for (let line = from; line < to; line += 1) {
      const known = this.#finals.get(line);
      if (known === undefined) return undefined;
      lines.push(known.raw);
    }
    return lines;
  }

  #forget(finalCount: number, needs: Needs): void {
    const lastStart = finalCount - Math.max(needs.lastMax, CONTEXT_LINES);
    for (const line of this.#finals.keys()) {
      const isHead = line >= needs.from - CONTEXT_LINES && line < needs.from + needs.headMax;
      if (!isHead && line < lastStart) this.#finals.delete(line);
    }
  }

  #at(view: View): Transcript {
    const { finalCount } = view;
    const before: Line[] = [];
    for (let line = finalCount - CONTEXT_LINES; line < finalCount; line += 1) {
      const known = this.#finals.get(line);
      if (known !== undefined) before.push(known.raw);
    }
    const tail = this.#redact(view.tail, before);
    const finals = new Map(this.#finals);
    const frame = view.frame;
    return {
      offset: view.offset,
      finalCount: view.finalCount,
      total: view.finalCount + tail.length,
      mode: view.mode,
      frame: frame === undefined ? undefined : redactFrame(this.#redact, frame),
      markCount: view.markCount,
      lostBefore: this.#lostBefore,
      lineAt: (line) => (line < finalCount ? finals.get(line)?.shown : tail[line - finalCount]),
    };
  }
}
