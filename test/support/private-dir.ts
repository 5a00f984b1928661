// A private directory that is removed after the test by itself.

import { afterEach } from 'vitest';
import { tempDir } from './temp-dir.ts';

const made: { remove(): void }[] = [];

afterEach(() => {
  for (const directory of made.splice(0)) directory.remove();
});

/** The path of a new directory of mode 0700. */
export function privateDir(): string {
  const directory = tempDir();
  made.push(directory);
  return directory.path;
}
