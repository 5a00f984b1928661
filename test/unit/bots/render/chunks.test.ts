import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { MessageBudget } from '../../../../src/bots/chat-platform.ts';
import { type Chunk, chunksOf } from '../../../../src/bots/render/chunks.ts';
import { discordBudget, discordMessage } from '../../../../src/bots/render/discord-format.ts';
import { slackBudget, slackMessage } from '../../../../src/bots/render/slack-format.ts';
import type { Line } from '../../../../src/term/values.ts';
import { anyLine } from './arbitrary-lines.ts';

const BUDGETS: readonly [string, MessageBudget][] = [
  ['Discord', discordBudget],
  ['Slack', slackBudget],
];

/** Pieces of a line that was cut inside are glued without a newline. */
function joined(chunks: readonly Chunk[]): string[] {
  const lines: string[] = [];
  for (const chunk of chunks) {
    for (const [index, line] of chunk.lines.entries()) {
      if (index === 0 && chunk.start.col > 0) lines.push(`${lines.pop() ?? ''}${line.text}`);
      else lines.push(line.text);
    }
  }
  return lines;
}

test.each(BUDGETS)('%s: chunks joined are the source, each within the budget', (_name, budget) => {
  fc.assert(
    fc.property(fc.array(anyLine, { maxLength: 60 }), fc.boolean(), (lines, colour) => {
      const chunks = chunksOf(lines, budget, colour);
      expect(joined(chunks)).toEqual(lines.map((line) => line.text));
      for (const chunk of chunks) {
        const cost = chunk.lines.reduce((sum, line) => sum + budget.costOf(line, colour), 0);
        expect(cost).toBeLessThanOrEqual(budget.unitsMax);
        expect(chunk.lines.length).toBeLessThanOrEqual(budget.linesMax);
      }
    }),
    { numRuns: 60 },
  );
});

test.each(BUDGETS)(
  '%s: a full chunk fits the platform with what stands around it',
  (name, budget) => {
    fc.assert(
      fc.property(fc.array(anyLine, { maxLength: 40 }), fc.boolean(), (lines, colour) => {
        for (const chunk of chunksOf(lines, budget, colour)) {
          const content = { lines: chunk.lines, colour, foot: '… this line goes on below' };
          if (name === 'Discord') {
            expect(discordMessage(content).content.length).toBeLessThanOrEqual(2_000);
          } else {
            expect(slackMessage(content).text.length).toBeLessThanOrEqual(4_000);
            expect(JSON.stringify(slackMessage(content).blocks).length).toBeLessThan(13_200 * 2);
          }
        }
      }),
      { numRuns: 60 },
    );
  },
);

test('a line is cut only when it does not fit alone, between graphemes', () => {
  const family = '👩‍👩‍👧‍👦';
  const line: Line = { text: family.repeat(700) };
  const chunks = chunksOf([{ text: 'before' }, line, { text: 'after' }], discordBudget, false);
  for (const chunk of chunks) {
    for (const piece of chunk.lines) expect(piece.text).not.toMatch(/\p{Surrogate}/u);
    expect(chunk.start.col % family.length).toBe(0);
  }
  expect(joined(chunks)).toEqual(['before', line.text, 'after']);
});

test('packing is greedy: no line would have fitted the chunk before', () => {
  const lines = Array.from({ length: 200 }, (_, i) => ({ text: 'x'.repeat((i * 37) % 300) }));
  const chunks = chunksOf(lines, slackBudget, false);
  for (const [index, chunk] of chunks.entries()) {
    const next = chunks[index + 1]?.lines[0];
    if (next === undefined) continue;
    const cost = [...chunk.lines, next].reduce(
      (sum, line) => sum + slackBudget.costOf(line, false),
      0,
    );
    expect(cost > slackBudget.unitsMax || chunk.lines.length === slackBudget.linesMax).toBe(true);
  }
});

test('the work grows with the text, not with its square', () => {
  const unitsLookedAt = (count: number): number => {
    let units = 0;
    const counting: MessageBudget = {
      ...discordBudget,
      costOf: (line, colour) => {
        units += line.text.length;
        return discordBudget.costOf(line, colour);
      },
    };
    const long = { text: 'ab '.repeat(count * 100) };
    const lines = Array.from({ length: count }, (_, i) => ({ text: `line ${i}` }));
    chunksOf([...lines, long], counting, false);
    return units;
  };
  expect(unitsLookedAt(2_000)).toBeLessThan(unitsLookedAt(200) * 25);
});
