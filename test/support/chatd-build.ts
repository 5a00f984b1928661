// Builds the CLI with the fixture daemon in the place of the real ones, by the real build script, into
// a folder inside the project (native packages are found from there).

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

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
  const fixture = 'test/support/fixture-daemon-main.ts';
  await promisify(execFile)(
    process.execPath,
    ['scripts/build.mjs', bundles, `slack=${fixture}`, `discord=${fixture}`],
    { cwd: ROOT },
  );
  return {
    bundles,
    cli: join(bundles, 'cli.cjs'),
    remove: () => rmSync(top, { recursive: true, force: true }),
  };
}
