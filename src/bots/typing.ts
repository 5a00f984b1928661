// From text a person wrote to the writes a PTY gets. Pure. A multi-line text is a bracketed paste
// where the program asked for those, so that a shell or an agent takes it as one; Enter is a write
// of its own, because programs take an Enter glued to a paste for a newline.

/** Canonical mode delivers at most this many bytes of one line, silently (SESSIONS.md §2.4). */
export const CANONICAL_LINE_BYTES_MAX = 4095;

export interface TypingModes {
  readonly bracketedPaste: boolean;
}

/** The bytes to write, in order, each as one write. */
export function typingWrites(
  text: string,
  enter: boolean,
  modes: TypingModes,
): readonly Uint8Array[] {
  // What a terminal's own paste does: no ESC, or the text could close the paste and press keys.
  const clean = text.replaceAll('\x1b', '').replaceAll('\r\n', '\n');
  const body = clean.includes('\n') && modes.bracketedPaste ? paste(clean) : lines(clean);
  const writes: Uint8Array[] = [];
  if (body !== '') writes.push(Buffer.from(body));
  if (enter) writes.push(Buffer.from('\r'));
  return writes;
}

function paste(text: string): string {
  return `\x1b[200~${text}\x1b[201~`;
}

function lines(text: string): string {
  return text.replaceAll('\n', '\r');
}

/** The longest line of `text` in bytes, its Enter included. */
export function longestLineBytes(text: string): number {
  return Math.max(...text.split('\n').map((line) => Buffer.byteLength(line) + 1));
}
