// What a Discord payload says a person did.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DecodeContext,
  decodeInteraction,
  decodeMessage,
  interactionPlace,
  isBlank,
  nonceOf,
  placeChanges,
  rowOfNonce,
} from '../../../../src/bots/discord/decode.ts';
import { fieldsOf } from '../../../../src/bots/fields.ts';

const context: DecodeContext = {
  guildId: '10',
  ourUserId: '99',
  receivedAtMonotonicMs: 5,
  caughtUp: false,
};
const place = { space: '10', channel: '20', root: '30' };
const message = {
  id: '1100000000000000001',
  channel_id: '30',
  guild_id: '10',
  type: 0,
  author: { id: '7', username: 'bob', global_name: 'Bob' },
  member: { nick: 'bobby', roles: ['55'] },
  content: 'ls -la',
  attachments: [],
};

function typed(content: string, more: Readonly<Record<string, unknown>> = {}) {
  return decodeMessage({ ...message, content, ...more }, place, context);
}

describe('messages', () => {
  it('brings author, roles, key and time', () => {
    expect(typed('ls -la')).toMatchObject({
      kind: 'message',
      dedupeKeys: ['message:1100000000000000001'],
      place,
      text: 'ls -la',
      author: { id: '7', space: '10', roles: ['55'], isBot: false, name: 'bobby' },
      sentAtPlatformMs: Number((1_100_000_000_000_000_001n >> 22n) + 1_420_070_400_000n),
    });
  });

  it.each([
    ['markup that was typed', 'echo **x** _y_ ~~z~~', 'echo **x** _y_ ~~z~~'],
    ['smart quotes and dashes', 'git commit \u2014amend \u201cx\u201d', 'git commit --amend "x"'],
    [
      'code in the middle untouched',
      'echo `\u201cx\u201d` \u201cy\u201d',
      'echo `\u201cx\u201d` "y"',
    ],
    ['custom emoji', 'a <:party:123> <a:wave:456>', 'a :party: :wave:'],
  ])('decodes %s', (_what, content, expected) => {
    expect(typed(content)).toMatchObject({ text: expected, verbatim: false });
  });

  it.each([
    ['a fence', '```\necho \u201cx\u201d\n```', 'echo \u201cx\u201d'],
    ['a fence with a language', '```sh\nls\ncd\n```', 'ls\ncd'],
    ['a fence on one line, whose first word is no language', '```ls -la```', 'ls -la'],
    ['a span', '`ls \u2014a`', 'ls \u2014a'],
    ['a span in double backticks', '``echo `date` ``', 'echo `date` '],
  ])('takes %s verbatim', (_what, content, expected) => {
    expect(typed(content)).toMatchObject({ text: expected, verbatim: true });
  });

  it('writes people as they were typed and takes our name off the front', () => {
    const mentions = [{ id: '7', username: 'bob' }];
    expect(typed('<@99> run for <@7> and <@!8>', { mentions })).toMatchObject({
      text: 'run for @bob and <@!8>',
      mentionsUs: true,
    });
    expect(typed('<@99> ```\nx\n```')).toMatchObject({ text: 'x', verbatim: true });
  });

  it('names the row of our own message by its nonce', () => {
    const own = { ...message, author: { id: '99', bot: true } };
    expect(decodeMessage({ ...own, nonce: 'abc.1z' }, place, context)).toEqual({
      kind: 'own-message',
      place,
      messageId: message.id,
      row: { b: 'abc', s: 71 },
    });
    expect(decodeMessage(own, place, context)).toBeUndefined();
    expect(decodeMessage({ ...own, nonce: 12 }, place, context)).toBeUndefined();
  });

  it('calls webhooks and bots bots, and webhooks foreign', () => {
    expect(typed('x', { webhook_id: '5' })).toMatchObject({
      author: { isBot: true, space: undefined },
    });
    expect(typed('x', { author: { id: '8', bot: true } })).toMatchObject({
      author: { isBot: true },
    });
  });

  it.each([1, 4, 6, 18, 21, 24])("makes no act of Discord's own notice of type %i", (type) => {
    expect(typed('x', { type })).toBeUndefined();
  });

  it('finds a file again by where it is', () => {
    const attachments = [{ id: '3', filename: 'a.log', size: 4, url: 'https://x' }];
    expect(typed('', { attachments })).toMatchObject({
      files: [{ id: '30/1100000000000000001/3', name: 'a.log', sizeBytes: 4 }],
    });
  });

  it('notices a message that arrived with nothing in it', () => {
    expect(isBlank({ ...message, content: '' })).toBe(true);
    expect(isBlank(message)).toBe(false);
    expect(isBlank({ ...message, content: '', attachments: [{}] })).toBe(false);
    expect(isBlank({ ...message, content: '', message_snapshots: [{}] })).toBe(false);
    expect(isBlank({ ...message, content: '', author: { id: '8', bot: true } })).toBe(false);
    expect(isBlank({ ...message, content: '', type: 18 })).toBe(false);
  });
});

