// Cuts the byte stream behind every control sequence that may mean something to the model, so that
// what the model decides carries the exact byte offset under any chunking of the input. Follows the
// state table of the emulator's parser. Also finds printed pictures, whose payload no one keeps.

/** States of the VT500 parser, as far as cutting needs them. */
const GROUND = 0;
const ESCAPE = 1;
const ESCAPE_INTERMEDIATE = 2;
const CSI = 3;
/** OSC, DCS; and SOS, PM, APC, whose content the emulator ignores. */
const OSC = 4;
const DCS = 5;
const IGNORED_STRING = 6;
type State = 0 | 1 | 2 | 3 | 4 | 5 | 6;

/** Enough for the keys that say what a picture sequence is. */
const HEADER_BYTES_MAX = 128;

export interface Picture {
  readonly protocol: 'sixel' | 'iterm2' | 'kitty';
  /** Bytes from the first byte of its first sequence to the last of its last. */
  readonly sizeBytes: number;
}

export interface Cut {
  /** End of the slice, exclusive. */
  readonly end: number;
  /** A picture that is complete at `end`. */
  readonly picture: Picture | undefined;
}

/** CSI finals that neither move up, erase, scroll, switch nor ask: `m K C D G X @ P A B E F`. */
const PLAIN_FINALS = new Set('mKCDGX@PABEF'.split('').map((char) => char.charCodeAt(0)));

export class StreamScanner {
  #state: State = GROUND;
  /** After 0xC2, the first byte of a C1 control in UTF-8. */
  #c2 = false;
  /** Only digits, `;` and `:` so far: no prefix, no intermediate. */
  #plainCsi = true;
  #isApc = false;
  readonly #header = new Uint8Array(HEADER_BYTES_MAX);
  #headerLength = 0;
  #stringBytes = 0;
  /** Bytes of the chunks of a kitty picture that is not complete. */
  #kittyBytes = 0;
  #picture: Picture | undefined;
  #pendingBytes = 0;
  /** A C0 control acted inside the sequence that is not complete. */
  #acted = false;

  /**
   * Bytes of a sequence that has begun and had no effect yet: the screen is as it was before them.
   * Undefined when a control inside it already acted.
   */
  get pendingBytes(): number | undefined {
    return this.#acted ? undefined : this.#pendingBytes;
  }

  get kittyBytes(): number {
    return this.#kittyBytes;
  }

  /** Continues at ground, inside a picture of several sequences when `kittyBytes` is not 0. */
  restore(kittyBytes: number): void {
    this.#kittyBytes = kittyBytes;
  }

  /** The next place to cut in `bytes` from `from` on; the end of `bytes` when there is none. */
  next(bytes: Uint8Array, from: number): Cut {
    this.#picture = undefined;
    const length = bytes.length;
    let index = from;
    while (index < length) {
      if (this.#state === GROUND && !this.#c2) {
        index = skipText(bytes, index);
        if (index >= length) break;
      }
      const byte = bytes[index] ?? 0;
      index += 1;
      const cut = this.#take(byte);
      this.#countPending(byte);
      if (cut) return { end: index, picture: this.#picture };
    }
    return { end: length, picture: undefined };
  }

  #countPending(byte: number): void {
    if (this.#state === GROUND && !this.#c2) {
      this.#pendingBytes = 0;
      this.#acted = false;
    } else if (byte === 0x1b) {
      // What came before is complete or aborted; nothing of the new sequence acted.
      this.#pendingBytes = 1;
      this.#acted = false;
    } else {
      this.#pendingBytes += 1;
      if (byte < 0x20 && this.#state < OSC) this.#acted = true;
    }
  }

  /** True when the stream is to be cut behind `byte`. */
  #take(byte: number): boolean {
    if (this.#c2) {
      this.#c2 = false;
      if (byte >= 0x80 && byte <= 0x9f) return this.#control(byte);
      if (this.#state === ESCAPE || this.#state === CSI) this.#state = GROUND;
      if (byte >= 0x80) return false;
    }
    if (byte === 0xc2) {
      this.#c2 = true;
      this.#count(byte);
      return false;
    }
    switch (this.#state) {
      case GROUND:
        return this.#ground(byte);
      case ESCAPE:
        return this.#escape(byte);
      case ESCAPE_INTERMEDIATE:
        return this.#escapeIntermediate(byte);
      case CSI:
        return this.#csi(byte);
      case OSC:
      case DCS:
      case IGNORED_STRING:
        return this.#string(byte);
    }
  }

  #ground(byte: number): boolean {
    if (byte === 0x1b) this.#state = ESCAPE;
    return byte === 0x07;
  }

