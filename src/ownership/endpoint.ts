// Publishes a Unix socket under a name that other processes know, for the holder of a kept lock:
// bind a private name, link it to the canonical one, or prove twice that nobody serves there and
// rename over it; then verify. The canonical name is never unlinked, not even at exit: libuv
// removes the name it bound on close, and that is the private one.
//
// Without the lock this protocol has a race (two provers, two renames; OWNERSHIP.md §3.6).

import { chmodSync, linkSync, lstatSync, readdirSync, renameSync, unlinkSync } from 'node:fs';
import type { Server } from 'node:net';
import { platform } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { ChatdError, errnoCode, errorText } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import {
  type NameIdentity,
  type NameState,
  type ProbeAnswer,
  probeEndpoint,
  readName,
  sameName,
} from './endpoint-probe.ts';
import { type Failpoints, noFailpoints } from './failpoints.ts';
import type { KeptLock } from './kept-lock.ts';

export interface EndpointOptions {
  readonly path: string;
  readonly lock: KeptLock;
  /** Makes a server that does not listen yet; called once per publication. */
  readonly createServer: () => Server;
  readonly clock: Clock;
  readonly random: Random;
  readonly failpoints?: Failpoints;
  /** For tests: what connecting to the incumbent says. */
  readonly probe?: (path: string) => Promise<ProbeAnswer>;
}

export type PublishOutcome =
  | { readonly kind: 'published'; readonly endpoint: Endpoint }
  /** Somebody accepts connections there although we hold the lock. Not touched. */
  | { readonly kind: 'occupied'; readonly pid: number | undefined }
  /** The lock or the name was lost on the way. */
  | { readonly kind: 'lost'; readonly because: string }
  /** Something that is no socket is in the way. Not touched. */
  | { readonly kind: 'foreign'; readonly because: string }
  /** It cannot be told whether somebody serves there. Not touched. */
  | { readonly kind: 'inconclusive'; readonly because: string };

export type EndpointState = 'published' | 'gone' | 'foreign' | 'unknown';

const ATTEMPTS_MAX = 3;
/** sun_path less its NUL. The kernel or libuv cuts longer ones silently. */
const PATH_BYTES_MAX = platform() === 'darwin' ? 103 : 107;
const SCRATCH_NAME = /^\.p[0-9a-f]{10}$/;
/** As many connections as may wait to be accepted while the process is busy or stopped. */
const BACKLOG = 511;

/**
 * Publishes. On any other outcome than `published` nothing is left behind and nobody is disturbed.
 * @throws {ChatdError} endpoint-path-too-long, state-directory-unusable
 */
export async function publishEndpoint(options: EndpointOptions): Promise<PublishOutcome> {
  const failpoints = options.failpoints ?? noFailpoints;
  const privatePath = join(dirname(options.path), scratchName(options.random));
  for (const path of [options.path, privatePath]) refuseLongPath(path);
  const server = options.createServer();
  try {
    failpoints.hit('endpoint.before-bind');
    const mine = await bindPrivately(server, privatePath);
    failpoints.hit('endpoint.bound');
    const placed = await placeName(options, privatePath, mine, failpoints);
    if (placed.kind !== 'placed') {
      stopServer(server);
      return placed;
    }
    failpoints.hit('endpoint.verified');
    return { kind: 'published', endpoint: new Endpoint(options, server, mine) };
  } catch (error) {
    stopServer(server);
    removeOwnScratch(privatePath);
    if (error instanceof ChatdError) throw error;
    throw new ChatdError(
      'state-directory-unusable',
      `Cannot publish ${options.path}: ${errnoCode(error) ?? errorText(error)}`,
      { cause: error },
    );
  }
}

function scratchName(random: Random): string {
  return `.p${Buffer.from(random.bytes(5)).toString('hex')}`;
}

function refuseLongPath(path: string): void {
  const bytes = Buffer.byteLength(path);
  if (bytes <= PATH_BYTES_MAX) return;
  throw new ChatdError(
    'endpoint-path-too-long',
    `Cannot bind ${path}: ${bytes} bytes, the platform takes ${PATH_BYTES_MAX}`,
    { details: { path, bytes } },
  );
}

function bindPrivately(server: Server, path: string): Promise<NameIdentity> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path, backlog: BACKLOG }, () => {
      server.off('error', reject);
      try {
        chmodSync(path, 0o600);
        const name = readName(path);
        // A cut path would have bound another name than this one.
        if (name.kind === 'socket') resolve(name.identity);
        else reject(new Error(`bound name is ${name.kind}`));
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
  });
}

function removeOwnScratch(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Gone already, or swept by the next holder.
  }
}

type Placed = { readonly kind: 'placed' } | Exclude<PublishOutcome, { kind: 'published' }>;

