// Which kind of file system a directory is on, and renames that replace nothing.

import { readFileSync, statfsSync } from 'node:fs';
import { checked, libc, onDarwin, onLinux, rawSyscall } from './libc.ts';

/** From linux/magic.h and the file systems' own headers. */
const NETWORK_TYPES: ReadonlyMap<number, string> = new Map([
  [0x6969, 'nfs'],
  [0x517b, 'smb'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb2'],
  [0x5346414f, 'afs'],
  [0x6b414653, 'afs'],
  [0x01021997, '9p'],
  [0x00c36400, 'ceph'],
  [0x73757245, 'coda'],
  [0x564c, 'ncp'],
  [0x0bd00bd0, 'lustre'],
  [0x47504653, 'gpfs'],
  [0x7461636f, 'ocfs2'],
  [0x01161970, 'gfs2'],
  [0x786f4256, 'vboxsf'],
]);
const FUSE_TYPE = 0x65735546;
const NETWORK_FUSE = /sshfs|gluster|s3|rclone|gcs|ceph|smb|nfs|dav|blob|juicefs|drive/i;

export type FilesystemVerdict =
  | { readonly kind: 'local' }
  | { readonly kind: 'network'; readonly type: string }
  | { readonly kind: 'unknown'; readonly because: string };

/** Whether locks and sockets in `directory` mean what they mean on one machine. */
export function judgeFilesystem(directory: string): FilesystemVerdict {
  if (!onLinux) return { kind: 'unknown', because: 'not told apart on this platform' };
  let type: number;
  try {
    type = statfsSync(directory).type >>> 0;
  } catch (error) {
    return { kind: 'unknown', because: error instanceof Error ? error.message : 'statfs failed' };
  }
  return judgeType(type, () => mountedType(directory));
}

/** The judgement alone. `mounted` yields the mount's type, asked only for FUSE. */
export function judgeType(type: number, mounted: () => string | undefined): FilesystemVerdict {
  const network = NETWORK_TYPES.get(type);
  if (network !== undefined) return { kind: 'network', type: network };
  if (type !== FUSE_TYPE) return { kind: 'local' };
  const name = mounted() ?? 'fuse';
  if (NETWORK_FUSE.test(name)) return { kind: 'network', type: name };
  return { kind: 'unknown', because: `${name}: cannot tell whether it is shared` };
}

/** The type of the mount with the longest path that contains `directory`. */
function mountedType(directory: string): string | undefined {
  let best = '';
  let type: string | undefined;
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [left, right] = line.split(' - ');
    const mountPoint = left?.split(' ')[4];
    if (mountPoint === undefined || right === undefined) continue;
    const prefix = mountPoint === '/' ? '/' : `${mountPoint}/`;
    if (`${directory}/`.startsWith(prefix) && mountPoint.length >= best.length) {
      best = mountPoint;
      type = right.split(' ')[0];
    }
  }
  return type;
}

const AT_FDCWD = -100;
const RENAME_NOREPLACE = 1;
const RENAME_EXCL = 4; // macOS.
const renamex = libc('int renamex_np(const char *from, const char *to, uint flags)');

/** Renames, failing when the target exists. @throws {SysError} EEXIST, ENOENT, EINVAL, ENOSYS */
export function renameNoReplace(from: string, to: string): void {
  if (onDarwin) {
    checked('renamex_np', renamex(from, to, RENAME_EXCL));
    return;
  }
  checked('renameat2', rawSyscall('renameat2', AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
}
