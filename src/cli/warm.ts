// The two commands that scripts and shells call all the time, `status` and `ensure`, in their plain
// forms. Everything else, every other option and every mistake is left to program.ts: this file knows
// no help and no error.

import { parseArgs } from 'node:util';
import type { GlobalFlags, Run } from './context.ts';
import { runEnsure } from './ensure.ts';
import { runStatus } from './status.ts';

export interface WarmCommand {
  readonly flags: GlobalFlags;
  readonly run: Run;
}

/** Undefined unless every word is understood. */
export function parseWarm(words: readonly string[]): WarmCommand | undefined {
  const parsed = parseWords(words);
  if (parsed === undefined) return undefined;
  const { values, positionals } = parsed;
  const [command, kind, ...rest] = positionals;
  if (rest.length > 0) return undefined;
  const flags = { home: values.home, json: values.json === true, verbose: false };
  if (command === 'status') {
    return { flags, run: (context) => runStatus(context, kind, { explain: false }) };
  }
  if (command === 'ensure') {
    return { flags, run: (context) => runEnsure(context, kind, { noWait: false }) };
  }
  return undefined;
}

function parseWords(words: readonly string[]): ReturnType<typeof parse> | undefined {
  try {
    return parse(words);
  } catch {
    // Another option, or none of ours: program.ts knows.
    return undefined;
  }
}

const OPTIONS = { home: { type: 'string' }, json: { type: 'boolean' } } as const;

function parse(words: readonly string[]): {
  readonly values: { readonly home?: string | undefined; readonly json?: boolean | undefined };
  readonly positionals: readonly string[];
} {
  return parseArgs({ args: words, options: OPTIONS, allowPositionals: true });
}
