// From what Slack's client composed to what the person typed. Pure. `blocks` are the better source:
// `text` is markup with entities, links and shortcodes. Knows nothing of events.

import { type Fields, fieldsOf, listField, textField } from '../fields.ts';
import { plainPunctuation } from '../typed-text.ts';

/** What a person typed. */
export interface Typed {
  readonly text: string;
  /** Before smart punctuation was made plain. */
  readonly asWritten: string;
  /** The whole message was written as code. */
  readonly verbatim: boolean;
  readonly mentionsUs: boolean;
}

export interface TypingContext {
  readonly ourUserId: string;
  /** Display name of a person, where known. */
  nameOf(userId: string): string | undefined;
}

/** Decodes a message: its rich text where it has any, else its markup. */
export function decodeTyped(
  blocks: unknown,
  text: string | undefined,
  context: TypingContext,
): Typed {
  const rich = Array.isArray(blocks)
    ? blocks.map(fieldsOf).filter((block) => block['type'] === 'rich_text')
    : [];
  const pieces = rich.length > 0 ? richPieces(rich, context) : markupPieces(text ?? '', context);
  return assemble(pieces);
}

/** A stretch of text, and whether it was written as code. */
interface Piece {
  readonly text: string;
  readonly code: boolean;
  /** Our own name. */
  readonly us?: boolean;
}

function assemble(pieces: readonly Piece[]): Typed {
  const mentionsUs = pieces.some((piece) => piece.us === true);
  const rest = withoutLeadingMention(pieces);
  const meaningful = rest.filter((piece) => piece.code || piece.text.trim() !== '');
  const verbatim = meaningful.length > 0 && meaningful.every((piece) => piece.code);
  if (verbatim) {
    const ends = rest.map((piece) => piece.code);
    const code = joined(rest.slice(ends.indexOf(true), ends.lastIndexOf(true) + 1));
    return { text: code, asWritten: code, verbatim, mentionsUs };
  }
  const asWritten = rest.map((piece) => piece.text).join('');
  const text = rest
    .map((piece) => (piece.code ? piece.text : plainPunctuation(piece.text)))
    .join('');
  return { text, asWritten, verbatim, mentionsUs };
}

function withoutLeadingMention(pieces: readonly Piece[]): readonly Piece[] {
  const first = pieces.findIndex((piece) => piece.text.trim() !== '');
  if (pieces[first]?.us !== true) return pieces;
  const rest = pieces.slice(first + 1);
  const [next, ...others] = rest;
  if (next === undefined || next.code) return rest;
  return [{ ...next, text: next.text.trimStart() }, ...others];
}

function richPieces(blocks: readonly Fields[], context: TypingContext): readonly Piece[] {
  const pieces: Piece[] = [];
  for (const element of blocks.flatMap((block) => listField(block, 'elements')).map(fieldsOf)) {
    const added = elementPieces(element, context);
    if (added.length === 0) continue;
    // A block starts on a line of its own, whether or not Slack left the newline in.
    if (pieces.length > 0 && pieces.at(-1)?.text.endsWith('\n') !== true) {
      pieces.push({ text: '\n', code: false });
    }
    pieces.push(...added);
  }
  return codeWithMarks(pieces);
}

/** Code beside other text keeps its backticks: `echo \`date\`` is what was typed. */
function codeWithMarks(pieces: readonly Piece[]): readonly Piece[] {
  const alone = pieces.every(
    (piece) => piece.code || piece.us === true || piece.text.trim() === '',
  );
  if (alone) return pieces;
  return pieces.map((piece) =>
    piece.code && !piece.text.includes('\n') ? { ...piece, text: `\`${piece.text}\`` } : piece,
  );
}

function elementPieces(element: Fields, context: TypingContext): readonly Piece[] {
  const children = listField(element, 'elements').map(fieldsOf);
  switch (element['type']) {
    case 'rich_text_section':
      return leafPieces(children, context);
    case 'rich_text_preformatted':
      return [{ text: joined(leafPieces(children, context)), code: true }];
    case 'rich_text_quote':
      // The composer turned a typed "> " into this element.
      return prefixed(leafPieces(children, context), '> ');
    case 'rich_text_list':
      return listPieces(element, children, context);
    default:
      return [];
  }
}

function listPieces(
  list: Fields,
  items: readonly Fields[],
  context: TypingContext,
): readonly Piece[] {
  const indent = '  '.repeat(typeof list['indent'] === 'number' ? Math.min(list['indent'], 8) : 0);
  const first = typeof list['offset'] === 'number' ? list['offset'] : 0;
  const ordered = list['style'] === 'ordered';
  return items.flatMap((item, index) => {
    const mark = ordered ? `${first + index + 1}. ` : '- ';
    const lead = `${index === 0 ? '' : '\n'}${indent}${mark}`;
    return [{ text: lead, code: false }, ...elementPieces(item, context)];
  });
}

function prefixed(pieces: readonly Piece[], prefix: string): readonly Piece[] {
  const text = joined(pieces)
    .split('\n')
    .map((line) => prefix + line)
    .join('\n');
  return [{ text, code: false }];
}

function joined(pieces: readonly Piece[]): string {
  return pieces.map((piece) => piece.text).join('');
}

