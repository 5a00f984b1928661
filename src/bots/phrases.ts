// Everything chatd itself says in a thread, in one place, so that it reads as one voice. Pure. Names
// and commands are data: the formatters escape them.

import type { SessionState } from '../pty/client.ts';
import type { Choice } from '../term/values.ts';
import { encodeAction, encodeChoice } from './actions.ts';
import type { Button } from './chat-platform.ts';
import { CONTROL_WORDS } from './control-words.ts';

export interface SessionFacts {
  readonly sessionId: string;
  readonly incarnation: string;
  readonly machine: string;
  readonly directory: string;
  /** What was asked for, as the person typed it; empty: the login shell. */
  readonly command: string;
  readonly profile: string | undefined;
}

/** The root message: session, machine, directory, command, state. */
export function rootText(facts: SessionFacts, state: string): string {
  const program = facts.command === '' ? 'shell' : facts.command;
  const profile = facts.profile === undefined ? '' : ` · profile ${facts.profile}`;
  return [
    `${program}${profile}`,
    `session ${facts.sessionId} · ${facts.machine} · ${facts.directory}`,
    state,
  ].join('\n');
}

/** One line, for the thread's name and for lists. */
export function titleOf(facts: SessionFacts): string {
  const program = facts.command === '' ? (facts.profile ?? 'shell') : facts.command;
  const short = program.length > 60 ? `${program.slice(0, 59)}…` : program;
  return `${short} · ${facts.machine}`;
}

/** State of a session in words. */
export function stateText(state: SessionState): string {
  if (state.kind === 'running') return 'running';
  const open = state.terminalOpen ? ', something it started still has the terminal' : '';
  const cause = state.cause === undefined ? '' : ` (${state.cause})`;
  return `${endText(state)}${cause}${open}`;
}

function endText(state: Extract<SessionState, { kind: 'exited' }>): string {
  if (state.signal !== undefined) return `ended by ${state.signal}`;
  if (state.code !== undefined) return `exited with code ${state.code}`;
  return 'ended, exit code not known';
}

/** First message in a thread: how to use it. */
export const WELCOME =
  'Type here and it is typed into the terminal, with Enter. Control words start with an exclamation mark: !help lists them, !keys ctrl-c presses keys, !!x types !x.';

export function helpText(redacted: boolean): string {
  const words = Object.entries(CONTROL_WORDS).map(([word, meaning]) => `!${word}  ${meaning}`);
  return [
    'A plain message is typed and Enter pressed. A message that is one code block is typed exactly as it stands.',
    ...words,
    '!!x  types !x',
    ...(redacted ? ['What looks like a token or key is masked before it is shown here.'] : []),
  ].join('\n');
}

export const START_HELP =
  'run [profile] [-- command…] starts a session, list shows what is running. Without a command it is your login shell.';

/** The key bar for phones: Esc, Tab, arrows. */
export function keyButtons(incarnation: string): readonly (readonly Button[])[] {
  const key = (label: string, name: string): Button => ({
    label,
    action: encodeAction({ kind: 'key', incarnation, key: name }),
  });
  return [
    [
      key('^C', 'ctrl-c'),
      key('Esc', 'esc'),
      key('Tab', 'tab'),
      key('Enter', 'enter'),
      { label: 'Screen', action: encodeAction({ kind: 'screen', incarnation }) },
    ],
    [key('←', 'left'), key('↑', 'up'), key('↓', 'down'), key('→', 'right')],
  ];
}

/** Platforms show five buttons in a row, and Discord five rows; one row is kept free for keys. */
const CHOICES_MAX = 20;
const CHOICES_PER_ROW = 5;
/** Discord's limit of a label is 80, Slack's 75. */
const LABEL_CHARS_MAX = 60;

/** Buttons for the choices a prompt offers, in their order. */
export function choiceButtons(
  incarnation: string,
  choices: readonly Choice[],
): readonly (readonly Button[])[] {
  const buttons = choices.slice(0, CHOICES_MAX).flatMap((choice): readonly Button[] => {
    const action = encodeChoice(incarnation, choice.keys);
    return action === undefined ? [] : [{ label: choice.label.slice(0, LABEL_CHARS_MAX), action }];
  });
  const rows = Math.ceil(buttons.length / CHOICES_PER_ROW);
  return Array.from({ length: rows }, (_, row) =>
    buttons.slice(row * CHOICES_PER_ROW, (row + 1) * CHOICES_PER_ROW),
  );
}

export function secretButtons(incarnation: string): readonly (readonly Button[])[] {
  return [
    [
      {
        label: 'Type it unseen',
        action: encodeAction({ kind: 'secret', incarnation }),
        style: 'primary',
      },
    ],
  ];
}

export const SECRET_REFUSED =
  'The program asks for a secret, so what you wrote was not typed. It is still in the chat: delete it if it was the secret. The button opens a field whose content goes to the terminal and nowhere else.';

export function ageText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  return `${Math.round(minutes / 60)} h`;
}
