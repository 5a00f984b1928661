// The colours screens are drawn in. Pure.

import { type Color, RGB_FLAG } from '../../term/values.ts';

export type Rgb = readonly [number, number, number];

export const BACKGROUND: Rgb = [30, 30, 30];
export const FOREGROUND: Rgb = [212, 212, 212];
export const TITLE_BACKGROUND: Rgb = [50, 50, 52];
export const TITLE_FOREGROUND: Rgb = [190, 190, 190];
export const CURSOR: Rgb = [174, 175, 173];

/** The 16 colours programs name, as editors of today show them on a dark background. */
const BASE: readonly Rgb[] = [
  [0, 0, 0],
  [205, 49, 49],
  [13, 188, 121],
  [229, 229, 16],
  [36, 114, 200],
  [188, 63, 188],
  [17, 168, 205],
  [229, 229, 229],
  [102, 102, 102],
  [241, 76, 76],
  [35, 209, 139],
  [245, 245, 67],
  [59, 142, 234],
  [214, 112, 214],
  [41, 184, 219],
  [255, 255, 255],
];
const LEVELS = [0, 95, 135, 175, 215, 255] as const;

export function toRgb(color: Color): Rgb {
  if ((color & RGB_FLAG) !== 0) return [(color >> 16) & 0xff, (color >> 8) & 0xff, color & 0xff];
  const base = BASE[color];
  if (base !== undefined) return base;
  if (color >= 232) {
    const grey = 8 + (color - 232) * 10;
    return [grey, grey, grey];
  }
  const index = color - 16;
  const level = (value: number): number => LEVELS[value % 6] ?? 0;
  return [level(Math.floor(index / 36)), level(Math.floor(index / 6)), level(index)];
}

/** `share` of `color`, the rest `other`. */
export function blend(color: Rgb, other: Rgb, share: number): Rgb {
  const mix = (a: number, b: number): number => Math.round(a * share + b * (1 - share));
  return [mix(color[0], other[0]), mix(color[1], other[1]), mix(color[2], other[2])];
}

/** Text as dark as its background is lifted until it can be read. */
export function readable(foreground: Rgb, background: Rgb): Rgb {
  const contrast = Math.abs(luminance(foreground) - luminance(background));
  if (contrast >= 40) return foreground;
  return luminance(background) < 128
    ? blend(foreground, [255, 255, 255], 0.6)
    : blend(foreground, [0, 0, 0], 0.4);
}

function luminance([red, green, blue]: Rgb): number {
  return 0.299 * red + 0.587 * green + 0.114 * blue;
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red},${green},${blue})`;
}