  /** An 8-bit control, encoded in UTF-8: it acts in every state. */
  #control(byte: number): boolean {
    const cut = this.#state !== GROUND;
    if (cut) this.#endString(byte === 0x9c);
    if (byte === 0x9b) this.#enterCsi();
    else if (byte === 0x9d) this.#enterString(OSC, false, 2);
    else if (byte === 0x90) this.#enterString(DCS, false, 2);
    else if (byte === 0x98 || byte === 0x9e || byte === 0x9f) {
      this.#enterString(IGNORED_STRING, byte === 0x9f, 2);
    } else this.#state = GROUND;
    return true;
  }

  #escape(byte: number): boolean {
    if (byte === 0x5b) this.#enterCsi();
    else if (byte === 0x5d) this.#enterString(OSC, false, 2);
    else if (byte === 0x50) this.#enterString(DCS, false, 2);
    else if (byte === 0x58 || byte === 0x5e || byte === 0x5f) {
      this.#enterString(IGNORED_STRING, byte === 0x5f, 2);
    } else if (byte >= 0x20 && byte <= 0x2f) this.#state = ESCAPE_INTERMEDIATE;
    else return this.#leave(byte);
    return false;
  }

  #escapeIntermediate(byte: number): boolean {
    return byte >= 0x20 && byte <= 0x2f ? false : this.#leave(byte);
  }

  /** Everything that ends an escape or control sequence; C0 controls act inside one. */
  #leave(byte: number): boolean {
    if (byte === 0x1b) this.#state = ESCAPE;
    else if (byte === 0x7f || (byte < 0x20 && byte !== 0x18 && byte !== 0x1a)) return byte === 0x07;
    else this.#state = GROUND;
    return byte !== 0x1b;
  }

  #enterCsi(): void {
    this.#state = CSI;
    this.#plainCsi = true;
  }

  #csi(byte: number): boolean {
    if (byte >= 0x30 && byte <= 0x3b) return false;
    if (byte >= 0x20 && byte <= 0x3f) {
      this.#plainCsi = false;
      return false;
    }
    const cut = this.#leave(byte);
    return cut && !(this.#plainCsi && PLAIN_FINALS.has(byte));
  }

  #enterString(state: State, isApc: boolean, introducerBytes: number): void {
    this.#state = state;
    this.#isApc = isApc;
    this.#headerLength = 0;
    this.#stringBytes = introducerBytes;
  }

  #count(byte: number): void {
    this.#stringBytes += 1;
    if (this.#headerLength < HEADER_BYTES_MAX) {
      this.#header[this.#headerLength] = byte;
      this.#headerLength += 1;
    }
  }

  #string(byte: number): boolean {
    const bell = byte === 0x07 && this.#state === OSC;
    if (byte !== 0x1b && byte !== 0x18 && byte !== 0x1a && !bell) {
      this.#count(byte);
      return false;
    }
    this.#stringBytes += 1;
    this.#endString(bell || byte === 0x1b);
    this.#state = byte === 0x1b ? ESCAPE : GROUND;
    return true;
  }

  #endString(complete: boolean): void {
    const state = this.#state;
    if (state < OSC || !complete) {
      this.#kittyBytes = 0;
      return;
    }
    const header = Buffer.from(this.#header.buffer, 0, this.#headerLength).toString('latin1');
    if (state === IGNORED_STRING && this.#isApc && header.startsWith('G')) {
      this.#endKittyChunk(header);
    } else if (state === OSC && /^1337;(?:Multipart)?File=/.test(header)) {
      this.#picture = { protocol: 'iterm2', sizeBytes: this.#stringBytes };
    } else if (state === DCS && /^[0-9;]*q/.test(header)) {
      this.#picture = { protocol: 'sixel', sizeBytes: this.#stringBytes };
    }
  }

  /** A kitty picture comes in chunks, `m=1` in all but the last. */
  #endKittyChunk(header: string): void {
    const keys = header.slice(1).split(';', 1)[0] ?? '';
    const shows = /(?:^|,)a=[tT](?:,|$)/.test(keys);
    if (this.#kittyBytes === 0 && !shows && !/(?:^|,)m=1(?:,|$)/.test(keys)) return;
    this.#kittyBytes += this.#stringBytes;
    if (/(?:^|,)m=1(?:,|$)/.test(keys)) {
      // The backslash of its terminator, before the next chunk begins.
      this.#kittyBytes += 1;
      return;
    }
    this.#picture = { protocol: 'kitty', sizeBytes: this.#kittyBytes };
    this.#kittyBytes = 0;
  }
}

/** The index of the next byte that is not plain text for the scanner: ESC, BEL or 0xC2. */
function skipText(bytes: Uint8Array, from: number): number {
  let index = from;
  for (; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (byte === 0x1b || byte === 0x07 || byte === 0xc2) break;
  }
  return index;
}
