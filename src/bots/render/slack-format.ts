// Content → what chat.postMessage and chat.update take. Lines of a program go into a
// rich_text_preformatted element, whose text is literal: nothing in it can ping, link or format.

import type { Line } from '../../term/values.ts';
import type { Button, Content, MessageBudget } from '../chat-platform.ts';
import { splitLine } from './chunks.ts';
import { clip, runsOf, safeText } from './lines.ts';

/** Longer text is split by the server when posted and refused when edited. */
const TEXT_UNITS_MAX = 4_000;
/** The budget of a message's lines; leaves room in TEXT_UNITS_MAX for head and foot. */
const LINES_UNITS_MAX = 3_500;
/** Chosen for reading: more lines than this scroll out of a phone several times over. */
const LINES_MAX = 120;
const HEAD_UNITS_MAX = 3_000;

export type SlackTextElement =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'link'; readonly url: string; readonly text: string }
  | { readonly type: 'user'; readonly user_id: string };

export type SlackRichElement =
  | { readonly type: 'rich_text_section'; readonly elements: readonly SlackTextElement[] }
  | {
      readonly type: 'rich_text_preformatted';
      readonly border: 0;
      readonly elements: readonly SlackTextElement[];
    };

export interface SlackButton {
  readonly type: 'button';
  readonly action_id: string;
  readonly text: { readonly type: 'plain_text'; readonly text: string; readonly emoji: false };
  readonly value: string;
  readonly style?: 'primary' | 'danger';
}

export type SlackBlock =
  | { readonly type: 'rich_text'; readonly elements: readonly SlackRichElement[] }
  | { readonly type: 'actions'; readonly elements: readonly SlackButton[] };

export interface SlackMessage {
  /** For notifications and old clients: escaped, at most 4,000 units. */
  readonly text: string;
  readonly blocks: readonly SlackBlock[];
}

/** What Slack shows for `content`. Send with parse none, link_names and both unfurls off. */
export function slackMessage(content: Content): SlackMessage {
  const head = clip(safeLines(content.head ?? ''), HEAD_UNITS_MAX);
  const foot = clip(safeLines(content.foot ?? ''), HEAD_UNITS_MAX);
  const mentions = (content.mention ?? []).filter((id) => /^[A-Z0-9]{1,32}$/u.test(id));
  const preformatted = preformattedElements(content.lines ?? []);
  const rich: SlackRichElement[] = [];
  const opening = sectionElements(mentions, head);
  if (opening.length > 0) rich.push({ type: 'rich_text_section', elements: opening });
  if (preformatted.length > 0) {
    rich.push({ type: 'rich_text_preformatted', border: 0, elements: preformatted });
  }
  const closing = sectionElements([], foot);
  if (closing.length > 0) rich.push({ type: 'rich_text_section', elements: closing });
  if (rich.length === 0) {
    rich.push({ type: 'rich_text_section', elements: [{ type: 'text', text: '(empty)' }] });
  }
  return {
    text: fallbackText(content, mentions, head, foot),
    blocks: [{ type: 'rich_text', elements: rich }, ...actionBlocks(content.buttons ?? [])],
  };
}

/** Exactly the three characters Slack asks for, `&` first. */
export function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Plain words (captions, whispers) for a mrkdwn field: safe, escaped, no markup of their own. */
export function slackPlain(text: string, maxUnits = TEXT_UNITS_MAX): string {
  return clipEscaped(escapeSlack(safeLines(text)), maxUnits);
}

export const slackBudget: MessageBudget = {
  linesMax: LINES_MAX,
  unitsMax: LINES_UNITS_MAX,
  costOf: (line) => costOf(line),
  split: (line) => splitLine(line, LINES_UNITS_MAX, costOf),
};

/** Counted escaped, as in the fallback, plus the targets of links, plus the newline. */
function costOf(line: Line): number {
  let units = 1;
  for (const run of runsOf(line)) units += escapedUnits(run.text) + (run.link?.length ?? 0);
  return units;
}

function escapedUnits(text: string): number {
  let units = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x26) units += 4;
    else if (code === 0x3c || code === 0x3e) units += 3;
  }
  return units;
}

function preformattedElements(lines: readonly Line[]): readonly SlackTextElement[] {
  const elements: SlackTextElement[] = [];
  let plain = '';
  const flush = (): void => {
    if (plain !== '') elements.push({ type: 'text', text: plain });
    plain = '';
  };
  for (const [index, line] of lines.entries()) {
    if (index > 0) plain += '\n';
    for (const run of runsOf(line)) {
      if (run.link === undefined) plain += run.text;
      else {
        flush();
        elements.push({ type: 'link', url: run.link, text: run.text });
      }
    }
  }
  flush();
  return elements;
}

function sectionElements(mentions: readonly string[], text: string): readonly SlackTextElement[] {
  const elements: SlackTextElement[] = [];
  for (const id of mentions) {
    elements.push({ type: 'user', user_id: id }, { type: 'text', text: ' ' });
  }
  if (text !== '') elements.push({ type: 'text', text });
  return elements;
}

function actionBlocks(rows: readonly (readonly Button[])[]): readonly SlackBlock[] {
  return rows
    .filter((row) => row.length > 0)
    .slice(0, 10)
    .map((row, rowIndex) => ({
      type: 'actions',
      elements: row.slice(0, 25).map((button, index) => ({
        type: 'button',
        action_id: `chatd.${rowIndex}.${index}`,
        text: { type: 'plain_text', text: clip(safeText(button.label), 75), emoji: false },
        value: button.action,
        ...(button.style === undefined ? {} : { style: button.style }),
      })),
    }));
}

function fallbackText(
  content: Content,
  mentions: readonly string[],
  head: string,
  foot: string,
): string {
  const lines = (content.lines ?? []).map((line) => safeText(line.text));
  const body = [head, ...lines, foot].filter((part, index) => part !== '' || index > 0).join('\n');
  const pings = mentions.map((id) => `<@${id}> `).join('');
  const escaped = clipEscaped(escapeSlack(body.trim()), TEXT_UNITS_MAX - pings.length);
  const text = `${pings}${escaped}`;
  return text.trim() === '' ? '(empty)' : text;
}

/** Cuts escaped text, never inside an entity. */
function clipEscaped(escaped: string, maxUnits: number): string {
  if (escaped.length <= maxUnits) return escaped;
  const cut = clip(escaped, maxUnits).slice(0, -1);
  return `${cut.replace(/&[a-z]{0,3}$/u, '')}…`;
}

/** Our own words may have several lines. */
function safeLines(text: string): string {
  return text
    .split('\n')
    .map((line) => safeText(line))
    .join('\n');
}
