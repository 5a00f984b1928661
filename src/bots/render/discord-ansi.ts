// Colours for Discord's `ansi` fence: SGR 0, 1, 4, foreground 31-37, one background for inverse.
// Hue decides, not distance: pastels would all become white. 30 is unreadable on the dark theme.

import { BOLD, type Color, INVERSE, RGB_FLAG, UNDERLINE } from '../../term/values.ts';
import type { Run } from './lines.ts';

const ESC = '\u001b[';
export const RESET = `${ESC}0m`;
/** Indigo under white: the only background that reads well on both themes. */
const INVERSE_BACKGROUND = 45;
const LEVELS = [0, 95, 135, 175, 215, 255] as const;
/** The palette's first 16 as the foreground that shows them. 0, 7, 8: the default. */
const BASE: readonly (number | undefined)[] = [undefined, 31, 32, 33, 34, 35, 36, undefined];

/** The sequence that turns the style of a run on, or '' when it has none that can be shown. */
export function sgrOf(run: Run, options: { readonly background: boolean }): string {
  const codes: number[] = [];
  if ((run.flags & BOLD) !== 0) codes.push(1);
  if ((run.flags & UNDERLINE) !== 0) codes.push(4);
  if ((run.flags & INVERSE) !== 0 && options.background) codes.push(37, INVERSE_BACKGROUND);
  else {
    const foreground = foregroundOf(run.fg);
    if (foreground !== undefined) codes.push(foreground);
  }
  return codes.length === 0 ? '' : `${ESC}${codes.join(';')}m`;
}

function foregroundOf(color: Color | undefined): number | undefined {
  if (color === undefined) return undefined;
  if ((color & RGB_FLAG) !== 0) {
    return byHue((color >> 16) & 0xff, (color >> 8) & 0xff, color & 0xff);
  }
  if (color < 16) return BASE[color % 8];
  if (color >= 232) return undefined;
  const index = color - 16;
  const level = (value: number): number => LEVELS[value % 6] ?? 0;
  return byHue(level(Math.floor(index / 36)), level(Math.floor(index / 6)), level(index));
}

function byHue(red: number, green: number, blue: number): number | undefined {
  const max = Math.max(red, green, blue);
  const spread = max - Math.min(red, green, blue);
  if (max === 0 || spread / max < 0.18) return undefined;
  let hue: number;
  if (max === red) hue = (60 * (green - blue)) / spread;
  else if (max === green) hue = 120 + (60 * (blue - red)) / spread;
  else hue = 240 + (60 * (red - green)) / spread;
  const turned = (hue + 360) % 360;
  if (turned < 20 || turned >= 330) return 31;
  if (turned < 75) return 33;
  if (turned < 165) return 32;
  if (turned < 200) return 36;
  return turned < 262 ? 34 : 35;
}
