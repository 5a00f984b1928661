// Asks whether anybody serves a Unix socket path. Only two answers of the kernel mean "nobody":
// the name is missing, or the socket refuses. Time-outs, EAGAIN (a live server with a full backlog)
// and everything else are unknown.

import { type BigIntStats, lstatSync } from 'node:fs';
import { connect } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { errnoCode } from '../base/errors.ts';
import { readPeerCredentials, socketDescriptor } from '../sys/peer.ts';

export type ProbeAnswer =
  /** Somebody accepted. `pid` is the listener's, where the kernel says it. */
  | { readonly kind: 'serving'; readonly pid: number | undefined }
  | { readonly kind: 'not-serving'; readonly because: 'ENOENT' | 'ECONNREFUSED' }
  | { readonly kind: 'unknown'; readonly because: string };

export const PROBE_TIMEOUT_MS = 500;

/** Connects, reads the peer's credentials, and closes at once. */
export function probeEndpoint(
  path: string,
  clock: Clock,
  timeoutMs = PROBE_TIMEOUT_MS,
): Promise<ProbeAnswer> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const answer = (value: ProbeAnswer): void => {
      timer.cancel();
      socket.destroy();
      resolve(value);
    };
    const timer = clock.timer(timeoutMs, () => answer({ kind: 'unknown', because: 'timed out' }));
    socket.once('connect', () => {
      const fd = socketDescriptor(socket);
      answer({ kind: 'serving', pid: fd === undefined ? undefined : peerPid(fd) });
    });
    // Stays registered: an error after the answer must not become an uncaught one.
    socket.on('error', (error) => {
      const code = errnoCode(error) ?? 'unknown error';
      if (code === 'ENOENT' || code === 'ECONNREFUSED') {
        answer({ kind: 'not-serving', because: code });
      } else {
        answer({ kind: 'unknown', because: code });
      }
    });
  });
}

function peerPid(fd: number): number | undefined {
  try {
    const { pid } = readPeerCredentials(fd);
    return pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Device and inode of what a name leads to (links not followed). */
export interface NameIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

export type NameState =
  | { readonly kind: 'socket'; readonly identity: NameIdentity }
  | { readonly kind: 'absent' }
  | { readonly kind: 'other'; readonly type: string }
  | { readonly kind: 'unknown'; readonly because: string };

/** What is at `path`. */
export function readName(path: string): NameState {
  let stat: BigIntStats | undefined;
  try {
    stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    return { kind: 'unknown', because: errnoCode(error) ?? 'unknown error' };
  }
  if (stat === undefined) return { kind: 'absent' };
  if (!stat.isSocket()) return { kind: 'other', type: typeName(stat) };
  return { kind: 'socket', identity: { dev: stat.dev, ino: stat.ino } };
}

function typeName(stat: BigIntStats): string {
  if (stat.isFile()) return 'a regular file';
  if (stat.isDirectory()) return 'a directory';
  if (stat.isSymbolicLink()) return 'a symbolic link';
  if (stat.isFIFO()) return 'a FIFO';
  return 'a device';
}

export function sameName(left: NameIdentity, right: NameIdentity): boolean {
  return left.dev === right.dev && left.ino === right.ino;
}

/** `<dev>:<ino>` in decimal, for records. */
export function endpointId(identity: NameIdentity): string {
  return `${identity.dev}:${identity.ino}`;
}
