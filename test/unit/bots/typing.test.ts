import fc from 'fast-check';
import { expect, test } from 'vitest';
import { longestLineBytes, typingWrites } from '../../../src/bots/typing.ts';

function check(text: string, enter: boolean, bracketedPaste: boolean, writes: string[]): void {
  expect(
    typingWrites(text, enter, { bracketedPaste }).map((w) => Buffer.from(w).toString()),
  ).toEqual(writes);
}

test('a line and its Enter are two writes', () => {
  check('ls', true, true, ['ls', '\r']);
  check('y', false, false, ['y']);
  check('', true, false, ['\r']);
});

test('several lines are one paste where the program asked for pastes', () => {
  check('a\nb', true, true, ['\x1b[200~a\nb\x1b[201~', '\r']);
  check('a\nb', true, false, ['a\rb', '\r']);
});

test('no text can close the paste and press keys', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '\n', '\x1b', '[', '2', '0', '1', '~') }),
      (text) => {
        const all = typingWrites(text, false, { bracketedPaste: true })
          .map((write) => Buffer.from(write).toString())
          .join('');
        expect(all.split('\x1b').length - 1).toBeLessThanOrEqual(2);
      },
    ),
  );
});

test('the length of a line counts bytes and its Enter', () => {
  expect(longestLineBytes('aé\nb')).toBe(4);
});
