// `npm run bench:host`: what sessions cost and how fast they are, in one run against peers: a raw
// reader in C, raw node-pty, tmux. Prints a table, or rows with --json; exit 1 on a missed target.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { systemClock } from '../../src/base/system-clock.ts';
import type { HostControl, SessionInfo } from '../../src/pty/client.ts';
import { SessionFiles } from '../../src/pty/host/session-files.ts';
import { Workers } from '../../src/pty/host/workers.ts';
import { openTerminal } from '../../src/pty/keeper/native-pty.ts';
import { closeFd, openPipe } from '../../src/sys/fd.ts';
import { spawnProcess } from '../../src/sys/spawn.ts';
import { reap } from '../../src/sys/wait.ts';
import { builtDist } from '../support/build.ts';
import { ByteSink, TestHost, targetOf, until } from '../support/test-host.ts';

/** The part of node-pty's public API that the peers need; its own types are no module. */
interface NodePty {
  spawn(file: string, args: readonly string[], options: object): Pty;
}

interface Pty {
  onData(listener: (data: string | Buffer) => void): void;
  onExit(listener: () => void): void;
  write(text: string): void;
  kill(): void;
}

const nodePty = createRequire(import.meta.url)('node-pty') as NodePty;

interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The peer's value, when the target is a ratio. */
  readonly against: number | null;
  readonly ratio: number | null;
  readonly target: string;
  readonly ok: boolean;
}

const rows: Row[] = [];
const MB = 1024 * 1024;
const FILE_MB = 64;
const quick = process.argv.includes('--quick');
const fileBytes = (quick ? 16 : FILE_MB) * MB;
const runs = quick ? 1 : 3;

function atMost(name: string, value: number, unit: string, limit: number): void {
  const target = `<= ${limit} ${unit}`;
  rows.push({ name, value, unit, against: null, ratio: null, target, ok: value <= limit });
}

function ratio(
  name: string,
  value: number,
  unit: string,
  peer: number,
  kind: '>=' | '<=',
  limit: number,
): void {
  const by = value / peer;
  const ok = Number.isFinite(by) && (kind === '>=' ? by >= limit : by <= limit);
  rows.push({ name, value, unit, against: peer, ratio: by, target: `${kind} ${limit} x`, ok });
}

const median = (values: readonly number[]): number => percentile(values, 0.5);

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

async function repeated(run: () => Promise<number>): Promise<number> {
  const values: number[] = [];
  for (let round = 0; round < runs; round += 1) values.push(await run());
  return median(values);
}

const work = mkdtempSync(join(tmpdir(), 'chatd-bench-'));
const big = join(work, 'big');

function writeBig(): number {
  const line = Buffer.from(
    `${'The quick brown fox jumps over the lazy dog. '.repeat(2).slice(0, 79)}\n`,
  );
  writeFileSync(big, Buffer.alloc(fileBytes, line));
  // The terminal turns each newline into two bytes.
  return fileBytes + Math.floor(fileBytes / line.length);
}

// ── Peers ─────────────────────────────────────────────────────────────────────────────────────

/** MB per second of the C reader; undefined without a compiler. */
function rawReaderC(): number | undefined {
  const source = join(dirname(fileURLToPath(import.meta.url)), 'raw-reader.c');
  const binary = join(work, 'raw-reader');
  const built = spawnSync('cc', ['-O2', '-o', binary, source, '-lutil']);
  if (built.status !== 0) return undefined;
  const speeds = Array.from({ length: runs }, () => {
    const [bytes = 0, seconds = 1] = spawnSync(binary, ['cat', big], { encoding: 'utf8' })
      .stdout.split(' ')
      .map(Number);
    return bytes / MB / seconds;
  });
  return median(speeds);
}

