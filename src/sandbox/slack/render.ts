// What a person sees of a message: plain lines, told apart by where they stand. Read-backs and the
// page use it; nothing of the API does.

import { type Fields, isFields } from '../fields.ts';
import { unescapeText } from './escape.ts';

export interface ShownPart {
  readonly kind: 'text' | 'pre' | 'quote' | 'list' | 'header' | 'context' | 'divider' | 'image';
  readonly lines: readonly string[];
}

export interface ShownButton {
  readonly label: string;
  readonly actionId: string;
  readonly blockId: string;
  readonly value: string | undefined;
  readonly style: string | undefined;
}

/** Names for ids, as a client resolves them. */
export interface Names {
  user(id: string): string;
  channel(id: string): string;
}

export function shownParts(
  text: string,
  blocks: readonly Fields[] | undefined,
  names: Names,
): readonly ShownPart[] {
  if (blocks === undefined || blocks.length === 0) return mrkdwnParts(text, names);
  return blocks.flatMap((block) => blockParts(block, names));
}

export function shownButtons(blocks: readonly Fields[] | undefined): readonly ShownButton[] {
  return (blocks ?? []).flatMap((block) => {
    const elements =
      block['type'] === 'actions' ? arrayOf(block['elements']) : [block['accessory']];
    return elements
      .filter(isFields)
      .flatMap((element) =>
        element['type'] === 'button' ? [buttonOf(element, stringOf(block['block_id']))] : [],
      );
  });
}

function buttonOf(element: Fields, blockId: string): ShownButton {
  return {
    label: plainText(element['text']),
    actionId: stringOf(element['action_id']),
    blockId,
    value: typeof element['value'] === 'string' ? element['value'] : undefined,
    style: typeof element['style'] === 'string' ? element['style'] : undefined,
  };
}

function blockParts(block: Fields, names: Names): readonly ShownPart[] {
  switch (block['type']) {
    case 'rich_text':
      return arrayOf(block['elements'])
        .filter(isFields)
        .map((element) => richPart(element, names));
    case 'section':
      return [
        ...textObjectParts(block['text'], names),
        ...arrayOf(block['fields']).flatMap((field) => textObjectParts(field, names)),
      ];
    case 'markdown':
      return mrkdwnParts(stringOf(block['text']), names);
    case 'header':
      return [{ kind: 'header', lines: [plainText(block['text'])] }];
    case 'context':
      return [{ kind: 'context', lines: [contextLine(block, names)] }];
    case 'divider':
      return [{ kind: 'divider', lines: [] }];
    case 'image':
      return [{ kind: 'image', lines: [stringOf(block['alt_text'])] }];
    default:
      return [];
  }
}

function contextLine(block: Fields, names: Names): string {
  return arrayOf(block['elements'])
    .flatMap((element) => textObjectParts(element, names))
    .flatMap((part) => part.lines)
    .join(' ');
}

function textObjectParts(value: unknown, names: Names): readonly ShownPart[] {
  if (!isFields(value)) return [];
  const text = stringOf(value['text']);
  if (value['type'] === 'mrkdwn') return mrkdwnParts(text, names);
  return text === '' ? [] : [{ kind: 'text', lines: text.split('\n') }];
}

function richPart(element: Fields, names: Names): ShownPart {
  const leaves = arrayOf(element['elements']).filter(isFields);
  switch (element['type']) {
    case 'rich_text_preformatted':
      return { kind: 'pre', lines: leavesText(leaves, names).split('\n') };
    case 'rich_text_quote':
      return { kind: 'quote', lines: leavesText(leaves, names).split('\n') };
    case 'rich_text_list':
      return {
        kind: 'list',
        lines: leaves.map((item, index) => {
          const marker = element['style'] === 'ordered' ? `${index + 1}.` : '•';
          return `${marker} ${leavesText(arrayOf(item['elements']).filter(isFields), names)}`;
        }),
      };
    default:
      return { kind: 'text', lines: leavesText(leaves, names).replace(/\n$/, '').split('\n') };
  }
}

function leavesText(leaves: readonly Fields[], names: Names): string {
  return leaves.map((leaf) => leafText(leaf, names)).join('');
}

function leafText(leaf: Fields, names: Names): string {
  switch (leaf['type']) {
    case 'link':
      return stringOf(leaf['text']) || stringOf(leaf['url']);
    case 'emoji':
      return emojiText(leaf);
    case 'user':
      return `@${names.user(stringOf(leaf['user_id']))}`;
    case 'channel':
      return `#${names.channel(stringOf(leaf['channel_id']))}`;
    case 'broadcast':
      return `@${stringOf(leaf['range'])}`;
    default:
      return stringOf(leaf['text']);
  }
}

function emojiText(leaf: Fields): string {
  const unicode = stringOf(leaf['unicode']);
  if (unicode === '') return `:${stringOf(leaf['name'])}:`;
  return String.fromCodePoint(...unicode.split('-').map((hex) => Number.parseInt(hex, 16)));
}

/** Fences apart, control sequences resolved, entities undone. Emphasis marks stay as written. */
function mrkdwnParts(text: string, names: Names): readonly ShownPart[] {
  const parts: ShownPart[] = [];
  for (const [index, piece] of text.split('```').entries()) {
    const isFence = index % 2 === 1;
    // Newlines next to a fence belong to it and are not shown.
    const trimmed = piece.replace(/^\n/, '').replace(/\n$/, '');
    if (trimmed === '' && !isFence) continue;
    parts.push({
      kind: isFence ? 'pre' : 'text',
      lines: resolveControls(trimmed, names).split('\n'),
    });
  }
  return parts;
}

function resolveControls(text: string, names: Names): string {
  const resolved = text.replaceAll(/<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>/g, (_all, ...groups) => {
    const [mark, target, label] = groups.map((group) => (typeof group === 'string' ? group : ''));
    if (label) return mark === '#' ? `#${label}` : label;
    if (mark === '@') return `@${names.user(target ?? '')}`;
    if (mark === '#') return `#${names.channel(target ?? '')}`;
    if (mark === '!') return `@${target ?? ''}`;
    return target ?? '';
  });
  return unescapeText(resolved);
}

function plainText(value: unknown): string {
  return isFields(value) ? stringOf(value['text']) : '';
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
