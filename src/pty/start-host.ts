// Starts keeper and host when a client needs them: one starter at a time, the others adopt.

import { connect } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { ChatdError, errnoCode, errorText } from '../base/errors.ts';
import { FrameDecoder } from '../base/frame-codec.ts';
import { mintId } from '../base/ids.ts';
import type { HostPaths } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import { ensurePrivateDirectory } from '../ownership/private-directory.ts';
import { ownIncarnation } from '../ownership/process-observer.ts';
import type { StartWay } from '../ownership/service-cgroup.ts';
import { spawnReady, takeSpawnTurn } from '../ownership/spawn-ready.ts';
import type { HostOptions } from './host-options.ts';
import {
  encodeMessage,
  type KeeperAnswer,
  type KeeperOptions,
  type KeeperRequest,
  parseKeeperAnswer,
} from './keeper-protocol.ts';

/** Settings of the `[host]` section. */
export interface HostSettings {
  readonly idleExitSecs: number;
  readonly journalMbPerSession: number;
  readonly journalMbTotal: number;
  readonly sessionsMax: number;
}

export interface StartOptions {
  /** Absolute path of the interpreter, and of the directory that holds keeper.js and host.js. */
  readonly interpreter: string;
  readonly dist: string;
  readonly version: string;
  readonly settings: HostSettings;
  readonly state: string;
  readonly runtime: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Soft limit of open files of the shell that started us. */
  readonly openFiles: number | undefined;
  /** How to start what must outlive a service that we may be part of. */
  readonly startWay?: () => Promise<StartWay>;
}

export interface StartPorts {
  readonly paths: HostPaths;
  readonly uid: number;
  readonly pid: number;
  readonly clock: Clock;
  readonly random: Random;
}

const KEEPER_READY_MS = 10_000;
/** A keeper tries a host three times as long as it should take; we wait a little longer. */
const HOST_READY_MS = 40_000;
const ANSWER_BYTES_MAX = 65_536;

/** The arguments of keeper and host for these options. */
export function keeperOptionsOf(start: StartOptions): KeeperOptions {
  const hostEntry = join(start.dist, 'host.js');
  const common = {
    state: start.state,
    ...(start.runtime === undefined ? {} : { runtime: start.runtime }),
    interpreter: start.interpreter,
    hostEntry,
    ...(start.openFiles === undefined ? {} : { openFiles: start.openFiles }),
  };
  const host: HostOptions = {
    ...common,
    version: start.version,
    keeperEntry: join(start.dist, 'keeper.js'),
    ...start.settings,
  };
  return { ...common, hostOptions: JSON.stringify(host) };
}

/**
 * Makes sure that a keeper runs, and has it start a host.
 * @throws {ChatdError} spawn-failed, occupied, deadline-exceeded, host-unreachable
 */
export async function startHostOnDemand(ports: StartPorts, start: StartOptions): Promise<void> {
  const { paths, clock, uid } = ports;
  ensurePrivateDirectory(paths.directory, uid);
  const turn = await takeSpawnTurn({
    lockPath: paths.spawnLock,
    lock: { uid, record: spawnRecord(ports) },
    clock,
    waitMs: KEEPER_READY_MS,
    adopt: async () => ((await isServing(paths.keeperSocket)) ? true : undefined),
    start: () => startKeeper(ports, start),
  });
  if (turn.kind === 'timed-out') {
    throw new ChatdError('deadline-exceeded', 'Cannot start keeper: another start takes too long');
  }
  const answer = await askKeeper(paths.keeperSocket, { t: 'start-host' }, clock, HOST_READY_MS);
  if (answer.t === 'failed') {
    throw new ChatdError('host-unreachable', `Cannot start host: ${answer.message}`);
  }
}

function spawnRecord(ports: StartPorts): Parameters<typeof takeSpawnTurn>[0]['lock']['record'] {
  const { pid, uid, random, clock } = ports;
  const nonce = mintId(random, 16);
  return {
    v: 1,
    incarnation: ownIncarnation({ pid, uid, nonce }),
    ownerId: `starter-${nonce}`,
    generation: 1,
    nonce,
    createdAtMs: Math.round(clock.wallMs()),
  };
}

async function startKeeper(ports: StartPorts, start: StartOptions): Promise<true> {
  const { paths, clock } = ports;
  const way = (await start.startWay?.()) ?? { kind: 'direct' };
  if (way.kind === 'refused') {
    throw new ChatdError('refused', `Cannot start keeper: ${way.because}`);
  }
  const [first = start.interpreter, ...rest] = [
    ...(way.kind === 'scope' ? way.prefix : []),
    start.interpreter,
    join(start.dist, 'keeper.js'),
    JSON.stringify(keeperOptionsOf(start)),
  ];
  const outcome = await spawnReady({
    file: first,
    args: rest,
    environment: start.environment,
    cwd: '/',
    stderrPath: join(paths.directory, 'keeper.stderr'),
    timeoutMs: KEEPER_READY_MS,
    clock,
  });
  if (outcome.kind === 'ready' || outcome.kind === 'occupied') return true;
  if (outcome.kind === 'ended') {
    throw new ChatdError(
      'spawn-failed',
      `Cannot start keeper: ${outcome.stderrTail || outcome.status}`,
    );
  }
  throw new ChatdError('deadline-exceeded', 'Cannot start keeper: it did not become ready in time');
}

/** Whether somebody accepts connections there. */
export function isServing(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // EAGAIN: its backlog is full, so it lives.
    socket.once('error', (error) => resolve(errnoCode(error) === 'EAGAIN'));
  });
}

/** One question to the keeper. @throws {ChatdError} host-unreachable, deadline-exceeded */
export function askKeeper(
  path: string,
  request: KeeperRequest,
  clock: Clock,
  timeoutMs: number,
): Promise<KeeperAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const decoder = new FrameDecoder(ANSWER_BYTES_MAX);
    const settle = (run: () => void): void => {
      timer.cancel();
      socket.destroy();
      run();
    };
    const fail = (code: 'host-unreachable' | 'deadline-exceeded', because: string): void =>
      settle(() => reject(new ChatdError(code, `Cannot ask keeper: ${because}`)));
    const timer = clock.timer(timeoutMs, () => fail('deadline-exceeded', 'no answer in time'));
    socket.once('connect', () => socket.write(encodeMessage(request)));
    socket.on('data', (chunk: Buffer) => {
      try {
        const [frame] = decoder.push(chunk);
        if (frame === undefined) return;
        const answer = parseKeeperAnswer(frame.payload);
        settle(() => resolve(answer));
      } catch (error) {
        fail('host-unreachable', errorText(error));
      }
    });
    socket.on('error', (error) => fail('host-unreachable', error.message));
    socket.on('close', () => fail('host-unreachable', 'it closed the connection'));
  });
}
