import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../../../src/base/log.ts';
import { seededRandom } from '../../../../src/base/random.ts';
import { Scheduler } from '../../../../src/bots/outbox/scheduler.ts';
import {
  type OutboxStatus,
  ThreadOutbox,
  type ThreadOutboxOptions,
} from '../../../../src/bots/outbox/thread-outbox.ts';
import { createRedactor } from '../../../../src/bots/render/redact.ts';
import { bind, bindingByName } from '../../../../src/store/bindings.ts';
import { openMemoryStore, type Store } from '../../../../src/store/store.ts';
import { FakePlatform } from '../../../support/fake-platform.ts';
import { SimClock } from '../../../support/sim-clock.ts';
import { SimSession } from '../../../support/sim-session.ts';

let clock: SimClock;
let store: Store;
let session: SimSession;
let platform: FakePlatform;
let outbox: ThreadOutbox;
const statuses: OutboxStatus[] = [];
const PLACE = { space: 'T1', channel: 'C1', root: 'R1' };

beforeEach(() => {
  clock = new SimClock();
  store = openMemoryStore({ clock, random: seededRandom(1) });
  session = new SimSession(6);
  statuses.length = 0;
});

afterEach(async () => {
  await outbox.close(0);
});

function open(
  options: Partial<ThreadOutboxOptions> = {},
  root: string | null = PLACE.root,
): ThreadOutbox {
  if (bindingByName(store, 'b1') === undefined) {
    const { space, channel } = PLACE;
    const common = { b: 'b1', sessionId: 's1', incarnation: 'i1', firstLine: 0, nextMark: 0 };
    bind(store, { ...common, space, channel, root: root ?? undefined, settings: {} });
  }
  const binding = bindingByName(store, 'b1');
  if (binding === undefined) throw new Error('no binding');
  outbox = new ThreadOutbox({
    binding,
    store,
    platform,
    source: session,
    clock,
    scheduler: new Scheduler({
      kind: platform.kind,
      clock,
      memory: { load: () => [], save: () => undefined },
    }),
    log: silentLog,
    root: () => ({ title: 'shell', content: { head: 'running' } }),
    makeFile: async () => ({ kind: 'made', mediaType: 'image/png', bytes: Buffer.from('png') }),
    redact: (lines) => lines,
    onStatus: (status) => statuses.push(status),
    ...options,
  });
  outbox.start();
  return outbox;
}

beforeEach(() => {
  platform = new FakePlatform({ clock, kind: 'slack' });
});

async function moved(byMs = 3_000): Promise<void> {
  outbox.notify();
  await clock.advance(byMs);
}

function messages(): string[] {
  return platform.own(PLACE).map((message) => {
    const { head, lines, foot } = message.content;
    const parts = [head, ...(lines ?? []).map((line) => line.text), foot];
    const file = message.file === undefined ? [] : [`file ${message.file.name}`];
    return [...parts.filter((part) => part !== undefined), ...file].join('|');
  });
}

