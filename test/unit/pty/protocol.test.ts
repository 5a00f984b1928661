import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeFrame, FrameDecoder, readRecords } from '../../../src/base/frame-codec.ts';
import { parseToHost, parseToKeeper } from '../../../src/pty/keeper-protocol.ts';
import { packValue, parseClientMessage, parseHostMessage } from '../../../src/pty/protocol.ts';

const frames = fc.array(
  fc.record({ type: fc.integer({ min: 0, max: 255 }), payload: fc.uint8Array({ maxLength: 300 }) }),
  { maxLength: 20 },
);

test('frames cut at any place come out whole and in order', () => {
  fc.assert(
    fc.property(
      frames,
      fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1 }),
      (list, cuts) => {
        const stream = Buffer.concat(list.map((frame) => encodeFrame(frame.type, frame.payload)));
        const decoder = new FrameDecoder(1000);
        const seen: { type: number; payload: number[] }[] = [];
        for (let at = 0, turn = 0; at < stream.length; turn += 1) {
          const end = at + (cuts[turn % cuts.length] ?? 1);
          for (const frame of decoder.push(stream.subarray(at, end))) {
            seen.push({ type: frame.type, payload: [...frame.payload] });
          }
          at = end;
        }
        expect(seen).toEqual(list.map((frame) => ({ ...frame, payload: [...frame.payload] })));
        expect(decoder.pendingBytes).toBe(0);
      },
    ),
  );
});

test('a length of zero or above the bound is refused, not collected', () => {
  expect(() => new FrameDecoder(10).push(Buffer.from([0, 0, 0, 0, 1]))).toThrow('length 0');
  expect(() => new FrameDecoder(10).push(Buffer.from([11, 0, 0, 0]))).toThrow('length 11');
});

test('a record file torn at any byte yields the whole records before the tear', () => {
  fc.assert(
    fc.property(frames, fc.nat(), (list, tear) => {
      const parts = list.map((frame) => encodeFrame(frame.type, frame.payload));
      const bytes = Buffer.concat(parts);
      const torn = bytes.subarray(0, bytes.length === 0 ? 0 : tear % bytes.length);
      const { records, validBytes } = readRecords(torn, 1000);
      expect(Buffer.concat(parts.slice(0, records.length)).length).toBe(validBytes);
      expect(validBytes).toBeLessThanOrEqual(torn.length);
    }),
  );
});

test('garbage is a protocol violation on every border, never another error', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      for (const parse of [parseClientMessage, parseHostMessage, parseToHost, parseToKeeper]) {
        expect(() => parse(bytes)).toThrow(/Cannot read/);
      }
    }),
  );
});

test('an unknown operation, an unknown key and a wrong type are refused by name', () => {
  const parse = (value: unknown) => () => parseClientMessage(packValue(value));
  expect(parse({ t: 'req', id: 1, op: 'dance' })).toThrow('Cannot read message');
  expect(parse({ t: 'req', id: 1, op: 'list', extra: 1 })).toThrow('unrecognized_keys');
  expect(parse({ t: 'req', id: 1, op: 'detach', handle: 'x' })).toThrow('handle invalid_type');
  expect(
    parse({ t: 'req', id: 1, op: 'resize', sessionId: 'a', incarnation: 'b', cols: 0, rows: 1 }),
  ).toThrow('cols too_small');
});
