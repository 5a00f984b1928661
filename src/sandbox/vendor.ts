// The page's library files, and its emoji font, straight from the installed packages: no build
// step, no second copy.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Path on the server → package to look up, and the browser build beside its main file. */
const FILES: Readonly<Record<string, { readonly from: string; readonly file: string }>> = {
  '/vendor/preact.js': { from: 'preact', file: 'preact.module.js' },
  '/vendor/preact-hooks.js': { from: 'preact/hooks', file: 'hooks.module.js' },
  '/vendor/htm.js': { from: 'htm', file: 'htm.module.js' },
  '/vendor/emoji.woff2': { from: 'twemoji-colr-font/package.json', file: 'twemoji.woff2' },
};

/** The file behind a /vendor/ path, or undefined for any other. */
export function vendorFile(pathname: string): string | undefined {
  const known = Object.hasOwn(FILES, pathname) ? FILES[pathname] : undefined;
  if (known === undefined) return undefined;
  return join(dirname(createRequire(import.meta.url).resolve(known.from)), known.file);
}
