#!/usr/bin/env node
// The CLI: arguments in, one subcommand, an exit code out. Each subcommand's file is loaded only when
// it is used, so that `status` and a warm `ensure` stay near the cost of starting Node.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { config } from 'zod/mini';
import { type ErrorCode, errorCode, errorText } from './base/errors.ts';
import { resolvePaths } from './base/paths.ts';
import type { CliContext, GlobalFlags, Run } from './cli/context.ts';
import { parseWarm } from './cli/warm.ts';

/** Exit codes of chatd and of every process it starts. */
const EXIT = {
  /** Done; also attached, already, nothing to do. */
  done: 0,
  /** Failed, reason printed. */
  failed: 1,
  /** Usage or configuration. */
  usage: 2,
  /** Somebody else owns it: adopt. */
  occupied: 20,
  /** Refused: off, newer, unauthorized. */
  refused: 21,
  /** Versions do not fit. */
  versions: 22,
  /** Host or daemon lost and not back in time. */
  lost: 23,
  /** Outcome not known. */
  unknown: 24,
  /** Time ran out. */
  late: 25,
} as const;

const EXIT_OF_ERROR: { readonly [code in ErrorCode]?: number } = {
  'config-invalid': EXIT.usage,
  'state-directory-unusable': EXIT.usage,
  'endpoint-path-too-long': EXIT.usage,
  'platform-credentials': EXIT.usage,
  'wrong-account': EXIT.usage,
  occupied: EXIT.occupied,
  refused: EXIT.refused,
  'version-mismatch': EXIT.versions,
  'host-unreachable': EXIT.lost,
  'host-starting': EXIT.lost,
  'ownership-unknown': EXIT.unknown,
  'deadline-exceeded': EXIT.late,
};

/** Where the bundles are; run from source, where they would be. */
function bundleDirectory(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const folder = here.endsWith('/chunks') ? dirname(here) : here;
  return existsSync(join(folder, 'main.ts')) ? join(dirname(folder), 'dist') : folder;
}

function contextOf(options: GlobalFlags): CliContext {
  return {
    paths: resolvePaths(process.env, options.home),
    home: options.home,
    json: options.json,
    verbose: options.verbose,
    env: process.env,
    bundles: bundleDirectory(),
    self: { pid: process.pid, uid: process.getuid?.() ?? 0 },
    out: (text) => {
      process.stdout.write(`${text}\n`);
    },
    err: (text) => {
      process.stderr.write(`${text}\n`);
    },
  };
}

/** Runs a subcommand and sets the exit code. Users get one line; -v adds the stack. */
async function finish(flags: GlobalFlags, run: Run): Promise<void> {
  try {
    process.exitCode = await run(contextOf(flags));
  } catch (error) {
    process.stderr.write(`chatd: ${errorText(error)}\n`);
    if (flags.verbose && error instanceof Error) process.stderr.write(`${error.stack ?? ''}\n`);
    const code = errorCode(error);
    process.exitCode = code === undefined ? EXIT.failed : (EXIT_OF_ERROR[code] ?? EXIT.failed);
  }
}

async function main(): Promise<void> {
  const warm = parseWarm(process.argv.slice(2));
  if (warm !== undefined) {
    await finish(warm.flags, warm.run);
    return;
  }
  const { runProgram } = await import('./cli/program.ts');
  const usage = await runProgram(process.argv, finish);
  if (usage === 'wrong') process.exitCode = EXIT.usage;
}

// Compiling validators pays off after thousands of documents; a CLI reads three.
config({ jitless: true });
main().catch((error: unknown) => {
  process.stderr.write(`chatd: ${errorText(error)}\n`);
  process.exitCode = EXIT.failed;
});
