// Who is at the other end of a Unix socket, as the kernel says. At the connecting side it is the
// process that called listen; at the accepting side the one that called connect.

import type { Socket } from 'node:net';
import { checked, lastErrnoName, libc, memory, onDarwin, onLinux } from './libc.ts';

const getsockopt = libc('int getsockopt(int fd, int level, int name, void *value, void *length)');
const getpeereid = libc('int getpeereid(int fd, void *uid, void *gid)');

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const SO_PEERPIDFD = 77; // Linux 6.5.
const SOL_LOCAL = 0; // macOS.
const LOCAL_PEERPID = 2; // macOS.
const UCRED_BYTES = 12;

export interface PeerCredentials {
  readonly pid: number;
  readonly uid: number;
}

/** The descriptor of a connected Node socket; undefined once it is closed. */
export function socketDescriptor(socket: Socket): number | undefined {
  // Node has no public way to a socket's descriptor; `_handle.fd` has been stable since 2011.
  const handle: unknown = '_handle' in socket ? socket._handle : undefined;
  if (typeof handle !== 'object' || handle === null || !('fd' in handle)) return undefined;
  return typeof handle.fd === 'number' && handle.fd >= 0 ? handle.fd : undefined;
}

/** Pid (in our namespace; 0 when invisible) and uid of the peer. @throws {SysError} */
export function readPeerCredentials(fd: number): PeerCredentials {
  return onDarwin ? readDarwinPeer(fd) : readLinuxPeer(fd);
}

function readLinuxPeer(fd: number): PeerCredentials {
  const value = memory(UCRED_BYTES);
  const length = lengthOf(UCRED_BYTES);
  checked('getsockopt(SO_PEERCRED)', getsockopt(fd, SOL_SOCKET, SO_PEERCRED, value, length));
  return { pid: value.readInt32LE(0), uid: value.readUInt32LE(4) };
}

/** Untested. */
function readDarwinPeer(fd: number): PeerCredentials {
  const pid = memory(4);
  checked('getsockopt(LOCAL_PEERPID)', getsockopt(fd, SOL_LOCAL, LOCAL_PEERPID, pid, lengthOf(4)));
  const uid = memory(4);
  const gid = memory(4);
  checked('getpeereid', getpeereid(fd, uid, gid));
  return { pid: pid.readInt32LE(0), uid: uid.readUInt32LE(0) };
}

/** A pidfd of the peer, the caller's to close; undefined where the kernel has none to give. */
export function openPeerPidfd(fd: number): number | undefined {
  if (!onLinux) return undefined;
  const value = memory(4);
  const result = getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, value, lengthOf(4));
  if (result === -1 && ['ENOPROTOOPT', 'ESRCH', 'ENODATA'].includes(lastErrnoName())) {
    return undefined;
  }
  checked('getsockopt(SO_PEERPIDFD)', result);
  return value.readInt32LE(0);
}

function lengthOf(bytes: number): Buffer {
  const length = memory(4);
  length.writeUInt32LE(bytes);
  return length;
}
