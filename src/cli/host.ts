// chatd host status | reload | stop.

import { join } from 'node:path';
import { ChatdError, errorCode } from '../base/errors.ts';
import { hostPaths } from '../base/paths.ts';
import { systemClock } from '../base/system-clock.ts';
import type { SessionInfo, SessionState } from '../pty/client.ts';
import type { KeeperStatus } from '../pty/keeper-protocol.ts';
import { askKeeper } from '../pty/start-host.ts';
import type { CliContext } from './context.ts';
import { openHost } from './host-access.ts';

const KEEPER_MS = 5_000;
const ACTOR = 'operator';

interface HostStatus {
  readonly instance: string;
  readonly pid: number;
  readonly version: string;
  readonly clients: number;
  readonly memoryBytes: number;
  readonly sessions: readonly (SessionInfo & {
    readonly modelOffset: number;
    readonly checkpointOffset: number;
    readonly keptFrom: number;
    readonly queuedInputBytes: number;
    readonly paused: boolean;
    readonly disk: string;
  })[];
}

export async function runHostStatus(context: CliContext): Promise<number> {
  const keeper = await keeperStatus(context);
  const host = await hostStatus(context);
  if (context.json) {
    context.out(JSON.stringify({ keeper: keeper ?? null, host: host ?? null }, null, 2));
    return 0;
  }
  context.out(keeper === undefined ? 'keeper   not running' : keeperLine(keeper));
  if (host === undefined) {
    context.out('host     not running');
    return 0;
  }
  const megabytes = Math.round(host.memoryBytes / 1024 / 1024);
  context.out(
    `host     running (pid ${host.pid}, version ${host.version}, ${host.clients} clients, ${megabytes} MB)`,
  );
  for (const session of host.sessions) context.out(sessionLine(session));
  return 0;
}

function keeperLine(status: KeeperStatus): string {
  const reason = status.reason === undefined ? '' : `: ${status.reason}`;
  return `keeper   running (pid ${status.pid}), ${status.sessions} sessions, host ${status.host}${reason}`;
}

function sessionLine(session: HostStatus['sessions'][number]): string {
  const command = session.command.length === 0 ? 'login shell' : session.command.join(' ');
  const facts = [
    `${session.sessionId}`,
    stateText(session.state),
    `pid ${session.pid}`,
    `${session.cols}x${session.rows}`,
    `offset ${session.offset}`,
    `model ${session.modelOffset}`,
    `${session.finalCount} lines`,
    `${session.clients} clients`,
    ...(session.queuedInputBytes > 0 ? [`${session.queuedInputBytes} bytes unread input`] : []),
    ...(session.lostBytes > 0 ? [`${session.lostBytes} bytes lost`] : []),
    ...(session.paused ? ['paused for the model'] : []),
    ...(session.disk === '' ? [] : [`disk: ${session.disk}`]),
  ];
  return `  ${facts.join(', ')}: ${command}`;
}

/** `running`, `exited 0`, `exited SIGKILL`, `exited, status unknown`. */
export function stateText(state: SessionState): string {
  if (state.kind === 'running') return 'running';
  const how = state.signal ?? (state.code === undefined ? ', status unknown' : String(state.code));
  return `exited${how.startsWith(',') ? '' : ' '}${how}${state.terminalOpen ? ', terminal still open' : ''}`;
}

async function keeperStatus(context: CliContext): Promise<KeeperStatus | undefined> {
  const { keeperSocket } = hostPaths(context.paths, context.self.uid);
  try {
    const answer = await askKeeper(keeperSocket, { t: 'status' }, systemClock, KEEPER_MS);
    return answer.t === 'status' ? answer : undefined;
  } catch {
    return undefined;
  }
}

async function hostStatus(context: CliContext): Promise<HostStatus | undefined> {
  const { client } = await openHost(context, 'cli', false);
  try {
    return (await client.status()) as HostStatus;
  } catch (error) {
    if (errorCode(error) === 'host-unreachable') return undefined;
    throw error;
  } finally {
    client.close();
  }
}

/** Replaces the running host by this version's; sessions go on. */
export async function runHostReload(context: CliContext): Promise<number> {
  const { client } = await openHost(context, 'cli', false);
  try {
    await client.list();
    const before = client.instance;
    await client.reload(process.execPath, join(context.bundles, 'host.js'), ACTOR);
    const untilMs = systemClock.monotonicMs() + 30_000;
    while (systemClock.monotonicMs() < untilMs) {
      await systemClock.sleep(50);
      await client.list();
      if (client.instance !== before) {
        context.out(`host     reloaded (${client.instance ?? ''})`);
        return 0;
      }
    }
    throw new ChatdError('deadline-exceeded', 'Cannot reload host: the old one still serves');
  } finally {
    client.close();
  }
}

/** Refuses while sessions run unless told what becomes of them. */
export async function runHostStop(context: CliContext, endSessions: boolean): Promise<number> {
  if ((await hostStatus(context)) === undefined) {
    context.out('host     not running');
    return 0;
  }
  const { client } = await openHost(context, 'cli', false);
  try {
    await client.shutdown(endSessions ? 'end' : 'refuse', ACTOR);
    context.out('host     stopped');
    return 0;
  } finally {
    client.close();
  }
}

/** All sessions of this machine. */
export async function runSessions(context: CliContext): Promise<number> {
  const { client } = await openHost(context, 'cli', false);
  try {
    const sessions = await client.list().catch((error: unknown) => {
      if (errorCode(error) === 'host-unreachable') return [];
      throw error;
    });
    if (context.json) context.out(JSON.stringify(sessions, null, 2));
    for (const session of context.json ? [] : sessions) {
      const command = session.command.length === 0 ? 'login shell' : session.command.join(' ');
      context.out(`${session.sessionId}  ${stateText(session.state)}  ${session.cwd}  ${command}`);
    }
    return 0;
  } finally {
    client.close();
  }
}
