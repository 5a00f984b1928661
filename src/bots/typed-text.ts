// Smart punctuation back to what a keyboard sends. Clients of both platforms replace quotes and
// dashes while people type; a shell takes the replacements literally. Pure.

/**
 * Replacements, each the inverse of what macOS, iOS and the desktop clients do: curly quotes for
 * straight ones, an em dash for two hyphens, an ellipsis for three dots, a no-break space for a
 * space. An en dash stands for one hyphen: it gets there by pasting.
 */
const PLAIN: Readonly<Record<string, string>> = {
  '\u201c': '"',
  '\u201d': '"',
  '\u201e': '"',
  '\u201f': '"',
  '\u2018': "'",
  '\u2019': "'",
  '\u201a': "'",
  '\u201b': "'",
  '\u2014': '--',
  '\u2013': '-',
  '\u2026': '...',
  '\u00a0': ' ',
};

/** Makes smart punctuation plain. Text written as code must not pass through here. */
export function plainPunctuation(text: string): string {
  return text.replace(
    /[\u201c-\u201f\u2018-\u201b\u2013\u2014\u2026\u00a0]/g,
    (mark) => PLAIN[mark] ?? mark,
  );
}
