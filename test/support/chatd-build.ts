// Builds the CLI with the fixture daemon in the place of the real ones, once per test run, into a
// folder inside the project (native packages are found from there).

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '..', '..');

export interface ChatdBuild {
  readonly bundles: string;
  readonly cli: string;
  remove(): void;
}

export async function buildChatd(): Promise<ChatdBuild> {
  const parent = join(ROOT, 'node_modules', '.cache', 'chatd-tests');
  mkdirSync(parent, { recursive: true });
  const top = mkdtempSync(join(parent, 'b-'));
  const bundles = join(top, 'dist');
  await build({
    entryPoints: {
      cli: join(ROOT, 'src/main.ts'),
      slack: join(ROOT, 'test/support/fixture-daemon-main.ts'),
      discord: join(ROOT, 'test/support/fixture-daemon-main.ts'),
    },
    outdir: bundles,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    external: ['koffi', '@photostructure/sqlite', 'node-pty', 'node-pty/*', '@lydell/*'],
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
  });
  return {
    bundles,
    cli: join(bundles, 'cli.js'),
    remove: () => rmSync(top, { recursive: true, force: true }),
  };
}
