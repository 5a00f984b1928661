// The bundles that tests start as real processes. `npm test` builds dist/ first; a test run by
// itself builds into a directory of its own when dist/ is missing or older than the sources.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** Absolute path of a directory with keeper.js, host.js and the other bundles of these sources. */
export function builtDist(): string {
  const digest = sourcesDigest();
  const parent = join(root, 'node_modules', '.cache', 'chatd-dist');
  const directory = join(parent, digest);
  if (existsSync(join(directory, 'keeper.js'))) return directory;
  mkdirSync(parent, { recursive: true });
  const temporary = join(parent, `${digest}.${process.pid}`);
  const built = spawnSync(process.execPath, ['scripts/build.mjs', temporary], {
    cwd: root,
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(`Cannot build: ${built.stderr}`);
  try {
    renameSync(temporary, directory);
  } catch {
    // Another worker was first with the same sources.
    rmSync(temporary, { recursive: true, force: true });
  }
  for (const name of readdirSync(parent)) {
    const old = join(parent, name);
    const ageMs = Date.now() - statSync(old).mtimeMs;
    if (name !== digest && ageMs > 3_600_000) rmSync(old, { recursive: true, force: true });
  }
  return directory;
}

function sourcesDigest(): string {
  const hash = createHash('sha256');
  for (const file of ['scripts/build.mjs', 'package.json', ...sources('src')]) {
    hash.update(file).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex').slice(0, 16);
}

function sources(directory: string): string[] {
  return readdirSync(join(root, directory), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(directory, entry.name);
      return entry.isDirectory() ? sources(path) : [path];
    });
}
