// Slack's texts: escaping, splitting, what a client composes, what a person sees.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Fields, isFields } from '../../../src/sandbox/fields.ts';
import { checkBlocks, textUnits } from '../../../src/sandbox/slack/blocks.ts';
import { type ComposeOptions, compose } from '../../../src/sandbox/slack/composer.ts';
import {
  bareLinks,
  controlSequences,
  escapeText,
  hasUnescaped,
  pingsOf,
  unescapeText,
} from '../../../src/sandbox/slack/escape.ts';
import { shownButtons, shownParts } from '../../../src/sandbox/slack/render.ts';
import { splitText, TEXT_SPLIT_UNITS } from '../../../src/sandbox/slack/split-text.ts';
import { formatTs, nextMicros, parseTs, parseTsBound } from '../../../src/sandbox/slack/ts.ts';

const directory = {
  userId: (name: string) => (name === 'bob' ? 'U0BOB00001' : undefined),
  channelId: (name: string) => (name === 'ops' ? 'C0OPS00001' : undefined),
};
const options: ComposeOptions = { directory, smartQuotes: false, blockId: 'b' };
const names = { user: () => 'bob', channel: () => 'ops' };

describe('escaping', () => {
  test('is undone exactly, and leaves nothing Slack would act on', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (raw) => {
        const escaped = escapeText(raw);
        expect(unescapeText(escaped)).toBe(raw);
        expect([hasUnescaped(escaped), controlSequences(escaped)]).toEqual([false, []]);
      }),
    );
  });

  test('is told apart from control sequences, pings and links', () => {
    const text =
      'a <https://x.y|z> <@U0BOB00001> <!here> <!subteam^S012> https://free.er/ `https://code.d/`';
    expect(hasUnescaped(text)).toBe(false);
    expect(pingsOf(text)).toEqual(['<@U0BOB00001>', '<!here>', '<!subteam^S012>']);
    expect(bareLinks(text)).toEqual(['https://free.er/']);
    for (const bad of ['a < b', 'x && y', '<script>', '<@bob>', 'a > b'])
      expect([bad, hasUnescaped(bad)]).toEqual([bad, true]);
    expect(hasUnescaped('> quoted')).toBe(false);
  });
});

describe('a long text', () => {
  test('is cut into pieces within the limit that lose nothing but line ends at cuts', () => {
    const lines = fc.array(fc.string({ maxLength: 6_000 }), { maxLength: 12 });
    fc.assert(
      fc.property(lines, (parts) => {
        const text = parts.join('\n');
        const pieces = splitText(text);
        for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(TEXT_SPLIT_UNITS);
        let at = 0;
        for (const piece of pieces) {
          expect(text.startsWith(piece, at)).toBe(true);
          at += piece.length;
          if (at < text.length && text[at] === '\n') at += 1;
        }
        expect(text.length - at).toBeLessThanOrEqual(0);
      }),
    );
  });
});

describe('ts', () => {
  test('are 10.6 digits, rise, and come back as the same number', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_000_000_000_000, max: 1_999_999_999_999 }), (ms) => {
        const first = nextMicros(0, ms);
        const second = nextMicros(first, ms - 5);
        expect(second).toBe(first + 1);
        expect(formatTs(second) > formatTs(first)).toBe(true);
        expect(parseTs(formatTs(second))).toBe(second);
        expect(parseTsBound(formatTs(second))).toBe(second);
      }),
    );
    expect([parseTs('1.2'), parseTs('x'), parseTsBound('1760000000')]).toEqual([
      undefined,
      undefined,
      1_760_000_000_000_000,
    ]);
  });
});

/** Text of all leaves, as a bot that reads rich_text would put it together. */
function leafTexts(value: unknown): string {
  if (Array.isArray(value)) return value.map(leafTexts).join('');
  if (!isFields(value)) return '';
  if (value['type'] === 'text') return String(value['text'] as string);
  return leafTexts(value['elements']);
}

