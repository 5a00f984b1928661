// What every chat platform does, whichever it is. Run by both adapters on the sandbox, and by the
// platform in memory that other tests stand on.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  ChatPlatform,
  Content,
  Outcome,
  PostRequest,
  ThreadRoot,
} from '../../../src/bots/chat-platform.ts';
import { type PlatformRecorder, until } from '../../support/platform-recorder.ts';

export interface Read {
  readonly id: string;
  /** As a person reads it. */
  readonly text: string;
  readonly mine: boolean;
  readonly pings: readonly string[];
  readonly files: readonly string[];
}

export type PlatformFault =
  | 'rate-limit'
  /** Five minutes. */
  | 'long-limit'
  | 'reset'
  | 'reset-processed'
  | 'server-error';

/** One platform, and the hands of people on it. */
export interface Harness {
  readonly platform: ChatPlatform;
  readonly recorder: PlatformRecorder;
  /** A place with an empty root. */
  readonly channel: ThreadRoot;
  readonly personId: string;
  /** Whether events tell of our own posts and name their rows. */
  readonly seesOwnPosts: boolean;
  say(place: ThreadRoot, text: string): Promise<string>;
  press(place: ThreadRoot, messageId: string, label: string): Promise<void>;
  /** `run`, with a command. */
  command(command: string): Promise<void>;
  submit(place: ThreadRoot, modal: string, values: Readonly<Record<string, string>>): Promise<void>;
  read(place: ThreadRoot): Promise<readonly Read[]>;
  /** What one person alone sees of answers: whispers and private replies. */
  privateTexts(place: ThreadRoot): Promise<readonly string[]>;
  failNext(call: 'post' | 'edit' | 'find' | 'upload', fault: PlatformFault): Promise<void>;
  /** Whether all that was to fail has failed. */
  faultsStruck(): Promise<boolean>;
  removeMessage(place: ThreadRoot, messageId: string): Promise<void>;
  dropConnection(): Promise<void>;
  /** Makes edits in `place` answer `archived`. */
  archive(place: ThreadRoot): Promise<void>;
  reopen(place: ThreadRoot): Promise<void>;
  lock(place: ThreadRoot): Promise<void>;
  close(): Promise<void>;
}

function okOf<T>(outcome: Outcome<T>): T {
  if (outcome.kind !== 'ok') throw new Error(`expected ok, got ${JSON.stringify(outcome)}`);
  return outcome.value;
}

function lines(...texts: readonly string[]): Content {
  return { lines: texts.map((text) => ({ text })) };
}

