// Starts a program by posix_spawn: its own session, default signals, exactly the descriptors named,
// no thread per child, and the error of a failed start at once. The caller reaps (wait.ts).
// Whether the directory, the program or its interpreter was missing is not told apart: look before.

import { constants } from 'node:os';
import { closeFd, duplicate, environmentStrings } from './fd.ts';
import { errnoName, libc, libcHas, memory, onDarwin, onLinux, SysError } from './libc.ts';
import { openFilesLimit, setOpenFilesLimit, setUmask } from './limits.ts';

const attrInit = libc('int posix_spawnattr_init(void *attr)');
const attrDestroy = libc('int posix_spawnattr_destroy(void *attr)');
const attrSetFlags = libc('int posix_spawnattr_setflags(void *attr, short flags)');
const attrSetDefault = libc('int posix_spawnattr_setsigdefault(void *attr, void *set)');
const attrSetMask = libc('int posix_spawnattr_setsigmask(void *attr, void *set)');
const sigfillset = libc('int sigfillset(void *set)');
const sigemptyset = libc('int sigemptyset(void *set)');
const actionsInit = libc('int posix_spawn_file_actions_init(void *actions)');
const actionsDestroy = libc('int posix_spawn_file_actions_destroy(void *actions)');
const addOpen = libc(
  'int posix_spawn_file_actions_addopen(void *actions, int fd, const char *path, int flags, uint mode)',
);
const addDup2 = libc('int posix_spawn_file_actions_adddup2(void *actions, int fd, int target)');
const addClose = libc('int posix_spawn_file_actions_addclose(void *actions, int fd)');
const ADD_CHDIR = 'int posix_spawn_file_actions_addchdir_np(void *actions, const char *path)';
const addChdir = libc(ADD_CHDIR);
const ADD_CLOSEFROM = 'int posix_spawn_file_actions_addclosefrom_np(void *actions, int from)';
const addCloseFrom = libc(ADD_CLOSEFROM);
const posixSpawn = libc(
  'int posix_spawn(void *pid, const char *path, void *actions, void *attr, const char **argv, const char **environment)',
);

const POSIX_SPAWN_SETSIGDEF = 0x04;
const POSIX_SPAWN_SETSIGMASK = 0x08;
const POSIX_SPAWN_SETSID = onDarwin ? 0x0400 : 0x80;
const POSIX_SPAWN_CLOEXEC_DEFAULT = 0x4000; // macOS only.
/** glibc: 336, 80 and 128 bytes; musl: 336, 80 and 128; macOS: 8, 8 and 4. */
const ATTR_BYTES = 512;
const ACTIONS_BYTES = 256;
const SIGSET_BYTES = 128;
const O_RDWR = 2;
/** Above every number a child is given, so that a mapping cannot overwrite its own sources. */
const SCRATCH_FD_MIN = 64;

export interface SpawnRequest {
  /** Absolute path; PATH is not searched. */
  readonly file: string;
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** A terminal's path, opened in the new session as fd 0, 1, 2: it becomes the controlling one. */
  readonly terminal?: string;
  /** Child descriptor → ours. Numbers below 64. Everything else is closed in the child. */
  readonly fds?: ReadonlyMap<number, number>;
  /** Default: a new session. */
  readonly newSession?: boolean;
  /** Soft limit of open files for the child. */
  readonly openFiles?: number;
  readonly umask?: number;
}

export type SpawnResult =
  | { readonly kind: 'started'; readonly pid: number }
  /** Nothing was started. ENOENT, EACCES, ENOEXEC, E2BIG, ENOMEM, … */
  | { readonly kind: 'failed'; readonly code: string };

/** What the libc at hand can do; without closefrom, close-on-exec must suffice. */
export function spawnCapabilities(): { readonly chdir: boolean; readonly closeFrom: boolean } {
  return { chdir: libcHas(ADD_CHDIR), closeFrom: onLinux && libcHas(ADD_CLOSEFROM) };
}

let capabilities: ReturnType<typeof spawnCapabilities> | undefined;

/** Functions of this family return the errno instead of setting it. */
function must(call: string, errno: number): void {
  if (errno !== 0) throw new SysError(call, errno);
}

