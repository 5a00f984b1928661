// Content → what Discord's message endpoints take. Lines of a program stand in a fence that nothing
// in them can close; our own words outside are escaped; nobody is pinged who is not named.

import type { Line } from '../../term/values.ts';
import type { Button, Content, MessageBudget } from '../chat-platform.ts';
import { splitLine } from './chunks.ts';
import { RESET, sgrOf } from './discord-ansi.ts';
import { clip, type Run, runsOf, safeText } from './lines.ts';

const CONTENT_UNITS_MAX = 2_000;
/** The budget of a message's lines; the rest is for the fence, head and foot. */
const LINES_UNITS_MAX = 1_900;
/** Chosen for reading: more lines than this scroll out of a phone several times over. */
const LINES_MAX = 80;

export interface DiscordButton {
  readonly type: 2;
  readonly style: 1 | 2 | 4;
  readonly label: string;
  readonly custom_id: string;
}

export interface DiscordMessage {
  readonly content: string;
  readonly components: readonly {
    readonly type: 1;
    readonly components: readonly DiscordButton[];
  }[];
  readonly allowed_mentions: {
    readonly parse: readonly [];
    readonly users: readonly string[];
    readonly replied_user: false;
  };
}

/** What Discord shows for `content`. Send with embeds suppressed. */
export function discordMessage(content: Content): DiscordMessage {
  const mentions = (content.mention ?? []).filter((id) => /^\d{1,20}$/u.test(id)).slice(0, 10);
  return {
    content: messageText(content, mentions),
    components: components(content.buttons ?? []),
    allowed_mentions: { parse: [], users: mentions, replied_user: false },
  };
}

/** Plain words (captions, whispers) outside a fence. */
export function discordPlain(text: string, maxUnits = CONTENT_UNITS_MAX): string {
  return clip(
    text
      .split('\n')
      .map((line) => escapeMarkdown(safeText(line)))
      .join('\n'),
    maxUnits,
  );
}

export const discordBudget: MessageBudget = {
  linesMax: LINES_MAX,
  unitsMax: LINES_UNITS_MAX,
  costOf: (line, colour) => costOf(line, colour),
  split: (line, colour) => splitLine(line, LINES_UNITS_MAX, (piece) => costOf(piece, colour)),
};

/** Fence lines, links listed below, and the newline. */
function costOf(line: Line, colour: boolean): number {
  const runs = runsOf(line);
  const links = linksOf([line]).reduce((units, link) => units + link.length + 3, 0);
  return fenceLine(runs, colour ? 'ansi' : 'plain').length + links + 1;
}

type Style = 'ansi' | 'ansi-no-background' | 'plain';

function messageText(content: Content, mentions: readonly string[]): string {
  const lines = content.lines ?? [];
  const pings = mentions.map((id) => `<@${id}> `).join('');
  const styles: readonly Style[] =
    content.colour === true ? ['ansi', 'ansi-no-background', 'plain'] : ['plain'];
  let body = '';
  for (const style of styles) {
    body = fenced(lines, style);
    if (body.length + pings.length <= CONTENT_UNITS_MAX - 40) break;
  }
  const room = CONTENT_UNITS_MAX - body.length - pings.length - 2;
  const foot = discordPlain(content.foot ?? '', Math.max(0, room >> (content.head ? 1 : 0)));
  const head = discordPlain(content.head ?? '', Math.max(0, room - foot.length));
  const text = [`${pings}${head}`.trim(), body, foot].filter((part) => part !== '').join('\n');
  return text.trim() === '' ? '(empty)' : text;
}

function fenced(lines: readonly Line[], style: Style): string {
  const texts = lines.map((line) => fenceLine(runsOf(line), style));
  if (texts.every((text) => text === '')) return '';
  const links = linksOf(lines);
  // A word after the fence, always: the first line would else be taken for the language.
  const fence = `\`\`\`${style === 'plain' ? 'text' : 'ansi'}\n${texts.join('\n')}\n\`\`\``;
  return links.length === 0 ? fence : `${fence}\n${links.map((link) => `<${link}>`).join('\n')}`;
}

function fenceLine(runs: readonly Run[], style: Style): string {
  let text = '';
  let previous = '';
  let styled = false;
  for (const run of runs) {
    const sgr = style === 'plain' ? '' : sgrOf(run, { background: style === 'ansi' });
    if (styled) text += RESET;
    text += sgr;
    styled = sgr !== '';
    const apart = backticksApart(run.text);
    // Also across runs: whoever strips the colours must not find a fence.
    text += previous === '`' && apart.startsWith('`') ? `\u200b${apart}` : apart;
    previous = run.text.at(-1) ?? previous;
  }
  return styled ? text + RESET : text;
}

/** There is no escape inside a fence: a zero-width space keeps backticks from meeting. */
function backticksApart(text: string): string {
  return text.includes('``') ? text.replace(/(?<=`)(?=`)/gu, '\u200b') : text;
}

/** Targets of a program's links: nothing links inside a fence, so they are listed below it. */
function linksOf(lines: readonly Line[]): readonly string[] {
  const links = new Set<string>();
  for (const line of lines) {
    if (line.spans === undefined) continue;
    for (const run of runsOf(line)) if (run.link !== undefined) links.add(run.link);
  }
  return [...links];
}

/** What could start markup, a ping, a channel, an emoji, a timestamp, a heading, a list or a link. */
function escapeMarkdown(text: string): string {
  return text
    .replace(/[\\*_~|`<[\]]/gu, (char) => `\\${char}`)
    .replace(/^(\s*)([>#+-]|\d+(?=[.)]))/u, escapeStart)
    .replace(/:(?=[\w+-]+:)/gu, '\\:')
    .replace(/@(?=everyone|here)/giu, '@\u200b')
    .replace(/:\/\//gu, ':\u200b//');
}

/** A digit cannot be escaped; the mark behind it can. */
function escapeStart(_match: string, blank: string, start: string): string {
  return /\d/u.test(start) ? `${blank}${start}\u200b` : `${blank}\\${start}`;
}

function components(rows: readonly (readonly Button[])[]): DiscordMessage['components'] {
  const seen = new Set<string>();
  return rows
    .filter((row) => row.length > 0)
    .slice(0, 5)
    .map((row) => ({
      type: 1 as const,
      components: row
        .slice(0, 5)
        // A custom_id must be unique in its message.
        .filter((button) => !seen.has(button.action) && seen.add(button.action))
        .map((button) => ({
          type: 2 as const,
          style:
            button.style === 'primary'
              ? (1 as const)
              : button.style === 'danger'
                ? (4 as const)
                : (2 as const),
          label: clip(safeText(button.label), 80),
          custom_id: button.action,
        })),
    }))
    .filter((row) => row.components.length > 0);
}
