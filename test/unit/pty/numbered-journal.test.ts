import { appendFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { NumberedJournal } from '../../../src/pty/host/numbered-journal.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'chatd-journal-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const record = (text: string) => ({ type: 1, payload: Buffer.from(text) });
const texts = (journal: NumberedJournal, from: number, to: number, maxBytes = 1e9) =>
  journal.read(from, to, maxBytes).records.map((item) => item.payload.toString());

test('what was appended is read back by number across files and a restart', () => {
  const journal = new NumberedJournal(directory, 'lines');
  const long = 'x'.repeat(200_000);
  for (let number = 0; number < 20; number += 1) journal.append([record(`${number} ${long}`)]);
  journal.close();
  expect(readdirSync(directory).length).toBeGreaterThan(2);
  const again = new NumberedJournal(directory, 'lines');
  expect(again.nextNumber).toBe(20);
  const read = texts(again, 0, 20);
  expect(read.map((text) => Number.parseInt(text, 10))).toEqual(
    Array.from({ length: 20 }, (_, i) => i),
  );
  expect(texts(again, 7, 20, 1)).toHaveLength(1);
  again.close();
});

test('a torn last record is cut off and its number given again', () => {
  const journal = new NumberedJournal(directory, 'lines');
  journal.append([record('a'), record('b')]);
  journal.close();
  appendFileSync(
    join(directory, readdirSync(directory)[0] ?? ''),
    Buffer.from([9, 0, 0, 0, 1, 65]),
  );
  const again = new NumberedJournal(directory, 'lines');
  again.append([record('c')]);
  expect(texts(again, 0, 9)).toEqual(['a', 'b', 'c']);
  again.close();
});

test('evicted and missing numbers are stated as gaps', () => {
  const journal = new NumberedJournal(directory, 'lines');
  const long = 'x'.repeat(600_000);
  for (let number = 0; number < 8; number += 1) journal.append([record(`${number} ${long}`)]);
  journal.evict(2_000_000);
  expect(journal.firstNumber).toBeGreaterThan(0);
  expect(journal.read(0, 8, 1e9).gap).toEqual({ from: 0, to: journal.firstNumber });
  journal.appendMissing(3);
  journal.append([record('after')]);
  expect(journal.read(8, 12, 1e9)).toMatchObject({ from: 11, gap: { from: 8, to: 11 } });
  expect(texts(journal, 7, 12)).toHaveLength(1);
  journal.close();
});
