// Box drawing, blocks, braille, sextants and powerline separators as shapes that fill a cell to its
// edges, so that lines and boxes join whatever the font. Pure; drawn by png.ts.

export type Shape =
  | {
      readonly kind: 'rect';
      readonly x: number;
      readonly y: number;
      readonly width: number;
      readonly height: number;
      /** Default 1. */
      readonly alpha?: number;
    }
  | { readonly kind: 'dot'; readonly x: number; readonly y: number; readonly radius: number }
  /** A filled polygon, or with `stroke` an open line of one light width. */
  | {
      readonly kind: 'polygon';
      readonly points: readonly (readonly [number, number])[];
      readonly stroke: boolean;
    }
  /** A rounded corner between the middle of a vertical and of a horizontal edge. */
  | { readonly kind: 'corner'; readonly right: boolean; readonly down: boolean };

const LIGHT = 1;
const HEAVY = 2;
const DOUBLE = 3;
/** Pixels, for a cell of 10 × 20. */
const LIGHT_WIDTH = 1;
const HEAVY_WIDTH = 3;
/** Half the distance of a double line's halves. */
const DOUBLE_GAP = 2;

/** Weights of the arms left, right, up, down of U+2500 to U+257F; `-` is drawn otherwise. */
const ARMS = (
  '1100 2200 0011 0022 - - - - - - - - 0101 0201 0102 0202 ' +
  '1001 2001 1002 2002 0110 0210 0120 0220 1010 2010 1020 2020 0111 0211 0121 0112 ' +
  '0122 0221 0212 0222 1011 2011 1021 1012 1022 2021 2012 2022 1101 2101 1201 2201 ' +
  '1102 2102 1202 2202 1110 2110 1210 2210 1120 2120 1220 2220 1111 2111 1211 2211 ' +
  '1121 1112 1122 2121 1221 2112 1212 2221 2212 2122 1222 2222 - - - - ' +
  '3300 0033 0301 0103 0303 3001 1003 3003 0310 0130 0330 3010 1030 3030 0311 0133 ' +
  '0333 3011 1033 3033 3301 1103 3303 3310 1130 3330 3311 1133 3333 - - - ' +
  '- - - - 1000 0010 0100 0001 2000 0020 0200 0002 1200 0012 2100 0021'
).split(' ');

/** Dashed lines: number of dashes, weight, vertical. */
const DASHES: Readonly<Record<number, readonly [number, number, boolean]>> = {
  9476: [3, LIGHT, false],
  9477: [3, HEAVY, false],
  9478: [3, LIGHT, true],
  9479: [3, HEAVY, true],
  9480: [4, LIGHT, false],
  9481: [4, HEAVY, false],
  9482: [4, LIGHT, true],
  9483: [4, HEAVY, true],
  9548: [2, LIGHT, false],
  9549: [2, HEAVY, false],
  9550: [2, LIGHT, true],
  9551: [2, HEAVY, true],
};

/** Shapes of a character in a cell of `width` × `height` pixels; undefined: the font draws it. */
export function glyphShapes(code: number, width: number, height: number): Shape[] | undefined {
  if (code >= 0x2500 && code <= 0x257f) return boxShapes(code, width, height);
  if (code >= 0x2580 && code <= 0x259f) return blockShapes(code, width, height);
  if (code >= 0x2800 && code <= 0x28ff) return brailleShapes(code - 0x2800, width, height);
  if (code >= 0xe0b0 && code <= 0xe0b3) return powerlineShapes(code, width, height);
  if (code >= 0x1fb00 && code <= 0x1fb3b) return sextantShapes(code - 0x1fb00, width, height);
  return undefined;
}

function boxShapes(code: number, width: number, height: number): Shape[] {
  const dashes = DASHES[code];
  if (dashes !== undefined) return dashShapes(...dashes, width, height);
  if (code >= 0x256d && code <= 0x2570) {
    const right = code === 0x256d || code === 0x2570;
    return [{ kind: 'corner', right, down: code <= 0x256e }];
  }
  if (code >= 0x2571 && code <= 0x2573) return diagonalShapes(code, width, height);
  const [left = 0, right = 0, up = 0, down = 0] = [...(ARMS[code - 0x2500] ?? '')].map(Number);
  return armShapes({ left, right, up, down }, width, height);
}

