// What a message in a thread means: typed text, or a control word that starts with `!`. Pure. Slack
// refuses slash commands in threads, so a text prefix is the only way that works on both platforms.

export type ThreadText =
  | { readonly kind: 'type'; readonly text: string; readonly enter: boolean }
  | { readonly kind: 'word'; readonly word: ControlWord; readonly argument: string }
  | { readonly kind: 'unknown-word'; readonly word: string };

export const CONTROL_WORDS = {
  help: 'what can be done here',
  keys: 'press keys: `!keys ctrl-c`, `!keys esc`, `!keys down*3 enter`',
  type: 'type without Enter: `!type y`',
  screen: 'the screen as it is now',
  tail: 'the last lines: `!tail 50`',
  grep: 'lines that match: `!grep error`',
  log: 'everything printed so far, as a file',
  quiet: 'no pings from this thread: `!quiet on`, `!quiet off`',
  size: 'size of the terminal: `!size 80x24`',
  status: 'state of the session',
  secret: 'type a password without it appearing in the chat',
  end: 'hang up the session and end its program',
  kill: 'kill the program at once',
} as const satisfies Record<string, string>;

export type ControlWord = keyof typeof CONTROL_WORDS;

/** Reads one message. `!!x` types `!x`; a verbatim block is always typed. */
export function parseThreadText(text: string, verbatim: boolean): ThreadText {
  if (verbatim || !text.startsWith('!')) return { kind: 'type', text, enter: true };
  if (text.startsWith('!!')) return { kind: 'type', text: text.slice(1), enter: true };
  const match = /^!([A-Za-z?][A-Za-z-]*)(?:[ \t]+([\s\S]*))?$/.exec(text.trimEnd());
  const word = match?.[1]?.toLowerCase() ?? text.slice(1).split(/\s/, 1)[0] ?? '';
  if (word === 'type') return { kind: 'type', text: match?.[2] ?? '', enter: false };
  if (isControlWord(word)) return { kind: 'word', word, argument: (match?.[2] ?? '').trim() };
  return { kind: 'unknown-word', word };
}

function isControlWord(word: string): word is ControlWord {
  return Object.hasOwn(CONTROL_WORDS, word);
}

export type StartText =
  | { readonly kind: 'run'; readonly profile: string | undefined; readonly command: string }
  | { readonly kind: 'list' }
  | { readonly kind: 'help' }
  | { readonly kind: 'not-understood'; readonly text: string };

/**
 * Reads what follows a mention or a slash command: `run [profile] [-- command…]`, `list`, `help`.
 * The command is one string for the shell, exactly as typed.
 */
export function parseStartText(text: string): StartText {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed === 'help') return { kind: 'help' };
  if (trimmed === 'list') return { kind: 'list' };
  const match = /^run(?:\s+(?!--(?:\s|$))(\S+))?(?:\s+--(?:\s+([\s\S]*))?)?$/.exec(trimmed);
  if (match === null) return { kind: 'not-understood', text: trimmed };
  return { kind: 'run', profile: match[1], command: (match[2] ?? '').trim() };
}
