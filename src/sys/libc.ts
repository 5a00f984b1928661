// The one importer of koffi: binds libc functions by their C definition, on first use, and turns
// errno into errors. `koffi.load(null)` searches the running process, so neither glibc's nor musl's
// file name matters. Knows no system call; each noun beside this file declares its own.
//
// Only synchronous calls are bound: errno is lost across koffi's asynchronous ones.

import { arch, constants, platform } from 'node:os';
import koffi, { type LibraryHandle } from 'koffi';

/** What may be handed to C: numbers, strings, memory, addresses, and type names before variadics. */
export type NativeArgument =
  | number
  | bigint
  | string
  | null
  | ArrayBufferView
  | readonly (string | null)[];

export type NativeFunction = (...args: readonly NativeArgument[]) => number;

/** A failed system call. `code` is the errno name, as in Node's own errors. */
export class SysError extends Error {
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;

  constructor(syscall: string, errno: number) {
    const code = errnoName(errno);
    super(`${code}: ${syscall}`);
    this.name = 'SysError';
    this.code = code;
    this.errno = errno;
    this.syscall = syscall;
  }
}

export const onLinux = platform() === 'linux';
export const onDarwin = platform() === 'darwin';
const ENOSYS = constants.errno.ENOSYS;

const nameOfErrno = new Map<number, string>();
for (const [name, value] of Object.entries(constants.errno)) {
  // EAGAIN and EWOULDBLOCK, ENOTSUP and EOPNOTSUPP share a number: the first name wins.
  if (!nameOfErrno.has(value)) nameOfErrno.set(value, name);
}

/** `ENOENT` for 2, and so on; `E<number>` for one Node has no name for. */
export function errnoName(errno: number): string {
  return nameOfErrno.get(errno) ?? `E${errno}`;
}

let library: LibraryHandle | undefined;

function bind(definition: string): NativeFunction | undefined {
  library ??= koffi.load(null);
  try {
    return library.func(definition) as NativeFunction;
  } catch (error) {
    // Only a missing symbol is a missing capability; a wrong definition is a bug and must show.
    if (error instanceof Error && error.message.includes('Cannot find function')) return undefined;
    throw error;
  }
}

/** A libc function, bound when first called. @throws {SysError} ENOSYS where libc lacks it. */
export function libc(definition: string): NativeFunction {
  let bound: NativeFunction | undefined;
  return (...args) => {
    bound ??= bind(definition);
    if (bound === undefined) throw new SysError(definition, ENOSYS);
    return bound(...args);
  };
}

/** Whether libc has the function. */
export function libcHas(definition: string): boolean {
  return bind(definition) !== undefined;
}

/** The errno of the call just made. */
export function lastErrno(): number {
  return koffi.errno();
}

/** The errno name of the call just made. */
export function lastErrnoName(): string {
  return errnoName(koffi.errno());
}

/** Returns `result`. @throws {SysError} when it is -1. */
export function checked(syscall: string, result: number): number {
  if (result === -1) throw new SysError(syscall, koffi.errno());
  return result;
}

/** Runs a call again while a signal interrupted it. The result may still be -1. */
export function uninterrupted(call: () => number): number {
  for (;;) {
    const result = call();
    if (result !== -1 || koffi.errno() !== constants.errno.EINTR) return result;
  }
}

const syscallFunction = libc('long syscall(long number, ...)');

/** Numbers of the calls that not every supported libc wraps. The newer ones are the same on both. */
const SYSCALL_NUMBERS = {
  pidfd_open: { x64: 434, arm64: 434 },
  pidfd_send_signal: { x64: 424, arm64: 424 },
  renameat2: { x64: 316, arm64: 276 },
} as const;

/**
 * A raw system call; arguments are passed as `long`s or memory.
 * @throws {SysError} ENOSYS on another platform or architecture.
 */
export function rawSyscall(
  name: keyof typeof SYSCALL_NUMBERS,
  ...args: readonly (number | null | string)[]
): number {
  const machine = arch();
  if (!onLinux || (machine !== 'x64' && machine !== 'arm64')) throw new SysError(name, ENOSYS);
  const typed = args.flatMap((arg): NativeArgument[] => [
    typeof arg === 'number' ? 'long' : 'const char *',
    arg,
  ]);
  return syscallFunction(SYSCALL_NUMBERS[name][machine], ...typed);
}

/** The address of memory that the caller keeps referenced for as long as C may use it. */
export function addressOf(memory: ArrayBufferView): bigint {
  return koffi.address(memory);
}

/** Memory for C. At least 64 bytes, so that V8 never keeps it on its moving heap. */
export function memory(sizeBytes: number): Buffer {
  return Buffer.alloc(Math.max(sizeBytes, 65));
}

/** A refusal of this port on a platform where it does not exist. */
export function unsupported(what: string): SysError {
  return new SysError(what, ENOSYS);
}

export interface FdWatch {
  /** Idempotent. */
  close(): void;
  /** Lets the process end while this watch is open. */
  unref(): void;
}

/** Calls `onReadable` on the event loop whenever `fd` is readable or hung up. No thread waits. */
export function watchReadable(fd: number, onReadable: () => void): FdWatch {
  const handle = koffi.node.poll(fd, { readable: true, disconnect: true }, onReadable);
  let closed = false;
  return {
    close: () => {
      if (closed) return;
      closed = true;
      handle.stop();
      handle.close();
    },
    unref: () => handle.unref(),
  };
}