interface Arms {
  readonly left: number;
  readonly right: number;
  readonly up: number;
  readonly down: number;
}

/** One arm seen along its own direction: `before` and `after` are the arms to its two sides. */
interface ArmView {
  readonly weight: number;
  readonly opposite: number;
  readonly before: number;
  readonly after: number;
}

function armShapes(arms: Arms, width: number, height: number): Shape[] {
  const { left, right, up, down } = arms;
  const middleX = Math.floor(width / 2);
  const middleY = Math.floor(height / 2);
  const shapes: Shape[] = [];
  const horizontal = (view: ArmView, sign: number, length: number): void => {
    for (const { from, offset, thickness } of armLines(view)) {
      const start = middleX + sign * from;
      const end = sign < 0 ? middleX - length : middleX + length;
      shapes.push(bar(start, middleY + offset, end, thickness, sign));
    }
  };
  const vertical = (view: ArmView, sign: number, length: number): void => {
    for (const { from, offset, thickness } of armLines(view)) {
      const start = middleY + sign * from;
      const end = sign < 0 ? middleY - length : middleY + length;
      shapes.push(transpose(bar(start, middleX + offset, end, thickness, sign)));
    }
  };
  horizontal({ weight: left, opposite: right, before: up, after: down }, -1, middleX);
  horizontal({ weight: right, opposite: left, before: up, after: down }, 1, width - middleX);
  vertical({ weight: up, opposite: down, before: left, after: right }, -1, middleY);
  vertical({ weight: down, opposite: up, before: left, after: right }, 1, height - middleY);
  return shapes;
}

interface ArmLine {
  /** Where the line begins, outward from the middle of the cell. */
  readonly from: number;
  readonly offset: number;
  readonly thickness: number;
}

function armLines({ weight, opposite, before, after }: ArmView): readonly ArmLine[] {
  if (weight === 0) return [];
  if (weight !== DOUBLE) {
    const thickness = weight === HEAVY ? HEAVY_WIDTH : LIGHT_WIDTH;
    return [{ from: singleStart(opposite, before, after), offset: 0, thickness }];
  }
  const line = (side: number, near: number, far: number): ArmLine => ({
    from: doubleStart(opposite, near, far),
    offset: side * DOUBLE_GAP,
    thickness: LIGHT_WIDTH,
  });
  return [line(-1, before, after), line(1, after, before)];
}

/** A single line meets a double one at its near half, or crosses to the far one at a corner. */
function singleStart(opposite: number, before: number, after: number): number {
  if (opposite !== 0) return 0;
  if (before === DOUBLE && after === DOUBLE) return DOUBLE_GAP;
  return before === DOUBLE || after === DOUBLE ? -DOUBLE_GAP : 0;
}

/** Half of a double line: stops at the double line on its side, or goes round the corner. */
function doubleStart(opposite: number, near: number, far: number): number {
  if (near === DOUBLE) return DOUBLE_GAP;
  return far === DOUBLE && opposite === 0 ? -DOUBLE_GAP : 0;
}

/** From `start` outward to `end`; the line covers the pixels around its axis, joints included. */
function bar(start: number, axis: number, end: number, thickness: number, sign: number): Shape {
  const half = Math.floor(thickness / 2);
  const from = sign < 0 ? end : start - half;
  const to = sign < 0 ? start - half + thickness : end;
  return { kind: 'rect', x: from, y: axis - half, width: to - from, height: thickness };
}

function transpose(shape: Shape): Shape {
  if (shape.kind !== 'rect') return shape;
  const { x, y, width, height } = shape;
  return { kind: 'rect', x: y, y: x, width: height, height: width };
}

function dashShapes(
  count: number,
  weight: number,
  isVertical: boolean,
  width: number,
  height: number,
): Shape[] {
  const length = isVertical ? height : width;
  const thickness = weight === HEAVY ? HEAVY_WIDTH : LIGHT_WIDTH;
  const axis = Math.floor((isVertical ? width : height) / 2) - Math.floor(thickness / 2);
  return Array.from({ length: count }, (_, index) => {
    const from = Math.round((index * length) / count);
    const to = Math.round(((index + 0.6) * length) / count);
    const shape: Shape = {
      kind: 'rect',
      x: from,
      y: axis,
      width: Math.max(1, to - from),
      height: thickness,
    };
    return isVertical ? transpose(shape) : shape;
  });
}