async function placeName(
  options: EndpointOptions,
  privatePath: string,
  mine: NameIdentity,
  failpoints: Failpoints,
): Promise<Placed> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const lost = lostLock(options.lock);
    if (lost !== undefined) return lost;
    failpoints.hit('endpoint.before-link');
    if (linkOrExists(privatePath, options.path) === 'linked') {
      failpoints.hit('endpoint.linked');
      removeOwnScratch(privatePath);
      return verify(options.path, mine);
    }
    const incumbent = readName(options.path);
    const judged = await judgeIncumbent(options, incumbent, failpoints);
    if (judged === 'absent' || judged === 'changed') continue;
    if (judged !== 'dead') return judged;
    const lostMeanwhile = lostLock(options.lock);
    if (lostMeanwhile !== undefined) return lostMeanwhile;
    renameSync(privatePath, options.path);
    failpoints.hit('endpoint.renamed');
    return verify(options.path, mine);
  }
  return { kind: 'inconclusive', because: 'the name kept changing' };
}

function lostLock(lock: KeptLock): Exclude<Placed, { kind: 'placed' }> | undefined {
  const proof = lock.prove();
  if (proof.kind === 'held') return undefined;
  if (proof.kind === 'lost') return { kind: 'lost', because: proof.because };
  return { kind: 'inconclusive', because: proof.because };
}

function linkOrExists(from: string, to: string): 'linked' | 'exists' {
  try {
    linkSync(from, to);
    return 'linked';
  } catch (error) {
    if (errnoCode(error) === 'EEXIST') return 'exists';
    throw error;
  }
}

/** `dead` only after two refusals by the same inode. */
async function judgeIncumbent(
  options: EndpointOptions,
  first: NameState,
  failpoints: Failpoints,
): Promise<'dead' | 'absent' | 'changed' | Exclude<Placed, { kind: 'placed' }>> {
  const probe = options.probe ?? ((path: string) => probeEndpoint(path, options.clock));
  if (first.kind === 'absent') return 'absent';
  if (first.kind === 'unknown') return { kind: 'inconclusive', because: first.because };
  if (first.kind === 'other') {
    return {
      kind: 'foreign',
      because: `${options.path} is ${first.type}, not a socket; move it away`,
    };
  }
  for (const point of ['endpoint.probed-once', 'endpoint.probed-twice'] as const) {
    const answer = await probe(options.path);
    failpoints.hit(point);
    if (answer.kind === 'serving') return { kind: 'occupied', pid: answer.pid };
    if (answer.kind === 'unknown') return { kind: 'inconclusive', because: answer.because };
    const now = readName(options.path);
    if (now.kind !== 'socket' || !sameName(now.identity, first.identity)) return 'changed';
  }
  return 'dead';
}

function verify(path: string, mine: NameIdentity): Placed {
  const now = readName(path);
  if (now.kind === 'socket' && sameName(now.identity, mine)) return { kind: 'placed' };
  if (now.kind === 'unknown') return { kind: 'inconclusive', because: now.because };
  return { kind: 'lost', because: 'the name leads elsewhere' };
}

/** A published name and the server behind it. */
export class Endpoint {
  readonly #options: EndpointOptions;
  #server: Server;
  #identity: NameIdentity;
  #listening = true;

  /** For `publishEndpoint`. */
  constructor(options: EndpointOptions, server: Server, identity: NameIdentity) {
    this.#options = options;
    this.#server = server;
    this.#identity = identity;
  }

  get path(): string {
    return this.#options.path;
  }

  /** Device and inode bound there: what records repeat. */
  get identity(): NameIdentity {
    return this.#identity;
  }

  get server(): Server {
    return this.#server;
  }

  get listening(): boolean {
    return this.#listening;
  }

  /** Whether the name still leads to us. A cleaner of temporary files may have removed it. */
  check(): EndpointState {
    const now = readName(this.path);
    if (now.kind === 'unknown') return 'unknown';
    if (now.kind === 'absent') return 'gone';
    if (now.kind === 'other') return 'foreign';
    return sameName(now.identity, this.#identity) ? 'published' : 'foreign';
  }

  /**
   * Publishes again, with a new server: after the name went, or after `stopListening`. Connections
   * of the old server stay as they are.
   */
  async republish(): Promise<PublishOutcome['kind']> {
    const outcome = await publishEndpoint(this.#options);
    if (outcome.kind !== 'published') return outcome.kind;
    const before = this.#server;
    const wasListening = this.#listening;
    this.#server = outcome.endpoint.server;
    this.#identity = outcome.endpoint.identity;
    this.#listening = true;
    if (wasListening) stopServer(before);
    return 'published';
  }

  /** Accepts nobody any more; the name stays and refuses. Existing connections are untouched. */
  stopListening(): void {
    if (!this.#listening) return;
    this.#listening = false;
    stopServer(this.#server);
  }
}

/**
 * Closes the listener at once, without waiting for connections; also for one that never listened.
 * libuv unlinks the name it bound: the private one.
 */
function stopServer(server: Server): void {
  server.close();
}

/**
 * Removes private names that interrupted publications left, while the lock proves that none of them
 * can be in use. Call it before publishing.
 * @returns how many were removed. @throws {ChatdError} as the fence
 */
export function sweepScratchNames(lock: KeptLock, endpointPath: string): number {
  const directory = dirname(endpointPath);
  let removed = 0;
  for (const name of readdirSync(directory)) {
    if (!SCRATCH_NAME.test(name) || name === basename(endpointPath)) continue;
    const path = join(directory, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined || !stat.isSocket()) continue;
    lock.assertHeld();
    unlinkSync(path);
    removed++;
  }
  return removed;
}
