// From where a process stands (directories, environment, configuration) to the options of its host
// client. For composition roots: slack, discord, the CLI.

import { execFile } from 'node:child_process';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { hostPaths, type Paths } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import { chooseStartWay, type RunCommand } from '../ownership/service-cgroup.ts';
import { openFilesLimitOf } from '../sys/limits.ts';
import { readControlGroup } from '../sys/process-facts.ts';
import type { HostClientOptions } from './host-client.ts';
import { passedEnvironment } from './passed-environment.ts';
import type { StartOptions } from './start-host.ts';

export interface HostSurroundings {
  readonly paths: Pick<Paths, 'state' | 'runtime'>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly self: { readonly pid: number; readonly uid: number; readonly parentPid: number };
  readonly role: HostClientOptions['role'];
  /** The `[host]` section. */
  readonly host: {
    readonly autostart: boolean;
    readonly idleExitSecs: number | 'never';
    readonly journalMbPerSession: number;
    readonly journalMbTotal: number;
    readonly sessionsMax: number;
  };
  /** Absolute directory of the bundles, the interpreter to run them with, and their version. */
  readonly dist: string;
  readonly interpreter: string;
  readonly version: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly patienceMs?: number;
}

const RUN_TIMEOUT_MS = 5_000;
const SWITCHED_OFF = /^(0|false|off|no)$/i;

export function hostClientOptions(from: HostSurroundings): HostClientOptions {
  const { clock, random, log, role, self, patienceMs } = from;
  const paths = hostPaths(from.paths, self.uid);
  const autostart =
    from.host.autostart && !SWITCHED_OFF.test(from.environment['CHATD_AUTOSTART'] ?? '');
  return {
    paths,
    uid: self.uid,
    pid: self.pid,
    role,
    clock,
    random,
    log,
    start: autostart ? hostStartOptions(from) : undefined,
    ...(patienceMs === undefined ? {} : { patienceMs }),
  };
}

/** What keeper and host are started with from here. */
export function hostStartOptions(from: HostSurroundings): StartOptions {
  const { autostart: _, idleExitSecs, ...settings } = from.host;
  return {
    interpreter: from.interpreter,
    dist: from.dist,
    version: from.version,
    settings: {
      ...settings,
      idleExitSecs: idleExit(from.environment['CHATD_HOST_IDLE_EXIT_SECS'], idleExitSecs),
    },
    state: from.paths.state,
    runtime: from.paths.runtime,
    environment: passedEnvironment(from.environment),
    openFiles: openFilesLimitOf(from.self.parentPid)?.soft,
    startWay: () => chooseStartWay(readControlGroup(), runCommand),
  };
}

/** 0 or `never`: it does not end by itself. */
function idleExit(fromEnvironment: string | undefined, configured: number | 'never'): number {
  const text = fromEnvironment ?? String(configured);
  const seconds = Number(text);
  return text === '' || !Number.isFinite(seconds) || seconds < 0 ? 0 : seconds;
}

const runCommand: RunCommand = (file, args) =>
  new Promise((resolve) => {
    execFile(file, [...args], { timeout: RUN_TIMEOUT_MS }, (error, stdout) => {
      if (error === null) resolve({ code: 0, stdout });
      else resolve(typeof error.code === 'number' ? { code: error.code, stdout } : undefined);
    });
  });
