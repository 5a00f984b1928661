// Masks secrets in terminal text before anybody sees it: the token shapes that secretlint maintains,
// private keys also while they are still being printed, chatd's own secrets, and the operator's
// patterns. Works on text without colours, over line ends and wraps; a mask is as long as its secret.

import { rules } from '@secretlint/secretlint-rule-preset-recommend';
import type { Frame, FrameRow, Line } from '../../term/values.ts';

/**
 * Masks lines; `before` is context only, unmasked. `goesOn` tells of a line that its text continues
 * in the next one without a line end. Answers as many lines as it was given, the same objects
 * where nothing was found.
 */
export type Redact = (
  lines: readonly Line[],
  before: readonly Line[],
  goesOn?: (index: number) => boolean,
) => readonly Line[];

export interface RedactOptions {
  /** chatd's own tokens: never shown, whatever they look like. */
  readonly secrets: readonly string[];
  /** Regular expressions of the operator, already proven to compile. */
  readonly patterns: readonly string[];
  /** False: only chatd's own secrets are masked. */
  readonly shapes: boolean;
}

export const MASK = '•';

interface Range {
  readonly start: number;
  readonly end: number;
}

type Find = (text: string) => readonly Range[];

/** What is used of a rule of secretlint; the package's own types are in one it does not bring. */
interface ShapeRule {
  readonly meta: { readonly id: string };
  create(
    context: {
      readonly sharedOptions: object;
      ignore(): void;
      createTranslator(): (messageId: string) => object;
      report(found: { readonly range: readonly [number, number] }): void;
    },
    options: object,
  ): { file?(source: { readonly content: string } & Readonly<Record<string, string>>): unknown };
}

/** Shorter ones would mask half of what people write. */
const SECRET_UNITS_MIN = 8;
/** Not a secret of its own: it reads comments that switch other rules off. */
const NOT_A_SECRET = 'secretlint-rule-filter-comments';

/**
 * A private key from its first line on, whether or not its last has come yet. secretlint's own rule
 * wants the last line, which for a reader of a live thread is too late.
 */
const PRIVATE_KEY =
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:\n[A-Za-z-]{1,40}: [^\n]*|\n[A-Za-z0-9+/=]*(?=\n|$))*(?:\n-----END [^\n]*)?/gu;

export function createRedactor(options: RedactOptions): Redact {
  const finds: Find[] = options.secrets
    .filter((secret) => secret.length >= SECRET_UNITS_MIN)
    .map((secret) => findLiteral(secret));
  if (options.shapes) {
    finds.push(findPattern(PRIVATE_KEY), findShapes());
    for (const pattern of options.patterns) finds.push(findPattern(new RegExp(pattern, 'gu')));
  }
  return (lines, before, goesOn) => maskLines(lines, before, goesOn, finds);
}

/** Masks one text: titles, captions, our own words that quote a program. */
export function redactText(redact: Redact, text: string): string {
  return redact(
    text.split('\n').map((line) => ({ text: line })),
    [],
  )
    .map((line) => line.text)
    .join('\n');
}

/** Masks a screen: a row that is full goes on in the next one. */
export function redactFrame(redact: Redact, frame: Frame): Frame {
  const isFull = (row: FrameRow): boolean =>
    row.text.trimEnd().length + (row.wide?.length ?? 0) >= frame.cols;
  const rows = redact(frame.rows, [], (index) => {
    const row = frame.rows[index];
    return row !== undefined && isFull(row);
  });
  return { ...frame, rows: rows as readonly FrameRow[] };
}

function maskLines(
  lines: readonly Line[],
  before: readonly Line[],
  goesOn: ((index: number) => boolean) | undefined,
  finds: readonly Find[],
): readonly Line[] {
  let text = before.map((line) => `${line.text}\n`).join('');
  const starts: number[] = [];
  for (const [index, line] of lines.entries()) {
    starts.push(text.length);
    text += goesOn?.(index) === true ? line.text : `${line.text}\n`;
  }
  const ranges = finds.flatMap((find) => find(text));
  if (ranges.length === 0) return lines;
  return lines.map((line, index) => {
    const start = starts[index] ?? 0;
    const end = start + line.text.length;
    const inside = ranges.filter((range) => range.start < end && range.end > start);
    return inside.length === 0 ? line : masked(line, start, inside);
  });
}

function masked(line: Line, offset: number, ranges: readonly Range[]): Line {
  const units = line.text.split('');
  for (const range of ranges) {
    const from = Math.max(0, range.start - offset);
    const to = Math.min(units.length, range.end - offset);
    for (let at = from; at < to; at += 1) if (units[at] !== ' ') units[at] = MASK;
  }
  return { ...line, text: units.join('') };
}

function findLiteral(secret: string): Find {
  return (text) => {
    const ranges: Range[] = [];
    for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + secret.length)) {
      ranges.push({ start: at, end: at + secret.length });
    }
    return ranges;
  };
}

function findPattern(pattern: RegExp): Find {
  return (text) =>
    [...text.matchAll(pattern)]
      .filter((match) => match[0] !== '')
      .map((match) => ({ start: match.index, end: match.index + match[0].length }));
}

/** secretlint's rules without its engine: each is a function of a text that reports ranges. */
function findShapes(): Find {
  let ranges: Range[] = [];
  const checks = (rules as readonly ShapeRule[])
    .filter((rule) => !rule.meta.id.endsWith(NOT_A_SECRET))
    .map((rule) =>
      rule.create(
        {
          sharedOptions: {},
          ignore: () => undefined,
          createTranslator: () => (messageId) => ({ messageId, message: messageId }),
          report: ({ range: [start, end] }) => {
            ranges.push({ start, end });
          },
        },
        {},
      ),
    );
  return (text) => {
    ranges = [];
    const source = { filePath: 'terminal.txt', ext: '.txt', contentType: 'text', content: text };
    for (const check of checks) check.file?.(source);
    return ranges;
  };
}
