// Reads the recorded terminal sessions of test/fixtures/traces (asciicast v2).

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const DIRECTORY = new URL('../fixtures/traces/', import.meta.url).pathname;

export type CastEvent =
  | { readonly kind: 'output'; readonly atMs: number; readonly bytes: Buffer }
  | {
      readonly kind: 'resize';
      readonly atMs: number;
      readonly cols: number;
      readonly rows: number;
    };

export interface Cast {
  readonly name: string;
  readonly cols: number;
  readonly rows: number;
  readonly events: readonly CastEvent[];
}

export function castNames(): string[] {
  return readdirSync(DIRECTORY)
    .filter((file) => /\.cast(\.gz)?$/.test(file))
    .map((file) => file.replace(/\.cast(\.gz)?$/, ''))
    .sort();
}

export function readCast(name: string): Cast {
  const text = readdirSync(DIRECTORY).includes(`${name}.cast.gz`)
    ? gunzipSync(readFileSync(join(DIRECTORY, `${name}.cast.gz`))).toString('utf8')
    : readFileSync(join(DIRECTORY, `${name}.cast`), 'utf8');
  const [header = '{}', ...lines] = text.split('\n').filter((line) => line !== '');
  const { width, height } = JSON.parse(header) as { width: number; height: number };
  const events: CastEvent[] = [];
  for (const line of lines) {
    const [seconds, kind, data] = JSON.parse(line) as [number, string, string];
    const atMs = seconds * 1_000;
    if (kind === 'o') events.push({ kind: 'output', atMs, bytes: Buffer.from(data, 'utf8') });
    if (kind === 'r') {
      const [cols = 80, rows = 24] = data.split('x').map(Number);
      events.push({ kind: 'resize', atMs, cols, rows });
    }
  }
  return { name, cols: width, rows: height, events };
}

/** The transcript the recording ends with, checked once by hand and against tmux; or undefined. */
export function expectedTranscript(name: string): string | undefined {
  const file = `${name}.txt`;
  const directory = join(DIRECTORY, 'expected');
  if (!readdirSync(directory).includes(file)) return undefined;
  return readFileSync(join(directory, file), 'utf8');
}
