import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { encodeFrame, readRecords } from '../../../src/base/frame-codec.ts';
import {
  decodeLine,
  decodeMark,
  encodeLine,
  encodeMark,
} from '../../../src/pty/host/line-codec.ts';
import { NumberedJournal } from '../../../src/pty/host/numbered-journal.ts';
import { decodeIndexRecord, encodeIndexRecord } from '../../../src/pty/host/segments.ts';
import { encodeMessage, parseToHost, parseToKeeper } from '../../../src/pty/keeper-protocol.ts';
import {
  decodeBulk,
  encodeBulk,
  encodeControl,
  FRAME_OUTPUT,
  parseClientMessage,
  parseHostMessage,
} from '../../../src/pty/protocol.ts';

const golden = new URL('golden/', import.meta.url);

/** Compares with the stored bytes; a new name is stored once, to be reviewed like code. */
function expectGolden(name: string, bytes: Uint8Array): void {
  const hex = Buffer.from(bytes)
    .toString('hex')
    .replace(/(.{64})/g, '$1\n');
  const file = new URL(`${name}.hex`, golden);
  if (process.env['CHATD_WRITE_GOLDEN'] === '1') writeFileSync(file, `${hex.trim()}\n`);
  expect(readFileSync(file, 'utf8').trim()).toBe(hex.trim());
}

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'chatd-golden-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const attach = {
  t: 'req',
  id: 7,
  op: 'attach',
  sessionId: 'abc',
  incarnation: 'i1',
  want: 'bytes',
  handle: 3,
  since: 4_294_967_296,
} as const;

test('a control frame keeps its bytes and parses back', () => {
  const frame = encodeControl(attach);
  expectGolden('control-attach', frame);
  expect(parseClientMessage(frame.subarray(5))).toEqual(attach);
});

test('an input frame carries exact bytes', () => {
  const frame = encodeControl({
    t: 'req',
    id: 8,
    op: 'input',
    sessionId: 'abc',
    incarnation: 'i1',
    messageId: 'm1',
    actor: 'slack:U1',
    bytes: Buffer.from([0, 255, 27, 13]),
    onlyIf: { echo: true },
  });
  expectGolden('control-input', frame);
  const message = parseClientMessage(frame.subarray(5));
  expect(message.t === 'req' && message.op === 'input' && [...message.bytes]).toEqual([
    0, 255, 27, 13,
  ]);
});

test('a host message keeps its bytes', () => {
  const frame = encodeControl({
    t: 'state',
    handle: 3,
    state: { kind: 'exited', code: 0, terminalOpen: false, atWallMs: 1_800_000_000_000 },
  });
  expectGolden('control-state', frame);
  expect(parseHostMessage(frame.subarray(5)).t).toBe('state');
});

test('an output frame keeps its bytes', () => {
  const frame = encodeBulk(FRAME_OUTPUT, 3, 2 ** 40, Buffer.from('hello'));
  expectGolden('bulk-output', frame);
  const bulk = decodeBulk(frame.subarray(5));
  expect({ ...bulk, bytes: bulk.bytes.toString() }).toEqual({
    handle: 3,
    offset: 2 ** 40,
    bytes: 'hello',
  });
});

test('the keeper pair keeps its bytes', () => {
  const exited = {
    t: 'exited',
    sessionId: 'abc',
    incarnation: 'i1',
    status: { kind: 'signal', signal: 'SIGKILL' },
  } as const;
  expectGolden('keeper-exited', encodeMessage(exited));
  expect(parseToHost(encodeMessage(exited).subarray(5))).toEqual(exited);
  const forget = { t: 'forget', sessionId: 'abc', incarnation: 'i1' } as const;
  expectGolden('keeper-forget', encodeMessage(forget));
  expect(parseToKeeper(encodeMessage(forget).subarray(5))).toEqual(forget);
});

test('index records keep their bytes', () => {
  const records = [
    { kind: 'time', offset: 5, wallMs: 1_800_000_000_000 },
    { kind: 'resize', offset: 9, wallMs: 1_800_000_000_001, cols: 100, rows: 30 },
    { kind: 'lost', offset: 10, wallMs: 1_800_000_000_002, to: 4096 },
  ] as const;
  const bytes = Buffer.concat(records.map(encodeIndexRecord));
  expectGolden('index', bytes);
  expect(readRecords(bytes, 64).records.map(decodeIndexRecord)).toEqual(records);
});

test('a lines file keeps its bytes', () => {
  const lines = [
    { text: 'plain äöü 漢字' },
    {
      text: 'red link',
      spans: [
        { start: 0, end: 3, fg: 1, flags: 1 },
        { start: 4, end: 8, link: 'https://a.example/' },
      ],
    },
  ];
  const journal = new NumberedJournal(directory, 'lines');
  journal.append(lines.map(encodeLine));
  journal.appendMissing(2);
  journal.append([encodeLine({ text: 'after' })]);
  journal.close();
  const [name = ''] = readdirSync(directory);
  expect(name).toBe('lines-000000000000.log');
  expectGolden('lines', readFileSync(join(directory, name)));
  const again = new NumberedJournal(directory, 'lines');
  expect(again.read(0, 2, 1e6).records.map(decodeLine)).toEqual(lines);
  expect(again.read(2, 9, 1e6)).toMatchObject({ from: 4, gap: { from: 2, to: 4 } });
  again.close();
});

test('a marks file keeps its bytes', () => {
  const mark = {
    seq: 0,
    offset: 12,
    line: 3,
    what: { kind: 'command-done', exitCode: 1 },
  } as const;
  const record = encodeMark(mark);
  expectGolden('marks', encodeFrame(record.type, record.payload));
  expect(decodeMark(record)).toEqual(mark);
});
