import { createCanvas, loadImage, type SKRSContext2D } from '@napi-rs/canvas';
import { afterAll, describe, expect, it } from 'vitest';
import { glyphShapes } from '../../../../src/bots/render/box-glyphs.ts';
import { ScreenPainter } from '../../../../src/bots/render/png.ts';
import { encodePng } from '../../../../src/bots/render/png-encoder.ts';
import type { Frame } from '../../../../src/term/values.ts';
import { readCast } from '../../../support/casts.ts';
import { ModelRun } from '../../../support/model-run.ts';

const CELL = { width: 10, height: 20, padding: 8 };
const painter = new ScreenPainter();
afterAll(() => painter.close());

function frameOf(output: string, size = { cols: 20, rows: 4 }): Frame {
  return ModelRun.of(size).write(`\u001b[?25l${output}`).model.frame();
}

async function decode(png: Buffer): Promise<SKRSContext2D> {
  const image = await loadImage(png);
  const context = createCanvas(image.width, image.height).getContext('2d');
  context.drawImage(image, 0, 0);
  return context;
}

/** Pixels of a cell that are not the background. */
function inked(context: SKRSContext2D, column: number, row: number, cells = 1): number {
  const { data } = context.getImageData(
    CELL.padding + column * CELL.width,
    CELL.padding + row * CELL.height,
    CELL.width * cells,
    CELL.height,
  );
  let count = 0;
  for (let at = 0; at < data.length; at += 4) if ((data[at] ?? 0) > 60) count += 1;
  return count;
}

function colorAt(context: SKRSContext2D, column: number, row: number): number[] {
  const x = CELL.padding + column * CELL.width + 1;
  const y = CELL.padding + row * CELL.height + 1;
  return [...context.getImageData(x, y, 1, 1).data.slice(0, 3)];
}

async function draw(output: string, size?: { cols: number; rows: number }): Promise<SKRSContext2D> {
  return decode(await painter.paint(frameOf(output, size), { title: '' }));
}

describe('ScreenPainter', () => {
  it('draws each character in its own cells, wide ones in two', async () => {
    const context = await draw('ab 世x');
    expect(inked(context, 0, 0)).toBeGreaterThan(10);
    expect(inked(context, 2, 0)).toBe(0);
    expect(inked(context, 3, 0)).toBeGreaterThan(5);
    expect(inked(context, 4, 0)).toBeGreaterThan(5);
    expect(inked(context, 5, 0)).toBeGreaterThan(10);
    expect(inked(context, 6, 0)).toBe(0);
  });

  it('draws scripts, emoji and icons the first font lacks', async () => {
    for (const text of ['한', '🎉', 'あ', 'ש', '\ue0a0', '⠿', '━']) {
      expect(inked(await draw(text), 0, 0, 2), text).toBeGreaterThan(4);
    }
  });

  it('draws emoji in colour', async () => {
    const context = await draw('🎉');
    const { data } = context.getImageData(CELL.padding, CELL.padding, 20, 20);
    const hues = new Set<string>();
    for (let at = 0; at < data.length; at += 4) {
      const [red = 0, green = 0, blue = 0] = data.slice(at, at + 3);
      if (Math.max(red, green, blue) - Math.min(red, green, blue) > 80) {
        hues.add(red > green ? (red > blue ? 'red' : 'blue') : 'green');
      }
    }
    expect(hues.size).toBeGreaterThan(1);
  });

  it('keeps right-to-left text in the cells the terminal has it in', async () => {
    const context = await draw('שab');
    expect(inked(context, 0, 0)).toBeGreaterThan(3);
    const plain = await draw(' ab');
    expect(inked(context, 1, 0)).toBe(inked(plain, 1, 0));
  });

  it('fills backgrounds to the edge, in the palette, in true colour, and inverted', async () => {
    const context = await draw(
      '\u001b[41m \u001b[48;5;21m \u001b[48;2;1;200;3m \u001b[0;7m \u001b[0m',
    );
    expect(colorAt(context, 0, 0)).toEqual([205, 49, 49]);
    expect(colorAt(context, 1, 0)).toEqual([0, 0, 255]);
    expect(colorAt(context, 2, 0)).toEqual([1, 200, 3]);
    expect(colorAt(context, 3, 0)).toEqual([212, 212, 212]);
    expect(colorAt(context, 4, 0)).toEqual([30, 30, 30]);
  });

  it('keeps black on black readable', async () => {
    expect(inked(await draw('\u001b[30mX'), 0, 0)).toBeGreaterThan(10);
  });

  it('draws the cursor only when it is visible', async () => {
    const model = ModelRun.of({ cols: 20, rows: 4 }).write('ab').model;
    const shown = await decode(await painter.paint(model.frame(), { title: '' }));
    expect(inked(shown, 2, 0)).toBe(CELL.width * CELL.height);
    expect(inked(await draw('ab'), 2, 0)).toBe(0);
  });

  it('has a title bar when there is a title', async () => {
    const titled = await loadImage(await painter.paint(frameOf('\u001b]2;build\u0007x')));
    const bare = await loadImage(await painter.paint(frameOf('x')));
    expect(titled.height).toBeGreaterThan(bare.height);
  });

  it('joins boxes without gaps between rows and columns', async () => {
    const context = await draw('┌─┐\r\n│ │\r\n└─┘');
    const lit = (x: number, y: number): boolean =>
      (context.getImageData(CELL.padding + x, CELL.padding + y, 1, 1).data[0] ?? 0) > 150;
    for (let y = 10; y <= 50; y += 1) expect(lit(5, y), `left, ${y}`).toBe(true);
    for (let x = 5; x <= 25; x += 1) expect(lit(x, 10), `top, ${x}`).toBe(true);
    for (let x = 5; x <= 25; x += 1) expect(lit(x, 50), `bottom, ${x}`).toBe(true);
  });

  it('cuts a screen that is too large for a picture', async () => {
    const image = await loadImage(
      await painter.paint(frameOf('x', { cols: 1_000, rows: 1_000 }), { title: '' }),
    );
    expect(image.width).toBe(300 * CELL.width + 2 * CELL.padding);
    expect(image.height).toBe(120 * CELL.height + 2 * CELL.padding);
  });

  it('draws one after another and refuses what exceeds its queue', async () => {
    const busy = new ScreenPainter();
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, () => busy.paint(frameOf('x'))),
    );
    const drawn = results.filter(({ status }) => status === 'fulfilled').length;
    expect(drawn).toBeGreaterThanOrEqual(16);
    expect(drawn).toBeLessThan(40);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'refused' });
    }
    await busy.close();
  });

  it('draws every recording', async () => {
    for (const name of ['htop', 'vim-session', 'table-cjk', 'unicode-torture', 'whiptail', 'fzf']) {
      const cast = readCast(name);
      const run = ModelRun.of(cast);
      for (const event of cast.events.slice(0, -2)) run.play([event]);
      const image = await loadImage(await painter.paint(run.model.frame(), { title: name }));
      expect(image.width, name).toBe(cast.cols * CELL.width + 2 * CELL.padding);
    }
  });
});

