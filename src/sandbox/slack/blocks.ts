// Validates Block Kit as Slack does: each limit of PLATFORM §2.8, complaints with JSON pointers.

import { type Fields, isFields } from '../fields.ts';

export const BLOCKS_MAX = 50;
/** Undocumented, measured between 13,172 and 13,297 (PLATFORM §2.8). */
export const BLOCKS_TOTAL_UNITS_MAX = 13_200;

export type BlocksVerdict =
  | { readonly kind: 'ok'; readonly blocks: readonly Fields[] }
  | { readonly kind: 'error'; readonly error: string; readonly messages: readonly string[] };

class Complaints {
  readonly messages: string[] = [];

  add(what: string, pointer: string): void {
    this.messages.push(`[ERROR] ${what} [json-pointer:${pointer}]`);
  }

  text(value: unknown, max: number, pointer: string, types: readonly string[]): void {
    if (!isFields(value)) {
      this.add('missing required field: text', pointer);
      return;
    }
    if (!types.some((type) => type === value['type'])) {
      this.add(`unsupported type: ${String(value['type'])}`, `${pointer}/type`);
    }
    this.string(value['text'], max, `${pointer}/text`, 1);
  }

  string(value: unknown, max: number, pointer: string, min = 0): void {
    if (typeof value !== 'string') {
      this.add('must be a string', pointer);
      return;
    }
    if (value.length < min) this.add(`must be more than ${min - 1} characters`, pointer);
    if (value.length > max) this.add(`must be less than ${max + 1} characters`, pointer);
  }

  list(value: unknown, max: number, pointer: string): readonly unknown[] {
    if (!Array.isArray(value)) {
      this.add('must be an array', pointer);
      return [];
    }
    const items: readonly unknown[] = value;
    if (items.length === 0) this.add('no fewer than 1 items allowed', pointer);
    if (items.length > max) this.add(`no more than ${max} items allowed`, pointer);
    return items;
  }
}

/** `surface` decides how many blocks and which kinds are allowed. */
export function checkBlocks(raw: unknown, surface: 'message' | 'modal' = 'message'): BlocksVerdict {
  const parsed = typeof raw === 'string' ? parseJson(raw) : raw;
  if (!Array.isArray(parsed))
    return { kind: 'error', error: 'invalid_blocks_format', messages: [] };
  const items: readonly unknown[] = parsed;
  const blocks = items.filter(isFields);
  if (blocks.length !== items.length)
    return { kind: 'error', error: 'invalid_blocks_format', messages: [] };
  const max = surface === 'modal' ? 100 : BLOCKS_MAX;
  if (blocks.length > max) {
    const messages = [`[ERROR] no more than ${max} items allowed [json-pointer:/blocks]`];
    return { kind: 'error', error: 'invalid_blocks', messages };
  }
  const complaints = new Complaints();
  for (const [index, block] of blocks.entries()) checkBlock(block, `/blocks/${index}`, complaints);
  checkIds(blocks, complaints);
  if (complaints.messages.length > 0)
    return { kind: 'error', error: 'invalid_blocks', messages: complaints.messages };
  if (textUnits(blocks) > BLOCKS_TOTAL_UNITS_MAX)
    return { kind: 'error', error: 'msg_blocks_too_long', messages: [] };
  return { kind: 'ok', blocks };
}

/** Gives every block the block_id Slack would mint for it. */
export function withBlockIds(blocks: readonly Fields[], mint: () => string): readonly Fields[] {
  return blocks.map((block) =>
    typeof block['block_id'] === 'string' ? block : { ...block, block_id: mint() },
  );
}

/** All characters a person could read, as the total limit counts them. */
export function textUnits(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + textUnits(item), 0);
  if (!isFields(value)) return 0;
  return Object.entries(value).reduce((sum, [key, item]) => {
    if (typeof item === 'string') return key === 'text' ? sum + item.length : sum;
    return sum + textUnits(item);
  }, 0);
}

function parseJson(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    return parsed;
  } catch {
    return undefined;
  }
}

function checkIds(blocks: readonly Fields[], complaints: Complaints): void {
  const seen = new Set<string>();
  for (const [index, block] of blocks.entries()) {
    const id = block['block_id'];
    if (id === undefined) continue;
    complaints.string(id, 255, `/blocks/${index}/block_id`);
    if (typeof id !== 'string') continue;
    if (seen.has(id)) complaints.add('block_id already exists', `/blocks/${index}/block_id`);
    seen.add(id);
  }
}

function checkBlock(block: Fields, pointer: string, complaints: Complaints): void {
  switch (block['type']) {
    case 'section':
      checkSection(block, pointer, complaints);
      return;
    case 'header':
      complaints.text(block['text'], 150, `${pointer}/text`, ['plain_text']);
      return;
    case 'context':
      checkContext(block, pointer, complaints);
      return;
    case 'actions':
      checkActions(block, pointer, complaints);
      return;
    case 'input':
      checkInput(block, pointer, complaints);
      return;
    case 'markdown':
      complaints.string(block['text'], 12_000, `${pointer}/text`, 1);
      return;
    case 'rich_text':
      checkRichText(block, pointer, complaints);
      return;
    case 'image':
      complaints.string(block['alt_text'], 2_000, `${pointer}/alt_text`, 1);
      return;
    case 'divider':
    case 'file':
    case 'video':
    case 'table':
      return;
    default:
      complaints.add(`unsupported type: ${String(block['type'])}`, `${pointer}/type`);
  }
}

