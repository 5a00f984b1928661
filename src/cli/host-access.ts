// How CLI subcommands reach the host: configuration, environment and bundles to a client.

import { silentLog } from '../base/log.ts';
import { systemClock } from '../base/system-clock.ts';
import { systemRandom } from '../base/system-random.ts';
import type { HostConfig } from '../config.ts';
import { connectHostFrom, type HostControl } from '../pty/client.ts';
import { type HostSurroundings, hostStartOptions } from '../pty/host-surroundings.ts';
import type { KeeperOptions } from '../pty/keeper-protocol.ts';
import { keeperOptionsOf } from '../pty/start-host.ts';
import type { CliContext } from './context.ts';
import { optionalConfig } from './lifecycle.ts';
import { programVersionOf } from './version.ts';

/** What `[host]` says when there is no configuration file. */
const HOST_DEFAULTS: HostConfig = {
  autostart: true,
  idleExitSecs: 600,
  journalMbPerSession: 64,
  journalMbTotal: 2048,
  sessionsMax: 200,
};

export interface HostAccess {
  readonly client: HostControl;
  /** attach.reconnect_secs, in milliseconds. */
  readonly reconnectMs: number;
}

const RECONNECT_DEFAULT_SECS = 300;

export async function openHost(
  context: CliContext,
  role: HostSurroundings['role'],
  autostart: boolean,
): Promise<HostAccess> {
  const config = optionalConfig(context);
  const reconnectMs = (config?.attachReconnectSecs ?? RECONNECT_DEFAULT_SECS) * 1000;
  const host = config?.host ?? HOST_DEFAULTS;
  const surroundings = surroundingsOf(context, role, {
    ...host,
    autostart: host.autostart && autostart,
  });
  const patience = role === 'attach' ? { patienceMs: reconnectMs } : {};
  return { client: connectHostFrom({ ...surroundings, ...patience }), reconnectMs };
}

/** What a keeper in the foreground is started with: a service does not end by being idle. */
export async function foregroundKeeperOptions(
  context: CliContext,
  startHost: boolean,
): Promise<KeeperOptions> {
  const config = optionalConfig(context);
  const host = { ...(config?.host ?? HOST_DEFAULTS), idleExitSecs: 'never' as const };
  const start = hostStartOptions(surroundingsOf(context, 'cli', host));
  return { ...keeperOptionsOf(start), startHost };
}

function surroundingsOf(
  context: CliContext,
  role: HostSurroundings['role'],
  host: HostSurroundings['host'],
): HostSurroundings {
  return {
    paths: context.paths,
    environment: context.env,
    self: { ...context.self, parentPid: process.ppid },
    role,
    host,
    dist: context.bundles,
    interpreter: process.execPath,
    version: programVersionOf(context.bundles),
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  };
}
