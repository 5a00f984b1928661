// Sixel graphics to pixels. Pure and bounded: what a program prints may claim any size.

/** As many as a chat shows well; a program that prints more is told it was not shown. */
const SIDE_MAX = 4_096;
const PIXELS_MAX = 4_194_304;
const ROWS_PER_BAND = 6;

export interface Pixels {
  readonly width: number;
  readonly height: number;
  /** RGBA, one little-endian word each. */
  readonly words: Uint32Array;
}

/** The VT340's first 16 colours, in percent. */
const PALETTE: readonly (readonly [number, number, number])[] = [
  [0, 0, 0],
  [20, 20, 80],
  [80, 13, 13],
  [20, 80, 20],
  [80, 20, 80],
  [20, 80, 80],
  [80, 80, 20],
  [53, 53, 53],
  [26, 26, 26],
  [33, 33, 60],
  [60, 26, 26],
  [33, 60, 33],
  [60, 33, 60],
  [33, 60, 60],
  [60, 60, 33],
  [80, 80, 80],
];

/** One command of the stream. Unknown characters are skipped, as terminals do. */
type Command =
  | { readonly kind: 'sixel'; readonly bits: number; readonly count: number }
  | { readonly kind: 'color'; readonly numbers: readonly number[] }
  | { readonly kind: 'return' }
  | { readonly kind: 'band' };

/** `data` is what follows the `q` of the sequence. Undefined: empty, or too large. */
export function decodeSixel(data: string): Pixels | undefined {
  const size = measure(data);
  if (size === undefined) return undefined;
  const words = new Uint32Array(size.width * size.height).fill(0xff000000);
  const pixels = { ...size, words };
  draw(data, pixels);
  return pixels;
}

/** Read twice rather than kept: megabytes of data are millions of commands. */
function* readCommands(data: string): Generator<Command> {
  const pattern = /!(\d{1,6})([?-~])|#([\d;]{1,40})|"[\d;]*|([?-~])|([$-])/g;
  for (const [, count, repeated, color, sixel, move] of data.matchAll(pattern)) {
    if (repeated !== undefined) {
      yield { kind: 'sixel', bits: repeated.charCodeAt(0) - 0x3f, count: Number(count) };
    } else if (color !== undefined) {
      yield { kind: 'color', numbers: color.split(';').map(Number) };
    } else if (sixel !== undefined) {
      yield { kind: 'sixel', bits: sixel.charCodeAt(0) - 0x3f, count: 1 };
    } else if (move !== undefined) {
      yield { kind: move === '$' ? 'return' : 'band' };
    }
  }
}

function measure(data: string): { width: number; height: number } | undefined {
  let x = 0;
  let width = 0;
  let band = 0;
  let bands = 0;
  for (const command of readCommands(data)) {
    if (command.kind === 'sixel') {
      x += command.count;
      width = Math.max(width, x);
      bands = band + 1;
    } else if (command.kind !== 'color') {
      x = 0;
      if (command.kind === 'band') band += 1;
    }
  }
  const height = bands * ROWS_PER_BAND;
  const fits = width <= SIDE_MAX && height <= SIDE_MAX && width * height <= PIXELS_MAX;
  return fits && width > 0 && height > 0 ? { width, height } : undefined;
}

function draw(data: string, pixels: Pixels): void {
  const colors = new Map<number, number>(
    PALETTE.map(([red, green, blue], index) => [index, fromPercent(red, green, blue)]),
  );
  let color = colors.get(0) ?? 0xff000000;
  let x = 0;
  let top = 0;
  for (const command of readCommands(data)) {
    switch (command.kind) {
      case 'sixel':
        drawColumn(pixels, x, top, command.bits, command.count, color);
        x += command.count;
        break;
      case 'color':
        color = useColor(colors, command.numbers);
        break;
      case 'return':
        x = 0;
        break;
      case 'band':
        x = 0;
        top += ROWS_PER_BAND;
    }
  }
}

function drawColumn(
  { width, height, words }: Pixels,
  x: number,
  top: number,
  bits: number,
  count: number,
  color: number,
): void {
  for (let row = 0; row < ROWS_PER_BAND && top + row < height; row += 1) {
    if ((bits & (1 << row)) === 0) continue;
    const start = (top + row) * width + x;
    words.fill(color, start, start + Math.min(count, width - x));
  }
}

/** `#n` chooses a colour, `#n;1;h;l;s` and `#n;2;r;g;b` define it first. */
function useColor(colors: Map<number, number>, numbers: readonly number[]): number {
  const [index = 0, system = 0, first = 0, second = 0, third = 0] = numbers;
  if (system === 2) colors.set(index, fromPercent(first, second, third));
  if (system === 1) colors.set(index, fromHls(first, second, third));
  return colors.get(index) ?? 0xff000000;
}

function fromPercent(red: number, green: number, blue: number): number {
  const level = (percent: number): number => Math.round((Math.min(100, percent) * 255) / 100);
  return ((level(blue) << 16) | (level(green) << 8) | level(red) | 0xff000000) >>> 0;
}

/** DEC's hue begins at blue: 120 is red, 240 green. */
function fromHls(hue: number, lightness: number, saturation: number): number {
  const light = Math.min(100, lightness) / 100;
  const chroma = (1 - Math.abs(2 * light - 1)) * (Math.min(100, saturation) / 100);
  const channel = (shift: number): number => {
    const turn = ((hue + 240 + shift) % 360) / 60;
    const part = Math.min(Math.max(Math.abs(turn - 3) - 1, 0), 1);
    return (light - chroma / 2 + chroma * part) * 100;
  };
  return fromPercent(channel(0), channel(240), channel(120));
}
