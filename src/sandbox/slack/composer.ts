// What a Slack client makes of what a person types: rich_text leaves, auto-links, mentions, emoji
// names, smart quotes, and the escaped mrkdwn text beside them (PLATFORM §2.9, inbound).

import type { Fields } from '../fields.ts';
import { EMOTICONS, emojiCode, emojiPieces } from './emoji.ts';
import { escapeText } from './escape.ts';

export interface Directory {
  userId(name: string): string | undefined;
  channelId(name: string): string | undefined;
}

export interface Composed {
  /** Escaped form, as events carry it. */
  readonly text: string;
  readonly blocks: readonly Fields[];
}

interface Leaf {
  readonly json: Fields;
  readonly mrkdwn: string;
}

interface Element {
  readonly json: Fields;
  readonly mrkdwn: string;
}

export interface ComposeOptions {
  readonly directory: Directory;
  /** As macOS does it, outside of code. */
  readonly smartQuotes: boolean;
  readonly blockId: string;
}

export function compose(typed: string, options: ComposeOptions): Composed {
  const elements: Element[] = [];
  for (const [index, piece] of fencePieces(typed).entries()) {
    if (index % 2 === 1) elements.push(preformatted(piece));
    else elements.push(...flowElements(trimAround(piece, index > 0), options));
  }
  const shown = elements.filter((element) => element.mrkdwn !== '');
  return {
    text: shown.map((element) => element.mrkdwn).join('\n'),
    blocks: [
      {
        type: 'rich_text',
        block_id: options.blockId,
        elements: shown.map((element) => element.json),
      },
    ],
  };
}

/** Every second piece is in a fence; a fence nobody closed is just three backticks. */
function fencePieces(typed: string): readonly string[] {
  const pieces = typed.split('```');
  if (pieces.length % 2 === 1) return pieces;
  return [...pieces.slice(0, -2), pieces.slice(-2).join('```')];
}

/** The newlines next to a fence are not part of the text around it. */
function trimAround(piece: string, isAfterFence: boolean): string {
  return (isAfterFence ? piece.replace(/^\n/, '') : piece).replace(/\n$/, '');
}

function preformatted(piece: string): Element {
  const text = piece.replace(/^\n/, '').replace(/\n$/, '');
  return {
    json: { type: 'rich_text_preformatted', border: 0, elements: [{ type: 'text', text }] },
    mrkdwn: text === '' ? '' : `\`\`\`${escapeText(text)}\`\`\``,
  };
}

/** Consecutive lines of one kind become one element. */
function flowElements(piece: string, options: ComposeOptions): readonly Element[] {
  if (piece === '') return [];
  const groups: { kind: LineKind; lines: string[] }[] = [];
  for (const line of piece.split('\n')) {
    const kind = lineKind(line);
    const last = groups.at(-1);
    if (last?.kind === kind) last.lines.push(line);
    else groups.push({ kind, lines: [line] });
  }
  return groups.map((group) => {
    if (group.kind === 'quote') return quote(group.lines, options);
    return group.kind === 'section'
      ? section(group.lines, options)
      : list(group.lines, group.kind, options);
  });
}

type LineKind = 'section' | 'quote' | 'bullet' | 'ordered';

function lineKind(line: string): LineKind {
  if (/^> \S/.test(line)) return 'quote';
  if (/^[-*•] \S/.test(line)) return 'bullet';
  return /^\d+\. \S/.test(line) ? 'ordered' : 'section';
}

function section(lines: readonly string[], options: ComposeOptions): Element {
  const leaves = leavesOf(lines.join('\n'), options);
  return {
    json: { type: 'rich_text_section', elements: leaves.map((leaf) => leaf.json) },
    mrkdwn: leaves.map((leaf) => leaf.mrkdwn).join(''),
  };
}

function quote(lines: readonly string[], options: ComposeOptions): Element {
  const leaves = leavesOf(lines.map((line) => line.slice(2)).join('\n'), options);
  return {
    json: { type: 'rich_text_quote', elements: leaves.map((leaf) => leaf.json) },
    mrkdwn: leaves
      .map((leaf) => leaf.mrkdwn)
      .join('')
      .split('\n')
      .map((line) => `&gt; ${line}`)
      .join('\n'),
  };
}

function list(
  lines: readonly string[],
  style: 'bullet' | 'ordered',
  options: ComposeOptions,
): Element {
  const items = lines.map((line) => leavesOf(line.replace(/^(?:[-*•]|\d+\.) /, ''), options));
  return {
    json: {
      type: 'rich_text_list',
      style,
      indent: 0,
      border: 0,
      elements: items.map((leaves) => ({
        type: 'rich_text_section',
        elements: leaves.map((leaf) => leaf.json),
      })),
    },
    mrkdwn: items
      .map((leaves, index) => {
        const marker = style === 'bullet' ? '•' : `${index + 1}.`;
        return `${marker} ${leaves.map((leaf) => leaf.mrkdwn).join('')}`;
      })
      .join('\n'),
  };
}

