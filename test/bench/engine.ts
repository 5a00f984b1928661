// Measures the terminal model: megabytes a second on colour logs and on two-byte lines, memory per
// live model, time of a frame, a view, a snapshot, a checkpoint and a picture. `--json` prints rows;
// with `node --expose-gc` memory is measured after a collection.

import { performance } from 'node:perf_hooks';
import { seededRandom } from '../../src/base/random.ts';
import { ScreenPainter } from '../../src/bots/render/png.ts';
import { TerminalModel } from '../../src/term/terminal-model.ts';
import { readCast } from '../support/casts.ts';

interface BenchRow {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly against: string;
  readonly ratio: number;
  readonly target: string;
  readonly ok: boolean;
}

/** What the host reads at once. */
const CHUNK_BYTES = 65_536;
const RUNS = 5;

function colourLog(sizeBytes: number): Buffer {
  const random = seededRandom(1);
  const words = 'compiling request finished src/term/model.ts GET /api/v1/items 200 warning'.split(
    ' ',
  );
  const lines: string[] = [];
  let length = 0;
  while (length < sizeBytes) {
    const count = 4 + Math.floor(random.next() * 8);
    const text = Array.from({ length: count }, () => {
      const word = words[Math.floor(random.next() * words.length)] ?? '';
      const color = 31 + Math.floor(random.next() * 6);
      return random.next() < 0.4 ? `\u001b[${color}m${word}\u001b[0m` : word;
    }).join(' ');
    const line = `\u001b[2m12:03:${10 + (lines.length % 50)}\u001b[22m ${text}\r\n`;
    lines.push(line);
    length += line.length;
  }
  return Buffer.from(lines.join(''));
}

function plainLog(sizeBytes: number): Buffer {
  const line = 'the quick brown fox jumps over the lazy dog and goes on to the next line\r\n';
  return Buffer.from(line.repeat(Math.ceil(sizeBytes / line.length)));
}

function twoByteLines(sizeBytes: number): Buffer {
  return Buffer.from('y\r\n'.repeat(Math.ceil(sizeBytes / 3)));
}

/** Per second of CPU, all threads: what others do on the machine does not count. */
function megabytesPerSecond(bytes: Buffer): number {
  const speeds: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const model = new TerminalModel({ cols: 80, rows: 24 });
    const start = process.cpuUsage();
    for (let from = 0; from < bytes.length; from += CHUNK_BYTES) {
      model.write(bytes.subarray(from, from + CHUNK_BYTES), 0);
      model.takeFinals();
      model.takeMarks();
      model.view();
    }
    const { user, system } = process.cpuUsage(start);
    speeds.push(bytes.length / (user + system));
  }
  return median(speeds);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function medianMs(run: () => void): number {
  const times: number[] = [];
  for (let count = 0; count < 200; count += 1) {
    const startMs = performance.now();
    run();
    times.push(performance.now() - startMs);
  }
  return median(times);
}

/** Resident memory that `count` models add, each after 10,000 coloured lines. */
function megabytesPerModel(count: number): number {
  const log = colourLog(700_000);
  const collect = (globalThis as { gc?: () => void }).gc;
  collect?.();
  const before = process.memoryUsage().rss;
  const models: TerminalModel[] = [];
  for (let index = 0; index < count; index += 1) {
    const model = new TerminalModel({ cols: 80, rows: 24 });
    for (let from = 0; from < log.length; from += CHUNK_BYTES) {
      model.write(log.subarray(from, from + CHUNK_BYTES), 0);
      model.takeFinals();
    }
    models.push(model);
  }
  collect?.();
  const grown = process.memoryUsage().rss - before;
  return models.length === 0 ? 0 : grown / models.length / 1_000_000;
}

function atLeast(name: string, value: number, unit: string, target: number): BenchRow {
  return {
    name,
    value,
    unit,
    against: 'target',
    ratio: value / target,
    target: `>= ${target}`,
    ok: value >= target,
  };
}

function atMost(name: string, value: number, unit: string, target: number): BenchRow {
  return {
    name,
    value,
    unit,
    against: 'target',
    ratio: value / target,
    target: `<= ${target}`,
    ok: value <= target,
  };
}

function screenModel(): TerminalModel {
  const model = new TerminalModel({ cols: 80, rows: 24 });
  model.write(colourLog(20_000), 0);
  return model;
}

function restoreOnce(model: TerminalModel): void {
  const checkpoint = model.checkpoint();
  if (checkpoint === undefined) throw new Error('no checkpoint at ground');
  TerminalModel.restore(checkpoint.bytes);
}

/** Median CPU time of drawing and encoding one picture, a screen as its program shows it. */
async function pictureMs(name: string): Promise<number> {
  const cast = readCast(name);
  const model = new TerminalModel({ cols: cast.cols, rows: cast.rows });
  for (const event of cast.events.slice(0, -3)) {
    if (event.kind === 'output') model.write(event.bytes, event.atMs);
  }
  const frame = model.frame();
  const painter = new ScreenPainter();
  const times: number[] = [];
  for (let count = 0; count < 25; count += 1) {
    const start = process.cpuUsage();
    await painter.paint(frame);
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / 1_000);
  }
  await painter.close();
  return median(times);
}

const screen = screenModel();
const rows: readonly BenchRow[] = [
  atMost('memory per live model', megabytesPerModel(40), 'MB', 4),
  atMost('picture of vim', await pictureMs('vim-session'), 'ms', 25),
  atMost('picture of htop', await pictureMs('htop'), 'ms', 25),
  atMost('picture of a CJK table', await pictureMs('table-cjk'), 'ms', 25),
  atLeast('colour log', megabytesPerSecond(colourLog(16_000_000)), 'MB/s', 15),
  atLeast('plain log', megabytesPerSecond(plainLog(16_000_000)), 'MB/s', 15),
  atLeast('two-byte lines', megabytesPerSecond(twoByteLines(6_000_000)), 'MB/s', 3),
  atMost(
    'frame',
    medianMs(() => screen.frame()),
    'ms',
    1,
  ),
  atMost(
    'view',
    medianMs(() => screen.view()),
    'ms',
    1,
  ),
  atMost(
    'snapshot',
    medianMs(() => screen.snapshot()),
    'ms',
    1,
  ),
  atMost(
    'checkpoint',
    medianMs(() => screen.checkpoint()),
    'ms',
    2,
  ),
  atMost(
    'restore',
    medianMs(() => restoreOnce(screen)),
    'ms',
    10,
  ),
];

if (process.argv.includes('--json')) {
  console.log(JSON.stringify(rows));
} else {
  for (const row of rows) {
    const value = row.value.toPrecision(3).padStart(8);
    console.log(
      `${row.ok ? 'ok  ' : 'MISS'} ${row.name.padEnd(24)} ${value} ${row.unit.padEnd(5)} ${row.target}`,
    );
  }
}
if (rows.some((row) => !row.ok)) process.exitCode = 1;
