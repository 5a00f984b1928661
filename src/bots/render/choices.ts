// Finds the choices a program offers in the rows it shows: yes or no, letters, numbered lists, lists
// with a pointer. Pure. A choice that cannot be told for sure is no choice: a button sends keys.

import type { Choice } from '../../term/values.ts';

/** More buttons than this help nobody; the text shows them all. */
const CHOICES_MAX = 9;
const LABEL_UNITS_MAX = 60;
/** A list far above the cursor is not what is asked for. */
const ROWS_LOOKED_AT = 30;

export interface Question {
  /** Texts of the rows, top down. */
  readonly rows: readonly string[];
  /** Index of the cursor's row, and its text before the cursor. */
  readonly cursorRow: number;
  readonly beforeCursor: string;
  readonly cursorVisible: boolean;
  /** Keys are read one by one: no line is edited by the terminal. */
  readonly raw: boolean;
  /** One key is read and echoed by the terminal: `read -n1`. */
  readonly singleKey: boolean;
  readonly applicationCursor: boolean;
}

export function readChoices(question: Question): readonly Choice[] {
  const asked = readLetters(question);
  if (asked.length > 1) return asked;
  const pointed = question.raw ? readPointerList(question) : [];
  if (pointed.length > 1) return pointed;
  return readNumberedList(question);
}

/** Words that are offered in brackets at the end of a question: `[y/N]`, `(yes/no)`, `[y,n,q,?]`. */
const OFFERED = /[[(]([A-Za-z?]+(?:[/,|][A-Za-z?[\]]+){1,11})[\])]\s*[?:]?\s*$/;
const WORDS = new Set(['y', 'n', 'yes', 'no', 'all', 'none', 'quit', 'abort', 'retry', 'ignore']);

function readLetters(question: Question): readonly Choice[] {
  const offered = OFFERED.exec(question.beforeCursor.trimEnd())?.[1];
  if (offered === undefined) return [];
  const words = offered.split(/[/,|]/).filter((word) => /^[A-Za-z]+$/.test(word));
  // Single letters, or words that are answers anywhere: `(path/to)` is neither.
  if (!words.every((word) => word.length === 1 || WORDS.has(word.toLowerCase()))) return [];
  if (!words.some((word) => /^(?:y|n|yes|no)$/i.test(word)) && words.some((w) => w.length > 1)) {
    return [];
  }
  const enter = question.singleKey ? '' : '\r';
  return words.slice(0, CHOICES_MAX).map((word) => ({
    label: LETTER_LABELS[word.toLowerCase()] ?? word,
    keys: (word.length === 1 ? word.toLowerCase() : word) + enter,
  }));
}

const LETTER_LABELS: Readonly<Record<string, string>> = { y: 'Yes', n: 'No', yes: 'Yes', no: 'No' };

const POINTER = /^(\s*[│|┃]?\s*)([❯›>▸▶→➜●◉»*])(\s+)(?=\S)/u;

/** A list in which one row has a pointer and its neighbours begin at the same column without. */
function readPointerList(question: Question): readonly Choice[] {
  const from = Math.max(0, question.rows.length - ROWS_LOOKED_AT);
  for (let row = question.rows.length - 1; row >= from; row -= 1) {
    const match = POINTER.exec(question.rows[row] ?? '');
    if (match === null || isPlainText(question, row, match[2] ?? '')) continue;
    const column = match[0].length;
    const first = extend(question.rows, row, -1, column);
    const last = extend(question.rows, row, 1, column);
    if (last - first < 1) continue;
    const labels = question.rows.slice(first, last + 1).map((text) => labelOf(text.slice(column)));
    return labels.slice(0, CHOICES_MAX).map((label, index) => ({
      label,
      keys: `${arrows(first + index - row, question.applicationCursor)}\r`,
    }));
  }
  return [];
}

/**
 * With a visible cursor, `>` and `*` begin quotes and lists, the cursor's row is an input line, and
 * the glyph it begins with is a shell's prompt: earlier rows with it are what was typed there.
 */
function isPlainText(question: Question, row: number, pointer: string): boolean {
  if (!question.cursorVisible) return false;
  const input = (question.rows[question.cursorRow] ?? '').trimStart();
  return row === question.cursorRow || /[>*]/.test(pointer) || input.startsWith(pointer);
}

function extend(rows: readonly string[], from: number, step: number, column: number): number {
  let row = from;
  while (beginsAt(rows[row + step], column)) row += step;
  return row;
}

/** Nothing but blanks, a border or an empty mark before `column`, and text at it. */
function beginsAt(text: string | undefined, column: number): boolean {
  if (text === undefined) return false;
  return /^[\s│|┃○◯◌]*$/u.test(text.slice(0, column)) && /^[^\s│|┃]/u.test(text.slice(column));
}

function arrows(steps: number, application: boolean): string {
  const introducer = application ? '\u001bO' : '\u001b[';
  const key = introducer + (steps < 0 ? 'A' : 'B');
  return key.repeat(Math.abs(steps));
}

const NUMBERED = /^[\s│|┃]*(\d{1,2})[.)\]:]\s+(\S.*)$/u;

/** `1) first`, `2) second`, … above a question, as `select` of a shell prints it. */
function readNumberedList(question: Question): readonly Choice[] {
  if (!/(?:[?:>#]|\]|\))\s*$/.test(question.beforeCursor.trimEnd())) return [];
  const from = Math.max(0, question.cursorRow - ROWS_LOOKED_AT);
  const items: { number: number; label: string }[] = [];
  for (const text of question.rows.slice(from, question.cursorRow)) {
    const match = NUMBERED.exec(text);
    if (match === null) continue;
    const number = Number(match[1]);
    if (number === 1) items.length = 0;
    if (number === items.length + 1) items.push({ number, label: labelOf(match[2] ?? '') });
  }
  if (items.length < 2 || items.length > CHOICES_MAX) return [];
  return items.map(({ number, label }) => ({
    label: `${number}. ${label}`,
    keys: `${number}${question.singleKey ? '' : '\r'}`,
  }));
}

function labelOf(text: string): string {
  const clean = text.replace(/[│|┃]?\s*$/u, '').trim();
  if (clean.length <= LABEL_UNITS_MAX) return clean;
  const cut = clean.slice(0, LABEL_UNITS_MAX - 1);
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}
