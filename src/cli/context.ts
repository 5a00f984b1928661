// What every subcommand gets from main.ts: places, flags and where to print.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ChatdError } from '../base/errors.ts';
import { KINDS, type Kind, type Paths } from '../base/paths.ts';

export interface CliContext {
  readonly paths: Paths;
  /** As given by --home, for the processes we start. */
  readonly home: string | undefined;
  readonly json: boolean;
  readonly verbose: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of the bundles. */
  readonly bundles: string;
  readonly self: { readonly pid: number; readonly uid: number };
  /** One line to stdout. */
  readonly out: (text: string) => void;
  /** One line to stderr. */
  readonly err: (text: string) => void;
}

export interface GlobalFlags {
  readonly home: string | undefined;
  readonly json: boolean;
  readonly verbose: boolean;
}

/** A subcommand: returns its exit code. */
export type Run = (context: CliContext) => Promise<number>;

/** Runs a subcommand in a context made from the flags, prints its failure, sets the exit code. */
export type Finish = (flags: GlobalFlags, run: Run) => Promise<void>;

/** The kinds a person means. @throws {ChatdError} config-invalid for any other word */
export function kindsOf(word: string | undefined): {
  readonly kinds: readonly Kind[];
  readonly named: boolean;
} {
  if (word === undefined || word === 'all') return { kinds: KINDS, named: false };
  return { kinds: [kindOf(word)], named: true };
}

/** @throws {ChatdError} config-invalid */
export function kindOf(word: string): Kind {
  const kind = KINDS.find((candidate) => candidate === word);
  if (kind !== undefined) return kind;
  throw new ChatdError('config-invalid', `Cannot use kind ${word}: expected slack or discord`);
}

/** The bundle of one process. @throws {ChatdError} not-built */
export function bundlePath(context: CliContext, name: string): string {
  const path = join(context.bundles, `${name}.js`);
  if (existsSync(path)) return path;
  throw new ChatdError('not-built', `Cannot find ${path}: run "npm run build" first`);
}
