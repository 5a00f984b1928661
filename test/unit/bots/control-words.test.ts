import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseStartText, parseThreadText } from '../../../src/bots/control-words.ts';

test('a plain message is typed and Enter pressed', () => {
  expect(parseThreadText('ls -la', false)).toEqual({ kind: 'type', text: 'ls -la', enter: true });
});

test('an exclamation mark starts a control word', () => {
  expect(parseThreadText('!keys ctrl-c', false)).toEqual({
    kind: 'word',
    word: 'keys',
    argument: 'ctrl-c',
  });
  expect(parseThreadText('!Help ', false)).toEqual({ kind: 'word', word: 'help', argument: '' });
});

test('two exclamation marks type one', () => {
  expect(parseThreadText('!!ls', false)).toEqual({ kind: 'type', text: '!ls', enter: true });
});

test('an unknown control word is named and never typed', () => {
  expect(parseThreadText('!42', false)).toEqual({ kind: 'unknown-word', word: '42' });
  expect(parseThreadText('!frobnicate x', false)).toEqual({
    kind: 'unknown-word',
    word: 'frobnicate',
  });
});

test('names of object members are not control words', () => {
  expect(parseThreadText('!constructor', false).kind).toBe('unknown-word');
});

test('a verbatim block is typed whatever it starts with', () => {
  expect(parseThreadText('!end', true)).toEqual({ kind: 'type', text: '!end', enter: true });
});

test('type leaves Enter out and keeps blanks', () => {
  expect(parseThreadText('!type y', false)).toEqual({ kind: 'type', text: 'y', enter: false });
});

test('run takes a profile and a command', () => {
  expect(parseStartText('run')).toEqual({ kind: 'run', profile: undefined, command: '' });
  expect(parseStartText('run claude')).toEqual({ kind: 'run', profile: 'claude', command: '' });
  expect(parseStartText('run -- make -j4 && echo "a  b"')).toEqual({
    kind: 'run',
    profile: undefined,
    command: 'make -j4 && echo "a  b"',
  });
  expect(parseStartText('run ci -- make test')).toEqual({
    kind: 'run',
    profile: 'ci',
    command: 'make test',
  });
});

test('what is not understood is said so, and nothing is run', () => {
  expect(parseStartText('make test').kind).toBe('not-understood');
  expect(parseStartText('run make test').kind).toBe('not-understood');
  expect(parseStartText('').kind).toBe('help');
});

test('no text makes the parsers throw', () => {
  fc.assert(
    fc.property(fc.string(), fc.boolean(), (text, verbatim) => {
      parseThreadText(text, verbatim);
      parseStartText(text);
    }),
  );
});
