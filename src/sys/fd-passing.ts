// Passes descriptors between two processes over a SOCK_SEQPACKET pair: each message is a small
// payload and at most 200 descriptors. Received ones are close-on-exec. Linux only; elsewhere
// ENOSYS. The structures' sizes are those of 64-bit little-endian Linux, asserted by the self-test.

import { constants } from 'node:os';
import { closeFd } from './fd.ts';
import {
  addressOf,
  checked,
  lastErrno,
  lastErrnoName,
  libc,
  memory,
  onLinux,
  uninterrupted,
  unsupported,
} from './libc.ts';

const socketpairFunction = libc('int socketpair(int domain, int type, int protocol, void *fds)');
const sendmsg = libc('intptr_t sendmsg(int fd, void *message, int flags)');
const recvmsg = libc('intptr_t recvmsg(int fd, void *message, int flags)');

const AF_UNIX = 1;
const SOCK_SEQPACKET = 5;
const SOCK_CLOEXEC = 0x80000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const MSG_CTRUNC = 0x8;
const MSG_TRUNC = 0x20;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const MSG_CMSG_CLOEXEC = 0x4000_0000;
/** msghdr: name 0, namelen 8, iov 16, iovlen 24, control 32, controllen 40, flags 48. */
const MSGHDR_BYTES = 56;
const IOVEC_BYTES = 16;
const CMSGHDR_BYTES = 16;

/** The kernel refuses more than 253 in one message. */
export const FDS_PER_MESSAGE_MAX = 200;
export const PAYLOAD_BYTES_MAX = 4096;

/** Two connected ends, close-on-exec, blocking (sends and receives here never block anyway). */
export function openSocketPair(): readonly [number, number] {
  if (!onLinux) throw unsupported('socketpair(SOCK_SEQPACKET)');
  const pair = memory(8);
  checked('socketpair', socketpairFunction(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
  return [pair.readInt32LE(0), pair.readInt32LE(4)];
}

interface Message {
  readonly header: Buffer;
  /** Kept referenced while the kernel uses their addresses. */
  readonly parts: readonly Buffer[];
}

function message(payload: Buffer, payloadBytes: number, control: Buffer | undefined): Message {
  const header = memory(MSGHDR_BYTES);
  const vector = memory(IOVEC_BYTES);
  vector.writeBigUInt64LE(addressOf(payload), 0);
  vector.writeBigUInt64LE(BigInt(payloadBytes), 8);
  header.writeBigUInt64LE(addressOf(vector), 16);
  header.writeBigUInt64LE(1n, 24);
  if (control !== undefined) {
    header.writeBigUInt64LE(addressOf(control), 32);
    header.writeBigUInt64LE(BigInt(control.length), 40);
  }
  return { header, parts: [payload, vector, ...(control === undefined ? [] : [control])] };
}

/** Bytes of one control message with `count` descriptors, padded to 8. */
function controlBytes(count: number): number {
  return CMSGHDR_BYTES + Math.ceil((count * 4) / 8) * 8;
}

/**
 * Sends one message, whole or not at all, without waiting. `payload` is 1 to 4,096 bytes.
 * @returns 'full' when the peer has to read first.
 * @throws {SysError} EPIPE, EBADF, EINVAL, ETOOMANYREFS, …
 */
export function sendFds(
  socket: number,
  payload: Uint8Array,
  fds: readonly number[],
): 'sent' | 'full' {
  if (
    fds.length > FDS_PER_MESSAGE_MAX ||
    payload.length === 0 ||
    payload.length > PAYLOAD_BYTES_MAX
  ) {
    throw new RangeError('A message carries 1 to 4,096 bytes and at most 200 descriptors');
  }
  const bytes = memory(payload.length);
  bytes.set(payload);
  let control: Buffer | undefined;
  if (fds.length > 0) {
    // `memory` may be longer than asked: the kernel must see the exact length.
    control = memory(controlBytes(fds.length)).subarray(0, controlBytes(fds.length));
    control.writeBigUInt64LE(BigInt(CMSGHDR_BYTES + fds.length * 4), 0);
    control.writeInt32LE(SOL_SOCKET, 8);
    control.writeInt32LE(SCM_RIGHTS, 12);
    for (const [index, fd] of fds.entries()) control.writeInt32LE(fd, CMSGHDR_BYTES + index * 4);
  }
  const { header } = message(bytes, payload.length, control);
  const result = uninterrupted(() => sendmsg(socket, header, MSG_DONTWAIT | MSG_NOSIGNAL));
  if (result === -1 && lastErrno() === constants.errno.EAGAIN) return 'full';
  checked('sendmsg', result);
  return 'sent';
}

export type Received =
  | { readonly kind: 'message'; readonly payload: Buffer; readonly fds: readonly number[] }
  | { readonly kind: 'empty' }
  | { readonly kind: 'closed' };

/**
 * Takes one message if one is there. The descriptors are the caller's to close.
 * @throws {SysError} on a failed call, and an Error when the kernel had to cut a message (too many
 *   open files); what arrived of it is closed.
 */
export function receiveFds(socket: number): Received {
  const bytes = memory(PAYLOAD_BYTES_MAX);
  const control = memory(controlBytes(253));
  const { header, parts } = message(bytes, PAYLOAD_BYTES_MAX, control);
  const result = uninterrupted(() => recvmsg(socket, header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
  if (result === -1) {
    const name = lastErrnoName();
    if (name === 'EAGAIN') return { kind: 'empty' };
    if (name === 'ECONNRESET') return { kind: 'closed' };
    checked('recvmsg', result);
  }
  const fds = readControl(control, Number(header.readBigUInt64LE(40)));
  const flags = header.readInt32LE(48);
  if (result === 0 && fds.length === 0) return { kind: 'closed' };
  if ((flags & (MSG_CTRUNC | MSG_TRUNC)) !== 0) {
    for (const fd of fds) closeFd(fd);
    throw new Error('Cannot receive descriptors: message cut by the kernel');
  }
  const payload = parts[0]?.subarray(0, result) ?? Buffer.alloc(0);
  return { kind: 'message', payload, fds };
}

function readControl(control: Buffer, lengthBytes: number): number[] {
  const fds: number[] = [];
  let at = 0;
  while (at + CMSGHDR_BYTES <= lengthBytes) {
    const messageBytes = Number(control.readBigUInt64LE(at));
    if (messageBytes < CMSGHDR_BYTES) break;
    const isRights =
      control.readInt32LE(at + 8) === SOL_SOCKET && control.readInt32LE(at + 12) === SCM_RIGHTS;
    if (isRights) {
      const end = Math.min(at + messageBytes, lengthBytes);
      for (let fd = at + CMSGHDR_BYTES; fd + 4 <= end; fd += 4) fds.push(control.readInt32LE(fd));
    }
    at += Math.ceil(messageBytes / 8) * 8;
  }
  return fds;
}

/** Proves sizes and offsets by a round trip with odd and even counts. @throws on any mismatch */
export function selfTestFdPassing(): void {
  const [left, right] = openSocketPair();
  const received: number[] = [];
  try {
    for (const count of [1, 2, 3]) {
      const sent = Array.from({ length: count }, () => left);
      sendFds(left, Buffer.from([count]), sent);
      const got = receiveFds(right);
      if (got.kind !== 'message') throw new Error(`Cannot pass descriptors: ${got.kind}`);
      received.push(...got.fds);
      if (got.fds.length !== count || got.payload[0] !== count) {
        throw new Error('Cannot pass descriptors: structures differ on this platform');
      }
    }
  } finally {
    for (const fd of [left, right, ...received]) closeFd(fd);
  }
}
