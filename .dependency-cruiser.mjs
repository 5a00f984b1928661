// Which folder may import which. This table is the architecture; docs/ARCHITECTURE.md explains it.
const mayImport = {
  base: [],
  sys: ['base'],
  ownership: ['base', 'sys'],
  term: ['base'],
  store: ['base'],
  pty: ['base', 'sys', 'ownership', 'term'],
  control: ['base', 'sys', 'ownership'],
  bots: ['base', 'store', 'term', 'pty'],
  daemon: ['base', 'sys', 'ownership', 'control', 'store', 'bots', 'pty'],
  sandbox: ['base'],
};
// Which file or folder may import which outside package.
const homeOf = {
  koffi: 'src/sys/',
  'node-pty': 'src/pty/keeper/native-pty\\.ts$',
  '@xterm/[^/]+': 'src/term/',
  'discord\\.js|@discordjs/[^/]+|discord-api-types': 'src/bots/discord/',
  '@slack/[^/]+': 'src/bots/slack/',
  '@photostructure/sqlite': 'src/store/',
  '@napi-rs/canvas': 'src/bots/render/',
  '@secretlint/[^/]+': 'src/bots/render/',
  'smol-toml': 'src/config\\.ts$',
  commander: 'src/(main|cli/.*)\\.ts$',
  pino: 'src/base/',
  msgpackr: 'src/pty/',
  busboy: 'src/sandbox/',
  ws: 'src/sandbox/',
};
const layers = Object.entries(mayImport).map(([folder, allowed]) => ({
  name: `layer-${folder}`,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: { path: '^src/', pathNot: `^src/(${[folder, ...allowed].join('|')})/` },
}));
const homes = Object.entries(homeOf).map(([dependency, home]) => ({
  name: `home-${dependency.replace(/[^a-z]+/g, '-')}`,
  severity: 'error',
  from: { path: '^src/', pathNot: home },
  to: { path: `^node_modules/(${dependency})/` },
}));
export default {
  forbidden: [
    ...layers,
    ...homes,
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'platforms-are-strangers',
      severity: 'error',
      from: { path: '^src/bots/(discord|slack)/' },
      to: { path: '^src/bots/(discord|slack)/', pathNot: '^src/bots/$1/' },
    },
    {
      name: 'bridge-knows-no-platform',
      severity: 'error',
      from: { path: '^src/bots/[^/]+\\.ts$|^src/bots/render/' },
      to: { path: '^src/bots/(discord|slack)/' },
    },
    {
      name: 'keeper-is-tiny',
      severity: 'error',
      from: { path: '^src/pty/keeper/' },
      to: {
        path: '^src/',
        pathNot: '^src/(base|sys|ownership|pty/keeper)/|^src/pty/keeper-protocol\\.ts$',
      },
    },
    {
      name: 'host-and-keeper-share-only-their-protocol',
      severity: 'error',
      from: { path: '^src/pty/host/' },
      to: { path: '^src/pty/keeper/' },
    },
    {
      name: 'others-see-the-host-through-its-client',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/pty/|^src/cli/|^src/main\\.ts$' },
      to: { path: '^src/pty/', pathNot: '^src/pty/(client|protocol)\\.ts$' },
    },
    {
      name: 'bots-see-terminals-as-values',
      severity: 'error',
      from: { path: '^src/bots/' },
      to: { path: '^src/term/', pathNot: '^src/term/values\\.ts$' },
    },
    {
      name: 'daemon-sees-the-port',
      severity: 'error',
      from: { path: '^src/daemon/', pathNot: '-main\\.ts$' },
      to: { path: '^src/bots/(discord|slack)/' },
    },
    {
      name: 'src-knows-no-test',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^test/' },
    },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^src/sandbox/web/' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true, // Type-only imports count: they couple designs too.
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
    },
  },
};
