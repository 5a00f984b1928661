// Composition root of the keeper. Everything it will ever need is loaded before it says ready.

import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { ChatdError, errorText } from '../../base/errors.ts';
import type { Log, LogFields } from '../../base/log.ts';
import { hostPaths } from '../../base/paths.ts';
import { systemClock } from '../../base/system-clock.ts';
import { systemRandom } from '../../base/system-random.ts';
import { requireCapabilities } from '../../ownership/capabilities.ts';
import { publishEndpoint, sweepScratchNames } from '../../ownership/endpoint.ts';
import { acquireKeptLock, type KeptLock, viewLock } from '../../ownership/kept-lock.ts';
import { ensurePrivateDirectory } from '../../ownership/private-directory.ts';
import {
  judgeIncarnation,
  type ProcessIncarnation,
  ProcessIncarnationSchema,
} from '../../ownership/process-incarnation.ts';
import {
  incarnationOfChild,
  ownIncarnation,
  systemObserver,
} from '../../ownership/process-observer.ts';
import { EXIT_OCCUPIED, takeAnnouncer } from '../../ownership/spawn-ready.ts';
import type { KeeperOptions } from '../keeper-protocol.ts';
import { HostSupervisor } from './host-supervisor.ts';
import { Keeper } from './keeper.ts';
import { createKeeperServer } from './keeper-socket.ts';
import { loadNativePty } from './native-pty.ts';

const LOG_BYTES_MAX = 5 * 1024 * 1024;

/** JSON lines, appended synchronously, two files: nothing to load, nothing that can throw. */
function openKeeperLog(path: string): Log {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const write = (level: string, event: string, fields: LogFields): void => {
    try {
      if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX) {
        renameSync(path, `${path}.1`);
      }
      const line = { level, time: new Date().toISOString(), pid: process.pid, event, ...fields };
      appendFileSync(path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
    } catch {
      // A full disk must not end the parent of every shell.
    }
  };
  const log = (base: LogFields): Log => ({
    error: (event, fields) => write('error', event, { ...base, ...fields }),
    warn: (event, fields) => write('warn', event, { ...base, ...fields }),
    info: (event, fields) => write('info', event, { ...base, ...fields }),
    debug: () => undefined,
    with: (fields) => log({ ...base, ...fields }),
  });
  return log({});
}

class Occupied extends Error {}

function acquire(path: string, self: ProcessIncarnation, nonce: string): KeptLock {
  const attempt = acquireKeptLock(path, {
    uid: self.uid,
    record: {
      v: 1,
      incarnation: self,
      ownerId: `keeper-${nonce}`,
      generation: 1,
      nonce,
      createdAtMs: Date.now(),
    },
  });
  if (attempt.kind === 'busy') throw new Occupied('another keeper holds the lock');
  return attempt.lock;
}

async function main(): Promise<void> {
  const announcer = takeAnnouncer(process.env);
  const options = JSON.parse(process.argv[2] ?? '{}') as KeeperOptions;
  const uid = process.getuid?.() ?? 0;
  const paths = hostPaths({ state: options.state, runtime: options.runtime }, uid);
  ensurePrivateDirectory(paths.directory, uid);
  ensurePrivateDirectory(dirname(paths.keeperSocket), uid);
  const log = openKeeperLog(paths.keeperLog);
  // Whatever goes wrong in one message or one timer, the shells stay.
  process.on('uncaughtException', (error) => log.error('keeper.failed', { error: error.message }));
  process.on('unhandledRejection', (error) =>
    log.error('keeper.failed', { error: errorText(error) }),
  );
  requireCapabilities(log, process.pid, process.ppid);
  loadNativePty();

  const nonce = Buffer.from(systemRandom.bytes(12)).toString('hex');
  const self = ownIncarnation({ pid: process.pid, uid, nonce });
  const lock = acquire(paths.keeperLock, self, nonce);
  const inherits = options.inheritHostPid;
  // While a host lives, that host alone starts a keeper: it has the masters.
  if (inherits === undefined && viewLock(paths.hostLock).state === 'held') {
    throw new Occupied('a host is running and will start its own keeper');
  }
  const keeper = new Keeper({
    options,
    clock: systemClock,
    log,
    pid: process.pid,
    uid,
    environment: process.env,
    process: self,
    describe: (pid) => incarnationOfChild(pid, uid, nonce),
    mayLive: (record) => {
      const parsed = ProcessIncarnationSchema.safeParse(record);
      return !parsed.success || judgeIncarnation(parsed.data, systemObserver).verdict !== 'dead';
    },
    finished: () => {
      log.info('keeper.finished');
      process.exit(0);
    },
  });
  if (inherits !== undefined) keeper.inherit(inherits);

  sweepScratchNames(lock, paths.keeperSocket);
  const published = await publishEndpoint({
    path: paths.keeperSocket,
    lock,
    clock: systemClock,
    random: systemRandom,
    createServer: () =>
      createKeeperServer({
        clock: systemClock,
        uid,
        answer: (request, reply) => keeper.answer(request, reply),
      }),
  });
  if (published.kind !== 'published') throw new Occupied(`keeper.sock: ${published.kind}`);
  process.on('SIGCHLD', () => keeper.reap());
  setInterval(() => keeper.tick(), HostSupervisor.tickMs);
  setInterval(() => {
    if (published.endpoint.check() === 'gone')
      published.endpoint.republish().catch(() => undefined);
  }, 30_000);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // Ending here would hang up nothing while the host lives, but lose every exit status.
      log.warn('keeper.refused-signal', { signal, sessions: keeper.sessions });
      if (keeper.sessions === 0) process.exit(0);
    });
  }
  log.info('keeper.became-ready', { inherits: inherits ?? 0 });
  announcer.announce('ready');
  if (options.startHost === true) keeper.answer({ t: 'start-host' }, () => undefined);
}

try {
  await main();
} catch (error) {
  if (error instanceof Occupied) process.exit(EXIT_OCCUPIED);
  const text = error instanceof ChatdError ? error.message : errorText(error);
  process.stderr.write(`${text}\n`);
  process.exit(1);
}
