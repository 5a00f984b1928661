// Terminal content as values: what crosses the worker, the wire and the folder boundary. No
// emulator type leaves src/term.

/** A colour: 0-255 of the palette, or RGB_FLAG | 0xRRGGBB. */
export type Color = number;
export const RGB_FLAG = 0x1000000;

/** Bits of `Span.flags`. */
export const BOLD = 1;
export const DIM = 2;
export const ITALIC = 4;
export const UNDERLINE = 8;
export const INVERSE = 16;
export const STRIKE = 32;

/** Style of the half-open range [start, end) of UTF-16 units of a line's text. */
export interface Span {
  readonly start: number;
  readonly end: number;
  readonly fg?: Color;
  readonly bg?: Color;
  readonly flags?: number;
  /** OSC 8 target, http or https only. */
  readonly link?: string;
}

/** One logical line (wrapped rows rejoined, trailing blanks trimmed). Unstyled ranges have no span. */
export interface Line {
  readonly text: string;
  readonly spans?: readonly Span[];
}

/**
 * One row of the screen, blanks at its end trimmed unless they are visible. `wide` lists the UTF-16
 * indexes whose character takes two cells; `joined` those of the code points that share the cell of
 * the one before (accents, joiners). All others take one cell each.
 */
export interface FrameRow extends Line {
  readonly wide?: readonly number[];
  readonly joined?: readonly number[];
}

/** The screen at one offset. */
export interface Frame {
  readonly offset: number;
  readonly cols: number;
  readonly rows: readonly FrameRow[];
  readonly cursor: { readonly row: number; readonly col: number; readonly visible: boolean };
  readonly title: string;
  readonly alternate: boolean;
}

/** `log`: settled lines. `screen`: a full-screen program, shown as frames. */
export type Mode = 'log' | 'screen';

/**
 * Something that happened at a position of the transcript: decided once, journaled, replayed.
 * `seq` counts from 0 per session; `line` is the number of final lines at that moment, or of the
 * cursor's line for prompt, command and image marks; `offset` is in bytes.
 */
export interface Mark {
  readonly seq: number;
  readonly offset: number;
  readonly line: number;
  readonly what: MarkKind;
}

export type MarkKind =
  | { readonly kind: 'mode'; readonly mode: 'screen' }
  /** Leaving screen mode: the last frame, captured before the program cleared it. */
  | { readonly kind: 'mode'; readonly mode: 'log'; readonly frame: Frame }
  /** OSC 133: A prompt start, B prompt end, C command runs, D command done. */
  | { readonly kind: 'prompt-start' }
  | { readonly kind: 'prompt-end' }
  | { readonly kind: 'command-start' }
  | { readonly kind: 'command-done'; readonly exitCode: number | undefined }
  | { readonly kind: 'bell' }
  | { readonly kind: 'notification'; readonly text: string }
  | { readonly kind: 'title'; readonly text: string }
  | { readonly kind: 'cwd'; readonly path: string }
  /**
   * An inline picture the program printed (sixel, iTerm2, kitty): the `sizeBytes` bytes of output
   * that end at the mark's offset. No line holds them.
   */
  | { readonly kind: 'image'; readonly protocol: string; readonly sizeBytes: number };

/**
 * The transcript at `offset`: final lines 0..finalCount (read separately, by number) followed by
 * `tail`, numbered from `finalCount`, which may still change.
 */
export interface View {
  readonly offset: number;
  readonly finalCount: number;
  readonly tail: readonly Line[];
  /** Absolute number of the line the cursor is on, and its column in UTF-16 units. */
  readonly cursor: { readonly line: number; readonly column: number; readonly visible: boolean };
  readonly mode: Mode;
  /** Present in screen mode. */
  readonly frame?: Frame;
  readonly markCount: number;
  readonly cols: number;
  readonly rowCount: number;
  /** Terminal modes that decide how keys are sent. */
  readonly applicationCursor: boolean;
  readonly bracketedPaste: boolean;
}

/** What a program waits for, as far as its terminal shows. */
export type Waiting =
  | { readonly kind: 'nothing' }
  /** A secret: its characters are not echoed. */
  | { readonly kind: 'password'; readonly text: string; readonly line: number }
  /** A line of input; `shell` when it is a shell's own prompt. */
  | {
      readonly kind: 'prompt';
      readonly text: string;
      readonly line: number;
      readonly shell: boolean;
    }
  /** One of `choices`, all of them readable on the screen. */
  | {
      readonly kind: 'menu';
      readonly text: string;
      readonly line: number;
      readonly choices: readonly Choice[];
    };

/** A choice, and the keys that make it, as they are sent to the terminal. */
export interface Choice {
  readonly label: string;
  readonly keys: string;
}
