import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Content } from '../../../../src/bots/chat-platform.ts';
import { discordMessage, discordPlain } from '../../../../src/bots/render/discord-format.ts';
import { clip, safeText } from '../../../../src/bots/render/lines.ts';
import { escapeSlack, slackMessage, slackPlain } from '../../../../src/bots/render/slack-format.ts';
import { BOLD, INVERSE, type Line, RGB_FLAG } from '../../../../src/term/values.ts';
import { nastyLine, nastyText } from './arbitrary-lines.ts';

const contents: fc.Arbitrary<Content> = fc.record(
  {
    head: nastyText,
    foot: nastyText,
    lines: fc.array(nastyLine, { maxLength: 12 }),
    colour: fc.boolean(),
  },
  { requiredKeys: [] },
);

function plainLines(content: Content): string {
  return (content.lines ?? []).map((line) => safeText(line.text)).join('\n');
}

describe('Discord', () => {
  /** What a client takes for fence and for markup. */
  function parsed(content: string): { fences: string[]; outside: string } {
    const fences: string[] = [];
    const outside = content.replace(
      /```([a-z]*)\n([\s\S]*?)```/gu,
      (_all, word: string, body: string) => {
        expect(['text', 'ansi']).toContain(word);
        fences.push(body);
        return '';
      },
    );
    return { fences, outside };
  }

  test('what a program prints stays inside its fence, whole and in order', () => {
    fc.assert(
      fc.property(contents, (content) => {
        const message = discordMessage({ ...content, colour: false });
        const { fences, outside } = parsed(message.content);
        const shown = plainLines(content);
        if (shown.replaceAll('\n', '') === '') expect(fences).toEqual([]);
        else if (message.content.length < 1_900) {
          expect(fences).toHaveLength(1);
          const body = fences[0]?.replaceAll('\u200b', '').replace(/\n$/u, '');
          expect(body).toBe(shown.replaceAll('\u200b', ''));
        }
        expect(outside).not.toContain('```');
      }),
    );
  });

  test('colours never change the text, and no other sequence reaches the client', () => {
    fc.assert(
      fc.property(fc.array(nastyLine, { maxLength: 6 }), (lines) => {
        const message = discordMessage({ lines, colour: true });
        const { fences } = parsed(message.content);
        const bare = (fences[0] ?? '').replace(
          /\u001b\[(?:0|1|4|3[1-7]|45)(?:;(?:1|4|3[1-7]|45))*m/gu,
          '',
        );
        expect(bare).not.toContain('\u001b');
        if (fences.length === 0) return;
        expect(bare.replaceAll('\u200b', '').replace(/\n$/u, '')).toBe(
          plainLines({ lines }).replaceAll('\u200b', ''),
        );
      }),
    );
  });

  test('nothing ever pings, links or formats but the people named', () => {
    fc.assert(
      fc.property(nastyText, nastyText, (head, foot) => {
        const message = discordMessage({ head, foot, mention: ['42', 'everyone', '<@&1>'] });
        expect(message.allowed_mentions).toEqual({ parse: [], users: ['42'], replied_user: false });
        const rest = message.content.replace('<@42>', '');
        expect(rest).not.toMatch(/(?<!\\)(?:\\\\)*<[@#!:]/u);
        expect(rest).not.toMatch(/@(?:everyone|here)/iu);
        expect(rest).not.toMatch(/https?:\/\//iu);
        expect(rest).not.toMatch(/^\s*(?:>|#+ |[-+] |\d+\. )/mu);
        expect(rest).not.toMatch(/(?<!\\)(?:\\\\)*[*_~|`[\]]/u);
      }),
    );
  });

  test('is never longer than 2,000 units and never empty', () => {
    fc.assert(
      fc.property(contents, fc.integer({ min: 1, max: 900 }), (content, times) => {
        const head = (content.head ?? '').repeat(times);
        const message = discordMessage({ ...content, head, foot: head });
        expect(message.content.length).toBeLessThanOrEqual(2_000);
        expect(message.content.trim()).not.toBe('');
      }),
    );
  });

  test('links of a program are listed below the fence, http and https only', () => {
    const line: Line = {
      text: 'docs and code',
      spans: [
        { start: 0, end: 4, link: 'https://a.example/x y' },
        { start: 9, end: 13, link: 'javascript:alert(1)' },
      ],
    };
    expect(discordMessage({ lines: [line] }).content).toBe(
      '```text\ndocs and code\n```\n<https://a.example/x%20y>',
    );
  });

  test('a fence says ansi only when colours are wanted, hue by hue', () => {
    const lines: Line[] = [
      {
        text: 'error warn ok dim sel',
        spans: [
          { start: 0, end: 5, fg: RGB_FLAG | 0xff5555, flags: BOLD },
          { start: 6, end: 10, fg: 11 },
          { start: 11, end: 13, fg: 46 },
          { start: 14, end: 17, fg: 8 },
          { start: 18, end: 21, flags: INVERSE },
        ],
      },
    ];
    expect(discordMessage({ lines, colour: true }).content).toBe(
      '```ansi\n\u001b[1;31merror\u001b[0m \u001b[33mwarn\u001b[0m \u001b[32mok\u001b[0m dim \u001b[37;45msel\u001b[0m\n```',
    );
    expect(discordMessage({ lines }).content).toBe('```text\nerror warn ok dim sel\n```');
  });

  test('colours give way before text does', () => {
    const spans = Array.from({ length: 100 }, (_, i) => ({ start: i * 2, end: i * 2 + 1, fg: 1 }));
    const lines = Array.from({ length: 9 }, () => ({ text: 'ab'.repeat(100), spans }));
    const { content } = discordMessage({ lines, colour: true });
    expect(content.startsWith('```text\n')).toBe(true);
    expect(content.length).toBeLessThanOrEqual(2_000);
  });

  test('buttons are unique in their message and within the limits', () => {
    const button = { label: 'x'.repeat(200), action: 'a' };
    const { components } = discordMessage({
      head: 'h',
      buttons: [[button, button, { label: '^C', action: 'b', style: 'danger' }], [button]],
    });
    expect(components).toHaveLength(1);
    expect(components[0]?.components.map((one) => one.custom_id)).toEqual(['a', 'b']);
    expect(components[0]?.components[0]?.label).toHaveLength(80);
    expect(components[0]?.components[1]?.style).toBe(4);
  });

  test('plain words keep their lines and lose their markup', () => {
    expect(discordPlain('a_b *c*\n# d <@1>')).toBe('a\\_b \\*c\\*\n\\# d \\<@1>');
  });
});

describe('Slack', () => {
  test('what a program prints is one literal element, whole and in order', () => {
    fc.assert(
      fc.property(contents, (content) => {
        const { blocks } = slackMessage(content);
        const rich = blocks[0];
        if (rich?.type !== 'rich_text') throw new Error('no rich text');
        const pre = rich.elements.filter((one) => one.type === 'rich_text_preformatted');
        const text = pre
          .flatMap((one) => one.elements)
          .map((leaf) => (leaf.type === 'user' ? '?' : leaf.text))
          .join('');
        expect(text).toBe(plainLines(content));
        for (const one of rich.elements) {
          expect(one.elements.length).toBeGreaterThan(0);
          for (const leaf of one.elements) {
            if (leaf.type !== 'user') expect(leaf.text).not.toBe('');
            if (leaf.type === 'link') expect(leaf.url).toMatch(/^https?:\/\/[^<>|`\s]+$/u);
          }
        }
      }),
    );
  });

  test('the fallback is escaped, bounded, and pings only the people named', () => {
    fc.assert(
      fc.property(contents, fc.integer({ min: 1, max: 900 }), (content, times) => {
        const head = (content.head ?? '').repeat(times);
        const { text } = slackMessage({ ...content, head, mention: ['U42', 'here', '!channel'] });
        expect(text.length).toBeLessThanOrEqual(4_000);
        expect(text.startsWith('<@U42> ')).toBe(true);
        const rest = text.replace('<@U42> ', '');
        expect(rest).not.toMatch(/[<>]/u);
        expect(rest).not.toMatch(/&(?!(?:amp|lt|gt);)/u);
      }),
    );
  });

  test('escapes exactly three characters, the ampersand first', () => {
    expect(escapeSlack('a && b < c > d &lt;')).toBe('a &amp;&amp; b &lt; c &gt; d &amp;lt;');
    expect(slackPlain('<!here> *x*')).toBe('&lt;!here&gt; *x*');
  });

  test('a mention, our words, lines and buttons are shown in this order', () => {
    const message = slackMessage({
      head: 'Waiting',
      lines: [{ text: 'y/n?' }],
      foot: 'below',
      mention: ['U1'],
      buttons: [[{ label: 'y', action: 'key:y', style: 'primary' }]],
    });
    expect(message.blocks).toMatchObject([
      {
        elements: [
          { elements: [{ user_id: 'U1' }, { text: ' ' }, { text: 'Waiting' }] },
          { type: 'rich_text_preformatted', elements: [{ text: 'y/n?' }] },
          { elements: [{ text: 'below' }] },
        ],
      },
      { type: 'actions', elements: [{ value: 'key:y', style: 'primary' }] },
    ]);
    expect(message.text).toBe('<@U1> Waiting\ny/n?\nbelow');
  });
});

test('clipping never cuts a pair and says that it cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 20 }), (text, max) => {
      const cut = clip(text, max);
      expect(cut.length).toBeLessThanOrEqual(max);
      expect(cut).not.toMatch(/\p{Surrogate}/u);
      if (cut !== text) expect(cut.endsWith('…')).toBe(true);
    }),
  );
});
