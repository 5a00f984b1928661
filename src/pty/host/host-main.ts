// Composition root of the host. Loads everything before it says hello to its keeper; owns host.lock
// and host.sock from the moment the inventory has come.

import { mkdirSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import { writeAtomic } from '../../base/atomic-file.ts';
import { ChatdError, errorText } from '../../base/errors.ts';
import { hostPaths } from '../../base/paths.ts';
import { systemClock } from '../../base/system-clock.ts';
import { openFileLog } from '../../base/system-log.ts';
import { systemRandom } from '../../base/system-random.ts';
import { requireCapabilities } from '../../ownership/capabilities.ts';
import { type Endpoint, publishEndpoint, sweepScratchNames } from '../../ownership/endpoint.ts';
import { endpointId } from '../../ownership/endpoint-probe.ts';
import { acquireKeptLock, type KeptLock } from '../../ownership/kept-lock.ts';
import { ensurePrivateDirectory } from '../../ownership/private-directory.ts';
import {
  judgeIncarnation,
  type ProcessIncarnation,
  ProcessIncarnationSchema,
} from '../../ownership/process-incarnation.ts';
import { ownIncarnation, systemObserver } from '../../ownership/process-observer.ts';
import { EXIT_OCCUPIED } from '../../ownership/spawn-ready.ts';
import { readPeerCredentials, socketDescriptor } from '../../sys/peer.ts';
import { parseHostOptions } from '../host-options.ts';
import { PROTOCOL_MAX } from '../protocol.ts';
import { Host } from './host.ts';
import { HOST_GENERATION, type HostRecord } from './host-record.ts';
import { KeeperClient, type KeptTerminal } from './keeper-client.ts';
import { Sessions } from './sessions.ts';
import { Workers } from './workers.ts';

const MB = 1024 * 1024;
const ENDPOINT_CHECK_MS = 30_000;

const options = parseHostOptions(process.argv[2]);
const uid = process.getuid?.() ?? 0;
const paths = hostPaths({ state: options.state, runtime: options.runtime }, uid);
ensurePrivateDirectory(paths.directory, uid);
mkdirSync(paths.sessions, { recursive: true, mode: 0o700 });
const { log, close: closeLog } = openFileLog(paths.hostLog, { process: 'host', pid: process.pid });
requireCapabilities(log, process.pid, process.ppid);
const nonce = Buffer.from(systemRandom.bytes(12)).toString('hex');
const self = ownIncarnation({ pid: process.pid, uid, nonce });
const instance = `${process.pid}-${nonce}`;

/** A bug ends the host, whole and at once: the keeper starts another one from what is on disk. */
function fail(error: unknown): void {
  log.error('host.failed', { error });
  process.stderr.write(`${errorText(error)}\n`);
  const exit = (): never => process.exit(1);
  closeLog().then(exit, exit);
}
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  // The keeper replaces a host that ends; `chatd host stop` is the way to end it for good.
  process.on(signal, () => log.warn('host.ignored-signal', { signal }));
}

function provenDead(record: unknown): boolean {
  const parsed = ProcessIncarnationSchema.safeParse(record);
  return parsed.success && judgeIncarnation(parsed.data, systemObserver).verdict === 'dead';
}

function acquire(): KeptLock {
  const record = {
    v: 1 as const,
    incarnation: self,
    ownerId: `host-${nonce}`,
    generation: HOST_GENERATION,
    nonce,
    createdAtMs: Date.now(),
  };
  const attempt = acquireKeptLock(paths.hostLock, { uid, record });
  if (attempt.kind === 'busy') process.exit(EXIT_OCCUPIED);
  return attempt.lock;
}

async function writeHostRecord(endpoint: Endpoint, who: ProcessIncarnation): Promise<void> {
  const record: HostRecord = {
    v: 1,
    pid: process.pid,
    incarnation: who,
    instance,
    generation: HOST_GENERATION,
    version: options.version,
    protocol: PROTOCOL_MAX,
    socket: endpoint.path,
    endpoint: endpointId(endpoint.identity),
    startedAtMs: Date.now(),
  };
  await writeAtomic(paths.hostRecord, `${JSON.stringify(record)}\n`, { nonce });
  await writeAtomic(paths.hostPid, `${process.pid}\n`, { nonce });
}

