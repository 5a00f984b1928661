import { describe, expect, it } from 'vitest';
import { type Random, seededRandom } from '../../../src/base/random.ts';
import { TerminalModel } from '../../../src/term/terminal-model.ts';
import { type Cast, type CastEvent, castNames, readCast } from '../../support/casts.ts';
import { ModelRun } from '../../support/model-run.ts';

// Issue 7: exactness under 1,000 random chunkings and cuts; here 1,000 of each, over all recordings.
const CHUNKINGS = 1_000;
const CUTS = 1_000;
/** Played by the flood's own test: 300 KB of the same line teach chunking nothing. */
const casts = castNames()
  .filter((name) => name !== 'yes-100k')
  .map(readCast);

function said(run: ModelRun): string {
  const { lines, marks, answers, model } = run;
  return JSON.stringify({ lines, marks, answers, view: model.view(), frame: model.frame() });
}

function castAt(index: number): Cast {
  const cast = casts[index % casts.length];
  if (cast === undefined) throw new Error('no recordings');
  return cast;
}

function randomChunks(random: Random, maxBytes: number): (bytes: Buffer) => Buffer[] {
  return (bytes) => {
    const chunks: Buffer[] = [];
    for (let from = 0; from < bytes.length; ) {
      const end = from + 1 + Math.floor(random.next() * maxBytes);
      chunks.push(bytes.subarray(from, end));
      from = end;
    }
    return chunks;
  };
}

const whole = new Map(
  casts.map((cast) => [cast.name, said(ModelRun.of(cast).play(cast.events).exit())]),
);

// 4 s each on an idle machine; eight times that were seen on a busy one.
describe('chunking', { timeout: 180_000 }, () => {
  it(`the transcript, marks and screen are the same under ${CHUNKINGS} random chunkings`, () => {
    for (let seed = 0; seed < CHUNKINGS; seed += 1) {
      const cast = castAt(seed);
      const maxBytes = [1, 3, 20, 300][seed % 4] ?? 300;
      const run = ModelRun.of(cast);
      run.play(cast.events, randomChunks(seededRandom(seed), maxBytes)).exit();
      expect(said(run), `${cast.name}, seed ${seed}`).toBe(whole.get(cast.name));
    }
  });

  it(`a model restored at any of ${CUTS} random cuts goes on as if nothing had happened`, () => {
    let restored = 0;
    for (let seed = 0; seed < CUTS; seed += 1) {
      const cast = castAt(seed);
      const random = seededRandom(1_000_000 + seed);
      const run = ModelRun.of(cast);
      const cut = Math.floor(random.next() * cast.events.length);
      const event = cast.events[cut];
      run.play(cast.events.slice(0, cut));
      let rest: CastEvent[] = cast.events.slice(cut);
      if (event?.kind === 'output') {
        const at = Math.floor(random.next() * event.bytes.length);
        run.model.write(event.bytes.subarray(0, at), event.atMs);
        run.collect();
        rest = [{ ...event, bytes: event.bytes.subarray(at) }, ...cast.events.slice(cut + 1)];
      }
      const checkpoint = run.model.checkpoint();
      if (checkpoint === undefined) continue;
      restored += 1;
      const before = run.model.offset - checkpoint.offset;
      const second = new ModelRun(TerminalModel.restore(checkpoint.bytes));
      expect(second.model.finalCount).toBe(checkpoint.finalCount);
      expect(second.model.markCount).toBe(checkpoint.markCount);
      second.lines.push(...run.lines);
      second.marks.push(...run.marks);
      second.answers = run.answers;
      const written = Buffer.concat(
        cast.events.slice(0, cut + 1).flatMap((e) => (e.kind === 'output' ? [e.bytes] : [])),
      ).subarray(0, run.model.offset);
      // The start of a sequence that was not complete at the cut.
      second.model.write(written.subarray(written.length - before), event?.atMs ?? 0);
      second.play(rest).exit();
      expect(said(second), `${cast.name}, seed ${seed}`).toBe(whole.get(cast.name));
    }
    expect(restored).toBeGreaterThan(CUTS * 0.95);
  });

  it('modes of a replay come from the marks, not from another clock', () => {
    for (const cast of casts) {
      const first = ModelRun.of(cast).play(cast.events);
      const decided = first.marks.filter(({ what }) => what.kind === 'mode');
      const second = ModelRun.of(cast);
      for (const event of cast.events) {
        if (event.kind === 'resize') second.model.resize(event.cols, event.rows);
        // Time stands still: every window of the rules stays open.
        else second.model.replay(event.bytes, 0, decided);
        second.collect();
      }
      expect(second.answers).toBe('');
      second.answers = first.answers;
      expect(said(second), cast.name).toBe(said(first));
    }
  });
});
