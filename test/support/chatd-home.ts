// A private home for chatd in a test: configuration, state and runtime directory, the CLI run in it,
// and every process that names it killed afterwards.

import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DaemonPaths, daemonPaths } from '../../src/base/paths.ts';
import type { ActionResult } from '../../src/control/outcomes.ts';
import { parseState, type StateRecord } from '../../src/control/records.ts';
import type { ChatdBuild } from './chatd-build.ts';
import { tempDir } from './temp-dir.ts';

export const SLACK_CONFIG = `[slack]
bot_token = "env:BOT"
app_token = "env:APP"
team_id = "T0123"
app_id = "A0123"
`;

export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ChatdHome {
  readonly path: string;
  readonly daemon: DaemonPaths;
  /** Runs the CLI to its end. */
  run(args: readonly string[], fixture?: object): Promise<CliRun>;
  /** Runs ensure, stop or reload of slack with --json. */
  act(args: readonly string[], fixture?: object): Promise<ActionResult>;
  state(): StateRecord | undefined;
  configure(text: string): void;
  /** Pids of processes that were started with this home. */
  pids(): number[];
  /** Kills what runs and removes the directory. */
  destroy(): void;
}

export function chatdHome(build: ChatdBuild, config = SLACK_CONFIG): ChatdHome {
  const directory = tempDir();
  const { path } = directory;
  const daemon = daemonPaths(join(path, 'state'), 'slack');
  const configure = (text: string): void =>
    writeFileSync(join(path, 'chatd.toml'), text, { mode: 0o600 });
  configure(config);
  mkdirSync(join(path, 'run'), { mode: 0o700 });
  const run = (args: readonly string[], fixture: object = {}): Promise<CliRun> => {
    const env = {
      PATH: process.env['PATH'],
      HOME: path,
      XDG_RUNTIME_DIR: join(path, 'run'),
      CHATD_HOME: path,
      CHATD_FIXTURE: JSON.stringify(fixture),
    };
    return collect(spawn(process.execPath, [build.cli, ...args], { env, cwd: path }));
  };
  return {
    path,
    daemon,
    run,
    act: async (args, fixture) => {
      const done = await run([...args, '--json'], fixture);
      try {
        const [result] = JSON.parse(done.stdout) as ActionResult[];
        if (result === undefined || result.exitCode !== done.code) throw new Error('no result');
        return result;
      } catch {
        throw new Error(`chatd ${args.join(' ')}: ${JSON.stringify(done)}`);
      }
    },
    state: () => {
      try {
        const parsed = parseState(readFileSync(daemon.state));
        return parsed.kind === 'record' ? parsed.record : undefined;
      } catch {
        return undefined;
      }
    },
    configure,
    pids: () => pidsOf(path),
    destroy: () => {
      for (const pid of pidsOf(path)) kill(pid);
      directory.remove();
    },
  };
}

function collect(child: ReturnType<typeof spawn>): Promise<CliRun> {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** Processes whose environment has this home: daemons keep it from the CLI that started them. */
function pidsOf(home: string): number[] {
  const wanted = `CHATD_HOME=${home}\0`;
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(wanted);
      } catch {
        return false;
      }
    });
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Ended already.
  }
}
