// The pure decisions of the Discord half: ids, limits, text, permissions.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Windows } from '../../../src/sandbox/discord/buckets.ts';
import {
  EVERYONE_PERMISSIONS,
  PERMISSION,
  permissionsIn,
} from '../../../src/sandbox/discord/permissions.ts';
import {
  CHANNEL,
  type ChannelRecord,
  type Overwrite,
  type RoleRecord,
} from '../../../src/sandbox/discord/records.ts';
import {
  compareIds,
  isSnowflake,
  SnowflakeMint,
  snowflakeTimeMs,
} from '../../../src/sandbox/discord/snowflake.ts';
import {
  blocksOf,
  cleanContent,
  pingsOf,
  previewedLink,
  shownText,
  textFaults,
} from '../../../src/sandbox/discord/text.ts';

const START = 1_800_000_000_000;

test('snowflakes only grow, whatever the wall clock does, and say when they were made', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -5_000, max: 5_000 }), { maxLength: 200 }), (steps) => {
      let nowMs = START;
      const mint = new SnowflakeMint(() => nowMs);
      let last = '0';
      for (const step of steps) {
        nowMs += step;
        const id = mint.mint();
        expect(isSnowflake(id)).toBe(true);
        expect(compareIds(id, last)).toBeGreaterThan(0);
        expect(snowflakeTimeMs(id)).toBeGreaterThanOrEqual(nowMs);
        last = id;
      }
    }),
  );
});

test('more ids than one millisecond has numbers still differ', () => {
  const mint = new SnowflakeMint(() => START);
  const ids = Array.from({ length: 10_000 }, () => mint.mint());
  expect(new Set(ids).size).toBe(ids.length);
});

test('a window never lets more through than its limit, and says how long to wait', () => {
  const steps = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 6 }), (waits, limit) => {
      let nowMs = START;
      const windows = new Windows(() => nowMs);
      const passed: number[] = [];
      for (const wait of waits) {
        nowMs += wait;
        const taken = windows.take('k', { limit, windowMs: 1_000 });
        if (taken.allowed) passed.push(nowMs);
        else {
          // Whoever waits as long as told gets through.
          const later = new Windows(() => nowMs);
          expect(later.take('k', { limit, windowMs: 1_000 }).allowed).toBe(true);
          nowMs += taken.resetAfterMs;
          expect(windows.take('k', { limit, windowMs: 1_000 }).allowed).toBe(true);
          passed.push(nowMs);
        }
      }
      // A fixed window may let two windows' worth through around its edge, never more.
      for (const at of passed) {
        const near = passed.filter((other) => other >= at && other < at + 1_000);
        expect(near.length).toBeLessThanOrEqual(2 * limit);
      }
    }),
  );
});

test('a caller that comes back too early is recognised', () => {
  let nowMs = START;
  const windows = new Windows(() => nowMs);
  const limit = { limit: 1, windowMs: 1_000 };
  expect(windows.take('k', limit)).toMatchObject({ allowed: true, remaining: 0 });
  expect(windows.take('k', limit)).toMatchObject({ allowed: false, ignoredWait: false });
  nowMs += 999;
  expect(windows.take('k', limit)).toMatchObject({ allowed: false, ignoredWait: true });
  nowMs += 1;
  expect(windows.take('k', limit)).toMatchObject({ allowed: true, ignoredWait: false });
});

test('cleaning is idempotent and leaves nothing that Discord would take away', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
      const once = cleanContent(text);
      expect(cleanContent(once)).toBe(once);
      expect(once).toBe(once.trim());
      expect(Buffer.from(once).toString()).toBe(once);
      expect(once).not.toMatch(/[\u0000\r\u202e]/);
    }),
  );
});

test('lines inside a fence are shown as they are, whatever markup they hold', () => {
  const line = fc.stringMatching(/^[ -_a-~]{0,40}$/);
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 8 }), (lines) => {
      fc.pre(lines.join('').trim() !== '');
      const text = lines.join('\n');
      expect(shownText(`\`\`\`ansi\n${text}\n\`\`\``, () => undefined)).toBe(text);
    }),
  );
});

