// Notices what is worth a picture while it happens: what a program prints as one, and, where the
// platform shows pictures beside text, the last screen of a full-screen program. Pictures are an
// extra: text and frames are the transcript, so what happened before this process is not made up for.

import type { Clock } from '../base/clock.ts';
import type { LineFeed } from '../pty/client.ts';
import type { Mark } from '../term/values.ts';
import { pictureOf } from './made-files.ts';
import type { FileBody } from './outbox/rows.ts';

const MARKS_READ_MAX = 200;
/** A program that prints pictures in a loop must not fill a thread: more within the window are not shown. */
const PICTURES_MAX = 6;
const WINDOW_MS = 60_000;

export interface PictureWatchDeps {
  readonly feed: LineFeed;
  readonly clock: Clock;
  /** Also the last screen of a full-screen program. */
  readonly lastScreens: boolean;
  readonly picture: (body: FileBody, line: number, once: string) => void;
  /** Too many: said once for each window. */
  readonly tooMany: (line: number, once: string) => void;
  readonly failed: (error: unknown) => void;
}

export class PictureWatch {
  readonly #deps: PictureWatchDeps;
  #nextMark: number | undefined;
  #shownAtMs: readonly number[] = [];
  #reading = false;
  #closed = false;

  constructor(deps: PictureWatchDeps) {
    this.#deps = deps;
  }

  /** The feed changed: there may be new marks. */
  changed(): void {
    const count = this.#deps.feed.view?.markCount;
    if (count === undefined || this.#closed) return;
    this.#nextMark ??= count;
    if (this.#reading || this.#nextMark >= count) return;
    this.#reading = true;
    this.#read().then(
      () => this.#done(),
      (error: unknown) => {
        this.#reading = false;
        this.#deps.failed(error);
      },
    );
  }

  close(): void {
    this.#closed = true;
  }

  #done(): void {
    this.#reading = false;
    this.changed();
  }

  async #read(): Promise<void> {
    const from = this.#nextMark ?? 0;
    const marks = await this.#deps.feed.readMarks(from, MARKS_READ_MAX);
    const count = this.#deps.feed.view?.markCount ?? from;
    // Marks that can no longer be read are skipped, as pictures are.
    this.#nextMark = (marks.at(-1)?.seq ?? count - 1) + 1;
    if (this.#closed) return;
    for (const mark of marks) this.#look(mark);
  }

  #look(mark: Mark): void {
    if (mark.what.kind === 'mode' && !this.#deps.lastScreens) return;
    const body = pictureOf(mark);
    if (body === undefined) return;
    const nowMs = this.#deps.clock.monotonicMs();
    this.#shownAtMs = this.#shownAtMs.filter((atMs) => atMs > nowMs - WINDOW_MS);
    const first = this.#shownAtMs[0];
    if (first !== undefined && this.#shownAtMs.length >= PICTURES_MAX) {
      this.#deps.tooMany(mark.line, `pictures-too-many:${Math.floor(first)}`);
      return;
    }
    this.#shownAtMs = [...this.#shownAtMs, nowMs];
    this.#deps.picture(body, mark.line, `picture:${mark.seq}`);
  }
}