/** `cat` through node-pty's public API, bytes counted. */
function rawNodePty(): Promise<number> {
  return new Promise((resolve) => {
    const startMs = systemClock.monotonicMs();
    let bytes = 0;
    const pty = nodePty.spawn('cat', [big], { encoding: null, cols: 80, rows: 24 });
    pty.onData((data) => {
      bytes += data.length;
    });
    pty.onExit(() => resolve(bytes / MB / ((systemClock.monotonicMs() - startMs) / 1000)));
  });
}

const hasTmux = spawnSync('tmux', ['-V']).status === 0;

class Tmux {
  readonly #socket = `chatd-bench-${process.pid}`;
  pty: Pty | undefined;

  #run(...args: string[]): void {
    spawnSync('tmux', ['-L', this.#socket, ...args]);
  }

  /** A server with one attached client whose terminal is ours. */
  async attach(command: string): Promise<Pty> {
    this.#run(
      '-f',
      '/dev/null',
      'new-session',
      '-d',
      '-x',
      '80',
      '-y',
      '24',
      '-s',
      'main',
      command,
    );
    const pty = nodePty.spawn('tmux', ['-L', this.#socket, 'attach', '-t', 'main'], {
      cols: 80,
      rows: 24,
      env: { ...process.env, TERM: 'xterm-256color' },
    });
    this.pty = pty;
    let seen = 0;
    pty.onData((data) => {
      seen += data.length;
    });
    await until('tmux', () => seen > 0);
    await systemClock.sleep(300);
    return pty;
  }

  window(command: string): void {
    this.#run('new-window', '-d', command);
  }

  stop(): void {
    this.#run('kill-server');
    this.pty?.kill();
  }
}

/** From the command's start to its end, with a client attached. */
async function tmuxThroughput(): Promise<number> {
  const tmux = new Tmux();
  const go = join(work, 'go');
  const done = join(work, 'done');
  for (const name of [go, done]) rmSync(name, { force: true });
  await tmux.attach(
    `sh -c 'while [ ! -e ${go} ]; do sleep 0.01; done; cat ${big}; touch ${done}; sleep 100'`,
  );
  const startMs = systemClock.monotonicMs();
  writeFileSync(go, '');
  await until('tmux to finish', () => existsSync(done));
  const seconds = (systemClock.monotonicMs() - startMs) / 1000;
  tmux.stop();
  return fileBytes / MB / seconds;
}

/** Key to echo, one at a time. */
async function latencies(
  count: number,
  send: (text: string) => void,
  echoed: () => Promise<void>,
): Promise<number[]> {
  const found: number[] = [];
  for (let key = 0; key < count + 20; key += 1) {
    const seen = echoed();
    const startMs = systemClock.monotonicMs();
    send('abcdefghij'.charAt(key % 10));
    await seen;
    if (key >= 20) found.push(systemClock.monotonicMs() - startMs);
    await systemClock.sleep(2);
  }
  return found;
}

const FLOOD = 'while :; do seq 1 100000; done';

async function tmuxLatency(floods: number): Promise<number[]> {
  const tmux = new Tmux();
  const pty = await tmux.attach("sh -c 'stty raw -echo; exec cat'");
  for (let index = 0; index < floods; index += 1) tmux.window(`sh -c '${FLOOD}'`);
  await systemClock.sleep(500);
  let wake: () => void = () => undefined;
  let wanted = '';
  pty.onData((data) => {
    if (wanted !== '' && data.includes(wanted)) wake();
  });
  const found = await latencies(
    quick ? 60 : 300,
    (text) => {
      wanted = text;
      pty.write(text);
    },
    () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
  );
  tmux.stop();
  return found;
}

// ── Ours ──────────────────────────────────────────────────────────────────────────────────────

