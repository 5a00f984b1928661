// A terminal as seen through its master: line discipline flags, foreground group, size, queue, and
// writes that never wait. macOS: numbers from its headers, untested.

import { checked, lastErrnoName, libc, memory, onDarwin, uninterrupted } from './libc.ts';

const tcgetattr = libc('int tcgetattr(int fd, void *termios)');
const tcgetpgrp = libc('int tcgetpgrp(int fd)');
const ioctl = libc('int ioctl(int fd, ulong request, ...)');
const writeFunction = libc('intptr_t write(int fd, void *bytes, size_t length)');
const readFunction = libc('intptr_t read(int fd, void *bytes, size_t length)');
const isattyFunction = libc('int isatty(int fd)');

/** glibc 60, musl 60, macOS 72 bytes. */
const TERMIOS_BYTES = 128;
const ECHO = 0x8;
const ICANON = onDarwin ? 0x100 : 0x2;
const ISIG = onDarwin ? 0x80 : 0x1;
const TIOCGWINSZ = onDarwin ? 0x40087468 : 0x5413;
const TIOCSWINSZ = onDarwin ? 0x80087467 : 0x5414;
const FIONREAD = onDarwin ? 0x4004667f : 0x541b;

export interface TerminalFlags {
  readonly echo: boolean;
  readonly canonical: boolean;
  readonly signals: boolean;
}

/** The flags its program has set. @throws {SysError} EIO after a hang-up, ENOTTY, … */
export function readTerminalFlags(fd: number): TerminalFlags {
  const termios = memory(TERMIOS_BYTES);
  checked('tcgetattr', tcgetattr(fd, termios));
  // c_lflag is the fourth word: 32-bit words on Linux, 64-bit ones on macOS.
  const local = onDarwin ? Number(termios.readBigUInt64LE(24)) : termios.readUInt32LE(12);
  return {
    echo: (local & ECHO) !== 0,
    canonical: (local & ICANON) !== 0,
    signals: (local & ISIG) !== 0,
  };
}

/** The foreground process group, or undefined when the terminal has none. */
export function readForegroundGroup(fd: number): number | undefined {
  const group = checked('tcgetpgrp', tcgetpgrp(fd));
  return group <= 0 ? undefined : group;
}

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

export function readTerminalSize(fd: number): TerminalSize {
  const size = memory(8);
  checked('ioctl(TIOCGWINSZ)', ioctl(fd, TIOCGWINSZ, 'void *', size));
  return { rows: size.readUInt16LE(0), cols: size.readUInt16LE(2) };
}

/** Sets the size; the foreground group gets SIGWINCH when it changed. */
export function setTerminalSize(fd: number, size: TerminalSize): void {
  const encoded = memory(8);
  encoded.writeUInt16LE(size.rows, 0);
  encoded.writeUInt16LE(size.cols, 2);
  checked('ioctl(TIOCSWINSZ)', ioctl(fd, TIOCSWINSZ, 'void *', encoded));
}

/** Bytes that could be read at once. */
export function readableBytes(fd: number): number {
  const count = memory(4);
  checked('ioctl(FIONREAD)', ioctl(fd, FIONREAD, 'void *', count));
  return count.readInt32LE(0);
}

export function isTerminal(fd: number): boolean {
  return isattyFunction(fd) === 1;
}

/**
 * Writes to a non-blocking descriptor.
 * @returns bytes taken, possibly fewer, or an errno name (EAGAIN: full; EIO: hung up; EPIPE).
 */
export function writeSome(fd: number, bytes: Uint8Array): number | string {
  const written = uninterrupted(() => writeFunction(fd, bytes, bytes.length));
  return written === -1 ? lastErrnoName() : written;
}

/** Reads from a non-blocking descriptor into `into`. 0 is the end; otherwise as `writeSome`. */
export function readSome(fd: number, into: Uint8Array): number | string {
  const count = uninterrupted(() => readFunction(fd, into, into.length));
  return count === -1 ? lastErrnoName() : count;
}
