// Lines as a hostile or merely odd program prints them, for property tests of the renderers.

import fc from 'fast-check';
import { type Line, RGB_FLAG, type Span } from '../../../../src/term/values.ts';

const NASTY = [
  '```',
  '`',
  '``',
  '</pre>',
  '<!here>',
  '<!channel>',
  '<@U123>',
  '<@123456789012345678>',
  '@everyone',
  '@here',
  '<#C123>',
  '&amp;',
  '&',
  '<',
  '>',
  '|',
  'http://evil.example/x',
  'https://a.b',
  '[x](http://y)',
  ':smile:',
  '# h',
  '> q',
  '- l',
  '1. n',
  '**b**',
  '__u__',
  '||s||',
  '~~',
  '\u202e',
  '\u2066',
  '\u2069',
  '\u200b',
  '\u200d',
  '👩‍👩‍👧‍👦',
  '🇨🇭',
  'e\u0301\u0301',
  '表',
  '│',
  '\u001b[31m',
  '\u0000',
  '\u0007',
  '\t',
  '\r',
  '\n',
  '\u2028',
  '\ud83d',
  '\ude00',
  '\\',
  '$',
  ' ',
  '',
  'mailto:a@b.c',
  '\u{e0041}',
  'ansi',
  'diff',
];

export const nastyText: fc.Arbitrary<string> = fc
  .array(fc.oneof(fc.constantFrom(...NASTY), fc.string({ maxLength: 8, unit: 'binary' })), {
    maxLength: 12,
  })
  .map((parts) => parts.join(''));

function spansFor(length: number): fc.Arbitrary<readonly Span[]> {
  if (length === 0) return fc.constant([]);
  return fc
    .array(
      fc.record({
        at: fc.integer({ min: 0, max: length - 1 }),
        size: fc.integer({ min: 1, max: 6 }),
        fg: fc.option(fc.constantFrom(0, 1, 7, 12, 120, 240, RGB_FLAG | 0xff8800), {
          nil: undefined,
        }),
        flags: fc.option(fc.integer({ min: 0, max: 63 }), { nil: undefined }),
        link: fc.option(
          fc.constantFrom(
            'https://a.example/`x`',
            'http://b.example/<>|',
            'javascript:alert(1)',
            'no url',
          ),
          { nil: undefined },
        ),
      }),
      { maxLength: 5 },
    )
    .map((wishes) => {
      const spans: Span[] = [];
      let free = 0;
      for (const { at, size, fg, flags, link } of wishes.sort((a, b) => a.at - b.at)) {
        const start = Math.max(free, at);
        const end = Math.min(length, start + size);
        if (start >= end) continue;
        spans.push({
          start,
          end,
          ...(fg === undefined ? {} : { fg }),
          ...(flags === undefined ? {} : { flags }),
          ...(link === undefined ? {} : { link }),
        });
        free = end;
      }
      return spans;
    });
}

export const nastyLine: fc.Arbitrary<Line> = nastyText.chain((text) =>
  spansFor(text.length).map((spans) => (spans.length === 0 ? { text } : { text, spans })),
);

/** Now and then far over any budget. */
export const anyLine: fc.Arbitrary<Line> = fc.oneof(
  { weight: 8, arbitrary: nastyLine },
  {
    weight: 1,
    arbitrary: fc
      .record({ unit: nastyText, times: fc.integer({ min: 50, max: 900 }) })
      .map(({ unit, times }) => ({ text: unit.repeat(times).slice(0, 9_000) })),
  },
);