const workers: Workers = new Workers(
  {
    reader: new URL('./host-reader.js', import.meta.url),
    model: new URL('./host-model.js', import.meta.url),
  },
  {
    reader: (message) => sessions.fromReader(message),
    model: (message) => sessions.fromModel(message),
    failed: (thread, because) => fail(new Error(`${thread} thread ended: ${because}`)),
  },
);
const keeper = new KeeperClient({
  clock: systemClock,
  random: systemRandom,
  log,
  pid: process.pid,
  environment: process.env,
  keeper: {
    entry: options.keeperEntry,
    options: {
      state: options.state,
      ...(options.runtime === undefined ? {} : { runtime: options.runtime }),
      interpreter: options.interpreter,
      hostEntry: options.hostEntry,
      hostOptions: process.argv[2] ?? '',
      ...(options.openFiles === undefined ? {} : { openFiles: options.openFiles }),
    },
  },
  events: {
    inventory: (terminals) => {
      serve(terminals).catch(fail);
    },
    exited: (sessionId, incarnation, status) => sessions.exited(sessionId, incarnation, status),
    stopReading: () => host.handOver(),
    handBack: () => sessions.handBack(),
  },
});
const user = userInfo();
const sessions: Sessions = new Sessions({
  clock: systemClock,
  random: systemRandom,
  log,
  workers,
  keeper,
  directory: paths.sessions,
  user: { name: user.username, home: user.homedir, shell: user.shell ?? undefined },
  environment: process.env,
  limits: {
    sessionsMax: options.sessionsMax,
    journalBytes: options.journalMbPerSession * MB,
    journalBytesTotal: options.journalMbTotal * MB,
  },
  provenDead,
});
let endpoint: Endpoint | undefined;
let lock: KeptLock | undefined;
const host: Host = new Host({
  clock: systemClock,
  log,
  keeper,
  workers,
  sessions,
  instance,
  pid: process.pid,
  version: options.version,
  idleExitMs: options.idleExitSecs * 1000,
  memoryBytes: () => process.memoryUsage.rss(),
  stopListening: () => endpoint?.stopListening(),
  releaseLock: () => lock?.release(),
  listenAgain: async () => {
    await republish();
  },
  exit: (code) => {
    const end = (): never => process.exit(code);
    closeLog().then(end, end);
  },
});

function createHostServer(): Server {
  return createServer((socket) => {
    const fd = socketDescriptor(socket);
    socket.on('error', () => socket.destroy());
    try {
      if (fd !== undefined && readPeerCredentials(fd).uid === uid) {
        host.accept(socket);
        return;
      }
    } catch (error) {
      log.warn('client.unproven', { error });
    }
    socket.destroy();
  });
}

async function republish(): Promise<void> {
  if (endpoint === undefined) return;
  const outcome = await endpoint.republish();
  if (outcome !== 'published') throw new ChatdError('ownership-lost', `host.sock: ${outcome}`);
  await writeHostRecord(endpoint, self);
}

/** The inventory has come: nobody else reads these terminals. */
async function serve(terminals: readonly KeptTerminal[]): Promise<void> {
  lock = acquire();
  sessions.adopt(terminals);
  log.info('host.became-reading', { sessions: terminals.length });
  ensurePrivateDirectory(dirname(paths.hostSocket), uid);
  sweepScratchNames(lock, paths.hostSocket);
  const published = await publishEndpoint({
    path: paths.hostSocket,
    lock,
    clock: systemClock,
    random: systemRandom,
    createServer: createHostServer,
  });
  if (published.kind === 'occupied') process.exit(EXIT_OCCUPIED);
  if (published.kind !== 'published') {
    throw new ChatdError(
      'state-directory-unusable',
      `Cannot publish host.sock: ${published.because}`,
    );
  }
  endpoint = published.endpoint;
  await writeHostRecord(endpoint, self);
  host.start();
  setInterval(() => {
    // A cleaner of temporary files took the name: while the lock is ours, it is put back.
    if (endpoint?.listening === true && endpoint.check() === 'gone') {
      republish().catch((error: unknown) => log.error('host.not-listening', { error }));
    }
  }, ENDPOINT_CHECK_MS);
  log.info('host.became-ready', { sessions: terminals.length });
  keeper.ready();
}

keeper.connect();
