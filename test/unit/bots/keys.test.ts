import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyBytes, parseKeys } from '../../../src/bots/keys.ts';

const normal = { applicationCursor: false };

function check(source: string, bytes: string, modes = normal): void {
  expect(parseKeys(source, modes)).toEqual({ kind: 'keys', bytes });
}

test('control keys have the bytes of ASCII', () => {
  check('ctrl-c', '\x03');
  check('^C', '\x03');
  check('Ctrl+D', '\x04');
  check('ctrl-[', '\x1b');
  check('ctrl-space', '\0');
});

test('arrows honour the application cursor mode', () => {
  check('up down', '\x1b[A\x1b[B');
  check('up', '\x1bOA', { applicationCursor: true });
});

test('a key is repeated as often as asked', () => {
  check('down*3 enter', '\x1b[B\x1b[B\x1b[B\r');
});

test('quoted text and single characters are typed as they are', () => {
  check('"hello world" y', 'hello worldy');
  check('alt-b', '\x1bb');
  check('alt-up', '\x1b\x1b[A');
});

test('an unknown key is named and nothing is pressed', () => {
  expect(parseKeys('enter hyper-x', normal)).toEqual({ kind: 'unknown', name: 'hyper-x' });
});

test('more keys than a person means are refused', () => {
  expect(parseKeys('down*999', normal)).toEqual({ kind: 'too-many', max: 200 });
});

test('no key name makes the parser throw', () => {
  fc.assert(
    fc.property(fc.string(), (source) => {
      parseKeys(source, normal);
      keyBytes(source, normal);
    }),
  );
});
