// The stored form of a terminal model: from it and the bytes that follow `offset` comes the same
// transcript as from all bytes. Knows the format, not the meaning.

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { z } from 'zod/mini';
import { ChatdError } from '../base/errors.ts';
import { COLS_MAX, ROWS_MAX } from './emulator.ts';
import { cellWords, type EmulatorState, emulatorStateSchema } from './emulator-state.ts';
import type { Frame, FrameRow, Line, Span } from './values.ts';

/**
 * A model's state at `offset`. `bytes` is opaque; the numbers beside it say which bytes, lines and
 * marks come after it.
 */
export interface Checkpoint {
  readonly offset: number;
  readonly finalCount: number;
  readonly markCount: number;
  readonly bytes: Uint8Array;
}

/** Another layout of the emulator or of this state is another version: replay from an older one. */
const FORMAT = 'chatd-model-2/xterm-headless-6.0.0';
/** Two screens of the largest size, and their text once more. */
const INFLATED_BYTES_MAX = 2 * COLS_MAX * ROWS_MAX * 24;

const lineSchema = z.object({
  text: z.string(),
  spans: z.optional(
    z.array(
      z.object({
        start: z.int(),
        end: z.int(),
        fg: z.optional(z.int()),
        bg: z.optional(z.int()),
        flags: z.optional(z.int()),
        link: z.optional(z.string()),
      }),
    ),
  ),
});

const rowSchema = z.extend(lineSchema, {
  wide: z.optional(z.array(z.int())),
  joined: z.optional(z.array(z.int())),
});

const frameSchema = z.object({
  offset: z.int(),
  cols: z.int(),
  rows: z.array(rowSchema),
  cursor: z.object({ row: z.int(), col: z.int(), visible: z.boolean() }),
  title: z.string(),
  alternate: z.boolean(),
});

const modelSchema = z.object({
  format: z.literal(FORMAT),
  offset: z.int().check(z.minimum(0)),
  finalCount: z.int().check(z.minimum(0)),
  markCount: z.int().check(z.minimum(0)),
  prefix: z.nullable(lineSchema),
  floor: z.int().check(z.minimum(0)),
  screen: z.nullable(z.enum(['alternate', 'repaint'])),
  normalIsFrame: z.boolean(),
  atHome: z.boolean(),
  title: z.string(),
  lastBellOffset: z.nullable(z.number()),
  clearedFrame: z.nullable(frameSchema),
  upwardMs: z.array(z.number()),
  clearMs: z.array(z.number()),
  kittyBytes: z.int(),
  links: z.array(z.tuple([z.int(), z.string()])),
  emulator: emulatorStateSchema,
});
type StoredRow = z.infer<typeof rowSchema>;
type StoredModel = z.infer<typeof modelSchema>;
export type ModelState = Omit<StoredModel, 'format'>;

export function encodeCheckpoint(state: ModelState, cells: Uint32Array): Checkpoint {
  const header = Buffer.from(JSON.stringify({ format: FORMAT, ...state }), 'utf8');
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.length);
  const words = Buffer.from(cells.buffer, cells.byteOffset, cells.byteLength);
  return {
    offset: state.offset,
    finalCount: state.finalCount,
    markCount: state.markCount,
    bytes: deflateRawSync(Buffer.concat([length, header, words]), { level: 1 }),
  };
}

/** @throws {ChatdError} version-mismatch when the bytes are damaged or of another version. */
export function decodeCheckpoint(bytes: Uint8Array): { state: ModelState; cells: Uint32Array } {
  try {
    const raw = inflateRawSync(bytes, { maxOutputLength: INFLATED_BYTES_MAX });
    const headerEnd = 4 + raw.readUInt32LE(0);
    const parsed: unknown = JSON.parse(raw.toString('utf8', 4, headerEnd));
    const { format: _format, ...state } = modelSchema.parse(parsed);
    if (!isConsistent(state.emulator)) throw new Error('rows do not match size');
    const words = cellWords(state.emulator);
    if (raw.length !== headerEnd + words * 4) throw new Error('cells do not match rows');
    const cells = new Uint32Array(words);
    for (let word = 0; word < words; word += 1)
      cells[word] = raw.readUInt32LE(headerEnd + word * 4);
    return { state, cells };
  } catch (cause) {
    throw new ChatdError('version-mismatch', 'Cannot read checkpoint: damaged or other version', {
      cause,
    });
  }
}

function isConsistent({ cols, rows, normal, alternate }: EmulatorState): boolean {
  return [normal, ...(alternate === null ? [] : [alternate])].every(
    (buffer) =>
      buffer.rows.length === rows &&
      buffer.rows.every((row) => row.cells <= cols) &&
      buffer.y >= 0 &&
      buffer.y < rows &&
      buffer.scrollTop >= 0 &&
      buffer.scrollTop <= buffer.scrollBottom &&
      buffer.scrollBottom < rows,
  );
}

/** A line as the schema's value: its optional keys may be present and undefined. */
export function storedLine(line: Line | undefined): ModelState['prefix'] {
  return line === undefined ? null : { text: line.text, spans: line.spans?.map((s) => ({ ...s })) };
}

export function restoredLine(stored: ModelState['prefix']): Line | undefined {
  if (stored === null) return undefined;
  return restoredRow(stored);
}

function restoredRow(stored: StoredRow): FrameRow {
  const { text, spans, wide, joined } = stored;
  return {
    text,
    ...(spans === undefined ? {} : { spans: spans.map(restoredSpan) }),
    ...(wide === undefined ? {} : { wide }),
    ...(joined === undefined ? {} : { joined }),
  };
}

type StoredSpan = NonNullable<StoredRow['spans']>[number];

function restoredSpan({ start, end, fg, bg, flags, link }: StoredSpan): Span {
  return {
    start,
    end,
    ...(fg === undefined ? {} : { fg }),
    ...(bg === undefined ? {} : { bg }),
    ...(flags === undefined ? {} : { flags }),
    ...(link === undefined ? {} : { link }),
  };
}

export function storedFrame(frame: Frame | undefined): ModelState['clearedFrame'] {
  if (frame === undefined) return null;
  const rows = frame.rows.map(({ text, spans, wide, joined }) => ({
    text,
    spans: spans?.map((span) => ({ ...span })),
    wide: wide === undefined ? undefined : [...wide],
    joined: joined === undefined ? undefined : [...joined],
  }));
  return { ...frame, cursor: { ...frame.cursor }, rows };
}

export function restoredFrame(stored: ModelState['clearedFrame']): Frame | undefined {
  return stored === null ? undefined : { ...stored, rows: stored.rows.map(restoredRow) };
}
