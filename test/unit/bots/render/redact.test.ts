import { describe, expect, test } from 'vitest';
import {
  createRedactor,
  MASK,
  redactFrame,
  redactText,
} from '../../../../src/bots/render/redact.ts';
import type { Line } from '../../../../src/term/values.ts';

const OWN = 'xapp-1-OWNTOKEN-0123456789';
const redact = createRedactor({ secrets: [OWN], patterns: ['pin=\\d{4}'], shapes: true });
/** Assembled here, so that no scanner takes this file for a leak. */
const GITHUB = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;

function texts(lines: readonly string[], before: readonly string[] = []): string[] {
  const toLines = (all: readonly string[]): Line[] => all.map((text) => ({ text }));
  return redact(toLines(lines), toLines(before)).map((line) => line.text);
}

describe('what is masked', () => {
  test.each([
    ['a GitHub token', GITHUB],
    ['a Slack token', `xoxb-${'1'.repeat(12)}-${'2'.repeat(13)}-${'aB3'.repeat(8)}`],
    ['an npm token', `npm_${'a1B2'.repeat(9)}`],
    ["chatd's own token", OWN],
    ["the operator's pattern", 'pin=1234'],
  ])('%s, and nothing around it', (_name, secret) => {
    const [line] = texts([`before ${secret} after`]);
    expect(line).not.toContain(secret);
    expect(line).toBe(`before ${MASK.repeat(secret.length)} after`);
  });

  test('a private key, from its first line on, before its last has come', () => {
    const key = ['-----BEGIN RSA PRIVATE KEY-----', 'MIIEpAIBAAKCAQEA', 'abcdEFGH0123+/=='];
    const shown = texts(['$ cat key', ...key]);
    expect(shown[0]).toBe('$ cat key');
    for (const line of shown.slice(1)) expect(line.replaceAll(MASK, '').trim()).toBe('');
    expect(texts(['more0123'], key)[0]).toBe(MASK.repeat(8));
    expect(texts(['$ ls'], [...key, '-----END RSA PRIVATE KEY-----'])).toEqual(['$ ls']);
  });

  test('a token in several colours: styles stay where they are', () => {
    const spans = [{ start: 4, end: 10, fg: 1 }];
    const [line] = redact([{ text: `tok ${GITHUB}`, spans }], []);
    expect(line).toEqual({ text: `tok ${MASK.repeat(GITHUB.length)}`, spans });
  });

  test('a token that wraps over two rows of a screen', () => {
    const frame = {
      offset: 1,
      cols: 24,
      rows: [{ text: `x ${GITHUB.slice(0, 22)}` }, { text: GITHUB.slice(22) }, { text: 'end' }],
      cursor: { row: 0, col: 0, visible: true },
      title: '',
      alternate: true,
    };
    expect(redactFrame(redact, frame).rows.map((row) => row.text)).toEqual([
      `x ${MASK.repeat(22)}`,
      MASK.repeat(GITHUB.length - 22),
      'end',
    ]);
  });

  test('titles and other single texts', () => {
    expect(redactText(redact, `run ${GITHUB}\nok`)).toBe(`run ${MASK.repeat(GITHUB.length)}\nok`);
  });
});

test('ordinary output is the very same object', () => {
  const lines = [{ text: 'drwxr-xr-x 2 demo demo 4096 Nov 30 12:00 src' }, { text: '$ ' }];
  expect(redact(lines, [])).toBe(lines);
});

test('with the shapes switched off our own tokens are masked all the same', () => {
  const quiet = createRedactor({ secrets: [OWN], patterns: [], shapes: false });
  const [line] = quiet([{ text: `${GITHUB} ${OWN}` }], []);
  expect(line?.text).toBe(`${GITHUB} ${MASK.repeat(OWN.length)}`);
});

test('hostile text takes no more than linear work', () => {
  // Each of these has hung some pattern matcher; a hang would fail by time-out.
  const evil = ['a', '-', 'http://', 'AKIA', 'x@', '-----BEGIN PRIVATE KEY-----', 'A=', ' '];
  for (const unit of evil) texts([unit.repeat(Math.ceil(100_000 / unit.length))]);
});
