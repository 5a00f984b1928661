import { describe, expect, it } from 'vitest';
import { parseThread } from '../../../src/cli/thread-link.ts';

describe('what people paste to name a Slack thread', () => {
  it.each([
    ['C0123/1700000000.000100', 'C0123', '1700000000.000100'],
    ['C0123:1700000000.000100', 'C0123', '1700000000.000100'],
    ['https://x.slack.com/archives/C0123/p1700000000000100', 'C0123', '1700000000.000100'],
    ['<https://x.slack.com/archives/C0123/p1700000000000100>', 'C0123', '1700000000.000100'],
    [
      'https://x.slack.com/archives/C0123/p1700000009000900?thread_ts=1700000000.000100&cid=C0123',
      'C0123',
      '1700000000.000100',
    ],
  ])('%s', (text, channel, root) => {
    expect(parseThread('slack', text, [])).toEqual({ space: '', channel, root });
  });

  it.each(['', 'C0123', 'https://x.slack.com/archives/C0123', 'C0123/1.2/3', '../C0123/1.2'])(
    'is not %j',
    (text) => {
      expect(parseThread('slack', text, [])).toBeUndefined();
    },
  );

  it('is not a link whose thread_ts is no timestamp', () => {
    const link = 'https://x.slack.com/archives/C0123/p1700000000000100?thread_ts=abc';
    expect(parseThread('slack', link, [])).toBeUndefined();
  });
});

describe('what people paste to name a Discord thread', () => {
  it.each([
    ['123456789', '', '', '123456789'],
    ['https://discord.com/channels/1/22', '1', '', '22'],
    ['https://canary.discord.com/channels/1/22/', '1', '', '22'],
    // A message inside the thread.
    ['https://discord.com/channels/1/22/333', '1', '', '22'],
    // The message of a configured channel that opened it.
    ['https://discord.com/channels/1/44/333', '1', '44', '333'],
  ])('%s', (text, space, channel, root) => {
    expect(parseThread('discord', text, ['44'])).toEqual({ space, channel, root });
  });

  it.each(['', '12', 'https://discord.com/channels/@me/22', 'https://evil.com/channels/1/22'])(
    'is not %j',
    (text) => {
      expect(parseThread('discord', text, [])).toBeUndefined();
    },
  );
});