// One alternative per named group; the first that matches at a place wins.
const INLINE = new RegExp(
  [
    '`(?<code>[^`\\n]+)`',
    '(?<url>\\bhttps?:\\/\\/[^\\s<>|"]+)',
    '(?<mail>\\b[\\w.+-]+@[\\w-]+(?:\\.[\\w-]+)+\\b)',
    '(?<host>\\b(?:www\\.[\\w-]+(?:\\.[\\w-]+)+|(?:[\\w-]+\\.)+(?:com|org|net|io|dev))\\b(?:\\/[^\\s<>|"]*)?)',
    '(?<![\\w@])@(?<user>\\w[\\w.-]*)',
    '(?<![\\w#])#(?<channel>[a-z0-9_-]+)',
    ':(?<emoji>[a-z0-9_+-]+):',
    '(?<![\\w*])\\*(?<bold>[^\\s*](?:[^*\\n]*[^\\s*])?)\\*(?![\\w*])',
    '(?<![\\w_])_(?<italic>[^\\s_](?:[^_\\n]*[^\\s_])?)_(?![\\w_])',
    '(?<![\\w~])~(?<strike>[^\\s~](?:[^~\\n]*[^\\s~])?)~(?![\\w~])',
  ].join('|'),
  'g',
);

function leavesOf(text: string, options: ComposeOptions): readonly Leaf[] {
  const leaves: Leaf[] = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const special = specialLeaf(match, options);
    if (special === undefined) continue;
    leaves.push(...plainLeaves(text.slice(at, match.index), options), special.leaf);
    at = match.index + special.length;
  }
  leaves.push(...plainLeaves(text.slice(at), options));
  return leaves;
}

function specialLeaf(
  match: RegExpMatchArray,
  options: ComposeOptions,
): { leaf: Leaf; length: number } | undefined {
  const groups: Readonly<Record<string, string | undefined>> = match.groups ?? {};
  const [kind, value] = Object.entries(groups).find(([, text]) => text !== undefined) ?? [];
  if (kind === undefined || value === undefined) return undefined;
  if (kind === 'url' || kind === 'host') {
    // Punctuation at the end of a sentence is no part of the link.
    const target = value.replace(/[.,;:!?)]+$/, '');
    return { leaf: linkLeaf(kind, target), length: target.length };
  }
  const leaf = wordLeaf(kind, value, options);
  return leaf === undefined ? undefined : { leaf, length: match[0].length };
}

function linkLeaf(kind: 'url' | 'host', target: string): Leaf {
  if (kind === 'url')
    return { json: { type: 'link', url: target }, mrkdwn: `<${escapeText(target)}>` };
  const url = `http://${target}`;
  return {
    json: { type: 'link', url, text: target, unsafe: true },
    mrkdwn: `<${escapeText(url)}|${escapeText(target)}>`,
  };
}

function wordLeaf(kind: string, value: string, options: ComposeOptions): Leaf | undefined {
  switch (kind) {
    case 'mail': {
      const url = `mailto:${value}`;
      return {
        json: { type: 'link', url, text: value, unsafe: true },
        mrkdwn: `<${url}|${value}>`,
      };
    }
    case 'user':
      return mentionLeaf(value, options);
    case 'channel': {
      const id = options.directory.channelId(value);
      return id === undefined
        ? undefined
        : { json: { type: 'channel', channel_id: id }, mrkdwn: `<#${id}|${value}>` };
    }
    case 'emoji':
      return emojiLeaf(value);
    default:
      return styledLeaf(kind, value);
  }
}

function mentionLeaf(name: string, options: ComposeOptions): Leaf | undefined {
  if (['here', 'channel', 'everyone'].includes(name))
    return { json: { type: 'broadcast', range: name }, mrkdwn: `<!${name}>` };
  const id = options.directory.userId(name);
  return id === undefined ? undefined : { json: { type: 'user', user_id: id }, mrkdwn: `<@${id}>` };
}

function emojiLeaf(name: string): Leaf | undefined {
  const unicode = emojiCode(name);
  return unicode === undefined
    ? undefined
    : { json: { type: 'emoji', name, unicode }, mrkdwn: `:${name}:` };
}

function styledLeaf(style: string, text: string): Leaf {
  const marks: Readonly<Record<string, string>> = {
    code: '`',
    bold: '*',
    italic: '_',
    strike: '~',
  };
  const mark = marks[style] ?? '';
  return {
    json: { type: 'text', text, style: { [style]: true } },
    mrkdwn: `${mark}${escapeText(text)}${mark}`,
  };
}

/** Plain text with its emoji and emoticons; quotes and dashes as the system rewrites them. */
function plainLeaves(text: string, options: ComposeOptions): readonly Leaf[] {
  const faces = text.split(/((?<=^|\s)(?::\)|;\)|:D|<3)(?=\s|$))/);
  return faces.flatMap((face): readonly Leaf[] => {
    const name = EMOTICONS[face];
    const leaf = name === undefined ? undefined : emojiLeaf(name);
    if (leaf !== undefined) return [leaf];
    return emojiPieces(face).flatMap((piece) => {
      const emoji = piece.name === undefined ? undefined : emojiLeaf(piece.name);
      if (emoji !== undefined) return [emoji];
      const said = options.smartQuotes ? smartened(piece.text) : piece.text;
      return [{ json: { type: 'text', text: said }, mrkdwn: escapeText(said) }];
    });
  });
}

function smartened(text: string): string {
  return text
    .replaceAll(/(^|[\s([{])"/g, '$1“')
    .replaceAll('"', '”')
    .replaceAll(/(^|[\s([{])'/g, '$1‘')
    .replaceAll("'", '’')
    .replaceAll('--', '—');
}
