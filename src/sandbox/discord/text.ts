// What Discord does to text: cleans what is stored, finds whom it pings, and shows it to a person.
// Knows nothing of messages or channels.

import { isoTime } from '../dates.ts';

/** Longest content of a bot's message, counted in UTF-16 units: the strictest reading. */
export const CONTENT_MAX = 2_000;

// Invalid characters and those that upset formatting: C0 except tab, newline and ESC (ansi fences
// need it), DEL, and bidirectional overrides.
const STRIPPED =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g;

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The content as stored: cleaned and trimmed. */
export function cleanContent(text: string): string {
  return text
    .replaceAll(LONE_SURROGATE, '')
    .replaceAll('\r\n', '\n')
    .replaceAll('\r', '')
    .replaceAll(STRIPPED, '')
    .trim();
}

export interface AllowedMentions {
  readonly everyone: boolean;
  /** `all` parses what the text says. */
  readonly users: 'all' | readonly string[];
  readonly roles: 'all' | readonly string[];
  readonly repliedUser: boolean;
}

export interface Pings {
  readonly everyone: boolean;
  readonly users: readonly string[];
  readonly roles: readonly string[];
}

/** Whom a text pings. Code spans do not protect: the sandbox reads strictly. */
export function pingsOf(text: string, allowed: AllowedMentions): Pings {
  const users = matches(text, /<@!?(\d{17,20})>/g);
  const roles = matches(text, /<@&(\d{17,20})>/g);
  const everyone = /@(everyone|here)\b/.test(text);
  const keep = (ids: readonly string[], rule: 'all' | readonly string[]): readonly string[] =>
    rule === 'all' ? ids : ids.filter((id) => rule.includes(id));
  return {
    everyone: everyone && allowed.everyone,
    users: keep(users, allowed.users),
    roles: keep(roles, allowed.roles),
  };
}

function matches(text: string, pattern: RegExp): readonly string[] {
  return [...new Set([...text.matchAll(pattern)].map((match) => match[1] ?? ''))];
}

export type TextBlock =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'fence'; readonly language: string; readonly text: string };

/**
 * Splits content into prose and fences as the client does. An unclosed fence is prose. Of a fence's
 * text the newlines of its two marks are left out; further empty lines at its ends, which clients
 * hide, are kept: they were sent.
 */
export function blocksOf(content: string): readonly TextBlock[] {
  const blocks: TextBlock[] = [];
  const fence = /```(?:([A-Za-z0-9_+.#-]+)\n)?([\s\S]*?)```/g;
  let from = 0;
  for (const match of content.matchAll(fence)) {
    if (match[2] === undefined || match[2] === '') continue;
    addText(blocks, content.slice(from, match.index));
    const text = match[1] === undefined ? match[2].replace(/^\n/, '') : match[2];
    blocks.push({ kind: 'fence', language: match[1] ?? '', text: text.replace(/\n$/, '') });
    from = match.index + match[0].length;
  }
  addText(blocks, content.slice(from));
  return blocks;
}

function addText(blocks: TextBlock[], text: string): void {
  const shown = text.replace(/^\n/, '').replace(/\n$/, '');
  if (shown !== '') blocks.push({ kind: 'text', text: shown });
}

const SGR = /\u001b\[([0-9;]*)m/g;
const INVISIBLE = /[\u200b\u2060\ufeff]/g;

/** Plain text as a person reads it: no markup, no colours, no invisible characters. */
export function shownText(
  content: string,
  nameOf: (mention: string) => string | undefined,
): string {
  return blocksOf(content)
    .map((block) =>
      block.kind === 'fence'
        ? block.text.replaceAll(SGR, '').replaceAll(INVISIBLE, '')
        : shownProse(block.text, nameOf),
    )
    .join('\n');
}

function shownProse(text: string, nameOf: (mention: string) => string | undefined): string {
  const pieces: string[] = [];
  let from = 0;
  // Code spans are kept as they are; everything else loses its markup.
  for (const match of text.matchAll(/(`{1,2})([^`]+?)\1/g)) {
    pieces.push(unmark(text.slice(from, match.index), nameOf), match[2] ?? '');
    from = match.index + match[0].length;
  }
  pieces.push(unmark(text.slice(from), nameOf));
  return pieces.join('').replaceAll(INVISIBLE, '');
}

function unmark(text: string, nameOf: (mention: string) => string | undefined): string {
  return text
    .replaceAll(/<(@!?|@&|#)(\d{17,20})>/g, (whole, sigil: string, id: string) => {
      const name = nameOf(id);
      return name === undefined ? whole : `${sigil.startsWith('@') ? '@' : '#'}${name}`;
    })
    .replaceAll(/<t:(\d+)(?::[a-zA-Z])?>/g, (_whole, secs: string) => isoMinute(Number(secs)))
    .replaceAll(/^(?:-# |#{1,3} |> )/gm, '')
    .replaceAll(
      /\\([^\sA-Za-z0-9])|(\*\*|__|~~|\|\||(?<![\w*])[*_](?=\S)|(?<=\S)[*_](?![\w*]))/g,
      (_whole, kept?: string) => kept ?? '',
    );
}

function isoMinute(secs: number): string {
  return isoTime(secs * 1000)
    .slice(0, 16)
    .replace('T', ' ');
}

/** The first address the client would make a preview of: not in code, not in `<…>`. */
export function previewedLink(content: string): string | undefined {
  const prose = blocksOf(content)
    .map((block) => (block.kind === 'text' ? block.text : ''))
    .join('\n')
    .replaceAll(/(`{1,2})[^`]+?\1/g, '')
    .replaceAll(/<https?:\/\/[^>\s]+>/g, '');
  return /https?:\/\/[^\s<>]+/.exec(prose)?.[0];
}

/** What is wrong with a bot's text that Discord would show as garbage rather than refuse. */
export function textFaults(
  content: string,
): readonly { readonly rule: string; readonly detail: string }[] {
  const faults: { rule: string; detail: string }[] = [];
  if ((content.match(/```/g)?.length ?? 0) % 2 === 1)
    faults.push({ rule: 'unclosed-fence', detail: 'an odd number of ``` in one message' });
  for (const block of blocksOf(content)) {
    if (block.kind === 'text') {
      if (block.text.includes('\u001b'))
        faults.push({ rule: 'control-sequence', detail: 'ESC outside a fence' });
    } else faults.push(...fenceFaults(block.text, block.language));
  }
  return faults;
}

const SGR_SHOWN = new Set([
  0, 1, 4, 30, 31, 32, 33, 34, 35, 36, 37, 40, 41, 42, 43, 44, 45, 46, 47,
]);

function fenceFaults(text: string, language: string): readonly { rule: string; detail: string }[] {
  if (!text.includes('\u001b')) return [];
  if (language !== 'ansi')
    return [{ rule: 'control-sequence', detail: `ESC in a ${language || 'plain'} fence` }];
  const bad = [...text.matchAll(SGR)]
    .flatMap((match) => (match[1] ?? '').split(';').map((part) => Number(part === '' ? 0 : part)))
    .filter((code) => !SGR_SHOWN.has(code));
  const faults =
    bad.length === 0
      ? []
      : [{ rule: 'unsupported-sgr', detail: `SGR ${[...new Set(bad)].join(' ')}` }];
  const rest = text.replaceAll(SGR, '');
  if (rest.includes('\u001b'))
    faults.push({ rule: 'control-sequence', detail: 'an escape sequence that is no colour' });
  return faults;
}
