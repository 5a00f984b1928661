// Reads a file that someone hostile may have put there: no following of links, no blocking on a
// FIFO, a bound on size, checked by descriptor and not by name.

import {
  close,
  closeSync,
  constants,
  fstat,
  fstatSync,
  open,
  openSync,
  read,
  readSync,
  type Stats,
} from 'node:fs';
import { promisify } from 'node:util';
import { errnoCode } from './errors.ts';

const openFd = promisify(open);
const closeFd = promisify(close);
const statFd = promisify(fstat);
const readFd = promisify(read);

const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export type BoundedRead =
  | { readonly kind: 'content'; readonly bytes: Buffer; readonly stat: Stats }
  | { readonly kind: 'absent' }
  /** Something is there, or the answer could not be had: never to be taken for absence. */
  | { readonly kind: 'unusable'; readonly because: string };

/** Reads at most `maxBytes` of the regular file `path`. A larger file is `unusable`. */
export async function readBounded(path: string, maxBytes: number): Promise<BoundedRead> {
  let fd: number;
  try {
    fd = await openFd(path, READ_FLAGS);
  } catch (error) {
    const code = errnoCode(error) ?? 'unknown error';
    return code === 'ENOENT' ? { kind: 'absent' } : { kind: 'unusable', because: code };
  }
  try {
    return await readOpened(fd, maxBytes);
  } catch (error) {
    return { kind: 'unusable', because: errnoCode(error) ?? 'unknown error' };
  } finally {
    await closeFd(fd);
  }
}

async function readOpened(fd: number, maxBytes: number): Promise<BoundedRead> {
  const stat = await statFd(fd);
  if (!stat.isFile()) return { kind: 'unusable', because: 'not a regular file' };
  if (stat.size > maxBytes) return { kind: 'unusable', because: `larger than ${maxBytes} bytes` };
  const buffer = Buffer.alloc(maxBytes + 1);
  let sizeBytes = 0;
  while (sizeBytes <= maxBytes) {
    const { bytesRead } = await readFd(fd, buffer, sizeBytes, buffer.length - sizeBytes, sizeBytes);
    if (bytesRead === 0) break;
    sizeBytes += bytesRead;
  }
  if (sizeBytes > maxBytes) return { kind: 'unusable', because: `larger than ${maxBytes} bytes` };
  return { kind: 'content', bytes: buffer.subarray(0, sizeBytes), stat };
}

/**
 * As `readBounded`, at once: for short-lived processes, where each trip through the thread pool costs
 * more than the read. A long-running one does not stop its loop for a disk.
 */
export function readBoundedSync(path: string, maxBytes: number): BoundedRead {
  let fd: number;
  try {
    fd = openSync(path, READ_FLAGS);
  } catch (error) {
    const code = errnoCode(error) ?? 'unknown error';
    return code === 'ENOENT' ? { kind: 'absent' } : { kind: 'unusable', because: code };
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return { kind: 'unusable', because: 'not a regular file' };
    if (stat.size > maxBytes) return { kind: 'unusable', because: `larger than ${maxBytes} bytes` };
    const buffer = Buffer.alloc(maxBytes + 1);
    let sizeBytes = 0;
    while (sizeBytes <= maxBytes) {
      const bytesRead = readSync(fd, buffer, sizeBytes, buffer.length - sizeBytes, sizeBytes);
      if (bytesRead === 0) break;
      sizeBytes += bytesRead;
    }
    if (sizeBytes > maxBytes) return { kind: 'unusable', because: `larger than ${maxBytes} bytes` };
    return { kind: 'content', bytes: buffer.subarray(0, sizeBytes), stat };
  } catch (error) {
    return { kind: 'unusable', because: errnoCode(error) ?? 'unknown error' };
  } finally {
    closeSync(fd);
  }
}
