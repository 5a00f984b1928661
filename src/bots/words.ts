// The control words of a thread, one function each. Everything they need comes in the context.

import type { Host, LineFeed, SessionTarget } from '../pty/client.ts';
import type { ControlWord } from './control-words.ts';
import { screenPicture } from './made-files.ts';
import type { NoticeBody } from './outbox/rows.ts';
import type { ThreadOutbox } from './outbox/thread-outbox.ts';
import { helpText, type SessionFacts, stateText } from './phrases.ts';

export interface WordContext {
  readonly host: Host;
  readonly feed: LineFeed;
  readonly target: SessionTarget;
  readonly facts: SessionFacts;
  readonly outbox: ThreadOutbox;
  readonly actor: string;
  readonly redacts: boolean;
  say(body: NoticeBody): void;
  setting(key: 'quiet', value: string): void;
  whisper(text: string): Promise<void>;
  offerSecret(): void;
  /** Presses keys by name; answers what is wrong with them. */
  press(keys: string): Promise<string | undefined>;
  note(action: string, outcome: string): void;
}

/** Lines `!tail` shows without a number, and at most. */
const TAIL_DEFAULT = 20;
const TAIL_MAX = 500;
/** `!grep` looks at this many lines, newest first, and shows this many matches. */
const GREP_LINES_MAX = 100_000;
const GREP_MATCHES_MAX = 60;
/** More than this is a file. */
const QUOTE_LINES_MAX = 60;
const READ_LINES = 2_000;

/** Runs one control word. @throws {ChatdError} host-unreachable */
export async function runWord(
  context: WordContext,
  word: ControlWord,
  argument: string,
): Promise<void> {
  await WORDS[word](context, argument);
}

const WORDS: Readonly<
  Record<ControlWord, (context: WordContext, argument: string) => Promise<void>>
> = {
  help: async (context) => {
    context.say({ head: helpText(context.redacts) });
  },
  keys: async (context, argument) => {
    const problem =
      argument === '' ? 'Which keys? For example !keys ctrl-c.' : await context.press(argument);
    if (problem !== undefined) await context.whisper(problem);
  },
  // `!type` is typed text and never reaches this table; kept total so that a new word is not forgotten.
  type: async () => undefined,
  screen: async (context) => {
    context.say({ head: 'The screen now:', screen: true });
    context.outbox.file(screenPicture(), { lane: 'prompt' });
  },
  tail,
  grep,
  log,
  quiet: async (context, argument) => {
    const on = argument === '' || argument === 'on';
    if (!on && argument !== 'off') {
      await context.whisper('!quiet takes on or off.');
      return;
    }
    context.setting('quiet', on ? 'on' : 'off');
    context.say({ head: on ? 'Nobody is pinged from this thread.' : 'Pings are on again.' });
  },
  size,
  status: async (context) => {
    const { view, state, status } = context.feed;
    const reach = status.kind === 'attached' ? '' : ` · host: ${status.kind}`;
    const size = view === undefined ? '' : ` · ${view.cols}x${view.rowCount}`;
    const lines = view === undefined ? '' : ` · ${view.finalCount + view.tail.length} lines`;
    context.say({
      head: `session ${context.facts.sessionId}: ${stateText(state)}${size}${lines}${reach}`,
    });
  },
  secret: async (context) => {
    context.offerSecret();
  },
  end: async (context) => {
    await context.host.end(context.target, context.actor);
    context.note('end', 'done');
  },
  kill: async (context) => {
    await context.host.kill(context.target, context.actor);
    context.note('kill', 'done');
  },
};

async function tail(context: WordContext, argument: string): Promise<void> {
  const count = argument === '' ? TAIL_DEFAULT : Number.parseInt(argument, 10);
  if (!Number.isInteger(count) || count < 1 || count > TAIL_MAX) {
    await context.whisper(`!tail takes a number from 1 to ${TAIL_MAX}.`);
    return;
  }
  const to = endOf(context.feed);
  const from = Math.max(0, to - count);
  if (to - from <= QUOTE_LINES_MAX) {
    context.say({ head: `The last ${to - from} lines:`, quote: [[from, to]] });
    return;
  }
  context.outbox.file({
    fileName: `${context.facts.sessionId}-tail.txt`,
    caption: `The last ${to - from} lines`,
    source: { kind: 'lines', from, to },
  });
}

async function grep(context: WordContext, argument: string): Promise<void> {
  if (argument === '') {
    await context.whisper('!grep takes a text to look for.');
    return;
  }
  // Plain text, not a pattern: a pattern from a chat could take for ever.
  const wanted = argument.toLowerCase();
  const finalCount = context.feed.view?.finalCount ?? 0;
  const found: (readonly [number, number])[] = [];
  let seen = 0;
  for (let to = finalCount; to > 0 && seen < GREP_LINES_MAX && found.length < GREP_MATCHES_MAX; ) {
    const from = Math.max(0, to - READ_LINES);
    const read = await context.feed.readLines(from, to);
    for (let at = read.lines.length - 1; at >= 0 && found.length < GREP_MATCHES_MAX; at -= 1) {
      const line = read.from + at;
      if (read.lines[at]?.text.toLowerCase().includes(wanted)) found.unshift([line, line + 1]);
    }
    seen += to - from;
    to = read.gap === undefined ? from : 0;
  }
  const many = found.length >= GREP_MATCHES_MAX ? 'the newest ' : '';
  context.say({
    head: `${many}${found.length} lines with "${argument}" among the last ${seen}:`,
    quote: found,
  });
}

async function log(context: WordContext): Promise<void> {
  const to = endOf(context.feed);
  const { sessionId } = context.facts;
  context.outbox.file({
    fileName: `${sessionId}.txt`,
    caption: `Everything printed so far: ${to} lines`,
    source: { kind: 'lines', from: 0, to: context.feed.view?.finalCount ?? 0 },
  });
}

async function size(context: WordContext, argument: string): Promise<void> {
  const match = /^(\d{1,3})\s*[x×]\s*(\d{1,3})$/.exec(argument);
  const cols = Number(match?.[1] ?? 0);
  const rows = Number(match?.[2] ?? 0);
  if (cols < 10 || cols > 500 || rows < 4 || rows > 300) {
    await context.whisper('!size takes columns x rows, for example !size 80x24.');
    return;
  }
  await context.host.resize(context.target, cols, rows);
  context.say({ head: `The terminal is now ${cols}x${rows}.` });
}

/** One past the newest line, those still on the screen included. */
function endOf(feed: LineFeed): number {
  const view = feed.view;
  if (view === undefined) return 0;
  return view.finalCount + (view.mode === 'log' ? view.tail.length : 0);
}
