// Real processes for tests: started, waited for by facts, and never left behind.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterEach } from 'vitest';

const started = new Set<ChildProcess>();
const pids = new Set<number>();

afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  started.clear();
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Ended already.
    }
  }
  pids.clear();
});

/** Starts a program that is killed after the test at the latest. */
export function startProcess(
  file: string,
  args: readonly string[],
  options: SpawnOptions = {},
): ChildProcess & { pid: number } {
  const child = spawn(file, [...args], { stdio: 'ignore', ...options });
  started.add(child);
  child.once('exit', () => started.delete(child));
  if (child.pid === undefined) throw new Error(`Cannot start ${file}`);
  return child as ChildProcess & { pid: number };
}

/** Kills `pid` after the test. For children that were not started through `startProcess`. */
export function killAfterTest(pid: number): number {
  pids.add(pid);
  return pid;
}

/** Waits for a fact, looking every 5 ms. @throws after `withinMs` */
export async function eventually<T>(
  fact: () => T | undefined | false,
  what: string,
  withinMs = 30_000,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = fact();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > deadline) throw new Error(`Not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The state letter of a process, or undefined when it is gone. */
export function stateOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.charAt(stat.lastIndexOf(')') + 2);
  } catch {
    return undefined;
  }
}

/** Everything a child wrote to stdout, and how it ended. */
export async function outputOf(
  child: ChildProcess,
): Promise<{ stdout: string; code: number | null; signal: string | null }> {
  let stdout = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  return new Promise((resolve) => {
    child.once('close', (code, signal) => resolve({ stdout, code, signal }));
  });
}
