// Bundles one ESM file per process into dist/. Native and asset packages stay external: they are
// loaded from node_modules at run time.

import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, rm } from 'node:fs/promises';
import { build } from 'esbuild';

const outdir = process.argv[2] ?? 'dist';
const entries = {
  cli: 'src/main.ts',
  keeper: 'src/pty/keeper/keeper-main.ts',
  host: 'src/pty/host/host-main.ts',
  'host-reader': 'src/pty/host/reader-main.ts',
  'host-model': 'src/pty/host/model-main.ts',
  slack: 'src/slack-main.ts',
  discord: 'src/discord-main.ts',
  sandbox: 'src/sandbox/sandbox-main.ts',
};
const external = [
  'koffi',
  'node-pty',
  'node-pty/*',
  '@lydell/*',
  '@napi-rs/canvas',
  '@photostructure/sqlite',
  'dejavu-fonts-ttf',
  'twemoji-colr-font',
  '@fontsource/*',
  // Optional accelerators of ws and discord.js; absent here.
  'bufferutil',
  'utf-8-validate',
  'zlib-sync',
  '@discordjs/opus',
  'ffmpeg-static',
];
const entryPoints = Object.fromEntries(
  Object.entries(entries).filter(([, file]) => existsSync(file)),
);
await rm(outdir, { recursive: true, force: true });
await mkdir(outdir, { recursive: true });
await build({
  entryPoints,
  outdir,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  external,
  legalComments: 'none',
  logLevel: 'warning',
  // Bundled CommonJS packages call require; ESM has none.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
});
if (existsSync('src/sandbox/web'))
  await cp('src/sandbox/web', `${outdir}/web`, { recursive: true });
if (existsSync(`${outdir}/cli.js`)) await chmod(`${outdir}/cli.js`, 0o755);