test('prose loses its markup, mentions become names, an open fence is prose', () => {
  const names = (id: string): string | undefined => (id.endsWith('7') ? 'alice' : undefined);
  expect(shownText('**a** __b__ ~~c~~ `d*e*` \\*f\\*', names)).toBe('a b c d*e* *f*');
  expect(shownText('<@123456789012345677> <@123456789012345678>', names)).toBe(
    '@alice <@123456789012345678>',
  );
  expect(shownText('-# small\n> quoted\nsnake_case_name', names)).toBe(
    'small\nquoted\nsnake_case_name',
  );
  expect(blocksOf('```\nopen').map((block) => block.kind)).toEqual(['text']);
  expect(blocksOf('a\n```js\nb\n```\nc')).toEqual([
    { kind: 'text', text: 'a' },
    { kind: 'fence', language: 'js', text: 'b' },
    { kind: 'text', text: 'c' },
  ]);
});

test('only what is allowed pings, and code protects nothing here', () => {
  const text = '`<@123456789012345678>` <@&123456789012345679> @here';
  const nobody = { everyone: false, users: [], roles: [], repliedUser: false };
  expect(pingsOf(text, nobody)).toEqual({ everyone: false, users: [], roles: [] });
  const all = { everyone: true, users: 'all', roles: 'all', repliedUser: true } as const;
  expect(pingsOf(text, all)).toEqual({
    everyone: true,
    users: ['123456789012345678'],
    roles: ['123456789012345679'],
  });
});

test('garbage on screen is named: open fences, escapes no client draws', () => {
  const rules = (text: string): readonly string[] => textFaults(text).map((fault) => fault.rule);
  expect(rules('```ansi\n\u001b[1;31mred\u001b[0m\n```')).toEqual([]);
  expect(rules('```\n\u001b[1mx\n```')).toEqual(['control-sequence']);
  expect(rules('```ansi\n\u001b[38;5;9mx\n```')).toEqual(['unsupported-sgr']);
  expect(rules('``` open')).toEqual(['unclosed-fence']);
});

test('a link is previewed in prose only', () => {
  expect(previewedLink('see https://a.example/x.')).toBe('https://a.example/x.');
  expect(previewedLink('`https://a.example` <https://b.example> ```\nhttps://c.example\n```')).toBe(
    undefined,
  );
});

test('overwrites apply everyone, then roles, then the member; without sight there is nothing', () => {
  const role: RoleRecord = { id: 'r', name: 'r', permissions: 0n, position: 1 };
  const everyone: RoleRecord = {
    id: 'g',
    name: '@everyone',
    permissions: EVERYONE_PERMISSIONS,
    position: 0,
  };
  const bits = (overwrites: Overwrite[], ownerId = 'o'): bigint =>
    permissionsIn({
      ownerId,
      everyoneId: 'g',
      roles: new Map([
        ['g', everyone],
        ['r', role],
      ]),
      member: { userId: 'm', roleIds: new Set(['r']), joinedMs: 0 },
      channel: { overwrites, type: CHANNEL.TEXT } as unknown as ChannelRecord,
    });
  const { SEND_MESSAGES, VIEW_CHANNEL } = PERMISSION;
  const rule = (id: string, allow: bigint, deny: bigint): Overwrite => ({
    id,
    type: 0,
    allow,
    deny,
  });
  expect(bits([rule('g', 0n, SEND_MESSAGES)]) & SEND_MESSAGES).toBe(0n);
  expect(bits([rule('g', 0n, SEND_MESSAGES), rule('r', SEND_MESSAGES, 0n)]) & SEND_MESSAGES).toBe(
    SEND_MESSAGES,
  );
  expect(bits([rule('r', SEND_MESSAGES, 0n), rule('m', 0n, SEND_MESSAGES)]) & SEND_MESSAGES).toBe(
    0n,
  );
  expect(bits([rule('m', 0n, VIEW_CHANNEL)])).toBe(0n);
  expect(bits([rule('m', 0n, VIEW_CHANNEL)], 'm') & VIEW_CHANNEL).toBe(VIEW_CHANNEL);
});
