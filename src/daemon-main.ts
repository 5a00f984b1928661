// What every chat daemon's entry shares: arguments, configuration, log, signals, exit. slack-main.ts
// and discord-main.ts add what they serve; everything they need is loaded before `owned` is said.

import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Clock } from './base/clock.ts';
import { ChatdError, errnoCode, errorText } from './base/errors.ts';
import { mintId } from './base/ids.ts';
import type { Log } from './base/log.ts';
import {
  type DaemonPaths,
  daemonPaths,
  type Kind,
  type Paths,
  resolvePaths,
} from './base/paths.ts';
import type { Random } from './base/random.ts';
import { systemClock } from './base/system-clock.ts';
import { openFileLog } from './base/system-log.ts';
import { systemRandom } from './base/system-random.ts';
import { programVersionOf } from './cli/version.ts';
import { type Config, loadConfig } from './config.ts';
import { systemMachineTime } from './control/machine-time.ts';
import { type DaemonExit, type Prepared, runChatDaemon } from './daemon/chat-daemon.ts';
import { exclusivityDirectories } from './daemon/token-exclusivity.ts';
import { takeAnnouncer } from './ownership/spawn-ready.ts';
import type { StoreMarker } from './store/store.ts';

/** What a service is built from. */
export interface ServiceEnvironment {
  readonly config: Config;
  readonly paths: Paths;
  readonly daemonPaths: DaemonPaths;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of the bundles: keeper.js and host.js are beside this daemon's. */
  readonly bundles: string;
  /** The store as state.json last recorded it; undefined: there was none. */
  readonly knownStore: StoreMarker | undefined;
  readonly machineName: string;
  /** Absolute path of the program that runs bundles. */
  readonly interpreter: string;
  readonly programVersion: string;
  readonly self: { readonly pid: number; readonly uid: number };
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** Called after ownership is recorded. @throws {ChatdError} config-invalid for a bad secret, … */
export type ServiceBuilder = (environment: ServiceEnvironment) => Promise<Prepared>;

/** Runs the daemon of `kind` in this process until it ends, then exits. */
export async function runDaemonMain(kind: Kind, build: ServiceBuilder): Promise<void> {
  let exit: DaemonExit;
  try {
    exit = await start(kind, build);
  } catch (error) {
    const settings = error instanceof ChatdError && error.code === 'config-invalid';
    exit = { code: settings ? 2 : 1, message: errorText(error) };
  }
  if (exit.message !== '') process.stderr.write(`chatd ${kind}: ${exit.message}\n`);
  // A socket that does not close must not keep a daemon alive that no longer owns anything.
  process.exit(exit.code);
}

async function start(kind: Kind, build: ServiceBuilder): Promise<DaemonExit> {
  const { values } = parseArgs({
    options: {
      home: { type: 'string' },
      'owner-id': { type: 'string' },
      verbose: { type: 'boolean', short: 'v' },
    },
  });
  const announcer = takeAnnouncer(process.env);
  const paths = resolvePaths(process.env, values.home);
  const config = loadConfig(paths.config);
  const identity = config.identityOf(kind);
  if (identity === undefined) {
    return { code: 21, message: `off: set [${kind}] enabled = true in ${paths.config}` };
  }
  const files = daemonPaths(paths.state, kind);
  const level = values.verbose === true ? 'debug' : 'info';
  const { log, close, rotate } = openFileLog(files.log, { kind, pid: process.pid }, level);
  dieLoudly(log);
  const self = { pid: process.pid, uid: process.getuid?.() ?? 0 };
  const programVersion = programVersionOf(bundleDirectory());
  try {
    return await runChatDaemon({
      kind,
      stateDirectory: paths.state,
      paths: files,
      tokenDirectories: exclusivityDirectories(paths.runtime, self.uid),
      identity,
      configHash: config.hashOf(kind),
      ownerId: values['owner-id'] ?? `${self.pid}-${mintId(systemRandom)}`,
      programVersion,
      interpreter: `${process.execPath} ${process.version}`,
      self,
      clock: systemClock,
      machine: systemMachineTime(),
      random: systemRandom,
      log,
      rotateLog: rotate,
      announceOwned: () => announcer.announce('owned'),
      onTerminate: (listener) => {
        // Repeated signals ask for the same again; none is a harder exit.
        for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, listener);
      },
      prepare: (knownStore) =>
        build({
          knownStore,
          config,
          paths,
          daemonPaths: files,
          env: process.env,
          bundles: bundleDirectory(),
          machineName: hostname(),
          interpreter: process.execPath,
          programVersion,
          self,
          clock: systemClock,
          random: systemRandom,
          log,
        }),
    });
  } finally {
    await close();
  }
}

/** A bug ends the process: its successor recovers from what is on disk. */
function dieLoudly(log: Log): void {
  process.on('uncaughtException', (error) => {
    log.error('process.crashed', { error });
    process.stderr.write(`chatd: crashed: ${errorText(error)}\n`);
    // One turn for the log's line.
    setImmediate(() => process.exit(1));
  });
}

/**
 * Rejections that nobody awaits: those that come out of a chat SDK cost a rebuilt connection, all
 * others are bugs and end the process as any uncaught error does.
 */
export function healRejections(
  classify: (error: unknown) => 'ours' | 'not-ours',
  platform: { rebuild(reason: string): void },
  log: Log,
): void {
  process.on('unhandledRejection', (reason: unknown) => {
    if (classify(reason) === 'not-ours') throw reason;
    log.warn('sdk.rejected', { code: errnoCode(reason) ?? 'none' });
    platform.rebuild('the SDK failed where nobody waits');
  });
}

/** Where this bundle is; run from source, where the bundles would be. */
export function bundleDirectory(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const above = dirname(here);
  // A chunk of a bundle is in dist/chunks.
  if (here.endsWith('/chunks')) return above;
  return existsSync(join(here, 'main.ts')) ? join(above, 'dist') : here;
}
