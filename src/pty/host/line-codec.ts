// Final lines and marks as journal records. A plain line is its text; a styled one is msgpack.

import type { RawFrame } from '../../base/frame-codec.ts';
import type { Line, Mark, Span } from '../../term/values.ts';
import { packValue, unpackValue } from '../protocol.ts';

const LINE_PLAIN = 1;
const LINE_STYLED = 2;
const MARK = 1;

/** [start, end, fg, bg, flags, link]: null or 0 where absent. */
type PackedSpan = readonly [number, number, number | null, number | null, number, string | null];

export function encodeLine(line: Line): RawFrame {
  if (line.spans === undefined || line.spans.length === 0) {
    return { type: LINE_PLAIN, payload: Buffer.from(line.text) };
  }
  return { type: LINE_STYLED, payload: packValue([line.text, line.spans.map(packSpan)]) };
}

export function decodeLine(record: RawFrame): Line {
  if (record.type !== LINE_STYLED) return { text: record.payload.toString() };
  const [text, spans] = unpackValue(record.payload) as [string, PackedSpan[]];
  return { text, spans: spans.map(unpackSpan) };
}

export function encodeMark(mark: Mark): RawFrame {
  return { type: MARK, payload: packValue(mark) };
}

export function decodeMark(record: RawFrame): Mark {
  return unpackValue(record.payload) as Mark;
}

function packSpan(span: Span): PackedSpan {
  return [
    span.start,
    span.end,
    span.fg ?? null,
    span.bg ?? null,
    span.flags ?? 0,
    span.link ?? null,
  ];
}

function unpackSpan([start, end, fg, bg, flags, link]: PackedSpan): Span {
  return {
    start,
    end,
    ...(fg === null ? {} : { fg }),
    ...(bg === null ? {} : { bg }),
    ...(flags === 0 ? {} : { flags }),
    ...(link === null ? {} : { link }),
  };
}
