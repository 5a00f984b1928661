// What a button carries: stateless, so that one posted months ago still means the same after any
// restart. Names the session incarnation it was made for; pressed for another one it does nothing.

export type Action =
  | { readonly kind: 'key'; readonly incarnation: string; readonly key: string }
  | { readonly kind: 'screen'; readonly incarnation: string }
  | { readonly kind: 'secret'; readonly incarnation: string }
  /** Types the text that was offered in the message the button belongs to. */
  | { readonly kind: 'offer'; readonly incarnation: string; readonly receipt: string }
  /** Sends the keys that make one of a prompt's choices. */
  | { readonly kind: 'choice'; readonly incarnation: string; readonly keys: string }
  | { readonly kind: 'approve-start'; readonly token: string }
  | { readonly kind: 'decline-start'; readonly token: string };

/** Discord's limit of a custom_id; Slack's is higher. */
const ACTION_CHARS_MAX = 100;

/** Encodes an action of a fixed size. */
export function encodeAction(action: Exclude<Action, { kind: 'choice' }>): string {
  return encode(action);
}

/** Encodes a choice; undefined when its keys do not fit into a button. */
export function encodeChoice(incarnation: string, keys: string): string | undefined {
  const encoded = encode({ kind: 'choice', incarnation, keys });
  return encoded.length > ACTION_CHARS_MAX ? undefined : encoded;
}

function encode(action: Action): string {
  return parts(action).map(encodeURIComponent).join('|');
}

function parts(action: Action): readonly string[] {
  switch (action.kind) {
    case 'key':
      return ['k', action.incarnation, action.key];
    case 'screen':
      return ['s', action.incarnation];
    case 'secret':
      return ['p', action.incarnation];
    case 'offer':
      return ['o', action.incarnation, action.receipt];
    case 'choice':
      return ['c', action.incarnation, action.keys];
    case 'approve-start':
      return ['a', action.token];
    case 'decline-start':
      return ['d', action.token];
  }
}

/** Decodes what a press brought; undefined for what chatd never made. */
export function parseAction(encoded: string): Action | undefined {
  if (encoded.length > ACTION_CHARS_MAX) return undefined;
  const [kind, first, second] = decode(encoded);
  if (kind === undefined || first === undefined || first === '') return undefined;
  switch (kind) {
    case 'k':
      return second === undefined ? undefined : { kind: 'key', incarnation: first, key: second };
    case 's':
      return { kind: 'screen', incarnation: first };
    case 'p':
      return { kind: 'secret', incarnation: first };
    case 'o':
      return second === undefined
        ? undefined
        : { kind: 'offer', incarnation: first, receipt: second };
    case 'c':
      return second === undefined
        ? undefined
        : { kind: 'choice', incarnation: first, keys: second };
    case 'a':
      return { kind: 'approve-start', token: first };
    case 'd':
      return { kind: 'decline-start', token: first };
    default:
      return undefined;
  }
}

function decode(encoded: string): readonly (string | undefined)[] {
  try {
    return encoded.split('|').map(decodeURIComponent);
  } catch {
    return [];
  }
}