describe('text', () => {
  test('one message grows by edits and is posted once', async () => {
    open();
    for (const text of ['one', 'two', 'three']) {
      session.print(text);
      await moved();
    }
    expect(messages()).toEqual(['one|two|three']);
    expect(platform.calls.filter(({ method }) => method === 'post')).toHaveLength(1);
  });

  test('what comes after a person’s message stands below it, with its prompt', async () => {
    open();
    session.print('old');
    session.write('$ ');
    await moved();
    outbox.personSpoke();
    session.write('ls');
    session.print('$ ls');
    session.print('file');
    await moved();
    expect(messages()).toEqual(['old', '$ ls|file']);
  });

  test('a message is never emptied by an answer to its only line', async () => {
    open();
    session.write('$ ');
    await moved();
    outbox.personSpoke();
    session.print('$ ls');
    session.print('file');
    await moved();
    expect(messages()).toEqual(['$ ls', 'file']);
  });

  test('lines a program took back leave "(cleared)", and the message stays', async () => {
    open();
    session.print('working');
    await moved();
    session.erase(5);
    session.change(0, '');
    await moved();
    expect(messages()).toEqual(['(cleared)']);
  });

  test('a deleted message: its open lines are shown again below, with a note', async () => {
    open();
    session.print('one');
    await moved();
    const id = platform.own(PLACE)[0]?.id ?? '';
    await platform.delete(PLACE, id);
    outbox.placeChanged('message-deleted', id);
    session.print('two');
    await moved();
    expect(messages()).toEqual(['The message that showed this was deleted.|one|two']);
  });

  test('a message is rolled before edits of it are throttled', async () => {
    open();
    session.print('early');
    for (let i = 0; i < 10; i += 1) session.print(`line ${i}`);
    await moved();
    await clock.advance(51 * 60_000);
    session.print('late');
    await moved(10_000);
    expect(messages()).toHaveLength(2);
    expect(messages()[1]).toContain('late');
  });

  test('blank lines alone make no message', async () => {
    open();
    for (let i = 0; i < 4; i += 1) session.print('');
    await moved();
    expect(messages()).toEqual([]);
  });

  test('what the redactor finds is never sent', async () => {
    open({ redact: createRedactor({ secrets: ['own-secret-1'], patterns: [], shapes: true }) });
    session.print('key own-secret-1');
    await moved();
    expect(JSON.stringify(platform.messages)).not.toContain('own-secret-1');
    expect(messages()[0]).toMatch(/^key •+$/u);
  });
});

describe('floods', () => {
  test('a flood is its last lines and a file with the rest', async () => {
    open();
    for (let i = 0; i < 5_000; i += 1) session.print(`line ${i}`);
    await moved(10_000);
    const [text, file] = messages();
    expect(messages()).toHaveLength(2);
    expect(text).toMatch(/^49\d\d lines omitted, attached\|line 49/u);
    expect(file).toBe('file lines-1-4986.txt');
    const bytes = platform.own(PLACE)[1]?.file?.bytes ?? new Uint8Array();
    expect(Buffer.from(bytes).toString().split('\n')).toHaveLength(4_987);
  });

  test('a flood that goes on is one message, edited', async () => {
    open();
    for (let round = 0; round < 20; round += 1) {
      for (let i = 0; i < 1_000; i += 1) session.print(`line ${round}.${i}`);
      await moved(500);
    }
    expect(messages()).toHaveLength(1);
    expect(platform.calls.length).toBeLessThan(15);
    await moved(10_000);
    expect(messages()).toHaveLength(2);
  });

  test('a file that cannot be attached is a stated gap', async () => {
    open();
    platform.failNext('upload', {
      outcome: { kind: 'refused', because: 'not-permitted', detail: 'file_uploads_disabled' },
    });
    for (let i = 0; i < 5_000; i += 1) session.print(`line ${i}`);
    await moved(10_000);
    expect(messages().at(-1)).toBe('lines-1-4986.txt could not be attached: file_uploads_disabled');
  });
});

describe('screens', () => {
  test('a full-screen program is one edited message, and its last frame stays', async () => {
    open();
    session.print('before');
    await moved();
    session.enterScreen();
    for (let i = 0; i < 5; i += 1) {
      session.draw(`frame ${i}`);
      await moved();
    }
    session.leaveScreen();
    session.print('after');
    await moved();
    expect(messages()).toEqual(['before', 'screen frame 4|~', 'after']);
  });

  test('a program that was gone before it could be shown leaves its last frame', async () => {
    open();
    session.enterScreen();
    session.draw('short');
    session.leaveScreen();
    await moved();
    expect(messages()).toEqual(['screen short|~']);
  });

  test('a person’s message freezes the screen above it; it goes on below when it changes', async () => {
    open();
    session.enterScreen();
    session.draw('one');
    await moved();
    outbox.personSpoke();
    await moved();
    expect(messages()).toEqual(['screen one|~']);
    session.draw('two');
    await moved();
    expect(messages()).toEqual(['screen one|~', 'screen two|~']);
  });
});

