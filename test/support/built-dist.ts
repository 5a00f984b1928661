// The bundles that tests run: built by `npm test` before anything else.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Absolute path of dist/. @throws {Error} when it was not built */
export function builtDist(): string {
  const dist = fileURLToPath(new URL('../../dist', import.meta.url));
  if (!existsSync(join(dist, 'cli.js'))) throw new Error('There is no build: run npm run build');
  return dist;
}
