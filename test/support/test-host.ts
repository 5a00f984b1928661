// A real keeper and host in a temporary state directory, started on demand by real clients; every
// process of it is killed afterwards.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/base/log.ts';
import { hostPaths } from '../../src/base/paths.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import {
  type CreateRequest,
  connectHost,
  type HostControl,
  type LineFeed,
  type SessionInfo,
  type SessionState,
} from '../../src/pty/client.ts';
import type { KeeperStatus } from '../../src/pty/keeper-protocol.ts';
import type { StartOptions } from '../../src/pty/start-host.ts';
import { askKeeper } from '../../src/pty/start-host.ts';
import { builtDist } from './build.ts';

const DEADLINE_MS = 40_000;

export class TestHost {
  readonly state: string;
  readonly paths: ReturnType<typeof hostPaths>;
  readonly start: StartOptions;
  readonly #clients: HostControl[] = [];
  #token = 0;

  constructor(settings: Partial<StartOptions['settings']> = {}) {
    this.state = mkdtempSync(join(tmpdir(), 'chatd-host-'));
    const uid = process.getuid?.() ?? 0;
    this.paths = hostPaths({ state: this.state, runtime: undefined }, uid);
    this.start = {
      interpreter: process.execPath,
      dist: builtDist(),
      version: '0.0.0-test',
      settings: {
        idleExitSecs: 0,
        journalMbPerSession: 64,
        journalMbTotal: 2048,
        sessionsMax: 200,
        ...settings,
      },
      state: this.state,
      runtime: undefined,
      environment: { PATH: process.env['PATH'], HOME: process.env['HOME'], LANG: 'C.UTF-8' },
      openFiles: 1024,
    };
  }

  client(options: { autostart?: boolean; patienceMs?: number } = {}): HostControl {
    const client = connectHost({
      paths: this.paths,
      uid: process.getuid?.() ?? 0,
      pid: process.pid,
      role: 'bot',
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      start: options.autostart === false ? undefined : this.start,
      patienceMs: options.patienceMs ?? 30_000,
    });
    this.#clients.push(client);
    return client;
  }

  request(command: readonly string[], more: Partial<CreateRequest> = {}): CreateRequest {
    this.#token += 1;
    return {
      token: `t${this.#token}`,
      command,
      cwd: this.state,
      env: {},
      cols: 80,
      rows: 24,
      actor: 'test',
      ...more,
    };
  }

  keeperStatus(): Promise<KeeperStatus> {
    return askKeeper(
      this.paths.keeperSocket,
      { t: 'status' },
      systemClock,
      10_000,
    ) as Promise<KeeperStatus>;
  }

  hostPid(): number {
    return Number(readFileSync(this.paths.hostPid, 'utf8'));
  }

  /** Kills every process whose command line or environment names our directory. */
  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    for (let round = 0; round < 5; round += 1) {
      const pids = this.#processes();
      if (pids.length === 0) break;
      for (const pid of pids) kill(pid);
      await systemClock.sleep(50);
    }
    rmSync(this.state, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Keeper first: a host that outlives it would start another. Shells by their directory. */
  #processes(): number[] {
    const found: { pid: number; keeper: boolean }[] = [];
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
      const command = readOrEmpty(`/proc/${name}/cmdline`);
      const environment = readOrEmpty(`/proc/${name}/environ`);
      if (!command.includes(this.state) && !environment.includes(`PWD=${this.state}`)) continue;
      found.push({ pid: Number(name), keeper: command.includes('keeper.js') });
    }
    return found.sort((a, b) => Number(b.keeper) - Number(a.keeper)).map((item) => item.pid);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Waits for a fact, looking every few milliseconds. */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const endMs = systemClock.monotonicMs() + DEADLINE_MS;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (systemClock.monotonicMs() > endMs) throw new Error(`Waited in vain for ${what}`);
    await systemClock.sleep(10);
  }
}

export function targetOf(info: SessionInfo): { sessionId: string; incarnation: string } {
  return { sessionId: info.sessionId, incarnation: info.incarnation };
}

/** All lines of a feed: final ones and the tail. */
export async function allLines(feed: LineFeed): Promise<string[]> {
  const { view } = feed;
  if (view === undefined) return [];
  const lines: string[] = [];
  while (lines.length < view.finalCount) {
    const read = await feed.readLines(lines.length, view.finalCount);
    if (read.lines.length === 0) throw new Error(`lines missing at ${lines.length}`);
    lines.push(...read.lines.map((line) => line.text));
  }
  return [...lines, ...view.tail.map((line) => line.text)];
}

export async function whenExited(
  feed: LineFeed,
): Promise<Extract<SessionState, { kind: 'exited' }>> {
  return await until('exit', () => (feed.state.kind === 'exited' ? feed.state : undefined));
}

/** Collects the bytes of a session, checking that offsets are continuous. */
export class ByteSink {
  readonly chunks: Buffer[] = [];
  next: number;
  exited: SessionState | undefined;
  skipped = 0;
  problem: string | undefined;
  statuses: string[] = [];

  constructor(from = 0) {
    this.next = from;
  }

  bytes(offset: number, bytes: Uint8Array): void {
    if (offset !== this.next) {
      this.problem = `offset ${offset}, expected ${this.next}`;
      throw new Error(this.problem);
    }
    this.chunks.push(Buffer.from(bytes));
    this.next = offset + bytes.length;
  }

  snapshot(to: number, _snapshot: unknown, gap: { from: number; to: number } | undefined): void {
    this.skipped += gap === undefined ? 0 : gap.to - gap.from;
    this.next = to;
  }

  status(status: { kind: string }): void {
    this.statuses.push(status.kind);
  }

  setExited(state: SessionState): void {
    this.exited = state;
  }

  text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  listener(): {
    bytes: (offset: number, bytes: Uint8Array) => void;
    snapshot: (
      to: number,
      snapshot: unknown,
      gap: { from: number; to: number } | undefined,
    ) => void;
    exited: (state: SessionState) => void;
    status: (status: { kind: string }) => void;
  } {
    return {
      bytes: (offset, bytes) => this.bytes(offset, bytes),
      snapshot: (to, snapshot, gap) => this.snapshot(to, snapshot, gap),
      exited: (state) => this.setExited(state),
      status: (status) => this.status(status),
    };
  }
}