/** Declares the suite. `start` gives a connected platform. */
export function chatPlatformContract(name: string, start: () => Promise<Harness>): void {
  describe(`${name} as a chat platform`, () => {
    let harness: Harness;
    let sequence = 0;
    const binding = `b${name.replace(/[^a-z]/g, '')}`.slice(0, 12);

    beforeAll(async () => {
      harness = await start();
    });
    afterAll(async () => {
      await harness.close();
    });

    function request(place: ThreadRoot, content: Content): PostRequest {
      sequence += 1;
      return { place, row: { b: binding, s: sequence }, content };
    }

    async function newThread(): Promise<{ place: ThreadRoot; rootId: string }> {
      const posted = okOf(
        await harness.platform.postRoot(
          request(harness.channel, { head: `session ${sequence}` }),
          `session ${sequence}`,
        ),
      );
      return { place: posted.root, rootId: posted.messageId };
    }

    /** Skew is small here, and the window of a search generous. */
    function find(of: PostRequest, anchor: string | undefined, knownIds: readonly string[] = []) {
      return harness.platform.findPosted({
        place: of.place,
        row: of.row,
        anchor,
        sentAtPlatformMs: Date.now(),
        knownIds: new Set(knownIds),
      });
    }

    async function mine(place: ThreadRoot): Promise<readonly Read[]> {
      return (await harness.read(place)).filter((message) => message.mine);
    }

    it('says once that it is connected', async () => {
      await until('connected', () => harness.recorder.connectedCount >= 1);
      expect(harness.recorder.healthy).toBe(true);
    });

    it('shows posts in the thread of their root, in order', async () => {
      const { place } = await newThread();
      okOf(await harness.platform.post(request(place, lines('first', '  second <&>'))));
      okOf(await harness.platform.post(request(place, lines('third'))));
      const texts = (await mine(place)).map((message) => message.text).join('\n');
      expect(texts).toMatch(/first\n {2}second <&>[\s\S]*third/);
    });

    it('replaces the text of a message by an edit', async () => {
      const { place } = await newThread();
      const before = request(place, lines('before'));
      const { messageId } = okOf(await harness.platform.post(before));
      okOf(
        await harness.platform.edit({ place, row: before.row, messageId, content: lines('after') }),
      );
      const text = (await mine(place)).find((message) => message.id === messageId)?.text;
      expect(text).toContain('after');
      expect(text).not.toContain('before');
    });

    it('calls a message that is not there any more gone', async () => {
      const { place } = await newThread();
      const posted = request(place, lines('short-lived'));
      const { messageId } = okOf(await harness.platform.post(posted));
      await harness.removeMessage(place, messageId);
      const edit = { place, row: posted.row, messageId, content: lines('x') };
      expect((await harness.platform.edit(edit)).kind).toBe('gone');
      expect((await harness.platform.delete(place, messageId)).kind).toBe('gone');
    });

    it('deletes a message of ours', async () => {
      const { place } = await newThread();
      const { messageId } = okOf(await harness.platform.post(request(place, lines('twice'))));
      okOf(await harness.platform.delete(place, messageId));
      expect((await mine(place)).map((message) => message.id)).not.toContain(messageId);
    });

    it('pings nobody whatever the program printed', async () => {
      const { place } = await newThread();
      const nasty = `@everyone <!here> <!channel> <@${harness.personId}> <@&1> \`\`\` *x*`;
      const { messageId } = okOf(await harness.platform.post(request(place, lines(nasty))));
      const shown = (await mine(place)).find((message) => message.id === messageId);
      expect(shown?.pings).toEqual([]);
      expect(shown?.text).toContain('@everyone <!here>');
    });

    it('pings the people it is told to', async () => {
      const { place } = await newThread();
      const { messageId } = okOf(
        await harness.platform.post(
          request(place, { head: 'waiting', mention: [harness.personId] }),
        ),
      );
      const shown = (await mine(place)).find((message) => message.id === messageId);
      expect(shown?.pings.length).toBe(1);
    });

    it('calls a rate limit refused, says when to try again, and has not posted', async () => {
      const { place } = await newThread();
      await harness.failNext('post', 'rate-limit');
      const outcome = await harness.platform.post(request(place, lines('limited')));
      expect(outcome).toMatchObject({ kind: 'refused', because: 'rate-limited' });
      expect(outcome.kind === 'refused' && (outcome.retryAfterMs ?? 0)).toBeGreaterThan(0);
      expect(JSON.stringify(await mine(place))).not.toContain('limited');
    });

    it('finds the post whose answer was lost, once', async () => {
      const { place } = await newThread();
      const anchor = okOf(await harness.platform.post(request(place, lines('anchor')))).messageId;
      const lost = request(place, lines('lost answer'));
      await harness.failNext('post', 'reset-processed');
      expect((await harness.platform.post(lost)).kind).toBe('in-doubt');
      const found = await find(lost, anchor, [anchor]);
      const shown = (await mine(place)).filter((message) => message.text.includes('lost answer'));
      expect(shown.length).toBe(1);
      expect(found).toEqual({ kind: 'found', messageId: shown[0]?.id });
    });

    it('says none for a post that never happened', async () => {
      const { place } = await newThread();
      const anchor = okOf(await harness.platform.post(request(place, lines('anchor')))).messageId;
      const never = request(place, lines('never'));
      await harness.failNext('post', 'reset');
      expect((await harness.platform.post(never)).kind).toBe('in-doubt');
      expect(await find(never, anchor, [anchor])).toEqual({ kind: 'none' });
    });

    it('says unknown, and not none, when the search itself fails', async () => {
      const { place } = await newThread();
      await harness.failNext('find', 'server-error');
      const found = await find(request(place, lines('x')), undefined);
      expect(found.kind).toBe('unknown');
    });

    it('calls a server error in doubt', async () => {
      const { place } = await newThread();
      await harness.failNext('post', 'server-error');
      const outcome = await harness.platform.post(request(place, lines('x')));
      expect(outcome.kind).toBe('in-doubt');
    });

    it('answers a repeated post with the first message where it promises to', async () => {
      if (harness.platform.repeatWindowMs === 0) return;
      const { place } = await newThread();
      const once = request(place, lines('once'));
      const first = okOf(await harness.platform.post(once));
      const again = okOf(await harness.platform.post(once));
      expect(again.messageId).toBe(first.messageId);
      expect((await mine(place)).filter((message) => message.text.includes('once')).length).toBe(1);
    });

    it('uploads a file into the thread', async () => {
      const { place } = await newThread();
      const upload = {
        place,
        row: request(place, {}).row,
        fileName: 'out.txt',
        mediaType: 'text/plain',
        bytes: Buffer.from('hello\n'),
        caption: 'all of it',
      };
      const { messageId } = okOf(await harness.platform.upload(upload, async () => undefined));
      const shown = (await harness.read(place)).find((message) => message.id === messageId);
      expect(shown?.files).toEqual(['out.txt']);
    });

    it('brings what a person typed, exactly', async () => {
      const { place } = await newThread();
      const text = 'grep -n "a && b" <in.txt >out.txt # $HOME `date` *x*';
      const id = await harness.say(place, text);
      const act = await harness.recorder.act('message', (one) => one.messageId === id);
      expect(act).toMatchObject({ place, text, verbatim: false, mentionsUs: false });
      expect(act.author).toMatchObject({
        id: harness.personId,
        space: harness.platform.identity,
        isBot: false,
      });
      expect(act.caughtUp).toBe(false);
      expect(Math.abs(act.sentAtPlatformMs - Date.now())).toBeLessThan(60_000);
    });

    it('names our own post when it sees one', async () => {
      const { place } = await newThread();
      const posted = request(place, lines('seen'));
      const { messageId } = okOf(await harness.platform.post(posted));
      if (!harness.seesOwnPosts) return;
      const act = await harness.recorder.act('own-message', (one) => one.messageId === messageId);
      expect(act).toMatchObject({ place, row: posted.row });
    });

    it('brings a pressed button with what it carries, and answers one person', async () => {
      const { place } = await newThread();
      const buttons = [[{ label: 'Ctrl-C', action: 'key:ctrl-c:s1' }]];
      const { messageId } = okOf(
        await harness.platform.post(request(place, { head: 'keys', buttons })),
      );
      await harness.press(place, messageId, 'Ctrl-C');
      const act = await harness.recorder.act('action', (one) => one.messageId === messageId);
      expect(act).toMatchObject({ place, action: 'key:ctrl-c:s1' });
      expect(act.author.space).toBe(harness.platform.identity);
      await act.reply.privately('done <&> *x*');
      await until('the private answer', async () =>
        (await harness.privateTexts(place)).some((text) => text.includes('done <&> *x*')),
      );
    });

    it('brings a command as it would be typed', async () => {
      await harness.command('make -j2 && ./x');
      const act = await harness.recorder.act('command', (one) => one.text.includes('make'));
      expect(act.text).toBe('run -- make -j2 && ./x');
      expect(act.place).toEqual(harness.channel);
      await act.reply.privately('started');
    });

    it('opens a modal from a button and brings what was entered', async () => {
      const { place } = await newThread();
      const buttons = [[{ label: 'Password', action: 'secret:s1' }]];
      const { messageId } = okOf(
        await harness.platform.post(request(place, { head: 'asks', buttons })),
      );
      harness.recorder.claim = async (act) => {
        if (act.kind !== 'action' || act.messageId !== messageId) return;
        await act.reply.modal({
          id: 'secret:s1:i1',
          title: 'Send a secret to the program',
          fields: [{ id: 'line', label: 'Secret', multiline: false }],
        });
      };
      await harness.press(place, messageId, 'Password');
      await harness.submit(place, 'secret:s1:i1', { line: 'hunter2 "x"' });
      harness.recorder.claim = async () => undefined;
      const act = await harness.recorder.act('modal', (one) => one.modal === 'secret:s1:i1');
      expect(act.values).toEqual({ line: 'hunter2 "x"' });
      expect(act.place).toEqual(place);
    });

    it('catches up on what people wrote, oldest first, and on nothing else', async () => {
      const { place } = await newThread();
      const since = await harness.say(place, 'seen already');
      okOf(await harness.platform.post(request(place, lines('ours'))));
      await harness.say(place, 'missed one');
      await harness.say(place, 'missed two');
      const missed = okOf(
        await harness.platform.catchUp([{ place, sinceMessageId: since }]),
      ).filter((act) => act.kind === 'message');
      expect(missed.map((act) => act.text)).toEqual(['missed one', 'missed two']);
      expect(missed.every((act) => act.caughtUp)).toBe(true);
    });

    it('tells a thread that is there from one that is not', async () => {
      const { place } = await newThread();
      expect(okOf(await harness.platform.proveRoot(place)).root).toEqual(place);
      const nowhere =
        harness.platform.kind === 'slack' ? '1000000000.000001' : '100000000000000001';
      const outcome = await harness.platform.proveRoot({ ...place, root: nowhere });
      expect(outcome).toMatchObject({ kind: 'refused', because: 'place-gone' });
    });

    it('sets a receipt, also when it is set already', async () => {
      const { place } = await newThread();
      const id = await harness.say(place, 'ls');
      okOf(await harness.platform.react(place, id, 'written', true));
      okOf(await harness.platform.react(place, id, 'written', true));
      okOf(await harness.platform.react(place, id, 'written', false));
    });

    it('says something to one person without that being taken for a row', async () => {
      const { place } = await newThread();
      const anchor = okOf(await harness.platform.post(request(place, lines('anchor')))).messageId;
      okOf(await harness.platform.whisper(place, harness.personId, 'not you *x*'));
      await until('the whisper', async () =>
        (await harness.privateTexts(place)).some((text) => text.includes('not you *x*')),
      );
      expect(await find(request(place, lines('x')), anchor, [anchor])).toEqual({ kind: 'none' });
    });

    it('knows a person by id', async () => {
      expect(await harness.platform.person(harness.personId)).toMatchObject({
        id: harness.personId,
        space: harness.platform.identity,
        isBot: false,
      });
    });

    it('knows the platform clock', async () => {
      expect(Math.abs(harness.platform.clockSkewMs() ?? 1e9)).toBeLessThan(5_000);
    });

    it('connects again after the connection broke, says so, and goes on', async () => {
      const { place } = await newThread();
      const before = harness.recorder.connectedCount;
      await harness.dropConnection();
      await until('connected again', () => harness.recorder.connectedCount > before);
      await until('healthy again', () => harness.recorder.healthy);
      const id = await harness.say(place, 'still there?');
      await harness.recorder.act('message', (one) => one.messageId === id);
    });

    it('says that a place is archived, and edits again when it is not', async () => {
      const { place } = await newThread();
      const posted = request(place, lines('open'));
      const { messageId } = okOf(await harness.platform.post(posted));
      await harness.archive(place);
      const edit = { place, row: posted.row, messageId, content: lines('edited') };
      expect(await harness.platform.edit(edit)).toMatchObject({
        kind: 'refused',
        because: 'archived',
      });
      await harness.reopen(place);
      expect((await harness.platform.edit(edit)).kind).toBe('ok');
    });

    it('says that a place is locked', async () => {
      const { place } = await newThread();
      await harness.lock(place);
      expect(await harness.platform.post(request(place, lines('x')))).toMatchObject({
        kind: 'refused',
        because: 'locked',
      });
    });

    it('stops within its bound, a catch-up that waits for a limit included', async () => {
      const { place } = await newThread();
      await harness.say(place, 'something new');
      await harness.failNext('find', 'long-limit');
      const caughtUp = harness.platform.catchUp([{ place, sinceMessageId: place.root }]);
      await until('the limit', () => harness.faultsStruck());
      // Five minutes would be asked for: longer than this test may take.
      await harness.platform.stop();
      await caughtUp;
    });
  });
}