function diagonalShapes(code: number, width: number, height: number): Shape[] {
  const rising: Shape = {
    kind: 'polygon',
    points: [
      [0, height],
      [width, 0],
    ],
    stroke: true,
  };
  const falling: Shape = {
    kind: 'polygon',
    points: [
      [0, 0],
      [width, height],
    ],
    stroke: true,
  };
  if (code === 0x2571) return [rising];
  return code === 0x2572 ? [falling] : [rising, falling];
}

/** Quadrants of U+2596 to U+259F: bits upper left, upper right, lower left, lower right. */
const QUADRANTS = [0b0010, 0b0001, 0b1000, 0b1011, 0b1001, 0b1110, 0b1101, 0b0100, 0b0110, 0b0111];

function blockShapes(code: number, width: number, height: number): Shape[] {
  const rect = (x: number, y: number, w: number, h: number, alpha = 1): Shape => ({
    kind: 'rect',
    x: Math.round(x),
    y: Math.round(y),
    width: Math.round(x + w) - Math.round(x),
    height: Math.round(y + h) - Math.round(y),
    alpha,
  });
  const eighth = height / 8;
  if (code === 0x2580) return [rect(0, 0, width, height / 2)];
  if (code <= 0x2588) {
    const filled = (code - 0x2580) * eighth;
    return [rect(0, height - filled, width, filled)];
  }
  if (code <= 0x258f) return [rect(0, 0, ((0x2590 - code) * width) / 8, height)];
  if (code === 0x2590) return [rect(width / 2, 0, width / 2, height)];
  if (code <= 0x2593) return [rect(0, 0, width, height, (code - 0x2590) / 4)];
  if (code === 0x2594) return [rect(0, 0, width, eighth)];
  if (code === 0x2595) return [rect((width * 7) / 8, 0, width / 8, height)];
  const bits = QUADRANTS[code - 0x2596] ?? 0;
  return [0, 1, 2, 3]
    .filter((index) => (bits & (8 >> index)) !== 0)
    .map((index) =>
      rect(((index % 2) * width) / 2, index < 2 ? 0 : height / 2, width / 2, height / 2),
    );
}

/** Dots of a braille cell, by bit: column and row. */
const BRAILLE_DOTS: readonly (readonly [number, number])[] = [
  [0, 0],
  [0, 1],
  [0, 2],
  [1, 0],
  [1, 1],
  [1, 2],
  [0, 3],
  [1, 3],
];

function brailleShapes(bits: number, width: number, height: number): Shape[] {
  const radius = Math.min(width / 2, height / 4) * 0.32;
  return BRAILLE_DOTS.filter((_, bit) => (bits & (1 << bit)) !== 0).map(([column, row]) => ({
    kind: 'dot',
    x: ((column + 0.5) * width) / 2,
    y: ((row + 0.5) * height) / 4,
    radius,
  }));
}

function sextantShapes(index: number, width: number, height: number): Shape[] {
  // The sequence leaves out the empty cell, both halves and the full block.
  const bits = index + 1 + (index >= 0x14 ? 1 : 0) + (index >= 0x28 ? 1 : 0);
  const shapes: Shape[] = [];
  for (let bit = 0; bit < 6; bit += 1) {
    if ((bits & (1 << bit)) === 0) continue;
    const top = Math.round((Math.floor(bit / 2) * height) / 3);
    const bottom = Math.round(((Math.floor(bit / 2) + 1) * height) / 3);
    const x = (bit % 2) * Math.floor(width / 2);
    const right = bit % 2 === 0 ? Math.floor(width / 2) : width;
    shapes.push({ kind: 'rect', x, y: top, width: right - x, height: bottom - top });
  }
  return shapes;
}

function powerlineShapes(code: number, width: number, height: number): Shape[] {
  const pointsRight = code <= 0xe0b1;
  const base = pointsRight ? 0 : width;
  const tip = pointsRight ? width : 0;
  const points = [
    [base, 0],
    [tip, height / 2],
    [base, height],
  ] as const;
  return [{ kind: 'polygon', points, stroke: code === 0xe0b1 || code === 0xe0b3 }];
}