function checkSection(block: Fields, pointer: string, complaints: Complaints): void {
  if (block['text'] === undefined && block['fields'] === undefined)
    complaints.add('must define either `fields` or `text`', pointer);
  if (block['text'] !== undefined)
    complaints.text(block['text'], 3_000, `${pointer}/text`, ['plain_text', 'mrkdwn']);
  if (block['fields'] !== undefined) {
    const fields = complaints.list(block['fields'], 10, `${pointer}/fields`);
    for (const [index, field] of fields.entries())
      complaints.text(field, 2_000, `${pointer}/fields/${index}`, ['plain_text', 'mrkdwn']);
  }
  if (block['accessory'] !== undefined)
    checkElement(block['accessory'], `${pointer}/accessory`, complaints);
}

function checkContext(block: Fields, pointer: string, complaints: Complaints): void {
  const elements = complaints.list(block['elements'], 10, `${pointer}/elements`);
  for (const [index, element] of elements.entries()) {
    if (isFields(element) && element['type'] === 'image') continue;
    complaints.text(element, 3_000, `${pointer}/elements/${index}`, ['plain_text', 'mrkdwn']);
  }
}

function checkActions(block: Fields, pointer: string, complaints: Complaints): void {
  const elements = complaints.list(block['elements'], 25, `${pointer}/elements`);
  const seen = new Set<unknown>();
  for (const [index, element] of elements.entries()) {
    const at = `${pointer}/elements/${index}`;
    checkElement(element, at, complaints);
    const id = isFields(element) ? element['action_id'] : undefined;
    if (id !== undefined && seen.has(id)) complaints.add('action_id already exists', at);
    seen.add(id);
  }
}

function checkInput(block: Fields, pointer: string, complaints: Complaints): void {
  complaints.text(block['label'], 2_000, `${pointer}/label`, ['plain_text']);
  checkElement(block['element'], `${pointer}/element`, complaints);
}

function checkElement(element: unknown, pointer: string, complaints: Complaints): void {
  if (!isFields(element)) {
    complaints.add('must be an object', pointer);
    return;
  }
  if (element['action_id'] !== undefined)
    complaints.string(element['action_id'], 255, `${pointer}/action_id`, 1);
  if (element['type'] === 'button') checkButton(element, pointer, complaints);
  if (element['type'] === 'static_select')
    complaints.list(element['options'] ?? element['option_groups'], 100, `${pointer}/options`);
  if (element['type'] === 'plain_text_input' && typeof element['max_length'] === 'number') {
    if (element['max_length'] > 3_000)
      complaints.add('must be less than 3001', `${pointer}/max_length`);
  }
}

function checkButton(element: Fields, pointer: string, complaints: Complaints): void {
  complaints.text(element['text'], 75, `${pointer}/text`, ['plain_text']);
  if (element['value'] !== undefined)
    complaints.string(element['value'], 2_000, `${pointer}/value`, 1);
  if (element['url'] !== undefined) complaints.string(element['url'], 3_000, `${pointer}/url`);
  if (
    element['style'] !== undefined &&
    element['style'] !== 'primary' &&
    element['style'] !== 'danger'
  )
    complaints.add('must be a valid enum value', `${pointer}/style`);
}

const RICH_ELEMENTS = [
  'rich_text_section',
  'rich_text_list',
  'rich_text_preformatted',
  'rich_text_quote',
];

function checkRichText(block: Fields, pointer: string, complaints: Complaints): void {
  const elements = complaints.list(block['elements'], 1_000, `${pointer}/elements`);
  for (const [index, element] of elements.entries()) {
    const at = `${pointer}/elements/${index}`;
    if (!isFields(element) || !RICH_ELEMENTS.some((type) => type === element['type'])) {
      complaints.add('unsupported type', `${at}/type`);
      continue;
    }
    checkLeaves(element, at, complaints);
  }
}

function checkLeaves(element: Fields, pointer: string, complaints: Complaints): void {
  const leaves = complaints.list(element['elements'], 10_000, `${pointer}/elements`);
  for (const [index, leaf] of leaves.entries()) {
    const at = `${pointer}/elements/${index}`;
    if (!isFields(leaf)) complaints.add('must be an object', at);
    else if (element['type'] === 'rich_text_list') checkLeaves(leaf, at, complaints);
    // An empty text leaf is refused by the real one too.
    else if (leaf['type'] === 'text') complaints.string(leaf['text'], 100_000, `${at}/text`, 1);
    else if (leaf['type'] === 'link') complaints.string(leaf['url'], 3_000, `${at}/url`, 1);
  }
}
