// Names of keys and the bytes a terminal sends for them. Pure.

/** Terminal modes that change what a key sends. */
export interface KeyModes {
  /** DECCKM: arrows, Home and End send SS3 instead of CSI. */
  readonly applicationCursor: boolean;
}

/** Chosen: more keys than a person means to press with one word. */
const KEYS_MAX = 200;

const FIXED: Readonly<Record<string, string>> = {
  enter: '\r',
  return: '\r',
  tab: '\t',
  'shift-tab': '\x1b[Z',
  esc: '\x1b',
  escape: '\x1b',
  space: ' ',
  backspace: '\x7f',
  delete: '\x1b[3~',
  del: '\x1b[3~',
  insert: '\x1b[2~',
  pageup: '\x1b[5~',
  pgup: '\x1b[5~',
  pagedown: '\x1b[6~',
  pgdn: '\x1b[6~',
  f1: '\x1bOP',
  f2: '\x1bOQ',
  f3: '\x1bOR',
  f4: '\x1bOS',
  f5: '\x1b[15~',
  f6: '\x1b[17~',
  f7: '\x1b[18~',
  f8: '\x1b[19~',
  f9: '\x1b[20~',
  f10: '\x1b[21~',
  f11: '\x1b[23~',
  f12: '\x1b[24~',
};

const CURSOR: Readonly<Record<string, string>> = {
  up: 'A',
  down: 'B',
  right: 'C',
  left: 'D',
  end: 'F',
  home: 'H',
};

export type KeysParse =
  | { readonly kind: 'keys'; readonly bytes: string }
  | { readonly kind: 'unknown'; readonly name: string }
  | { readonly kind: 'too-many'; readonly max: number };

/**
 * Parses `ctrl-c`, `^C`, `down*3`, `alt-b`, `"text"`, `f5`, one or more separated by blanks, into
 * what is written to the PTY.
 */
export function parseKeys(source: string, modes: KeyModes): KeysParse {
  let bytes = '';
  let count = 0;
  for (const token of tokens(source)) {
    const { name, times } = repeated(token);
    const key = keyBytes(name, modes);
    if (key === undefined) return { kind: 'unknown', name: token };
    count += times;
    if (count > KEYS_MAX) return { kind: 'too-many', max: KEYS_MAX };
    bytes += key.repeat(times);
  }
  return { kind: 'keys', bytes };
}

function tokens(source: string): readonly string[] {
  return source.match(/"[^"]*"(\*\d+)?|\S+/g) ?? [];
}

function repeated(token: string): { readonly name: string; readonly times: number } {
  const match = /^(.+)\*(\d{1,3})$/.exec(token);
  if (match?.[1] === undefined) return { name: token, times: 1 };
  return { name: match[1], times: Number(match[2]) };
}

/** The bytes of one key, or undefined for a name nobody knows. */
export function keyBytes(name: string, modes: KeyModes): string | undefined {
  if (name.length >= 2 && name.startsWith('"') && name.endsWith('"')) return name.slice(1, -1);
  const lower = name.toLowerCase();
  const cursor = CURSOR[lower];
  if (cursor !== undefined) return `\x1b${modes.applicationCursor ? 'O' : '['}${cursor}`;
  const fixed = FIXED[lower];
  if (fixed !== undefined) return fixed;
  const modified = /^(?:(?:ctrl|control|c)[-+]|\^)(.+)$/.exec(lower);
  if (modified?.[1] !== undefined) return controlBytes(modified[1]);
  const meta = /^(?:alt|meta|m)[-+](.+)$/i.exec(name);
  if (meta?.[1] !== undefined) {
    const inner = meta[1].length === 1 ? meta[1] : keyBytes(meta[1], modes);
    return inner === undefined ? undefined : `\x1b${inner}`;
  }
  return [...name].length === 1 ? name : undefined;
}

/** Ctrl with a letter or one of `@ [ \ ] ^ _ ?` and space: ASCII's own table. */
function controlBytes(key: string): string | undefined {
  if (key === 'space' || key === '@') return '\0';
  if (key === '?') return '\x7f';
  if (!/^[a-z[\\\]^_]$/.test(key)) return undefined;
  return String.fromCharCode(key.toUpperCase().charCodeAt(0) & 0x1f);
}
