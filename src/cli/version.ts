// The version of the installed package, as it is on disk now.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export function programVersionOf(bundles: string): string {
  try {
    const text = readFileSync(join(bundles, '..', 'package.json'), 'utf8');
    return /"version":\s*"([^"]+)"/.exec(text)?.[1] ?? 'unknown';
  } catch {
    return 'unknown';
  }
}
