// What /proc says about processes and namespaces, as plain facts. It reads; it judges nothing.
// An entry that cannot be read is not a dead process: with hidepid, another user's is ENOENT.

import { readFileSync, readlinkSync } from 'node:fs';
import { checked, libc, memory, onDarwin, onLinux, unsupported } from './libc.ts';

export interface ProcessFacts {
  readonly pid: number;
  readonly parentPid: number;
  /** R, S, D, T (stopped), t (traced), Z (zombie), X (dead), … */
  readonly state: string;
  /** Field 22 of stat: clock ticks since boot as its time namespace sees them. Not unique. */
  readonly startTicks: number;
  readonly processGroup: number;
  readonly session: number;
}

/**
 * Reads `/proc/<pid>/stat`. On macOS the start time in microseconds stands for the ticks.
 * @throws an error with `code` ENOENT, ESRCH, EACCES, …
 */
export function readProcessFacts(pid: number): ProcessFacts {
  if (onDarwin) return readDarwinFacts(pid);
  return parseStat(pid, readFileSync(`/proc/${pid}/stat`, 'latin1'));
}

/** Parses a stat line. The command may hold spaces and parentheses: what counts follows the last. */
export function parseStat(pid: number, stat: string): ProcessFacts {
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .trim()
    .split(' ');
  // `fields[0]` is field 3 of proc(5).
  const number = (field: number): number => {
    const text = fields[field - 3] ?? '';
    if (!/^-?\d+$/.test(text)) throw new Error(`Cannot read field ${field} of /proc/${pid}/stat`);
    return Number(text);
  };
  return {
    pid,
    state: fields[0] ?? '?',
    parentPid: number(4),
    processGroup: number(5),
    session: number(6),
    startTicks: number(22),
  };
}

/** The process a thread id belongs to; equal to `pid` for a process. @throws as readProcessFacts */
export function readThreadGroup(pid: number): number {
  if (onDarwin) return pid;
  const found = /^Tgid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  if (found === null) throw new Error(`Cannot read Tgid of /proc/${pid}/status`);
  return Number(found[1]);
}

/** Id of this boot. The same in every namespace. */
export function readBootId(): string {
  if (onLinux) return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  const uuid = memory(64);
  const size = memory(8);
  size.writeBigUInt64LE(64n);
  checked('sysctlbyname', sysctlByName('kern.bootsessionuuid', uuid, size, null, 0));
  return uuid.toString('latin1', 0, Number(size.readBigUInt64LE()) - 1).toLowerCase();
}

const sysctlByName = libc(
  'int sysctlbyname(const char *name, void *old, void *oldSize, void *new, size_t newSize)',
);

export type Namespace = 'pid' | 'time';

/** The namespace of a process (default: ours) as `<inode>`; '0' where the kernel has none. */
export function readNamespace(namespace: Namespace, pid: number | 'self' = 'self'): string {
  if (onDarwin) return '0';
  let target: string;
  try {
    target = readlinkSync(`/proc/${pid}/ns/${namespace}`);
  } catch (error) {
    // A kernel without time namespaces (< 5.6) has no such entry; our own must then be absent too.
    if (namespace === 'time' && pid === 'self' && isMissing(error)) return '0';
    throw error;
  }
  const inode = /\[(\d+)\]$/.exec(target)?.[1];
  if (inode === undefined) throw new Error(`Cannot read namespace ${namespace}: ${target}`);
  return inode;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/**
 * An id of the machine (or container image instance) that no reboot changes, from machine-id.
 * Undefined where there is none: then nothing can be said across machines.
 */
export function readMachineId(): string | undefined {
  for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
    try {
      const id = readFileSync(path, 'latin1').trim();
      if (/^[0-9a-f]{32}$/.test(id)) return id;
    } catch {
      // The next place; absence of both is an answer.
    }
  }
  return undefined;
}

/** The control group of a process in the unified hierarchy, such as `/system.slice/x.service`. */
export function readControlGroup(pid: number | 'self' = 'self'): string | undefined {
  if (!onLinux) return undefined;
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n');
  const unified = lines.find((line) => line.startsWith('0::'));
  const named = lines.find((line) => line.includes(':name=systemd:'));
  const line = unified ?? named;
  return line === undefined ? undefined : line.slice(line.indexOf(':', line.indexOf(':') + 1) + 1);
}

/** The ids of all processes whose parent is `pid`. @throws {SysError} ENOSYS off Linux */
export function readChildren(pid: number): number[] {
  if (!onLinux) throw unsupported('children');
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}

// macOS, untested: proc_pidinfo(PROC_PIDTBSDINFO) fills 136 bytes; status 4, ppid 16, pgid 100,
// start seconds 120, microseconds 128. status 5 is a zombie, 4 is stopped.
const procPidinfo = libc(
  'int proc_pidinfo(int pid, int flavor, uint64_t argument, void *buffer, int size)',
);
const PROC_PIDTBSDINFO = 3;
const BSDINFO_BYTES = 136;

function readDarwinFacts(pid: number): ProcessFacts {
  const info = memory(BSDINFO_BYTES);
  const filled = procPidinfo(pid, PROC_PIDTBSDINFO, 0, info, BSDINFO_BYTES);
  checked('proc_pidinfo', filled <= 0 ? -1 : filled);
  const status = info.readUInt32LE(4);
  const stateOf: Record<number, string> = { 4: 'T', 5: 'Z' };
  return {
    pid,
    state: stateOf[status] ?? 'S',
    parentPid: info.readUInt32LE(16),
    processGroup: info.readUInt32LE(100),
    session: 0,
    startTicks: Number(info.readBigUInt64LE(120) * 1_000_000n + info.readBigUInt64LE(128)),
  };
}