describe('notices', () => {
  test('a notice stands where it was said, also when lines before it come late', async () => {
    open();
    session.print('one');
    outbox.notice({ head: 'exited' }, { at: 'end', once: 'exit' });
    outbox.notice({ head: 'exited' }, { at: 'end', once: 'exit' });
    await moved();
    session.print('two');
    await moved();
    expect(messages()).toEqual(['one', 'exited', 'two']);
  });

  test('a kept notice can be revised, and withdrawn before it is shown', async () => {
    open();
    outbox.notice({ name: 'p1', head: 'Waiting', keep: true });
    await moved();
    expect(outbox.revise('p1', { name: 'p1', head: 'Answered' })).toBe(true);
    await moved();
    expect(messages()).toEqual(['Answered']);
    expect(outbox.revise('p1', { head: 'again' })).toBe(false);
    outbox.notice({ name: 'p2', head: 'Waiting', keep: true });
    expect(outbox.revise('p2', undefined)).toBe(true);
    await moved();
    expect(messages()).toEqual(['Answered']);
  });

  test('a notice quotes lines by number, and the screen as it is', async () => {
    open();
    for (let i = 0; i < 10; i += 1) session.print(`line ${i}`);
    await moved();
    outbox.notice({ head: 'tail', quote: [[1, 3]] });
    await moved();
    expect(messages().at(-1)).toBe('tail|line 1|line 2');
  });

  test('more notices than are kept become one that counts them', async () => {
    open();
    platform.locked.add(PLACE.root);
    for (let i = 0; i < 70; i += 1) outbox.notice({ head: `n${i}` });
    await moved();
    platform.locked.delete(PLACE.root);
    outbox.placeChanged('unlocked', undefined);
    await moved(120_000);
    expect(messages()).toHaveLength(65);
    expect(messages().at(-1)).toBe('6 more notices were left out here.');
  });
});

describe('places', () => {
  test('a root is posted once, activates its binding, and follows its words', async () => {
    let head = 'running';
    open({ root: () => ({ title: 't', content: { head } }) }, null);
    await moved();
    const binding = bindingByName(store, 'b1');
    expect(binding).toMatchObject({ state: 'active' });
    head = 'exited 0';
    outbox.refresh();
    await moved();
    const roots = platform.messages.filter((message) => message.row?.s === 0);
    expect(roots.map((message) => message.content.head)).toEqual(['exited 0']);
  });

  test('a locked thread is parked alone, said once, and tried again at a person’s message', async () => {
    open();
    platform.locked.add(PLACE.root);
    session.print('one');
    await moved(200_000);
    const tries = platform.calls.length;
    expect(tries).toBeLessThan(8);
    expect(statuses.at(-1)).toMatchObject({ kind: 'parked', because: 'locked: locked' });
    platform.locked.delete(PLACE.root);
    outbox.personSpoke();
    await moved();
    expect(messages()).toEqual(['one']);
    expect(statuses.at(-1)).toEqual({ kind: 'ok' });
  });

  test('an archived thread is brought back, then edited', async () => {
    open();
    session.print('one');
    await moved();
    platform.archived.add(PLACE.root);
    session.change(1, 'changed');
    await moved();
    expect(messages()).toEqual(['changed']);
  });

  test('a formatting the platform refuses is sent plain, then as a file', async () => {
    open();
    const refusal = {
      outcome: { kind: 'refused', because: 'invalid', detail: 'invalid_blocks' },
    } as const;
    platform.failNext('post', refusal);
    session.print('one');
    await moved();
    expect(messages()).toEqual(['one']);
  });

  test('a session that is gone for ever: what is shown stays, and its end is told', async () => {
    open();
    session.print('one');
    await moved();
    await outbox.close(0);
    open({ source: 'gone' });
    outbox.notice({ head: 'The machine was restarted.' }, { once: 'gone' });
    await moved();
    expect(messages()).toEqual(['one', 'The machine was restarted.']);
  });

  test('closing shows what is there and stops', async () => {
    open();
    session.print('last words');
    outbox.notify();
    const closing = outbox.close(5_000);
    await clock.advance(6_000);
    await closing;
    expect(messages()).toEqual(['last words']);
  });
});
