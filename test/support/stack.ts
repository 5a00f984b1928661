// chatd as installed, in a private directory: the sandbox as a process, both daemons, keeper and host
// from dist. Everything it started is ended by `close`, proven by the kernel.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Kind } from '../../src/base/paths.ts';
import {
  type ChatWorld,
  Control,
  type DiscordFacts,
  discordWorld,
  slackWorld,
} from './chat-world.ts';

/** Generous: a busy two-core machine starts four Node processes for one test. */
const DEADLINE_MS = 60_000;

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StackOptions {
  readonly dist: string;
  /** Added to chatd.toml. */
  readonly config?: string;
  readonly kinds?: readonly Kind[];
  /** Arguments of the sandbox. */
  readonly sandbox?: readonly string[];
}

export class Stack {
  readonly home: string;
  readonly control: Control;
  readonly worlds: Readonly<Record<Kind, ChatWorld>>;
  readonly #dist: string;
  readonly #sandbox: ChildProcess;

  private constructor(
    home: string,
    dist: string,
    sandbox: ChildProcess,
    control: Control,
    worlds: Readonly<Record<Kind, ChatWorld>>,
  ) {
    this.home = home;
    this.#dist = dist;
    this.#sandbox = sandbox;
    this.control = control;
    this.worlds = worlds;
  }

  static async start(options: StackOptions): Promise<Stack> {
    const home = mkdtempSync(join(tmpdir(), 'chatd-'));
    mkdirSync(join(home, 'work'));
    const sandbox = spawn(
      process.execPath,
      [join(options.dist, 'sandbox.js'), '--json', ...(options.sandbox ?? [])],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const ready = await firstLine(sandbox);
    const facts = JSON.parse(ready) as {
      readonly url: string;
      readonly slack: Parameters<typeof slackWorld>[1];
      readonly discord: DiscordFacts;
    };
    const control = new Control(facts.url);
    const secret = (name: string, value: string): string => {
      writeFileSync(join(home, name), value, { mode: 0o600 });
      return `file:${name}`;
    };
    const worlds = {
      slack: slackWorld(control, facts.slack, secret),
      discord: discordWorld(control, facts.discord, secret),
    };
    const kinds = options.kinds ?? ['slack', 'discord'];
    const config = [
      ...kinds.map((kind) => worlds[kind].facts.config),
      `[defaults]\nshell = "/bin/bash"\ncwd = ${JSON.stringify(join(home, 'work'))}\ncols = 80\nrows = 24`,
      options.config ?? '',
    ].join('\n\n');
    writeFileSync(join(home, 'chatd.toml'), config, { mode: 0o600 });
    chmodSync(join(home, 'chatd.toml'), 0o600);
    return new Stack(home, options.dist, sandbox, control, worlds);
  }

  /** Runs the CLI on this stack's directory. */
  cli(...args: readonly string[]): Promise<CliResult> {
    return new Promise((resolve) => {
      execFile(
        process.execPath,
        [join(this.#dist, 'cli.js'), '--home', this.home, ...args],
        { timeout: DEADLINE_MS, env: { ...process.env, HOME: this.home } },
        (error, stdout, stderr) => {
          const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
          resolve({ code, stdout, stderr });
        },
      );
    });
  }

  /** @throws {Error} with what the CLI said, unless it exits 0 */
  async mustCli(...args: readonly string[]): Promise<string> {
    const result = await this.cli(...args);
    if (result.code !== 0) {
      throw new Error(
        `chatd ${args.join(' ')} exited ${result.code}: ${result.stdout}${result.stderr}`,
      );
    }
    return result.stdout;
  }

  daemonPid(kind: Kind): number {
    return pidIn(join(this.home, 'state', 'daemons', kind, 'state.json'));
  }

  hostPid(): number {
    return pidIn(join(this.home, 'state', 'host', 'host.json'));
  }

  /** Ends daemons, host, sessions, keeper and sandbox, and removes the directory. */
  async close(): Promise<void> {
    await this.cli('stop', '--force');
    await this.cli('host', 'stop', '--end-sessions');
    killAllUnder(this.home);
    this.#sandbox.kill('SIGTERM');
    await exited(this.#sandbox);
    rmSync(this.home, { recursive: true, force: true });
  }
}

function pidIn(file: string): number {
  const record = JSON.parse(readFileSync(file, 'utf8')) as {
    pid?: number;
    incarnation?: { pid: number };
  };
  const pid = record.pid ?? record.incarnation?.pid;
  if (pid === undefined) throw new Error(`no pid in ${file}`);
  return pid;
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    if (child.stdout === null) throw new Error('no stdout');
    const lines = createInterface({ input: child.stdout });
    lines.once('line', resolve);
    child.once('exit', (code) => reject(new Error(`the sandbox exited with ${code}`)));
  });
}

function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', () => resolve()));
}

/**
 * Processes of this stack that are left: they name its directory in their arguments. Keeper and host
 * start each other again, so look until nobody is there.
 */
function killAllUnder(home: string): void {
  for (let round = 0; round < 50; round += 1) {
    const left = processesNaming(home);
    if (left.length === 0) return;
    for (const pid of left) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Ended by itself in between.
      }
    }
  }
}

function processesNaming(text: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => commandLine(name).includes(text))
    .map(Number);
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** Waits until `look` answers something; a fact, not a time. @throws {Error} after `deadlineMs` */
export async function waitFor<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  deadlineMs = DEADLINE_MS,
): Promise<T> {
  const endMs = Date.now() + deadlineMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await look();
      if (value !== undefined) return value;
    } catch (error) {
      last = error;
    }
    if (Date.now() > endMs) throw new Error(`Never came: ${what}`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
