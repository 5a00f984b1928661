// Runs a recording through a terminal model and collects all it says.

import { TerminalModel } from '../../src/term/terminal-model.ts';
import type { Line, Mark } from '../../src/term/values.ts';
import type { Cast, CastEvent } from './casts.ts';

export class ModelRun {
  readonly lines: Line[] = [];
  readonly marks: Mark[] = [];
  answers = '';

  readonly model: TerminalModel;

  constructor(model: TerminalModel) {
    this.model = model;
  }

  static of(cast: Pick<Cast, 'cols' | 'rows'>): ModelRun {
    return new ModelRun(new TerminalModel({ cols: cast.cols, rows: cast.rows }));
  }

  /** Plays events; `chunk` cuts the bytes of each output. */
  play(
    events: readonly CastEvent[],
    chunk: (bytes: Buffer) => readonly Buffer[] = (b) => [b],
  ): this {
    for (const event of events) {
      if (event.kind === 'resize') this.model.resize(event.cols, event.rows);
      else for (const piece of chunk(event.bytes)) this.model.write(piece, event.atMs);
      this.collect();
    }
    return this;
  }

  write(text: string, nowMs = 0): this {
    this.model.write(Buffer.from(text), nowMs);
    return this.collect();
  }

  exit(): this {
    this.model.exit();
    return this.collect();
  }

  collect(): this {
    for (const line of this.model.takeFinals()) this.lines.push(line);
    for (const mark of this.model.takeMarks()) this.marks.push(mark);
    this.answers += Buffer.from(this.model.takeAnswers()).toString('latin1');
    return this;
  }

  get texts(): string[] {
    return this.lines.map((line) => line.text);
  }

  /** Final lines followed by the tail. */
  get transcript(): string[] {
    return [...this.texts, ...this.model.view().tail.map((line) => line.text)];
  }

  get markKinds(): string[] {
    return this.marks.map(({ what }) => (what.kind === 'mode' ? what.mode : what.kind));
  }
}