describe('the nonce of a row', () => {
  it('names the row again and fits into 25 characters', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[0-9a-z]{1,16}$/),
        fc.integer({ min: 0, max: 36 ** 8 - 1 }),
        (b, s) => {
          const nonce = nonceOf({ b, s });
          expect(nonce?.length ?? 99).toBeLessThanOrEqual(25);
          expect(rowOfNonce(nonce)).toEqual({ b, s });
        },
      ),
    );
  });

  it('is not made of what does not fit', () => {
    expect(nonceOf({ b: 'x'.repeat(25), s: 1 })).toBeUndefined();
    expect(nonceOf({ b: 'Ä', s: 1 })).toBeUndefined();
  });
});

describe('interactions', () => {
  const interaction = {
    id: '1100000000000000002',
    guild_id: '10',
    channel_id: '30',
    member: { user: { id: '7', username: 'bob' }, roles: ['55'] },
  };

  it('brings a command as it would be typed', () => {
    const run = (options: readonly unknown[]) =>
      decodeInteraction(
        {
          ...interaction,
          type: 2,
          data: { name: 'term', options: [{ name: 'run', type: 1, options }] },
        },
        place,
        context,
      );
    expect(run([])).toMatchObject({ kind: 'command', text: 'run' });
    expect(run([{ name: 'command', value: 'make -j2' }])).toMatchObject({
      text: 'run -- make -j2',
    });
    expect(
      run([
        { name: 'profile', value: 'claude' },
        { name: 'command', value: 'x' },
      ]),
    ).toMatchObject({ text: 'run claude -- x' });
  });

  it('brings a pressed button and who pressed it', () => {
    expect(
      decodeInteraction(
        { ...interaction, type: 3, message: { id: '40' }, data: { custom_id: 'key:esc' } },
        place,
        context,
      ),
    ).toMatchObject({
      kind: 'action',
      action: 'key:esc',
      messageId: '40',
      author: { id: '7', space: '10', roles: ['55'] },
      dedupeKeys: ['interaction:1100000000000000002'],
    });
  });

  it.each([
    ['labels', [{ type: 18, component: { type: 4, custom_id: 'line', value: 'x' } }]],
    ['action rows', [{ type: 1, components: [{ type: 4, custom_id: 'line', value: 'x' }] }]],
  ])('reads the values of a modal from %s', (_what, components) => {
    expect(
      decodeInteraction(
        { ...interaction, type: 5, data: { custom_id: 'm', components } },
        place,
        context,
      ),
    ).toMatchObject({ kind: 'modal', modal: 'm', values: { line: 'x' } });
  });

  it('counts somebody without a membership as foreign', () => {
    const { member: _member, ...outside } = interaction;
    expect(
      decodeInteraction(
        { ...outside, type: 2, user: { id: '7' }, data: { options: [] } },
        place,
        context,
      ),
    ).toMatchObject({ author: { space: undefined } });
  });

  it('places a button of a starter message into its thread', () => {
    const channel = {
      id: '20',
      parentId: undefined,
      archived: false,
      locked: false,
      lastMessageId: undefined,
    };
    expect(interactionPlace({ message: { id: '30' } }, channel, '10')).toEqual(place);
    expect(interactionPlace({}, channel, '10')).toEqual({ ...place, root: '' });
    const thread = { ...channel, id: '30', parentId: '20' };
    expect(interactionPlace({ message: { id: '41' } }, thread, '10')).toEqual(place);
  });
});

it('tells what changed of a thread, and nothing when nothing did', () => {
  const open = {
    id: '30',
    parentId: '20',
    archived: false,
    locked: false,
    lastMessageId: undefined,
  };
  const changesOf = (before: typeof open | undefined, now: typeof open) =>
    placeChanges(before, now, place).map((change) =>
      change.kind === 'place-changed' ? change.change : change.kind,
    );
  expect(changesOf(open, { ...open, archived: true })).toEqual(['archived']);
  expect(changesOf({ ...open, archived: true, locked: true }, open)).toEqual([
    'unlocked',
    'unarchived',
  ]);
  expect(changesOf(open, open)).toEqual([]);
  expect(changesOf(undefined, { ...open, archived: true })).toEqual(['archived']);
});

it('never fails, whatever arrives', () => {
  fc.assert(
    fc.property(fc.anything(), (anything) => {
      const fields = fieldsOf(anything);
      decodeMessage(fields, place, context);
      decodeMessage({ ...message, ...fields, id: '1' }, place, context);
      decodeInteraction(fields, place, context);
      isBlank(fields);
    }),
  );
});
