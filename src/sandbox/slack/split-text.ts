// What Slack does with a posted text that is too long: cuts it into several messages, at a line's
// end where there is one, and never re-opens a code fence.

/** Recommended maximum; what is longer is split (PLATFORM §2.8; about 4,045 was observed). */
export const TEXT_SPLIT_UNITS = 4_000;
/** Beyond this the rest is dropped, with the warning `message_truncated`. */
export const TEXT_MAX_UNITS = 40_000;

export function splitText(text: string): readonly string[] {
  const parts: string[] = [];
  let rest = text;
  while (rest.length > TEXT_SPLIT_UNITS) {
    const cut = cutAt(rest);
    parts.push(rest.slice(0, cut));
    rest = rest.slice(rest[cut] === '\n' ? cut + 1 : cut);
  }
  if (rest.length > 0) parts.push(rest);
  return parts;
}

function cutAt(text: string): number {
  // The newline itself may be the first unit of the next part: it is swallowed by the cut.
  const line = text.lastIndexOf('\n', TEXT_SPLIT_UNITS);
  return line > TEXT_SPLIT_UNITS / 2 ? line : TEXT_SPLIT_UNITS;
}
