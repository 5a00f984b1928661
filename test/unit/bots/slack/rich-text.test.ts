// What people type into Slack comes out as they typed it.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeTyped } from '../../../../src/bots/slack/rich-text.ts';

const context = {
  ourUserId: 'UBOT',
  nameOf: (id: string) => (id === 'U2' ? 'bob' : undefined),
};

type Leaf = Readonly<Record<string, unknown>>;

function section(...elements: readonly Leaf[]): Leaf {
  return { type: 'rich_text_section', elements };
}

function text(value: string, style?: Readonly<Record<string, boolean>>): Leaf {
  return { type: 'text', text: value, ...(style === undefined ? {} : { style }) };
}

function rich(...elements: readonly Leaf[]) {
  return decodeTyped([{ type: 'rich_text', elements }], 'ignored', context);
}

describe('rich text', () => {
  it.each([
    ['plain text', [section(text('ls -la'))], 'ls -la'],
    ['ampersands and brackets as they are', [section(text('a && b > c < d'))], 'a && b > c < d'],
    [
      'the label of a link, which is what was typed',
      [
        section(text('ping '), {
          type: 'link',
          url: 'http://www.google.com',
          text: 'www.google.com',
        }),
      ],
      'ping www.google.com',
    ],
    [
      'an automatic link without the scheme that was added',
      [section(text('ping '), { type: 'link', url: 'http://example.com', unsafe: true })],
      'ping example.com',
    ],
    [
      'a typed address whole',
      [section(text('curl '), { type: 'link', url: 'https://x.y/z?a=1&b=2' })],
      'curl https://x.y/z?a=1&b=2',
    ],
    ['a mail address', [section({ type: 'link', url: 'mailto:a@b.c' })], 'a@b.c'],
    [
      'stars that the composer took for bold',
      [section(text('rm '), text('old', { bold: true }))],
      'rm *old*',
    ],
    [
      'underscores and tildes',
      [section(text('x', { italic: true }), text(' '), text('y', { strike: true }))],
      '_x_ ~y~',
    ],
    [
      'one pair of stars around neighbours of one style',
      [
        section(text('a ', { bold: true }), {
          type: 'link',
          url: 'http://b.c',
          text: 'b.c',
          style: { bold: true },
        }),
      ],
      '*a b.c*',
    ],
    [
      'backticks inside a command',
      [section(text('echo '), text('date', { code: true }))],
      'echo `date`',
    ],
    [
      'an emoji as its character',
      [section({ type: 'emoji', name: 'flag', unicode: '1f3f3-fe0f-200d-1f308' })],
      '🏳️‍🌈',
    ],
    ['a custom emoji as its name', [section({ type: 'emoji', name: 'party' })], ':party:'],
    ['a person by name', [section(text('hi '), { type: 'user', user_id: 'U2' })], 'hi @bob'],
    ['a broadcast', [section({ type: 'broadcast', range: 'here' })], '@here'],
    [
      'lines of several blocks',
      [section(text('first\n')), { type: 'rich_text_preformatted', elements: [text('a\nb')] }],
      'first\na\nb',
    ],
    [
      'a list with its marks',
      [
        {
          type: 'rich_text_list',
          style: 'bullet',
          elements: [section(text('a')), section(text('b'))],
        },
      ],
      '- a\n- b',
    ],
    [
      'an ordered list from where it starts',
      [{ type: 'rich_text_list', style: 'ordered', offset: 2, elements: [section(text('a'))] }],
      '3. a',
    ],
    [
      'a quote with its mark',
      [{ type: 'rich_text_quote', elements: [text('out.txt')] }],
      '> out.txt',
    ],
  ])('decodes %s', (_what, elements, expected) => {
    expect(rich(...elements)).toMatchObject({ text: expected, verbatim: false });
  });

  it('makes smart punctuation plain, keeps what was written, and leaves code alone', () => {
    const typed = rich(
      section(text('git commit \u2014amend \u201cx\u201d '), text('\u201cy\u201d', { code: true })),
    );
    expect(typed.text).toBe('git commit --amend "x" `\u201cy\u201d`');
    expect(typed.asWritten).toBe('git commit \u2014amend \u201cx\u201d `\u201cy\u201d`');
  });

  it('takes a message that is all code verbatim', () => {
    const block = { type: 'rich_text_preformatted', elements: [text('echo \u201cx\u201d\nls')] };
    expect(rich(block)).toMatchObject({ text: 'echo \u201cx\u201d\nls', verbatim: true });
    expect(rich(section(text('ls *a*', { code: true })))).toMatchObject({
      text: 'ls *a*',
      verbatim: true,
    });
  });

  it('takes our name off the front and says that it was there', () => {
    const us = { type: 'user', user_id: 'UBOT' };
    expect(rich(section(us, text(' run -- ls')))).toMatchObject({
      text: 'run -- ls',
      mentionsUs: true,
    });
    expect(rich(section(text('ask '), us)).mentionsUs).toBe(true);
    expect(rich(section(us, text(' '), text('top', { code: true })))).toMatchObject({
      text: 'top',
      verbatim: true,
    });
  });

  it('returns any text that was typed without styles', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (typed) => {
        const decoded = rich(section(text(typed)));
        expect(decoded.asWritten).toBe(typed);
      }),
    );
  });

  it('never fails, whatever the blocks are', () => {
    fc.assert(
      fc.property(fc.anything(), fc.string(), (blocks, fallback) => {
        decodeTyped(blocks, fallback, context);
        decodeTyped([{ type: 'rich_text', elements: [blocks] }], fallback, context);
      }),
    );
  });
});

describe('text without blocks', () => {
  const markup = (value: string) => decodeTyped(undefined, value, context);

  it.each([
    ['entities once', 'a &amp;&amp; b &gt; c &amp;lt;', 'a && b > c &lt;'],
    ['a link by its label', 'ping <http://www.google.com|www.google.com>', 'ping www.google.com'],
    ['a bare link', 'curl <https://x.y/z>', 'curl https://x.y/z'],
    ['a mail address', '<mailto:a@b.c|a@b.c>', 'a@b.c'],
    ['people and channels', '<@U2> in <#C1|ops>', '@bob in #ops'],
    ['broadcasts', '<!here> <!channel>', '@here @channel'],
  ])('decodes %s', (_what, value, expected) => {
    expect(markup(value).text).toBe(expected);
  });

  it('takes a fence verbatim', () => {
    expect(markup('```\na &lt; \u201cb\u201d\n```')).toMatchObject({
      text: 'a < \u201cb\u201d',
      verbatim: true,
    });
  });

  it('takes our name off', () => {
    expect(markup('<@UBOT> run')).toMatchObject({ text: 'run', mentionsUs: true });
  });
});
