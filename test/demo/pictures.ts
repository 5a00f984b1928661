// Draws the pictures of docs/pictures from the recordings: run it after a change of the painter and
// look at them. `node --import tsx test/demo/pictures.ts`.

import { writeFile } from 'node:fs/promises';
import { ScreenPainter } from '../../src/bots/render/png.ts';
import { TerminalModel } from '../../src/term/terminal-model.ts';
import type { Frame } from '../../src/term/values.ts';
import { readCast } from '../support/casts.ts';

const DIRECTORY = new URL('../../docs/pictures/', import.meta.url).pathname;

/** Recording, picture, and the moment it shows: the last frame of its program, or a time. */
const PICTURES = [
  ['ls-color', 'ls', undefined],
  ['htop', 'htop', 4_000],
  ['vim-session', 'vim', undefined],
  ['table-cjk', 'table-cjk-emoji', undefined],
  ['whiptail', 'menu', 1_000],
  ['claude-like-ink', 'agent', 9_000],
  ['unicode-torture', 'unicode', undefined],
] as const;

function frameOf(name: string, untilMs: number | undefined): Frame {
  const cast = readCast(name);
  const model = new TerminalModel({ cols: cast.cols, rows: cast.rows });
  let last: Frame | undefined;
  for (const event of cast.events) {
    if (untilMs !== undefined && event.atMs > untilMs) break;
    if (event.kind === 'resize') model.resize(event.cols, event.rows);
    else model.write(event.bytes, event.atMs);
    for (const { what } of model.takeMarks()) {
      if (what.kind === 'mode' && what.mode === 'log') last = what.frame;
    }
  }
  return last ?? model.frame();
}

const painter = new ScreenPainter();
for (const [name, picture, untilMs] of PICTURES) {
  const frame = frameOf(name, untilMs);
  await writeFile(`${DIRECTORY}${picture}.png`, await painter.paint(frame, { title: picture }));
}
