import { loadImage } from '@napi-rs/canvas';
import { afterAll, describe, expect, it } from 'vitest';
import { makeFile, pictureOf, screenPicture } from '../../../src/bots/made-files.ts';
import type { FileBody } from '../../../src/bots/outbox/rows.ts';
import { PictureWatch } from '../../../src/bots/picture-watch.ts';
import { ScreenPainter } from '../../../src/bots/render/png.ts';
import type { Host, LineFeed } from '../../../src/pty/client.ts';
import type { Frame } from '../../../src/term/values.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { ModelRun } from '../../support/model-run.ts';

const ESC = '\u001b';
const SIXEL = `${ESC}Pq#0;2;100;0;0~~${ESC}\\`;
const target = { sessionId: 's', incarnation: 'i' };
const painter = new ScreenPainter();
afterAll(() => painter.close());

/** A session whose terminal printed `output`, as a bridge sees it. */
class Session {
  readonly run = ModelRun.of({ cols: 30, rows: 5 });
  output = '';
  keptFrom = 0;

  print(output: string): this {
    this.output += output;
    this.run.write(output);
    return this;
  }

  get feed(): LineFeed {
    const { run } = this;
    return {
      ...target,
      status: { kind: 'attached' },
      state: { kind: 'running' },
      view: run.model.view(),
      onChange: () => undefined,
      readLines: (from) => Promise.resolve({ from, lines: [] }),
      readMarks: (from, max) =>
        Promise.resolve(run.marks.filter(({ seq }) => seq >= from).slice(0, max)),
      close: () => undefined,
    };
  }

  get host(): Pick<Host, 'frame' | 'readBytes'> {
    return {
      frame: () => Promise.resolve(this.run.model.frame()),
      readBytes: (_target, from, to) => {
        const at = Math.max(from, this.keptFrom);
        // In pieces, as a host answers.
        const bytes = Buffer.from(this.output).subarray(at, Math.min(to, at + 7));
        return Promise.resolve({ from: at, bytes });
      },
    };
  }

  make(body: FileBody | undefined, masked: (frame: Frame) => Frame = (frame) => frame) {
    if (body?.source.kind !== 'made') throw new Error('no file to make');
    // As from the store.
    const what: unknown = JSON.parse(JSON.stringify(body.source.what));
    const host = this.host as Host;
    return makeFile(what, { host, target, feed: this.feed, painter, masked });
  }
}

async function sizeOf(made: Awaited<ReturnType<Session['make']>>): Promise<number[]> {
  if (made.kind !== 'made') throw new Error(made.because);
  const image = await loadImage(Buffer.from(made.bytes));
  return [image.width, image.height];
}

describe('makeFile', () => {
  it('draws the screen as it is when the picture is sent, masked', async () => {
    const session = new Session().print('hello');
    let maskedRows: readonly string[] = [];
    const made = await session.make(screenPicture(), (frame) => {
      maskedRows = frame.rows.map((row) => row.text);
      return frame;
    });
    expect(await sizeOf(made)).toEqual([316, 116]);
    expect(maskedRows[0]).toBe('hello');
  });

  it('draws the last screen of a full-screen program', async () => {
    const session = new Session().print(`${ESC}[?1049h${ESC}[Hmenu${ESC}[?1049lafter`);
    const mark = session.run.marks.find(({ what }) => what.kind === 'mode' && what.mode === 'log');
    if (mark === undefined) throw new Error('no mark');
    let shown = '';
    await sizeOf(
      await session.make(pictureOf(mark), (frame) => {
        shown = frame.rows[0]?.text ?? '';
        return frame;
      }),
    );
    expect(shown).toBe('menu');
  });

  it('reads a printed picture from the journal, piece by piece', async () => {
    const session = new Session().print(`see: ${SIXEL} done`);
    const mark = session.run.marks[0];
    if (mark === undefined) throw new Error('no mark');
    expect(await sizeOf(await session.make(pictureOf(mark)))).toEqual([2, 6]);
    session.keptFrom = 10;
    expect(await session.make(pictureOf(mark))).toMatchObject({ kind: 'failed' });
  });

  it.each([
    undefined,
    null,
    'x',
    {},
    { kind: 'cast' },
    { kind: 'last-screen', mark: -1 },
    { kind: 'printed', protocol: 1 },
  ])('says that it does not make %j', async (what) => {
    const session = new Session();
    const made = await makeFile(what, {
      host: session.host as Host,
      target,
      feed: session.feed,
      painter,
      masked: (frame) => frame,
    });
    expect(made.kind).toBe('failed');
  });
});

describe('PictureWatch', () => {
  async function watched(
    session: Session,
    lastScreens: boolean,
    outputs: readonly string[],
  ): Promise<string[]> {
    const said: string[] = [];
    const watch = new PictureWatch({
      get feed() {
        return session.feed;
      },
      clock: new FakeClock(),
      lastScreens,
      picture: (body, _line, once) => said.push(`${body.fileName} ${once}`),
      tooMany: (_line, once) => said.push(once),
      failed: (error) => {
        throw error;
      },
    });
    watch.changed();
    for (const output of outputs) {
      session.print(output);
      watch.changed();
      // The reads of the fake session settle within a few turns.
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
    watch.close();
    return said;
  }

  const FULL_SCREEN = `${ESC}[?1049h${ESC}[Hvi${ESC}[?1049l`;

  it('shows what is printed while it watches, not what was before', async () => {
    const session = new Session().print(SIXEL);
    expect(await watched(session, false, [`a ${SIXEL}`, 'text'])).toEqual([
      'picture.png picture:1',
    ]);
  });

  it('shows last screens only where it is asked to, and no blank ones', async () => {
    expect(await watched(new Session(), true, [FULL_SCREEN])).toEqual([
      'last-screen.png picture:1',
    ]);
    expect(await watched(new Session(), false, [FULL_SCREEN])).toEqual([]);
    expect(await watched(new Session(), true, [`${ESC}[?1049h${ESC}[?1049l`])).toEqual([]);
  });

  it('bounds a program that prints pictures in a loop, and says so once', async () => {
    const said = await watched(
      new Session(),
      false,
      Array.from({ length: 20 }, () => SIXEL),
    );
    expect(said.filter((text) => text.startsWith('picture.png'))).toHaveLength(6);
    expect(new Set(said.slice(6)).size).toBe(1);
  });
});
