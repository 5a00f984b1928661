import { deflateSync } from 'node:zlib';
import { createCanvas, loadImage } from '@napi-rs/canvas';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../src/base/random.ts';
import { encodePng } from '../../../../src/bots/render/png-encoder.ts';
import { decodePicture } from '../../../../src/bots/render/printed-picture.ts';
import { ModelRun } from '../../../support/model-run.ts';

const ESC = '\u001b';

/** Prints through a terminal, as the host and its journal would have it. */
function printed(output: string): { protocol: string; bytes: Uint8Array } {
  const run = ModelRun.of({ cols: 40, rows: 10 }).write(output);
  const mark = run.marks.find(({ what }) => what.kind === 'image');
  if (mark?.what.kind !== 'image') throw new Error('no picture was seen');
  const bytes = Buffer.from(output).subarray(mark.offset - mark.what.sizeBytes, mark.offset);
  return { protocol: mark.what.protocol, bytes };
}

async function pixels(
  output: string,
): Promise<{ width: number; height: number; colors: string[] }> {
  const { protocol, bytes } = printed(output);
  const picture = await decodePicture(protocol, bytes);
  if (picture.kind !== 'file') throw new Error(picture.because);
  const image = await loadImage(picture.bytes);
  const context = createCanvas(image.width, image.height).getContext('2d');
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const colors = Array.from({ length: data.length / 4 }, (_, index) =>
    Buffer.from(data.slice(index * 4, index * 4 + 3)).toString('hex'),
  );
  return { width: image.width, height: image.height, colors };
}

const RED_BLUE = Buffer.from([255, 0, 0, 0, 0, 255]);

describe('decodePicture', () => {
  it('reads sixels: colours, repeats, bands', async () => {
    const data = '#1;2;100;0;0#1!3~$-#2;2;0;0;100#2~~@';
    const picture = await pixels(`a${ESC}P0;1q"1;1;3;12${data}${ESC}\\b`);
    expect(picture).toMatchObject({ width: 3, height: 12 });
    expect(picture.colors[0]).toBe('ff0000');
    expect(picture.colors[6 * 3]).toBe('0000ff');
    expect(picture.colors[6 * 3 + 2]).toBe('0000ff');
    expect(picture.colors[7 * 3 + 2]).toBe('000000');
  });

  it('reads the hue of sixels, which begins at blue', async () => {
    for (const [hue, color] of [
      [0, '0000ff'],
      [120, 'ff0000'],
      [240, '00ff00'],
    ] as const) {
      const picture = await pixels(`${ESC}Pq#0;1;${hue};50;100~${ESC}\\`);
      expect(picture.colors[0], String(hue)).toBe(color);
    }
  });

  it('takes the file iTerm2 pictures carry', async () => {
    const file = await encodePng(Uint32Array.of(0xff0000ff, 0xffff0000), 2, 1);
    const output = `${ESC}]1337;File=name=eA==;inline=1:${file.toString('base64')}\u0007`;
    expect((await pixels(output)).colors).toEqual(['ff0000', '0000ff']);
  });

  it('reads kitty pictures: PNG in chunks, raw, and compressed', async () => {
    const file = await encodePng(Uint32Array.of(0xff0000ff, 0xffff0000), 2, 1);
    const base64 = file.toString('base64');
    const kitty = (keys: string, payload: string): string => `${ESC}_G${keys};${payload}${ESC}\\`;
    const outputs = [
      kitty('f=100,a=T,m=1', base64.slice(0, 40)) + kitty('m=0', base64.slice(40)),
      kitty('f=24,a=T,s=2,v=1', RED_BLUE.toString('base64')),
      kitty('f=24,a=T,s=2,v=1,o=z', deflateSync(RED_BLUE).toString('base64')),
      kitty('a=T,s=2,v=1', Buffer.from([255, 0, 0, 255, 0, 0, 255, 255]).toString('base64')),
    ];
    for (const output of outputs) {
      expect((await pixels(output)).colors, output).toEqual(['ff0000', '0000ff']);
    }
  });

  it.each([
    ['a file the program names', `${ESC}_Ga=T,t=f,f=100;L2V0Yy9wYXNzd2Q=${ESC}\\`, /file name/],
    ['what is no picture', `${ESC}]1337;File=inline=1:aGVsbG8=\u0007`, /not a PNG/],
    ['a picture of a claimed size', `${ESC}_Ga=T,f=24,s=99999,v=99999;AAAA${ESC}\\`, /damaged/],
    ['a flood of repeats', `${ESC}Pq!999999~${ESC}\\`, /too large/],
    ['nothing', `${ESC}Pq${ESC}\\`, /empty/],
    [
      'a bomb',
      `${ESC}_Ga=T,f=24,s=2,v=1,o=z;${deflateSync(Buffer.alloc(20_000_000)).toString('base64')}${ESC}\\`,
      /damaged/,
    ],
  ])('says that it does not show %s', async (_name, output, because) => {
    const { protocol, bytes } = printed(output);
    const picture = await decodePicture(protocol, bytes);
    expect(picture.kind).toBe('not-shown');
    if (picture.kind === 'not-shown') expect(picture.because).toMatch(because);
  });

  it('never throws on random bytes', async () => {
    const random = seededRandom(11);
    for (let count = 0; count < 300; count += 1) {
      const protocol = ['sixel', 'iterm2', 'kitty', 'other'][count % 4] ?? '';
      const start = [`${ESC}Pq`, `${ESC}]1337;File=:`, `${ESC}_Ga=T;`, ''][count % 4] ?? '';
      const bytes = Buffer.concat([Buffer.from(start), random.bytes(200)]);
      expect((await decodePicture(protocol, bytes)).kind).toMatch(/file|not-shown/);
    }
  });
});
