// The fonts screens are drawn with, from packages: DejaVu Sans Mono in four styles, and loaded only
// when the first character needs them, a bitmap-like font with nearly every script, colour emoji and
// the icons of prompts (private use area).

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { GlobalFonts } from '@napi-rs/canvas';
import { ChatdError } from '../../base/errors.ts';

const MONO = {
  regular: 'DejaVuSansMono.ttf',
  bold: 'DejaVuSansMono-Bold.ttf',
  italic: 'DejaVuSansMono-Oblique.ttf',
  boldItalic: 'DejaVuSansMono-BoldOblique.ttf',
} as const;
export type MonoStyle = keyof typeof MONO;
type FontName = MonoStyle | 'script' | 'emoji' | 'icons';

const LAZY: Readonly<Record<'script' | 'emoji' | 'icons', string>> = {
  script: '@fontsource/unifontex/files/unifontex-latin-400-normal.woff2',
  emoji: 'twemoji-colr-font/twemoji.woff2',
  icons: '@azurity/pure-nerd-font/PureNerdFont.woff2',
};

/** Characters shown as pictures unless a text presentation is asked for. */
const EMOJI = /\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f/u;

/** `mono` advances exactly one cell. */
export interface FontPick {
  readonly family: string;
  readonly kind: 'mono' | 'script' | 'emoji' | 'icons';
}

export class Fonts {
  readonly #resolve = createRequire(import.meta.url).resolve;
  readonly #loaded = new Set<FontName>();
  readonly #covered: (code: number) => boolean;

  constructor() {
    for (const style of ['regular', 'bold', 'italic', 'boldItalic'] as const) {
      this.#register(style, `dejavu-fonts-ttf/ttf/${MONO[style]}`);
    }
    this.#covered = readCoverage(
      readFileSync(this.#resolve(`dejavu-fonts-ttf/ttf/${MONO.regular}`)),
    );
  }

  /** The families that draw `text`, one cell's character. Loads what it is the first to need. */
  pick(text: string, style: MonoStyle): FontPick {
    if (EMOJI.test(text)) return { family: this.#lazy('emoji'), kind: 'emoji' };
    const code = text.codePointAt(0) ?? 0;
    if (isPrivateUse(code)) return { family: this.#lazy('icons'), kind: 'icons' };
    if (!this.#covered(code)) return { family: this.#lazy('script'), kind: 'script' };
    const family = familyOf(style);
    const all = [...text].every((character) => this.#covered(character.codePointAt(0) ?? 0));
    // Marks the font lacks come from the other one, on the same character.
    return { family: all ? family : `${family}, ${this.#lazy('script')}`, kind: 'mono' };
  }

  #lazy(name: keyof typeof LAZY): string {
    if (!this.#loaded.has(name)) this.#register(name, LAZY[name]);
    return familyOf(name);
  }

  #register(name: FontName, file: string): void {
    if (GlobalFonts.registerFromPath(this.#resolve(file), familyOf(name)) === null) {
      throw new ChatdError('capability-missing', `Cannot load font ${name}: not readable`);
    }
    this.#loaded.add(name);
  }
}

function isPrivateUse(code: number): boolean {
  return (code >= 0xe000 && code <= 0xf8ff) || code >= 0xf0000;
}

function familyOf(name: FontName): string {
  return `chatd-${name}`;
}

/** Which code points a TrueType font has: its `cmap` of format 12 or 4. */
export function readCoverage(font: Buffer): (code: number) => boolean {
  const tables = font.readUInt16BE(4);
  for (let index = 0; index < tables; index += 1) {
    const entry = 12 + index * 16;
    if (font.toString('latin1', entry, entry + 4) === 'cmap') {
      return readCharacterMap(font.subarray(font.readUInt32BE(entry + 8)));
    }
  }
  return () => false;
}

function readCharacterMap(cmap: Buffer): (code: number) => boolean {
  const ranges: [number, number][] = [];
  const subtables = cmap.readUInt16BE(2);
  for (let index = 0; index < subtables; index += 1) {
    const subtable = cmap.subarray(cmap.readUInt32BE(4 + index * 8 + 4));
    const format = subtable.readUInt16BE(0);
    if (format === 12) ranges.push(...groups(subtable));
    if (format === 4) ranges.push(...segments(subtable));
  }
  return (code) => ranges.some(([first, last]) => code >= first && code <= last);
}

function groups(subtable: Buffer): [number, number][] {
  return Array.from({ length: subtable.readUInt32BE(12) }, (_, index) => {
    const at = 16 + index * 12;
    return [subtable.readUInt32BE(at), subtable.readUInt32BE(at + 4)];
  });
}

function segments(subtable: Buffer): [number, number][] {
  const doubled = subtable.readUInt16BE(6);
  return Array.from({ length: doubled / 2 }, (_, index) => {
    const last = subtable.readUInt16BE(14 + index * 2);
    const first = subtable.readUInt16BE(16 + doubled + index * 2);
    return [first, last];
  });
}
