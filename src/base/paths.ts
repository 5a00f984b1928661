// Where everything lives: DESIGN.md "Directories", in one place.

import { createHash } from 'node:crypto';
import { join } from 'node:path';

export type Kind = 'slack' | 'discord';
export const KINDS: readonly Kind[] = ['slack', 'discord'];

export interface Paths {
  /** chatd.toml. */
  readonly config: string;
  /** The state directory; all below is derived from it. */
  readonly state: string;
  /** $XDG_RUNTIME_DIR, or undefined. */
  readonly runtime: string | undefined;
}

/** The part of the environment that decides where things live. */
export interface PathEnvironment {
  readonly HOME?: string | undefined;
  readonly CHATD_HOME?: string | undefined;
  readonly CHATD_CONFIG?: string | undefined;
  readonly CHATD_STATE?: string | undefined;
  readonly XDG_CONFIG_HOME?: string | undefined;
  readonly XDG_STATE_HOME?: string | undefined;
  readonly XDG_RUNTIME_DIR?: string | undefined;
}

/** Resolves the directories: `--home` or $CHATD_HOME puts everything under one. */
export function resolvePaths(env: PathEnvironment, home: string | undefined): Paths {
  const runtime = nonEmpty(env.XDG_RUNTIME_DIR);
  const one = home ?? nonEmpty(env.CHATD_HOME);
  if (one !== undefined) {
    return { config: join(one, 'chatd.toml'), state: join(one, 'state'), runtime };
  }
  const user = nonEmpty(env.HOME) ?? '/';
  return {
    config:
      nonEmpty(env.CHATD_CONFIG) ??
      join(nonEmpty(env.XDG_CONFIG_HOME) ?? join(user, '.config'), 'chatd', 'chatd.toml'),
    state:
      nonEmpty(env.CHATD_STATE) ??
      join(nonEmpty(env.XDG_STATE_HOME) ?? join(user, '.local', 'state'), 'chatd'),
    runtime,
  };
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === undefined || value === '' ? undefined : value;
}

/** Files of one chat daemon. */
export interface DaemonPaths {
  readonly directory: string;
  readonly lock: string;
  readonly state: string;
  readonly control: string;
  readonly controlResponse: string;
  readonly commands: string;
  readonly store: string;
  readonly spawnLock: string;
  readonly log: string;
}

export function daemonPaths(state: string, kind: Kind): DaemonPaths {
  const directory = join(state, 'daemons', kind);
  return {
    directory,
    lock: join(directory, 'owner.lock'),
    state: join(directory, 'state.json'),
    control: join(directory, 'control.json'),
    controlResponse: join(directory, 'control.response.json'),
    commands: join(directory, 'commands'),
    store: join(directory, 'store.db'),
    spawnLock: join(directory, 'spawn.lock'),
    log: join(state, 'log', `${kind}.log`),
  };
}

/** Files of keeper and host. */
export interface HostPaths {
  readonly directory: string;
  readonly keeperLock: string;
  readonly keeperSocket: string;
  readonly hostLock: string;
  readonly hostRecord: string;
  readonly hostPid: string;
  readonly spawnLock: string;
  readonly hostSocket: string;
  readonly sessions: string;
  readonly keeperLog: string;
  readonly hostLog: string;
}

/**
 * sun_path holds 108 bytes with its NUL on Linux, 104 on macOS, and the kernel or libuv truncates
 * silently (OWNERSHIP.md §3.4). The private name used to publish is as long as the canonical one.
 */
const SOCKET_PATH_BYTES_MAX = 103;

export function hostPaths(paths: Pick<Paths, 'state' | 'runtime'>, uid: number): HostPaths {
  const directory = join(paths.state, 'host');
  const sockets = socketDirectory(directory, paths, uid);
  return {
    directory,
    keeperLock: join(directory, 'keeper.lock'),
    keeperSocket: join(sockets, 'keeper.sock'),
    hostLock: join(directory, 'host.lock'),
    hostRecord: join(directory, 'host.json'),
    hostPid: join(directory, 'host.pid'),
    spawnLock: join(directory, 'spawn.lock'),
    hostSocket: join(sockets, 'host.sock'),
    sessions: join(paths.state, 'sessions'),
    keeperLog: join(paths.state, 'log', 'keeper.log'),
    hostLog: join(paths.state, 'log', 'host.log'),
  };
}

/** The state directory if the longest socket path fits, else a short hashed directory. */
function socketDirectory(
  directory: string,
  paths: Pick<Paths, 'state' | 'runtime'>,
  uid: number,
): string {
  if (fits(directory)) return directory;
  const hash = createHash('sha256').update(paths.state).digest('hex').slice(0, 12);
  if (paths.runtime !== undefined) {
    const candidate = join(paths.runtime, 'chatd', hash);
    if (fits(candidate)) return candidate;
  }
  return join(`/tmp/chatd-${uid}`, hash);
}

function fits(directory: string): boolean {
  return Buffer.byteLength(join(directory, 'keeper.sock')) <= SOCKET_PATH_BYTES_MAX;
}
