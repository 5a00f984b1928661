import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HostControl, LineFeed } from '../../../src/pty/client.ts';
import {
  allLines,
  ByteSink,
  TestHost,
  targetOf,
  until,
  whenExited,
} from '../../support/test-host.ts';

let host: TestHost;
let client: HostControl;
beforeEach(() => {
  host = new TestHost();
  client = host.client();
});
afterEach(() => host.stop());

const shows = (feed: LineFeed, text: string): Promise<boolean> =>
  until(text, async () => (await allLines(feed)).some((line) => line.includes(text)));

test('a query is answered once, however many are attached, and not again by the next host', async () => {
  const script =
    "stty raw -echo; printf '\\033[c'; timeout --foreground 2 cat > answer; stty sane; wc -c < answer; od -c answer | head -1; sleep 100";
  const info = await client.create(host.request(['sh', '-c', script]));
  for (let viewer = 0; viewer < 3; viewer += 1) {
    const other = host.client();
    await other.followBytes({ ...targetOf(info), sinceOffset: 0 }, new ByteSink().listener());
  }
  const feed = await client.followLines(targetOf(info));
  await until('the query', () => (feed.view?.offset ?? 0) > 0);
  const pid = host.hostPid();
  process.kill(pid, 'SIGKILL');
  await until('another host', () => host.hostPid() !== pid);
  await shows(feed, '033');
  const lines = (await allLines(feed)).join(' ');
  expect(lines.match(/033/g)).toHaveLength(1);
});

test('the state of the terminal is told, and input can be made to depend on it at the write', async () => {
  const script =
    'echo one; stty -echo; echo two; read secret; stty echo; echo three; read open; echo got $open';
  const info = await client.create(host.request(['sh', '-c', script]));
  const target = targetOf(info);
  const feed = await client.followLines(target);
  await shows(feed, 'two');
  const hidden = await until('echo off', async () => {
    const state = await client.ttyState(target);
    return state !== 'unknown' && !state.echo && state.blockedRead ? state : undefined;
  });
  expect(hidden).toMatchObject({ canonical: true, foregroundGroup: info.pid });
  const input = (messageId: string, text: string, echo: boolean) =>
    client.input({
      ...target,
      messageId,
      actor: 'test',
      bytes: Buffer.from(text),
      onlyIf: { echo },
      secret: !echo,
    });
  expect(await input('a', 'visible\r', true)).toEqual({
    kind: 'refused',
    because: 'terminal-state',
  });
  expect(await input('b', 'hunter2\r', false)).toMatchObject({ kind: 'written' });
  await shows(feed, 'three');
  expect(await input('a', 'visible\r', true)).toMatchObject({ kind: 'written' });
  expect(await whenExited(feed)).toMatchObject({ code: 0 });
  const lines = await allLines(feed);
  expect(lines.join('\n')).toContain('got visible');
  expect(lines.join('\n')).not.toContain('hunter2');
});

test('a line that a cooked terminal would cut is refused, and arrives whole in a raw one', async () => {
  const cooked = await client.create(host.request(['cat']));
  const long = Buffer.from(`${'x'.repeat(5_000)}\n`);
  const input = (info: typeof cooked) =>
    client.input({ ...targetOf(info), messageId: 'm', actor: 'test', bytes: long });
  expect(await input(cooked)).toEqual({ kind: 'refused', because: 'line-too-long' });
  const raw = await client.create(
    host.request(['sh', '-c', 'stty raw -echo; echo ok; head -c 5001 | wc -c']),
  );
  const feed = await client.followLines(targetOf(raw));
  await shows(feed, 'ok');
  expect(await input(raw)).toEqual({ kind: 'written', sizeBytes: 5_001 });
  await shows(feed, '5001');
});

test('a full-screen program is shown as frames, and its end as lines again; a resize reaches it', async () => {
  const script =
    "printf '\\033[?1049h\\033[2J\\033[Hfull screen'; trap 'printf \"\\033[2;1Hsize \"; stty size' WINCH; while [ ! -e go ]; do sleep 0.05; done; printf '\\033[?1049l'; echo back";
  const info = await client.create(host.request(['sh', '-c', script]));
  const feed = await client.followLines(targetOf(info));
  await until(
    'screen',
    () => feed.view?.mode === 'screen' && feed.view.frame?.rows[0]?.text === 'full screen',
  );
  await client.resize(targetOf(info), 70, 20);
  await until('new size', () => feed.view?.frame?.rows[1]?.text.includes('size 20 70') === true);
  expect(feed.view?.frame?.cols).toBe(70);
  const snapshot = await client.snapshot(targetOf(info));
  expect(snapshot).toMatchObject({ cols: 70, rows: 20 });
  expect(snapshot.ansi).toContain('full screen');
  const { writeFileSync } = await import('node:fs');
  writeFileSync(`${host.state}/go`, '');
  expect(await whenExited(feed)).toMatchObject({ code: 0 });
  expect(feed.view?.mode).toBe('log');
  expect(await allLines(feed)).toContain('back');
  const marks = await feed.readMarks(0, 100);
  expect(marks.filter((mark) => mark.what.kind === 'mode').map((mark) => mark.what)).toMatchObject([
    { mode: 'screen' },
    { mode: 'log', frame: { rows: expect.anything() as unknown } },
  ]);
});

test('a signal goes to the foreground program, not to the shell around it', async () => {
  const script =
    'sh -c "trap \\"echo caught; exit 0\\" INT; echo waiting; while :; do sleep 0.1; done"; echo shell goes on; sleep 100';
  const info = await client.create(host.request(['bash', '-ic', script]));
  const feed = await client.followLines(targetOf(info));
  await shows(feed, 'waiting');
  await client.signal(targetOf(info), 'SIGINT', 'test');
  await shows(feed, 'caught');
});