describe('a client', () => {
  test('composes words and shell punctuation so that both forms say what was typed', () => {
    // Nothing a client acts on: no marks, names, links, lists, quotes at line starts.
    const word = fc.stringMatching(/^[a-zA-Z0-9$%&<>|;(){}=+,/\\'"!?^-]{1,12}$/);
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 8 }), (words) => {
        const typed = `run ${words.join(' ')}`;
        fc.pre(!/(^|\s)(<3|:\)|;\)|:D)(?=\s|$)/.test(typed));
        const { blocks, text } = compose(typed, options);
        expect(unescapeText(text)).toBe(typed);
        expect(leafTexts(blocks.map((block) => block['elements']))).toBe(typed);
        expect(shownParts(text, undefined, names)).toEqual([{ kind: 'text', lines: [typed] }]);
      }),
    );
  });

  test('always composes valid blocks, and text without anything unescaped', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 30 }),
      fc.constantFrom(
        '```',
        '`',
        '*b*',
        '_i_',
        '~s~',
        '@bob',
        '#ops',
        '@here',
        ':smile:',
        '🙂',
        '\n',
      ),
      fc.constantFrom(
        '- ',
        '1. ',
        '> ',
        'www.a.com',
        'https://a.b/c?d=1&e',
        'a@b.co',
        ' ',
        '<',
        '&',
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 15 }), fc.boolean(), (pieces, smartQuotes) => {
        const typed = pieces.join('').trim();
        const { blocks, text } = compose(typed, { ...options, smartQuotes });
        expect(hasUnescaped(text.replaceAll('&gt; ', ''))).toBe(false);
        if (text !== '') expect(checkBlocks(blocks)).toMatchObject({ kind: 'ok' });
      }),
      { numRuns: 500 },
    );
  });

  test('changes nothing inside code', () => {
    const typed = '`echo "a" -- :smile: @bob www.a.com`';
    const { blocks, text } = compose(typed, { ...options, smartQuotes: true });
    expect(text).toBe(typed);
    expect(blocks[0]?.['elements']).toEqual([
      {
        type: 'rich_text_section',
        elements: [{ type: 'text', text: typed.slice(1, -1), style: { code: true } }],
      },
    ]);
  });

  test('makes elements of fences, lists and quotes', () => {
    const { blocks, text } = compose('see\n```\na\n  b\n```\n- x\n- *y*\n> q\nend', options);
    expect(text).toBe('see\n```a\n  b```\n• x\n• *y*\n&gt; q\nend');
    const elements = blocks[0]?.['elements'] as Fields[];
    expect(elements.map((one) => one['type'])).toEqual([
      'rich_text_section',
      'rich_text_preformatted',
      'rich_text_list',
      'rich_text_quote',
      'rich_text_section',
    ]);
  });
});

describe('a person', () => {
  test('sees preformatted lines apart from notes, and the labels of buttons', () => {
    const blocks: Fields[] = [
      {
        type: 'rich_text',
        elements: [
          { type: 'rich_text_preformatted', elements: [{ type: 'text', text: 'a <b\nc & d' }] },
          { type: 'rich_text_section', elements: [{ type: 'text', text: 'note' }] },
        ],
      },
      { type: 'context', elements: [{ type: 'mrkdwn', text: 'x &lt; <@U0BOB00001>' }] },
      {
        type: 'actions',
        block_id: 'k',
        elements: [
          { type: 'button', action_id: 'c', value: 'v', text: { type: 'plain_text', text: '^C' } },
        ],
      },
    ];
    expect(shownParts('fallback', blocks, names)).toEqual([
      { kind: 'pre', lines: ['a <b', 'c & d'] },
      { kind: 'text', lines: ['note'] },
      { kind: 'context', lines: ['x < @bob'] },
    ]);
    expect(shownButtons(blocks)).toEqual([
      { label: '^C', actionId: 'c', blockId: 'k', value: 'v', style: undefined },
    ]);
    expect(textUnits(blocks)).toBe(10 + 4 + 20 + 2);
  });

  test('sees a fence of a text without its newlines and entities', () => {
    expect(shownParts('head\n```\n1 &lt; 2\n\n```\nfoot', undefined, names)).toEqual([
      { kind: 'text', lines: ['head'] },
      { kind: 'pre', lines: ['1 < 2', ''] },
      { kind: 'text', lines: ['foot'] },
    ]);
  });
});
