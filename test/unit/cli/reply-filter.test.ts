import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ReplyFilter } from '../../../src/cli/reply-filter.ts';

const REPLIES = [
  '\x1b[?62;22c',
  '\x1b[>0;276;0c',
  '\x1b[0n',
  '\x1b[?2026;2$y',
  '\x1b]10;rgb:ffff/ffff/ffff\x1b\\',
  '\x1b]11;rgb:0000/0000/0000\x07',
  '\x1bP>|xterm(390)\x1b\\',
  '\x1bP1$r0m\x1b\\',
];
const KEYS = [
  'a',
  'ö',
  '\r',
  '\x03',
  '\x1b[A',
  '\x1bOP',
  '\x1b[1;2R',
  '\x1b[200~pasted\x1b[201~',
  '\x1b[<0;3;4M',
];

function through(filter: ReplyFilter, text: string, cut: number): string {
  const bytes = Buffer.from(text);
  const first = filter.typed(bytes.subarray(0, cut));
  const second = filter.typed(bytes.subarray(cut));
  return Buffer.concat([first, second, filter.flush()]).toString();
}

test('replies vanish and keys stay, wherever the bytes are cut', () => {
  const item = fc.oneof(
    fc.constantFrom(...REPLIES).map((text) => ({ text, kept: '' })),
    fc.constantFrom(...KEYS).map((text) => ({ text, kept: text })),
  );
  fc.assert(
    fc.property(fc.array(item, { maxLength: 6 }), fc.nat(), (items, at) => {
      const text = items.map((one) => one.text).join('');
      const kept = items.map((one) => one.kept).join('');
      const cut = text === '' ? 0 : at % (Buffer.byteLength(text) + 1);
      expect(through(new ReplyFilter(), text, cut)).toBe(kept);
    }),
  );
});

test('a cursor report is dropped only when one was asked for; Shift-F3 looks the same', () => {
  const filter = new ReplyFilter();
  expect(filter.typed(Buffer.from('\x1b[1;2R')).toString()).toBe('\x1b[1;2R');
  filter.sawOutput(Buffer.from('text\x1b[6n'));
  expect(filter.typed(Buffer.from('\x1b[1;2R')).toString()).toBe('');
  expect(filter.typed(Buffer.from('\x1b[1;2R')).toString()).toBe('\x1b[1;2R');
});

test('a lone Escape is held until nothing follows', () => {
  const filter = new ReplyFilter();
  expect(filter.typed(Buffer.from('\x1b')).toString()).toBe('');
  expect(filter.flush().toString()).toBe('\x1b');
});
