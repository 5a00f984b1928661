// A session in a simulation: final lines, a tail that may still change, screen mode, marks. Numbers
// and frames behave as the host's: final lines never change, marks are at their line for ever.

import type { LinesRead } from '../../src/pty/client.ts';
import type { Frame, Line, Mark, MarkKind, View } from '../../src/term/values.ts';

export class SimSession {
  readonly finals: Line[] = [];
  tail: Line[] = [{ text: '' }];
  readonly marks: Mark[] = [];
  frame: Frame | undefined;
  #offset = 0;
  readonly #rows: number;

  constructor(rows: number) {
    this.#rows = rows;
  }

  get view(): View {
    return {
      offset: this.#offset,
      finalCount: this.finals.length,
      tail: this.tail,
      cursor: {
        line: this.finals.length + Math.max(0, this.tail.length - 1),
        column: 0,
        visible: true,
      },
      mode: this.frame === undefined ? 'log' : 'screen',
      ...(this.frame === undefined ? {} : { frame: this.frame }),
      markCount: this.marks.length,
      cols: 80,
      rowCount: this.#rows,
      applicationCursor: false,
      bracketedPaste: false,
    };
  }

  /** Every line there is. */
  get all(): readonly string[] {
    return [...this.finals, ...this.tail].map((line) => line.text);
  }

  async readLines(from: number, to: number): Promise<LinesRead> {
    return { from, lines: this.finals.slice(from, to) };
  }

  async readMarks(fromSeq: number, max: number): Promise<readonly Mark[]> {
    return this.marks.slice(fromSeq, fromSeq + max);
  }

  /** Text into the line the cursor is on, and a new line below it. */
  print(text: string): void {
    const last = this.tail.length - 1;
    this.tail = [...this.tail.slice(0, last), { text }, { text: '' }];
    this.#scroll();
  }

  /** Text that stays on the cursor's line, as a prompt does. */
  write(text: string): void {
    this.tail = [...this.tail.slice(0, -1), { text: `${this.tail.at(-1)?.text ?? ''}${text}` }];
    this.#offset += text.length + 1;
  }

  /** A line still on the screen changes. */
  change(indexFromEnd: number, text: string): void {
    const at = this.tail.length - 1 - indexFromEnd;
    if (at < 0) return;
    this.tail = this.tail.map((line, index) => (index === at ? { text } : line));
    this.#offset += text.length;
  }

  /** The program moves up and erases what was below. */
  erase(count: number): void {
    this.tail = this.tail.slice(0, Math.max(1, this.tail.length - count));
    this.#offset += 3;
  }

  mark(what: MarkKind): void {
    this.#offset += 1;
    const line = what.kind === 'mode' ? this.finals.length : this.view.cursor.line;
    this.marks.push({ seq: this.marks.length, offset: this.#offset, line, what });
  }

  enterScreen(): void {
    if (this.frame !== undefined) return;
    this.finals.push(...this.tail.slice(0, -1));
    this.tail = [];
    this.mark({ kind: 'mode', mode: 'screen' });
    this.draw('opened');
  }

  draw(text: string): void {
    this.#offset += text.length;
    this.frame = {
      offset: this.#offset,
      cols: 80,
      rows: [{ text: `screen ${text}` }, { text: '~' }],
      cursor: { row: 0, col: 0, visible: true },
      title: '',
      alternate: true,
    };
  }

  leaveScreen(): void {
    if (this.frame === undefined) return;
    this.mark({ kind: 'mode', mode: 'log', frame: this.frame });
    this.frame = undefined;
    this.tail = [{ text: '' }];
  }

  /** The program ends: everything is final. */
  exit(): void {
    this.leaveScreen();
    this.finals.push(
      ...this.tail.filter((line, at) => at < this.tail.length - 1 || line.text !== ''),
    );
    this.tail = [];
    this.#offset += 1;
  }

  #scroll(): void {
    while (this.tail.length > this.#rows) {
      const [first, ...rest] = this.tail;
      if (first !== undefined) this.finals.push(first);
      this.tail = rest;
    }
    this.#offset += 10;
  }
}