/** The reader thread alone: terminal → pipe → journal, no emulator. */
async function journalThroughput(): Promise<number> {
  const dist = builtDist();
  const url = (name: string): URL => pathToFileURL(join(dist, name));
  const directory = mkdtempSync(join(work, 'journal-'));
  let closed: (offset: number) => void = () => undefined;
  const files = new SessionFiles(directory);
  const workers: Workers = new Workers(
    { reader: url('host-reader.js'), model: url('host-model.js') },
    {
      reader: (message) => {
        if (message.t === 'closed') closed(message.offset);
        if (message.t === 'filled') {
          files.closeSegment(message.index);
          workers.toReader({ t: 'segment', slot: 0, segment: files.open(message.index + 2) });
        }
        if (message.t === 'grew') workers.shared.clearTold(0, 'main');
      },
      model: () => undefined,
      failed: (thread, because) => {
        throw new Error(`${thread}: ${because}`);
      },
    },
  );
  workers.takeSlot(0, 0);
  const terminal = openTerminal(80, 24);
  const pipe = openPipe({ nonBlocking: true });
  await systemClock.sleep(200);
  const done = new Promise<number>((resolve) => {
    closed = resolve;
  });
  const startMs = systemClock.monotonicMs();
  workers.toReader({
    t: 'add',
    slot: 0,
    master: terminal.master,
    pipeRead: pipe.read,
    pipeWrite: pipe.write,
    lostFd: files.lostFd,
    from: 0,
    segments: files.openAround(0),
  });
  const child = spawnProcess({
    file: '/bin/cat',
    argv: ['cat', big],
    environment: {},
    terminal: terminal.path,
  });
  closeFd(terminal.slave);
  const offset = await done;
  const seconds = (systemClock.monotonicMs() - startMs) / 1000;
  await new Promise<void>((resolve) => workers.stop(() => undefined, resolve));
  for (const fd of [terminal.master, pipe.read, pipe.write]) closeFd(fd);
  if (child.kind === 'started') reap(child.pid);
  files.close();
  rmSync(directory, { recursive: true });
  return offset / MB / seconds;
}

async function follow(client: HostControl, info: SessionInfo): Promise<ByteSink> {
  const sink = new ByteSink();
  const listener = {
    ...sink.listener(),
    bytes: (offset: number, bytes: Uint8Array) => {
      sink.next = offset + bytes.length;
    },
  };
  const target = { ...targetOf(info), sinceOffset: 0, lossless: true };
  await client.followBytes(target, listener);
  return sink;
}

/** `count` sessions at once, each delivered whole to an attached client, models on. */
async function deliveredThroughput(
  host: TestHost,
  client: HostControl,
  count: number,
  total: number,
): Promise<number> {
  const go = join(work, `go-${Math.random()}`);
  const script = `while [ ! -e ${go} ]; do sleep 0.01; done; exec cat ${big}`;
  const sessions = await Promise.all(
    Array.from({ length: count }, () => client.create(host.request(['sh', '-c', script]))),
  );
  const sinks = await Promise.all(sessions.map((info) => follow(client, info)));
  const startMs = systemClock.monotonicMs();
  writeFileSync(go, '');
  await until('all delivered', () => sinks.every((sink) => sink.exited !== undefined));
  const seconds = (systemClock.monotonicMs() - startMs) / 1000;
  const bytes = sinks.reduce((sum, sink) => sum + sink.next, 0);
  if (bytes !== total * count) throw new Error(`delivered ${bytes} of ${total * count}`);
  return bytes / MB / seconds;
}

async function ourLatency(host: TestHost, client: HostControl, floods: number): Promise<number[]> {
  const info = await client.create(host.request(['sh', '-c', 'stty raw -echo; echo ok; exec cat']));
  const noise = await Promise.all(
    Array.from({ length: floods }, () => client.create(host.request(['sh', '-c', FLOOD]))),
  );
  let wake: () => void = () => undefined;
  let ready = false;
  await client.followBytes(
    { ...targetOf(info), sinceOffset: 0 },
    {
      bytes: (_offset, bytes) => {
        ready ||= Buffer.from(bytes).includes('ok');
        wake();
      },
      snapshot: () => undefined,
      exited: () => undefined,
      status: () => undefined,
    },
  );
  await until('raw mode', () => ready);
  await systemClock.sleep(500);
  let number = 0;
  const found = await latencies(
    quick ? 60 : 300,
    (text) => {
      number += 1;
      const bytes = Buffer.from(text);
      client
        .input({ ...targetOf(info), messageId: `l${number}`, actor: 'bench', bytes })
        .catch(() => undefined);
    },
    () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
  );
  await Promise.all([info, ...noise].map((one) => client.kill(targetOf(one), 'bench')));
  return found;
}

const rssMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** Ticks of 10 ms used so far. */
function cpuTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

async function costs(): Promise<void> {
  const host = new TestHost({ sessionsMax: 2_000 });
  const client = host.client();
  try {
    await client.list();
    const keeper = (await host.keeperStatus()).pid;
    const pids = [keeper, host.hostPid()];
    const memory = (): number => pids.reduce((sum, pid) => sum + rssMb(pid), 0);
    const create = (command: string[]): Promise<SessionInfo> =>
      client.create(host.request(command));
    for (let index = 0; index < 5; index += 1) await create(['sleep', '1000']);
    const before = memory();
    for (let index = 0; index < 95; index += 1) await create(['sleep', '1000']);
    await systemClock.sleep(500);
    atMost('memory per fresh session', (memory() - before) / 95, 'MB', 1);
    await systemClock.sleep(6_000);
    const ticks = pids.map(cpuTicks);
    await systemClock.sleep(10_000);
    const used = pids.reduce((sum, pid, index) => sum + cpuTicks(pid) - (ticks[index] ?? 0), 0);
    atMost('100 idle sessions', ((used * 10) / 10_000) * 100, '% of a core', 0.5);

    const beforeLines = memory();
    const lines = await Promise.all(
      Array.from({ length: 20 }, () => create(['sh', '-c', 'seq 1 10000; exec sleep 1000'])),
    );
    await until('their lines', async () => {
      const known = await client.list();
      return lines.every(
        (one) => (known.find((info) => info.sessionId === one.sessionId)?.finalCount ?? 0) > 9_900,
      );
    });
    await systemClock.sleep(1_000);
    atMost('memory per session of 10,000 lines', (memory() - beforeLines) / 20, 'MB', 4);

    const info = await create([
      'sh',
      '-c',
      'head -c 1048576 /dev/zero | tr "\\\\0" x; exec sleep 1000',
    ]);
    await until(
      'one megabyte',
      async () =>
        ((await client.list()).find((one) => one.sessionId === info.sessionId)?.offset ?? 0) >= MB,
    );
    const attachMs: number[] = [];
    for (let round = 0; round < 20; round += 1) {
      let got = 0;
      let done: () => void = () => undefined;
      const all = new Promise<void>((resolve) => {
        done = resolve;
      });
      const startMs = systemClock.monotonicMs();
      const feed = await client.followBytes(
        { ...targetOf(info), sinceOffset: 0 },
        {
          bytes: (_offset, bytes) => {
            got += bytes.length;
            if (got >= MB) done();
          },
          snapshot: () => undefined,
          exited: () => undefined,
          status: () => undefined,
        },
      );
      await all;
      attachMs.push(systemClock.monotonicMs() - startMs);
      feed.close();
    }
    atMost('reattach, 1 MB', median(attachMs), 'ms', 5);
    const snapshotMs: number[] = [];
    for (let round = 0; round < 50; round += 1) {
      const startMs = systemClock.monotonicMs();
      await client.snapshot(targetOf(info));
      snapshotMs.push(systemClock.monotonicMs() - startMs);
    }
    atMost('snapshot of a quiet screen', median(snapshotMs), 'ms', 1);
    if (!quick) {
      const startMs = systemClock.monotonicMs();
      for (let index = 0; index < 880; index += 1) await create(['sleep', '1000']);
      const known = await client.list();
      for (const one of known) {
        const feed = await client.followLines(targetOf(one));
        feed.close();
      }
      const running = known.filter((one) => one.state.kind === 'running').length;
      rows.push({
        name: `1,000 sessions start, list, attach (${running} running)`,
        value: (systemClock.monotonicMs() - startMs) / 1000,
        unit: 's',
        against: null,
        ratio: null,
        target: 'all run',
        ok: running >= 1_000,
      });
    }
  } finally {
    await host.stop();
  }
}

