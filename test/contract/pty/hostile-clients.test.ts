import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { encodeFrame, FrameDecoder } from '../../../src/base/frame-codec.ts';
import type { HostControl } from '../../../src/pty/client.ts';
import {
  encodeControl,
  FRAME_CONTROL,
  type HostMessage,
  packValue,
  parseHostMessage,
} from '../../../src/pty/protocol.ts';
import { ByteSink, TestHost, targetOf, until } from '../../support/test-host.ts';

let host: TestHost;
let client: HostControl;
let sockets: Socket[] = [];
beforeEach(async () => {
  host = new TestHost();
  client = host.client();
  await client.list();
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await host.stop();
});

interface Raw {
  readonly socket: Socket;
  readonly messages: HostMessage[];
  closed: boolean;
}

function raw(): Raw {
  const socket = connect(host.paths.hostSocket);
  sockets.push(socket);
  const decoder = new FrameDecoder(8 * 1024 * 1024);
  const seen: Raw = { socket, messages: [], closed: false };
  socket.on('error', () => undefined);
  socket.on('close', () => {
    seen.closed = true;
  });
  socket.on('data', (chunk: Buffer) => {
    for (const frame of decoder.push(chunk)) {
      if (frame.type === FRAME_CONTROL) seen.messages.push(parseHostMessage(frame.payload));
    }
  });
  return seen;
}

const hello = encodeControl({
  t: 'hello',
  min: 1,
  max: 1,
  role: 'cli',
  capabilities: ['unheard-of'],
});

test('garbage, oversize, truncation, unknown types and late hellos end that connection with a reason', async () => {
  const cases: Record<string, Buffer> = {
    garbage: Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    oversized: Buffer.from([0xff, 0xff, 0xff, 0x7f, 1]),
    empty: Buffer.from([0, 0, 0, 0]),
    'unknown type': Buffer.concat([hello, encodeFrame(77, Buffer.from('x'))]),
    'not msgpack': Buffer.concat([hello, encodeFrame(FRAME_CONTROL, Buffer.from([0xc1]))]),
    'unknown operation': Buffer.concat([
      hello,
      encodeFrame(FRAME_CONTROL, packValue({ t: 'req', id: 1, op: 'format-disk' })),
    ]),
    'request before hello': encodeControl({ t: 'req', id: 1, op: 'list' }),
    'hello twice': Buffer.concat([hello, hello]),
    'a large frame before hello': encodeFrame(FRAME_CONTROL, Buffer.alloc(100_000)),
  };
  for (const [name, bytes] of Object.entries(cases)) {
    const peer = raw();
    peer.socket.write(bytes);
    await until(`refusal of ${name}`, () =>
      peer.messages.find((message) => message.t === 'refused'),
    );
    await until(`end of ${name}`, () => peer.closed);
  }
  expect(await client.list()).toEqual([]);
});

test('another version is told which side is older, and nobody is stopped', async () => {
  const peer = raw();
  peer.socket.write(encodeControl({ t: 'hello', min: 7, max: 9, role: 'cli', capabilities: [] }));
  const refused = await until('refusal', () =>
    peer.messages.find((message) => message.t === 'refused'),
  );
  expect(refused).toMatchObject({ code: 'version-mismatch', older: 'host' });
  expect(await client.list()).toEqual([]);
});

test('thousands of half-open connections and a slow hello disturb nobody', async () => {
  const pid = host.hostPid();
  for (let batch = 0; batch < 10; batch += 1) {
    const peers = Array.from({ length: 200 }, () => raw());
    for (const peer of peers) peer.socket.write(hello.subarray(0, 3));
    await until('answers meanwhile', async () => (await client.list()).length === 0);
  }
  const info = await client.create(host.request(['sh', '-c', 'echo fine']));
  const sink = new ByteSink();
  await client.followBytes({ ...targetOf(info), sinceOffset: 0 }, sink.listener());
  await until('exit', () => sink.exited !== undefined);
  expect(sink.text()).toBe('fine\r\n');
  expect(host.hostPid()).toBe(pid);
});

test('requests for unknown sessions and other incarnations are named, and create nothing', async () => {
  const info = await client.create(host.request(['cat']));
  const other = { sessionId: info.sessionId, incarnation: 'another' };
  const nobody = { sessionId: 'nobody', incarnation: 'x' };
  await expect(client.resize(other, 10, 10)).rejects.toMatchObject({ code: 'other-incarnation' });
  await expect(client.followLines(nobody)).rejects.toMatchObject({ code: 'session-not-found' });
  await expect(client.signal(other, 'SIGINT', 't')).rejects.toMatchObject({
    code: 'other-incarnation',
  });
  const bytes = Buffer.from('x');
  const input = await client.input({ ...other, messageId: 'a', actor: 't', bytes });
  expect(input).toEqual({ kind: 'refused', because: 'other-incarnation' });
  expect(await client.list()).toHaveLength(1);
});

test('a client that consumes nothing is moved on with the gap stated; the program and others go on', async () => {
  const info = await client.create(host.request(['sh', '-c', 'seq 1 2000000; echo done']));
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const stalled = new ByteSink();
  const listener = stalled.listener();
  const bytes = async (offset: number, chunk: Uint8Array): Promise<void> => {
    listener.bytes(offset, chunk);
    await held;
  };
  const other = host.client();
  await other.followBytes({ ...targetOf(info), sinceOffset: 0 }, { ...listener, bytes });
  const feed = await client.followLines(targetOf(info));
  await until('the program to end', () => feed.state.kind === 'exited');
  expect(stalled.exited).toBeUndefined();
  release();
  await until('exit', () => stalled.exited !== undefined);
  const total = (await client.list())[0]?.offset ?? 0;
  const got = stalled.chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  expect(stalled.skipped).toBeGreaterThan(1_000_000);
  expect(got + stalled.skipped).toBe(total);
});
