// Bundles one ESM file per process into dist/. Native and asset packages stay external: they are
// loaded from node_modules at run time.
//   node scripts/build.mjs [outdir] [name=file …]
// With name=file only the CLI and those entries are built: tests put fixtures in a daemon's place.

import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { build } from 'esbuild';

const [outdir = 'dist', ...replaced] = process.argv.slice(2);
const processes = {
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
  '@azurity/pure-nerd-font',
  'twemoji-colr-font',
  '@fontsource/*',
  // Optional accelerators of ws and discord.js; absent here.
  'bufferutil',
  'utf-8-validate',
  'zlib-sync',
  '@discordjs/opus',
  'ffmpeg-static',
];
const wanted =
  replaced.length > 0 ? Object.fromEntries(replaced.map((word) => word.split('='))) : processes;
const entryPoints = Object.fromEntries(
  Object.entries(wanted).filter(([, file]) => existsSync(file)),
);
const common = {
  outdir,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  splitting: true,
  external,
  legalComments: 'none',
  logLevel: 'warning',
  // Bundled CommonJS packages call require; ESM has none.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
};
await rm(outdir, { recursive: true, force: true });
await mkdir(outdir, { recursive: true });
await build({ ...common, entryPoints, chunkNames: 'chunks/[name]-[hash]' });
// The CLI's warm path (`status`, a warm `ensure`) is one small file that shares nothing with daemons;
// what it imports on demand are bundles of their own beside it.
const onDemand = {
  './cli/program.ts': 'cli-program',
  './spawn-daemon.ts': 'cli-spawn-daemon',
  '../ownership/spawn-ready.ts': 'cli-spawn-ready',
};
const demand = {
  name: 'demand',
  setup(bundler) {
    bundler.onResolve({ filter: /\.ts$/ }, ({ path, kind }) =>
      kind === 'dynamic-import' && path in onDemand
        ? { path: `./${onDemand[path]}.js`, external: true }
        : undefined,
    );
  },
};
// It is the one CommonJS file: Node reads that at once, without the loader of modules and its trips
// through the thread pool, which saves a tenth of `node -e 0`.
const warm = await build({
  ...common,
  entryPoints: { cli: 'src/main.ts' },
  outExtension: { '.js': '.cjs' },
  format: 'cjs',
  splitting: false,
  minify: true,
  plugins: [demand],
  metafile: true,
  define: { 'import.meta.url': '__url' },
  banner: { js: "const __url = require('node:url').pathToFileURL(__filename).href;" },
});
// For whoever runs dist/cli.js by that name.
await writeFile(`${outdir}/cli.js`, "#!/usr/bin/env node\nimport './cli.cjs';\n");
await build({
  ...common,
  entryPoints: {
    'cli-program': 'src/cli/program.ts',
    'cli-spawn-daemon': 'src/cli/spawn-daemon.ts',
    'cli-spawn-ready': 'src/ownership/spawn-ready.ts',
  },
  chunkNames: 'chunks/cli-[name]-[hash]',
  minify: true,
});
checkWarmPath(warm.metafile);

/** DETAILS "Build": what the warm path may weigh and must not load. */
function checkWarmPath(metafile) {
  const output = Object.values(metafile.outputs).find((file) => file.entryPoint === 'src/main.ts');
  const heavy = /node_modules\/(pino|msgpackr|@photostructure|@xterm|commander|zod\/v4\/classic)/;
  const found = Object.keys(output.inputs).filter((input) => heavy.test(input));
  if (found.length > 0) throw new Error(`The CLI's warm path loads ${found.join(', ')}`);
  if (output.bytes > 200_000) throw new Error(`The CLI's warm path has ${output.bytes} bytes`);
}
if (existsSync('src/sandbox/web'))
  await cp('src/sandbox/web', `${outdir}/web`, { recursive: true });
for (const name of ['cli.cjs', 'cli.js']) await chmod(`${outdir}/${name}`, 0o755);