async function coldStart(): Promise<void> {
  const over: number[] = [];
  for (let round = 0; round < (quick ? 2 : 5); round += 1) {
    const nodeStart = systemClock.monotonicMs();
    spawnSync(process.execPath, ['-e', '0']);
    const nodeMs = systemClock.monotonicMs() - nodeStart;
    const host = new TestHost();
    try {
      const startMs = systemClock.monotonicMs();
      await host.client().list();
      over.push(systemClock.monotonicMs() - startMs - nodeMs);
    } finally {
      await host.stop();
    }
  }
  atMost('cold start over node -e 0', median(over), 'ms', 250);
}

/** The longest silence in a stream that never pauses, across a hand-over of 50 sessions. */
async function handOverGap(): Promise<void> {
  const host = new TestHost();
  const client = host.client();
  try {
    for (let index = 0; index < 49; index += 1) {
      await client.create(host.request(['sh', '-c', 'while :; do echo x; sleep 0.5; done']));
    }
    // Each line says when it was written; the journal's reader can hold none of them up for long.
    const stamp = 'while :; do date +%s%3N; done';
    const info = await client.create(host.request(['sh', '-c', stamp]));
    let text = '';
    await client.followBytes(
      { ...targetOf(info), sinceOffset: 0 },
      {
        bytes: (_offset, bytes) => {
          text += Buffer.from(bytes).toString();
        },
        snapshot: () => undefined,
        exited: () => undefined,
        status: () => undefined,
      },
    );
    await until('a stream', () => text.length > 5_000);
    const before = client.instance;
    const startMs = systemClock.monotonicMs();
    await client.reload(process.execPath, join(host.start.dist, 'host.js'), 'bench');
    await until('the next host', async () => {
      await client.list();
      return client.instance !== before;
    });
    rows.push({
      name: 'hand-over of 50 sessions, asked to answered',
      value: systemClock.monotonicMs() - startMs,
      unit: 'ms',
      against: null,
      ratio: null,
      target: 'told',
      ok: true,
    });
    const log = readFileSync(host.paths.hostLog, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
    const at = (event: string): number => {
      const line = log.findLast((one) => one.includes(event));
      return line === undefined
        ? Number.NaN
        : Date.parse((JSON.parse(line) as { time: string }).time);
    };
    atMost(
      'hand-over: reading gap',
      at('host.became-reading') - at('host.stopped-reading'),
      'ms',
      150,
    );
  } finally {
    await host.stop();
  }
}

async function stalledClient(): Promise<void> {
  const host = new TestHost();
  const client = host.client();
  try {
    const calm = await ourLatency(host, client, 1);
    const info = await client.create(host.request(['sh', '-c', FLOOD]));
    const stalled = host.client();
    await stalled.followBytes(
      { ...targetOf(info), sinceOffset: 0 },
      {
        bytes: () => new Promise<void>(() => undefined),
        snapshot: () => undefined,
        exited: () => undefined,
        status: () => undefined,
      },
    );
    await systemClock.sleep(1_500);
    const offset = async (): Promise<number> =>
      (await client.list()).find((one) => one.sessionId === info.sessionId)?.offset ?? 0;
    const from = await offset();
    const before = rssMb(host.hostPid());
    const beside = await ourLatency(host, client, 0);
    await systemClock.sleep(2_000);
    atMost('flood into a stalled client: host memory', rssMb(host.hostPid()) - before, 'MB', 32);
    const moved = ((await offset()) - from) / MB;
    rows.push({
      name: 'flood into a stalled client: program goes on',
      value: moved,
      unit: 'MB',
      against: null,
      ratio: null,
      target: '> 1 MB',
      ok: moved > 1,
    });
    ratio(
      'echo p99 beside it, to a flood alone',
      percentile(beside, 0.99),
      'ms',
      percentile(calm, 0.99),
      '<=',
      2,
    );
  } finally {
    await host.stop();
  }
}

async function throughputs(total: number): Promise<void> {
  const raw = rawReaderC();
  const journal = await repeated(journalThroughput);
  ratio('into the journal, to a raw reader in C', journal, 'MB/s', raw ?? Number.NaN, '>=', 0.9);
  const pty = await repeated(rawNodePty);
  const host = new TestHost({ journalMbPerSession: 128 });
  const client = host.client();
  try {
    const one = await repeated(() => deliveredThroughput(host, client, 1, total));
    ratio('delivered, model on, to raw node-pty', one, 'MB/s', pty, '>=', 0.55);
    if (hasTmux) {
      ratio('delivered, model on, to tmux', one, 'MB/s', await repeated(tmuxThroughput), '>=', 1);
    }
    const eight = await deliveredThroughput(host, client, 8, total);
    ratio('8 sessions in total, to one', eight, 'MB/s', one, '>=', 0.75);
  } finally {
    await host.stop();
  }
}

async function echoes(): Promise<void> {
  const host = new TestHost();
  const client = host.client();
  try {
    const idle = await ourLatency(host, client, 0);
    atMost('echo p50, idle', median(idle), 'ms', 0.7);
    atMost('echo p99, idle', percentile(idle, 0.99), 'ms', 4);
    const busy = await ourLatency(host, client, 4);
    atMost('echo p99 beside 4 floods', percentile(busy, 0.99), 'ms', 15);
    if (hasTmux) {
      const theirs = await tmuxLatency(0);
      ratio('echo p50, idle, to tmux', median(idle), 'ms', median(theirs), '<=', 2);
      const theirsBusy = await tmuxLatency(4);
      ratio('echo p50 beside 4 floods, to tmux', median(busy), 'ms', median(theirsBusy), '<=', 1);
      ratio(
        'echo p99 beside 4 floods, to tmux',
        percentile(busy, 0.99),
        'ms',
        percentile(theirsBusy, 0.99),
        '<=',
        2.5,
      );
    }
  } finally {
    await host.stop();
  }
}

function print(): void {
  const round = (value: number | null): string =>
    value === null ? '' : value >= 100 ? value.toFixed(0) : value.toFixed(2);
  if (process.argv.includes('--json')) {
    console.log(JSON.stringify(rows, undefined, 1));
    return;
  }
  for (const row of rows) {
    const value = `${round(row.value)} ${row.unit}`.padStart(16);
    const peer = row.against === null ? '' : `peer ${round(row.against)}, ${round(row.ratio)} x`;
    console.log(
      `${row.ok ? 'ok    ' : 'MISSED'} ${row.name.padEnd(48)} ${value}  ${peer.padEnd(26)} ${row.target}`,
    );
  }
}

try {
  const total = writeBig();
  const only = process.argv.find((arg) => arg.startsWith('--only='))?.slice(7);
  const parts: Record<string, () => Promise<void>> = {
    throughput: () => throughputs(total),
    echo: echoes,
    costs,
    cold: coldStart,
    handover: handOverGap,
    stalled: stalledClient,
  };
  for (const [name, run] of Object.entries(parts)) {
    if (only === undefined || only === name) await run();
  }
  print();
} finally {
  rmSync(work, { recursive: true, force: true });
}
process.exit(rows.every((row) => row.ok) ? 0 : 1);