describe('encodePng', () => {
  it('keeps few colours exactly, and many as they are', async () => {
    for (const colors of [3, 5_000]) {
      const pixels = Uint32Array.from({ length: 100 * 60 }, (_, index) => {
        return (0xff000000 | (((index % colors) * 2_654_435_761) & 0xffffff)) >>> 0;
      });
      const context = await decode(await encodePng(pixels, 100, 60));
      const { data } = context.getImageData(0, 0, 100, 60);
      const back = new Uint32Array(data.buffer, data.byteOffset, pixels.length);
      expect(Buffer.from(back.buffer, back.byteOffset, back.byteLength)).toEqual(
        Buffer.from(pixels.buffer),
      );
    }
  });
});

describe('glyphShapes', () => {
  const arms = (code: number): Set<string> => {
    const sides = new Set<string>();
    for (const shape of glyphShapes(code, 10, 20) ?? []) {
      if (shape.kind !== 'rect') continue;
      if (shape.x === 0) sides.add('left');
      if (shape.x + shape.width === 10) sides.add('right');
      if (shape.y === 0) sides.add('up');
      if (shape.y + shape.height === 20) sides.add('down');
    }
    return sides;
  };

  it.each([
    ['─', ['left', 'right']],
    ['│', ['down', 'up']],
    ['┌', ['down', 'right']],
    ['┛', ['left', 'up']],
    ['├', ['down', 'right', 'up']],
    ['╬', ['down', 'left', 'right', 'up']],
    ['╒', ['down', 'right']],
    ['╡', ['down', 'left', 'up']],
    ['╺', ['right']],
  ] as const)('%s reaches exactly the edges it joins', (character, sides) => {
    expect([...arms(character.codePointAt(0) ?? 0)].sort()).toEqual(sides);
  });

  it('has a shape for every box, block, braille, sextant and powerline character', () => {
    const ranges = [
      [0x2500, 0x259f],
      [0x2801, 0x28ff],
      [0xe0b0, 0xe0b3],
      [0x1fb00, 0x1fb3b],
    ] as const;
    for (const [first, last] of ranges) {
      for (let code = first; code <= last; code += 1) {
        const shapes = glyphShapes(code, 10, 20) ?? [];
        expect(shapes.length, code.toString(16)).toBeGreaterThan(0);
        for (const shape of shapes) {
          if (shape.kind !== 'rect') continue;
          expect(shape.width, code.toString(16)).toBeGreaterThan(0);
          expect(shape.height, code.toString(16)).toBeGreaterThan(0);
          expect(shape.x + shape.width, code.toString(16)).toBeLessThanOrEqual(10);
          expect(shape.y + shape.height, code.toString(16)).toBeLessThanOrEqual(20);
        }
      }
    }
    expect(glyphShapes(0x41, 10, 20)).toBeUndefined();
  });
});
