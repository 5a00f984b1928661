// Whatever goes wrong with a call, what the adapter says became of it is what became of it: refused
// means that nothing is there, ok that it is there once, and a look decides what was in doubt.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/random.ts';
import type { Outcome, PostRequest, ThreadRoot } from '../../../src/bots/chat-platform.ts';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import type { Harness } from '../../contract/bots/chat-platform.contract.ts';
import { startDiscord } from '../../support/discord-harness.ts';
import { until } from '../../support/platform-recorder.ts';
import { startSlack } from '../../support/slack-harness.ts';

type Fault = Readonly<Record<string, unknown>>;

const FAULTS: readonly (Fault | undefined)[] = [
  undefined,
  { kind: 'reset' },
  { kind: 'reset', processed: true },
  { kind: 'reply', status: 500 },
  { kind: 'reply', status: 502, body: '<html>', processed: true },
  { kind: 'reply', status: 503, processed: true },
  { kind: 'rate-limit', retryAfterSec: 1 },
  { kind: 'rate-limit' },
  { kind: 'rate-limit', html: true },
  { kind: 'truncate' },
  { kind: 'delay', ms: 60 },
  { kind: 'delay', ms: 60, processedFirst: true },
];
/** Slack's own words for "perhaps". */
const SLACK_FAULTS: readonly Fault[] = [
  { kind: 'error', code: 'internal_error' },
  { kind: 'error', code: 'internal_error', processed: true },
  { kind: 'error', code: 'fatal_error', processed: true },
  { kind: 'reply', status: 200, body: 'not json', processed: true },
  { kind: 'error', code: 'channel_not_found' },
  { kind: 'error', code: 'is_archived' },
];
const ROUNDS = 40;

interface World extends Harness {
  readonly sandbox: Sandbox;
}

const worlds: readonly {
  name: string;
  start: () => Promise<World>;
  post: string;
  edit: string;
  faults: readonly (Fault | undefined)[];
}[] = [
  {
    name: 'Slack',
    start: () => startSlack(),
    post: 'slack:chat.postMessage',
    edit: 'slack:chat.update',
    faults: [...FAULTS, ...SLACK_FAULTS],
  },
  {
    name: 'Discord',
    start: () => startDiscord(),
    post: 'discord:POST /channels/:id/messages',
    edit: 'discord:PATCH /channels/:id/messages/:id',
    faults: FAULTS,
  },
];

describe.each(worlds)('what $name says became of a call', ({ start, post, edit, faults }) => {
  let world: World;
  let place: ThreadRoot;
  let sequence = 0;

  beforeAll(async () => {
    world = await start();
  });
  afterAll(async () => {
    await world.close();
  });

  function request(text: string): PostRequest {
    sequence += 1;
    const lines = [{ text }];
    return { place, row: { b: 'bfault', s: sequence }, content: { lines } };
  }

  async function newThread(): Promise<void> {
    const root = await world.platform.postRoot(
      { ...request('root'), place: world.channel },
      'root',
    );
    if (root.kind !== 'ok') throw new Error(root.detail);
    place = root.value.root;
  }

  async function shown(text: string) {
    const all = await world.read(place);
    return all.filter((message) => message.mine && message.text.split(/\s/).includes(text));
  }

  async function under<T>(
    on: string,
    fault: Fault | undefined,
    call: () => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    if (fault !== undefined) await world.sandbox.control('faults/add', { on, fault });
    const outcome = await call();
    await world.sandbox.control('faults/clear');
    return outcome;
  }

  it.each([1, 2, 3])('is so for posts (seed %i)', async (seed) => {
    const random = seededRandom(seed);
    await newThread();
    const known = new Set<string>();
    let anchor: string | undefined;
    const kinds = new Set<string>();
    for (let round = 0; round < ROUNDS; round += 1) {
      const fault = faults[Math.floor(random.next() * faults.length)];
      const text = `m${seed}-${round}`;
      const posted = request(text);
      const outcome = await under(post, fault, () => world.platform.post(posted));
      const what = JSON.stringify({ fault, outcome });
      const there = await shown(text);
      kinds.add(outcome.kind);
      let messageId: string | undefined;
      if (outcome.kind === 'ok') {
        expect(
          there.map((message) => message.id),
          what,
        ).toEqual([outcome.value.messageId]);
        messageId = outcome.value.messageId;
      } else if (outcome.kind === 'in-doubt') {
        const found = await world.platform.findPosted({
          place,
          row: posted.row,
          anchor,
          sentAtPlatformMs: Date.now(),
          knownIds: known,
        });
        const [first] = there;
        const expected =
          first === undefined ? { kind: 'none' } : { kind: 'found', messageId: first.id };
        expect(there.length, what).toBeLessThanOrEqual(1);
        expect(found, what).toEqual(expected);
        messageId = first?.id;
      } else {
        expect(there, what).toEqual([]);
      }
      if (messageId === undefined) continue;
      known.add(messageId);
      anchor = messageId;
    }
    expect([...kinds].sort()).toEqual(expect.arrayContaining(['in-doubt', 'ok', 'refused']));
  });

  it.each([4, 5])('is so for edits (seed %i)', async (seed) => {
    const random = seededRandom(seed);
    await newThread();
    const before = request('start');
    const posted = await world.platform.post(before);
    if (posted.kind !== 'ok') throw new Error(posted.detail);
    const { messageId } = posted.value;
    let certain = 'start';
    for (let round = 0; round < ROUNDS; round += 1) {
      const fault = faults[Math.floor(random.next() * faults.length)];
      const text = `e${seed}-${round}`;
      const outcome = await under(edit, fault, () =>
        world.platform.edit({
          place,
          row: before.row,
          messageId,
          content: { lines: [{ text }] },
        }),
      );
      const what = JSON.stringify({ fault, outcome });
      const isNew = (await shown(text)).length === 1;
      if (outcome.kind === 'ok') expect(isNew, what).toBe(true);
      if (outcome.kind === 'refused' || outcome.kind === 'gone') {
        expect(isNew, what).toBe(false);
        expect((await shown(certain)).length, what).toBe(1);
      }
      if (isNew) certain = text;
    }
  });

  it('finds a post that landed after it was given up', async () => {
    await newThread();
    const posted = request('late');
    const outcome = await under(post, { kind: 'delay', ms: 6_000 }, () =>
      world.platform.post(posted),
    );
    expect(outcome.kind).toBe('in-doubt');
    const there = await until('it to land', async () => {
      const messages = await shown('late');
      return messages.length > 0 && messages;
    });
    expect(
      await world.platform.findPosted({
        place,
        row: posted.row,
        anchor: undefined,
        sentAtPlatformMs: Date.now(),
        knownIds: new Set(),
      }),
    ).toEqual({ kind: 'found', messageId: there[0]?.id });
  });
});
