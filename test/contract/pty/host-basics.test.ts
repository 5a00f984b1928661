import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  allLines,
  ByteSink,
  TestHost,
  targetOf,
  until,
  whenExited,
} from '../../support/test-host.ts';

let host: TestHost;
beforeEach(() => {
  host = new TestHost();
});
afterEach(() => host.stop());

test('a program runs, its lines are followed, and its exit comes after its last line', async () => {
  const client = host.client();
  const info = await client.create(host.request(['sh', '-c', 'echo hello; seq 1 100; exit 7']));
  const feed = await client.followLines({ sessionId: info.sessionId });
  const state = await whenExited(feed);
  expect(state).toMatchObject({ kind: 'exited', code: 7, terminalOpen: false });
  const lines = await allLines(feed);
  expect(lines.slice(0, 3)).toEqual(['hello', '1', '2']);
  expect(lines.filter((line) => line !== '').at(-1)).toBe('100');
});

test('what is typed reaches the program, exactly and once', async () => {
  const client = host.client();
  const info = await client.create(host.request(['cat']));
  const target = targetOf(info);
  const feed = await client.followLines(target);
  const input = { ...target, messageId: 'm1', actor: 'test', bytes: Buffer.from('häl\n') };
  expect(await client.input(input)).toEqual({ kind: 'written', sizeBytes: 5 });
  expect(await client.input(input)).toEqual({ kind: 'already' });
  await until(
    'echo',
    async () => (await allLines(feed)).filter((line) => line === 'häl').length === 2,
  );
  await client.input({ ...target, messageId: 'm2', actor: 'test', bytes: Buffer.from([4]) });
  expect(await whenExited(feed)).toMatchObject({ code: 0 });
  const late = { ...input, messageId: 'm3' };
  expect(await client.input(late)).toEqual({ kind: 'refused', because: 'exited' });
});

test('a host that is killed is replaced; the shell, its bytes and its clients go on', async () => {
  const client = host.client();
  const loop = 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; sleep 0.005; done; exit 3';
  const info = await client.create(host.request(['sh', '-c', loop]));
  const feed = await client.followLines({ sessionId: info.sessionId });
  const sink = new ByteSink();
  await client.followBytes({ ...targetOf(info), sinceOffset: 0 }, sink.listener());
  await until('some output', () => (feed.view?.finalCount ?? 0) > 20);
  const before = host.hostPid();
  process.kill(before, 'SIGKILL');
  await until('another host', () => host.hostPid() !== before);
  expect(await whenExited(feed)).toMatchObject({ code: 3 });
  const wanted = Array.from({ length: 400 }, (_, index) => `line ${index + 1}`);
  expect((await allLines(feed)).filter((line) => line !== '')).toEqual(wanted);
  await until('exit in the bytes', () => sink.exited !== undefined);
  expect(sink.text()).toBe(wanted.map((line) => `${line}\r\n`).join(''));
  expect((await client.list())[0]?.pid).toBe(info.pid);
});