/**
 * Starts the program before it returns.
 * @throws {SysError} when the request itself cannot be expressed; nothing was started.
 */
export function spawnProcess(request: SpawnRequest): SpawnResult {
  capabilities ??= spawnCapabilities();
  const attr = memory(ATTR_BYTES);
  const actions = memory(ACTIONS_BYTES);
  const scratch: number[] = [];
  must('posix_spawnattr_init', attrInit(attr));
  try {
    fillAttributes(attr, request);
    must('posix_spawn_file_actions_init', actionsInit(actions));
    try {
      fillActions(actions, request, scratch, capabilities);
      return start(request, actions, attr);
    } finally {
      actionsDestroy(actions);
    }
  } finally {
    attrDestroy(attr);
    for (const fd of scratch) closeFd(fd);
  }
}

function fillAttributes(attr: Buffer, request: SpawnRequest): void {
  const set = memory(SIGSET_BYTES);
  sigfillset(set);
  must('posix_spawnattr_setsigdefault', attrSetDefault(attr, set));
  sigemptyset(set);
  must('posix_spawnattr_setsigmask', attrSetMask(attr, set));
  const flags =
    POSIX_SPAWN_SETSIGDEF |
    POSIX_SPAWN_SETSIGMASK |
    (request.newSession === false ? 0 : POSIX_SPAWN_SETSID) |
    (onDarwin ? POSIX_SPAWN_CLOEXEC_DEFAULT : 0);
  must('posix_spawnattr_setflags', attrSetFlags(attr, flags));
}

function fillActions(
  actions: Buffer,
  request: SpawnRequest,
  scratch: number[],
  has: { readonly chdir: boolean; readonly closeFrom: boolean },
): void {
  const fds = new Map(request.fds);
  const highest = Math.max(2, ...fds.keys());
  if (highest >= SCRATCH_FD_MIN) throw new SysError('posix_spawn', constants.errno.EINVAL);
  if (request.cwd !== undefined) {
    must('posix_spawn_file_actions_addchdir_np', addChdir(actions, request.cwd));
  }
  if (request.terminal !== undefined) {
    must('posix_spawn_file_actions_addopen', addOpen(actions, 0, request.terminal, O_RDWR, 0));
    for (const fd of [1, 2]) must('posix_spawn_file_actions_adddup2', addDup2(actions, 0, fd));
  }
  for (const [child, ours] of fds) {
    const source = duplicate(ours, SCRATCH_FD_MIN);
    scratch.push(source);
    must('posix_spawn_file_actions_adddup2', addDup2(actions, source, child));
  }
  for (let fd = 0; fd <= highest; fd++) {
    const given = fds.has(fd) || (request.terminal !== undefined && fd <= 2);
    if (given) continue;
    if (fd <= 2) {
      // A program without its first three descriptors writes into whatever it opens first.
      must('posix_spawn_file_actions_addopen', addOpen(actions, fd, '/dev/null', O_RDWR, 0));
    } else {
      must('posix_spawn_file_actions_addclose', addClose(actions, fd));
    }
  }
  if (has.closeFrom) {
    must('posix_spawn_file_actions_addclosefrom_np', addCloseFrom(actions, highest + 1));
  }
}

function start(request: SpawnRequest, actions: Buffer, attr: Buffer): SpawnResult {
  const pid = memory(4);
  const argv = [...request.argv, null];
  const environment = [...environmentStrings(request.environment), null];
  const limitBefore = request.openFiles === undefined ? undefined : openFilesLimit();
  const umaskBefore = request.umask === undefined ? undefined : setUmask(request.umask);
  try {
    if (limitBefore !== undefined) {
      setOpenFilesLimit({ soft: request.openFiles, hard: limitBefore.hard });
    }
    const errno = posixSpawn(pid, request.file, actions, attr, argv, environment);
    if (errno !== 0) return { kind: 'failed', code: errnoName(errno) };
    return { kind: 'started', pid: pid.readInt32LE(0) };
  } finally {
    if (limitBefore !== undefined) setOpenFilesLimit(limitBefore);
    if (umaskBefore !== undefined) setUmask(umaskBefore);
  }
}
