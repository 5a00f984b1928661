// Random terminal output: everything the emulator keeps state for, in any order. Seeded.

import type { Random } from '../../src/base/random.ts';

const ESC = '\u001b';

/** One piece of output: text, a control or a whole sequence. */
export function randomPiece(random: Random): string {
  const pick = (values: readonly string[]): string =>
    values[Math.floor(random.next() * values.length)] ?? '';
  const number = (max: number): number => Math.floor(random.next() * (max + 1));
  const csi = (parameters: string, final: string): string => `${ESC}[${parameters}${final}`;
  switch (number(26)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return pick(['hello', 'a', 'the quick brown fox ', '0123456789'.repeat(4), 'x'.repeat(90)]);
    case 4:
      return pick([
        '世界',
        'e\u0301',
        '👩‍👩‍👧',
        '⚠️',
        'ñ',
        '\u3000',
        '“quoted” – text…',
        '─│┌',
        '🫨',
      ]);
    case 5:
    case 6:
    case 7:
      return '\r\n';
    case 8:
      return pick(['\r', '\n', '\b', '\t', '\u0007', '\u000b', '\u000e', '\u000f']);
    case 9:
      return csi(`${number(30)};${number(100)}`, pick(['H', 'f']));
    case 10:
      return csi(
        pick(['', '1', '3', '200']),
        pick(['A', 'B', 'C', 'D', 'E', 'F', 'G', 'd', '`', 'a', 'e']),
      );
    case 11:
      return csi(pick(['', '0', '1', '2', '3']), pick(['J', 'K']));
    case 12:
      return csi(
        pick(['', '1', '2', '999999999']),
        pick(['L', 'M', 'S', 'T', 'P', '@', 'X', 'I', 'Z', 'b']),
      );
    case 13:
    case 14:
      return csi(
        pick([
          '',
          '0',
          '1',
          '31',
          '44',
          '38;5;200',
          '48;2;1;2;3',
          '7',
          '4:3',
          '58;5;9',
          '2;3;9',
          '8',
          '53',
        ]),
        'm',
      );
    case 15:
      return csi(`${number(10)};${number(24)}`, 'r');
    case 16:
      return csi('', 'r');
    case 17:
      return csi(
        pick([
          '?6',
          '?7',
          '?25',
          '?1',
          '?2004',
          '?2026',
          '?1000',
          '?1006',
          '?1004',
          '4',
          '?45',
          '?12',
        ]),
        pick(['h', 'l']),
      );
    case 18:
      return random.next() < 0.3 ? csi(pick(['?1049', '?47', '?1047']), pick(['h', 'l'])) : '';
    case 19:
      return (
        ESC + pick(['7', '8', 'M', 'D', 'E', 'H', '=', '>', '(0', '(B', ')0', 'c', '#8', 'n', '~'])
      );
    case 20:
      return csi(pick(['', '3']), 'g');
    case 21:
      return csi(pick(['0', '2', '3', '6']), ' q');
    case 22:
      return `${ESC}]${pick(['0;title', '2;日本', '7;file://h/tmp', '9;note', '133;A', '133;B', '133;C', '133;D;1', '777;notify;a;b', '52;c;eHg='])}${pick(['\u0007', `${ESC}\\`])}`;
    case 23:
      return `${ESC}]8;;${pick(['https://example.org/a', '', 'javascript:x', 'http://b'])}${ESC}\\`;
    case 24:
      return pick([
        csi('', 'c'),
        csi('6', 'n'),
        csi('?25', '$p'),
        csi('!', 'p'),
        csi('22;0', 't'),
        csi('23;0', 't'),
      ]);
    case 25:
      return pick([
        `${ESC}P1;2q#0~~${ESC}\\`,
        `${ESC}_Gf=24,a=T,m=1;AAAA${ESC}\\`,
        `${ESC}_Gm=0;AA${ESC}\\`,
        `${ESC}P$qm${ESC}\\`,
      ]);
    default:
      return pick([
        `${ESC}[`,
        `${ESC}]0;half`,
        `${ESC}P`,
        '\u0018',
        '\u001a',
        '\u009b31m',
        `${ESC}[12\u000745m`,
        '\u0085',
        '\u007f',
      ]);
  }
}

/** About `pieces` pieces as bytes; now and then a byte that is no UTF-8. */
export function randomOutput(random: Random, pieces: number): Buffer {
  const parts: Buffer[] = [];
  for (let index = 0; index < pieces; index += 1) {
    parts.push(Buffer.from(randomPiece(random), 'utf8'));
    if (random.next() < 0.01) parts.push(Buffer.from([0x80 + Math.floor(random.next() * 128)]));
  }
  return Buffer.concat(parts);
}
