// Bundles a TypeScript entry for child processes and worker threads of tests, once per run: they
// start in 50 ms instead of 400 ms, and need no loader.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

// Below node_modules, so that packages kept external resolve.
const OUT = resolve('node_modules/.cache/chatd-test');
const bundles = new Map<string, Promise<string>>();

/** Absolute path of the bundle of `entry` (a path from the project's root). */
export function bundleForChild(entry: string): Promise<string> {
  let bundle = bundles.get(entry);
  if (bundle === undefined) {
    bundle = make(entry);
    bundles.set(entry, bundle);
  }
  return bundle;
}

async function make(entry: string): Promise<string> {
  const built = await build({
    entryPoints: [resolve(entry)],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    sourcemap: 'inline',
    logLevel: 'error',
  });
  const text = built.outputFiles[0]?.text ?? '';
  const outfile = join(OUT, `${createHash('sha256').update(text).digest('hex').slice(0, 16)}.mjs`);
  if (existsSync(outfile)) return outfile;
  mkdirSync(OUT, { recursive: true });
  const temporary = `${outfile}.${process.pid}`;
  writeFileSync(temporary, text);
  renameSync(temporary, outfile);
  return outfile;
}
