// Finds the line of a key in a TOML text, for error messages only. It reads headers and keys, not
// values: where a text is too clever for it (multi-line strings that look like keys), the line it
// names may be the table's instead of the key's.

type Path = readonly (string | number)[];

/** The 1-based line that sets `path`, else that of its nearest parent, else 1. */
export function lineOf(text: string, path: Path): number {
  const wanted = path.filter((part) => typeof part === 'string');
  let table: readonly string[] = [];
  let best = { depth: 0, line: 1 };
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[{1,2}([^[\]]+)\]{1,2}\s*(#.*)?$/.exec(line)?.[1];
    if (header !== undefined) table = keyParts(header);
    const key = header === undefined ? leadingKey(line) : [];
    if (key === undefined) continue;
    const full = [...table, ...key];
    const depth = full.length;
    if (depth > best.depth && depth <= wanted.length && startsWith(wanted, full)) {
      best = { depth, line: index + 1 };
    }
  }
  return best.line;
}

function startsWith(path: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((part, index) => path[index] === part);
}

function leadingKey(line: string): readonly string[] | undefined {
  const key = /^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=/;
  const found = key.exec(line)?.[1];
  return found === undefined ? undefined : keyParts(found);
}

function keyParts(text: string): readonly string[] {
  const parts = text.match(/"[^"]*"|'[^']*'|[^\s.]+/g) ?? [];
  return parts.map((part) => part.replace(/^["']|["']$/g, ''));
}
