// Process limits that a child is to be given: open files and umask. Node raises its own limit of
// open files at start, so what a program should see has to be said explicitly.

import { readFileSync } from 'node:fs';
import { checked, libc, memory, onDarwin } from './libc.ts';

const getrlimit = libc('int getrlimit(int resource, void *limit)');
const setrlimit = libc('int setrlimit(int resource, void *limit)');
const umaskFunction = libc('uint umask(uint mask)');

const RLIMIT_NOFILE = onDarwin ? 8 : 7;
const UNLIMITED = 0xffff_ffff_ffff_ffffn;

export interface Limit {
  /** Undefined: unlimited. */
  readonly soft: number | undefined;
  readonly hard: number | undefined;
}

/** Our own limit of open files. */
export function openFilesLimit(): Limit {
  const limit = memory(16);
  checked('getrlimit', getrlimit(RLIMIT_NOFILE, limit));
  return { soft: decode(limit.readBigUInt64LE(0)), hard: decode(limit.readBigUInt64LE(8)) };
}

export function setOpenFilesLimit(limit: Limit): void {
  const encoded = memory(16);
  encoded.writeBigUInt64LE(encode(limit.soft), 0);
  encoded.writeBigUInt64LE(encode(limit.hard), 8);
  checked('setrlimit', setrlimit(RLIMIT_NOFILE, encoded));
}

/**
 * The limit of open files of another process, such as the shell that started us, which has not
 * raised it. Undefined when it cannot be read.
 */
export function openFilesLimitOf(pid: number): Limit | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/limits`, 'latin1');
  } catch {
    return undefined;
  }
  const found = /^Max open files\s+(\S+)\s+(\S+)/m.exec(text);
  const value = (word: string | undefined): number | undefined =>
    word === undefined || word === 'unlimited' ? undefined : Number(word);
  return found === null ? undefined : { soft: value(found[1]), hard: value(found[2]) };
}

/** Sets the umask of the whole process and returns the one before. */
export function setUmask(mask: number): number {
  return umaskFunction(mask);
}

function decode(value: bigint): number | undefined {
  return value >= BigInt(Number.MAX_SAFE_INTEGER) ? undefined : Number(value);
}

function encode(value: number | undefined): bigint {
  return value === undefined ? UNLIMITED : BigInt(value);
}
