// Lines of a terminal as safe text: what may never reach a chat is taken out here, once, for every
// platform. Knows styles as values, no markup.

import type { Color, Line, Span } from '../../term/values.ts';

/** A stretch of one style. */
export interface Run {
  readonly text: string;
  readonly fg?: Color | undefined;
  readonly bg?: Color | undefined;
  readonly flags: number;
  readonly link?: string | undefined;
}

/**
 * Controls (C0, DEL, C1), bidirectional overrides, isolates and marks (they reorder what a reader
 * sees), line and paragraph separators, the byte order mark, tag characters and Unicode's
 * non-characters: invisible, and each of them has broken some client.
 */
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff]|\u{e0001}|[\u{e0020}-\u{e007f}]/gu;
const LONE_SURROGATE = /\p{Surrogate}/gu;

/** Text of a program, or typed by anybody, without what could act on a reader's client. */
export function safeText(text: string): string {
  return text.replace(UNSAFE, '').replace(LONE_SURROGATE, '\ufffd');
}

/** At most `maxUnits` UTF-16 units, cut between code points, the cut marked. */
export function clip(text: string, maxUnits: number): string {
  if (text.length <= maxUnits) return text;
  return `${text.slice(0, wholeAt(text, Math.max(0, maxUnits - 1)))}…`;
}

/** The greatest index ≤ `index` that is not inside a surrogate pair. */
export function wholeAt(text: string, index: number): number {
  const isLow = (text.charCodeAt(index) & 0xfc00) === 0xdc00;
  const isAfterHigh = (text.charCodeAt(index - 1) & 0xfc00) === 0xd800;
  return isLow && isAfterHigh ? index - 1 : index;
}

/** The line as runs of one style each, safe, empty ones left out. */
export function runsOf(line: Line): readonly Run[] {
  const runs: Run[] = [];
  let at = 0;
  const push = (to: number, span: Span | undefined): void => {
    const end = wholeAt(line.text, to);
    const text = safeText(line.text.slice(at, end));
    if (text !== '') runs.push(runOf(text, span));
    at = Math.max(at, end);
  };
  for (const span of line.spans ?? []) {
    if (span.end <= at || span.start >= span.end) continue;
    if (span.start > at) push(span.start, undefined);
    push(Math.min(span.end, line.text.length), span);
  }
  if (at < line.text.length) push(line.text.length, undefined);
  return runs;
}

function runOf(text: string, span: Span | undefined): Run {
  if (span === undefined) return { text, flags: 0 };
  return {
    text,
    fg: span.fg,
    bg: span.bg,
    flags: span.flags ?? 0,
    link: span.link === undefined ? undefined : safeLink(span.link),
  };
}

/** Longer targets are left out: a link nobody can read is no help. */
const LINK_UNITS_MAX = 1_000;

/** An http(s) target in its encoded form, or undefined. */
export function safeLink(target: string): string | undefined {
  if (target.length > LINK_UNITS_MAX || !URL.canParse(target)) return undefined;
  const url = new URL(target);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  // What is left of these after parsing could end the markup around the link.
  const encoded = url.href.replace(/[<>|`\s\\]/gu, (char) => encodeURIComponent(char));
  return encoded.length > LINK_UNITS_MAX ? undefined : encoded;
}

/** Columns [start, end) of a line, styles included. */
export function sliceLine(line: Line, start: number, end: number): Line {
  if (start <= 0 && end >= line.text.length) return line;
  const text = line.text.slice(start, end);
  const spans = (line.spans ?? [])
    .filter((span) => span.end > start && span.start < end)
    .map((span) => ({
      ...span,
      start: Math.max(0, span.start - start),
      end: Math.min(end, span.end) - start,
    }));
  return spans.length === 0 ? { text } : { text, spans };
}