/** Neighbours of one style are one stretch: `*a b*` comes as several leaves when it has a link. */
function leafPieces(leaves: readonly Fields[], context: TypingContext): readonly Piece[] {
  const pieces: Piece[] = [];
  let run = { marks: '', text: '', code: false };
  const flush = (): void => {
    if (run.text === '') return;
    pieces.push({ text: marked(run.text, run.marks), code: run.code });
  };
  for (const leaf of leaves) {
    if (leaf['type'] === 'user' && leaf['user_id'] === context.ourUserId) {
      flush();
      run = { marks: '', text: '', code: false };
      pieces.push({ text: `<@${context.ourUserId}>`, code: false, us: true });
      continue;
    }
    const style = fieldsOf(leaf['style']);
    const marks = marksOf(style);
    const code = style['code'] === true;
    if (marks !== run.marks || code !== run.code) {
      flush();
      run = { marks, text: '', code };
    }
    run.text += leafText(leaf, context);
  }
  flush();
  return pieces;
}

/**
 * The composer takes `*x*`, `_x_` and `~x~` away and keeps a style. Typed into a shell they were
 * globs and names, so they come back.
 */
function marksOf(style: Fields): string {
  return (
    (style['bold'] === true ? '*' : '') +
    (style['italic'] === true ? '_' : '') +
    (style['strike'] === true ? '~' : '')
  );
}

function marked(text: string, marks: string): string {
  if (marks === '') return text;
  const [, before = '', middle = '', after = ''] = /^(\s*)([\s\S]*?)(\s*)$/.exec(text) ?? [];
  if (middle === '') return text;
  return `${before}${marks}${middle}${[...marks].reverse().join('')}${after}`;
}

function leafText(leaf: Fields, context: TypingContext): string {
  switch (leaf['type']) {
    case 'text':
      return textField(leaf, 'text') ?? '';
    case 'link':
      return linkText(leaf);
    case 'emoji':
      return emojiText(leaf);
    case 'user': {
      const id = textField(leaf, 'user_id') ?? '';
      return `@${context.nameOf(id) ?? id}`;
    }
    case 'channel':
      return `#${textField(leaf, 'channel_id') ?? ''}`;
    case 'usergroup':
      return `@${textField(leaf, 'usergroup_id') ?? ''}`;
    case 'broadcast':
      return `@${textField(leaf, 'range') ?? ''}`;
    case 'color':
      return textField(leaf, 'value') ?? '';
    case 'date':
      return textField(leaf, 'fallback') ?? '';
    default:
      return textField(leaf, 'text') ?? '';
  }
}

/** The label is what was typed; the client adds a scheme to bare names and marks those unsafe. */
function linkText(leaf: Fields): string {
  const url = textField(leaf, 'url') ?? '';
  const label = textField(leaf, 'text');
  if (label !== undefined && label !== '') return label;
  if (url.startsWith('mailto:')) return url.slice('mailto:'.length);
  return leaf['unsafe'] === true ? url.replace(/^https?:\/\//, '') : url;
}

function emojiText(leaf: Fields): string {
  const name = textField(leaf, 'name') ?? '';
  const unicode = textField(leaf, 'unicode');
  if (unicode === undefined || !/^[0-9a-f]{1,6}(-[0-9a-f]{1,6})*$/i.test(unicode)) {
    return `:${name}:`;
  }
  const points = unicode.split('-').map((hex) => Number.parseInt(hex, 16));
  if (points.some((point) => point > 0x10ffff)) return `:${name}:`;
  return String.fromCodePoint(...points);
}

/** `&lt; &gt; &amp;` undone exactly once, the ampersand last. */
export function unescapeEntities(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

function markupPieces(markup: string, context: TypingContext): readonly Piece[] {
  const whole = /^\s*```\n?([\s\S]*?)\n?```\s*$/.exec(markup) ?? /^\s*`([^`\n]+)`\s*$/.exec(markup);
  const inside = whole?.[1];
  if (inside !== undefined && !inside.includes('```')) {
    return [{ text: unescapeEntities(unwrapped(inside, context)), code: true }];
  }
  const pieces: Piece[] = [];
  for (const part of markup.split(/(<@[A-Z0-9]+(?:\|[^>]*)?>)/)) {
    const id = /^<@([A-Z0-9]+)/.exec(part)?.[1];
    if (id === context.ourUserId) pieces.push({ text: part, code: false, us: true });
    else if (part !== '') {
      pieces.push({ text: unescapeEntities(unwrapped(part, context)), code: false });
    }
  }
  return pieces;
}

/** `<url|label>` and its relatives, before entities are undone. */
function unwrapped(markup: string, context: TypingContext): string {
  return markup.replace(/<([^<>|]+)(?:\|([^<>]*))?>/g, (_, target: string, label?: string) => {
    const shown = label === '' ? undefined : label;
    return shown === undefined ? bare(target, context) : sigilOf(target) + shown;
  });
}

/** A label of a person or channel comes without its sign; those of groups and links are whole. */
function sigilOf(target: string): string {
  return target.startsWith('@') || target.startsWith('#') ? target.charAt(0) : '';
}

function bare(target: string, context: TypingContext): string {
  if (target.startsWith('@')) return `@${context.nameOf(target.slice(1)) ?? target.slice(1)}`;
  if (target.startsWith('!subteam^')) return '@group';
  if (target.startsWith('!date^')) return '';
  if (target.startsWith('!')) return `@${target.slice(1)}`;
  return target.replace(/^mailto:/, '');
}
