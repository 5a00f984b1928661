import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { InputLedger, LEDGER_IDS_MAX } from '../../../src/pty/host/input-ledger.ts';
import {
  hasOverlongLine,
  INPUT_QUEUE_BYTES_MAX,
  InputWriter,
} from '../../../src/pty/host/input-writer.ts';
import { SizeLeases } from '../../../src/pty/host/size-leases.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'chatd-input-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('partial writes are continued where they stopped, in order', async () => {
  const clock = new FakeClock();
  let written = '';
  let room = 3;
  const writer = new InputWriter((bytes) => {
    if (room === 0) return 'EAGAIN';
    const taken = Math.min(room, bytes.length);
    written += Buffer.from(bytes.subarray(0, taken)).toString();
    room -= taken;
    return taken;
  }, clock);
  const first = writer.push(Buffer.from('hello '));
  const second = writer.push(Buffer.from('world'));
  room = 4;
  await clock.advance(20);
  room = 100;
  await clock.advance(20);
  expect(written).toBe('hello world');
  expect(await first).toEqual({ kind: 'written', sizeBytes: 6 });
  expect(await second).toEqual({ kind: 'written', sizeBytes: 5 });
  expect(writer.queuedBytes).toBe(0);
});

test('a program that does not read costs 60 wake-ups a second at most', async () => {
  const clock = new FakeClock();
  let calls = 0;
  const writer = new InputWriter(() => {
    calls += 1;
    return 'EAGAIN';
  }, clock);
  writer.push(Buffer.alloc(1_000_000))?.catch(() => undefined);
  await clock.advance(1_000);
  expect(calls).toBeLessThan(75);
});

test('after close nothing is written, whatever is queued', async () => {
  const clock = new FakeClock();
  let calls = 0;
  const writer = new InputWriter((bytes) => {
    calls += 1;
    return calls === 1 ? Math.min(2, bytes.length) : 'EAGAIN';
  }, clock);
  const cut = writer.push(Buffer.from('abcdef'));
  const never = writer.push(Buffer.from('ghi'));
  writer.close();
  const before = calls;
  await clock.advance(1_000);
  expect(calls).toBe(before);
  expect(await cut).toEqual({ kind: 'closed', sizeBytes: 2 });
  expect(await never).toEqual({ kind: 'closed', sizeBytes: 0 });
  expect(await writer.push(Buffer.from('x'))).toEqual({ kind: 'closed', sizeBytes: 0 });
});

test('the queue is bounded, and a condition is asked at the write, not before', async () => {
  const clock = new FakeClock();
  let open = false;
  const writer = new InputWriter((bytes) => (open ? bytes.length : 'EAGAIN'), clock);
  const big = writer.push(Buffer.alloc(INPUT_QUEUE_BYTES_MAX - 10));
  expect(writer.push(Buffer.alloc(11))).toBeUndefined();
  let secret = false;
  const conditional = writer.push(Buffer.from('x'), () => !secret);
  secret = true;
  open = true;
  await clock.advance(20);
  expect((await big)?.kind).toBe('written');
  expect(await conditional).toEqual({ kind: 'refused' });
});

test('a canonical terminal keeps 4,095 bytes of a line: longer ones are found', () => {
  expect(hasOverlongLine(Buffer.from('x'.repeat(4_095)))).toBe(false);
  expect(hasOverlongLine(Buffer.from('x'.repeat(4_096)))).toBe(true);
  expect(hasOverlongLine(Buffer.from(`${'x'.repeat(4_000)}\n`.repeat(3)))).toBe(false);
});

const record = (messageId: string) => ({ messageId, actor: 'a', sizeBytes: 1, atWallMs: 0 });

test('what was accepted and what was written is known again after a restart, never the bytes', () => {
  const path = join(directory, 'inputs.log');
  const ledger = new InputLedger(path);
  ledger.accept(record('m1'));
  ledger.complete(record('m1'));
  ledger.accept(record('m2'));
  ledger.close();
  appendFileSync(path, Buffer.from([50, 0, 0, 0, 1, 123]));
  const again = new InputLedger(path);
  expect(again.find('m1')).toBe('written');
  expect(again.find('m2')).toBe('accepted');
  expect(again.find('m3')).toBeUndefined();
  again.complete(record('m2'));
  again.close();
  expect(new InputLedger(path).find('m2')).toBe('written');
});

test('the ledger remembers a thousand ids and its file stays small', () => {
  const path = join(directory, 'inputs.log');
  const ledger = new InputLedger(path);
  for (let number = 0; number < 6_000; number += 1) {
    ledger.accept(record(`m${number}`));
    ledger.complete(record(`m${number}`));
  }
  ledger.close();
  const again = new InputLedger(path);
  expect(again.find('m5999')).toBe('written');
  expect(again.find(`m${6_000 - LEDGER_IDS_MAX - 1}`)).toBeUndefined();
  expect(readFileSync(path).length).toBeLessThan(600_000);
  again.close();
});

test('the last interactive client has the size; when it leaves, the one before it has', () => {
  const leases = new SizeLeases();
  const session = { size: { cols: 100, rows: 30 } };
  const [one, two] = [{}, {}];
  leases.take(session, one, { cols: 80, rows: 24 });
  leases.take(session, two, { cols: 120, rows: 50 });
  expect(leases.release(session, one)).toBeUndefined();
  expect(leases.release(session, two)).toEqual({ cols: 100, rows: 30 });
  leases.take(session, one, { cols: 80, rows: 24 });
  expect(leases.take(session, session, { cols: 90, rows: 20 })).toEqual({ cols: 80, rows: 24 });
  expect(leases.release(session, one)).toEqual({ cols: 90, rows: 20 });
});
