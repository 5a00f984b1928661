// `npm run bench:control [-- --json]`: what the CLI's warm path and an idle daemon cost, against
// `node -e 0` in the same run. Pairs are run one after the other and their ratios' median counts, so
// that a busy machine slows both sides alike. Exit code 1 when a target is missed.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { buildChatd } from '../support/chatd-build.ts';
import { chatdHome } from '../support/chatd-home.ts';

interface BenchRow {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly against: string;
  readonly ratio: number | null;
  readonly target: string;
  readonly ok: boolean;
}

const PAIRS = 41;
const RATIO_MAX = 1.6;
const IDLE_MS = 20_000;
const IDLE_PERCENT_MAX = 0.5;
/** Two heartbeats and some. */
const TRACE_SECS = 12;

function timeMs(args: readonly string[], env: NodeJS.ProcessEnv): number {
  const startNs = process.hrtime.bigint();
  const ran = spawnSync(process.execPath, args, { env, stdio: 'ignore' });
  const ms = Number(process.hrtime.bigint() - startNs) / 1e6;
  if (ran.status !== 0) throw new Error(`node ${args.join(' ')} ended with ${ran.status ?? '?'}`);
  return ms;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function compare(name: string, args: readonly string[], env: NodeJS.ProcessEnv): BenchRow {
  const pairs = Array.from({ length: PAIRS }, () => {
    const base = timeMs(['-e', '0'], env);
    return { base, ours: timeMs(args, env) };
  });
  const ratio = median(pairs.map(({ base, ours }) => ours / base));
  return {
    name,
    value: median(pairs.map(({ ours }) => ours)),
    unit: 'ms',
    against: `node -e 0: ${median(pairs.map(({ base }) => base)).toFixed(1)} ms`,
    ratio,
    target: `≤ ${RATIO_MAX} ×`,
    ok: ratio <= RATIO_MAX,
  };
}

/** Ticks of 10 ms of user and system time. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function idle(pid: number): Promise<BenchRow> {
  const before = cpuMs(pid);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const percent = ((cpuMs(pid) - before) / IDLE_MS) * 100;
  return {
    name: 'idle daemon',
    value: percent,
    unit: '% core',
    against: `${IDLE_MS / 1000} s`,
    ratio: null,
    target: `< ${IDLE_PERCENT_MAX} %`,
    ok: percent < IDLE_PERCENT_MAX,
  };
}

/** Counts fsync calls while heartbeats are written. Undefined where tracing is not possible. */
function syncs(pid: number): BenchRow | undefined {
  const traced = spawnSync(
    'timeout',
    [
      '-s',
      'INT',
      String(TRACE_SECS),
      'strace',
      '-f',
      '-e',
      'trace=fsync,fdatasync,rename',
      '-p',
      String(pid),
    ],
    { encoding: 'utf8' },
  );
  const beats = traced.stderr.match(/rename\("[^"]*state\.json/g)?.length ?? 0;
  if (beats === 0) return undefined;
  const count = traced.stderr.match(/f(data)?sync\(/g)?.length ?? 0;
  return {
    name: 'fsyncs of heartbeats',
    value: count,
    unit: 'calls',
    against: `${beats} heartbeats`,
    ratio: null,
    target: '0',
    ok: count === 0,
  };
}

function print(rows: readonly BenchRow[]): void {
  if (process.argv.includes('--json')) {
    console.log(JSON.stringify(rows));
    return;
  }
  for (const row of rows) {
    const value = row.value.toPrecision(3).padStart(7);
    const ratio = row.ratio === null ? '' : `${row.ratio.toFixed(2)} ×`;
    console.log(
      `${row.ok ? 'ok  ' : 'MISS'} ${row.name.padEnd(22)} ${value} ${row.unit.padEnd(7)} ${ratio.padStart(7)}  ${row.target.padEnd(8)} (${row.against})`,
    );
  }
}

const build = await buildChatd();
const home = chatdHome(build);
try {
  const started = await home.act(['ensure', 'slack']);
  const pid = started.after?.pid ?? 0;
  // Both sides of a pair run in the environment that the bench was called in, as a shell's do.
  const env = { ...process.env, CHATD_HOME: home.path };
  const traced = syncs(pid);
  const rows = [
    compare('status', [build.cli, 'status'], env),
    compare('warm ensure', [build.cli, 'ensure', 'slack'], env),
    await idle(pid),
    ...(traced === undefined ? [] : [traced]),
  ];
  print(rows);
  if (rows.some((row) => !row.ok)) process.exitCode = 1;
} finally {
  home.destroy();
  build.remove();
}
