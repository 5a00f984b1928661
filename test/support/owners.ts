// Starts owners (owner-main.ts) as real processes and talks with them.

import type { ChildProcess } from 'node:child_process';
import { bundleForChild } from './bundle.ts';
import { FAILPOINT_VARIABLE } from './failpoints.ts';
import { eventually, startProcess, stateOf } from './processes.ts';

export interface Owner {
  readonly child: ChildProcess & { pid: number };
  readonly lines: string[];
  stderr: string;
  /** The exit code or signal; undefined while it runs. */
  ended: string | undefined;
}

export async function startOwner(
  directory: string,
  failpoint?: string,
  environment: Record<string, string> = {},
  wrapper: readonly string[] = [],
): Promise<Owner> {
  const main = await bundleForChild('test/support/owner-main.ts');
  const [file = '', ...args] = [...wrapper, process.execPath, main, directory];
  const child = startProcess(file, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...environment,
      ...(failpoint === undefined ? {} : { [FAILPOINT_VARIABLE]: failpoint }),
    },
  });
  const owner: Owner = { child, lines: [], stderr: '', ended: undefined };
  let rest = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    owner.lines.push(...lines);
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    owner.stderr += chunk;
  });
  // Writing to one that was killed is part of the tests.
  child.stdin?.on('error', () => undefined);
  child.once('close', (code, signal) => {
    owner.ended = signal ?? String(code);
  });
  return owner;
}

export type Settled = 'serving' | 'stopped' | `ended ${string}`;

/** Waits until the owner serves, has stopped itself, or has ended. */
export async function settled(owner: Owner): Promise<Settled> {
  return eventually<Settled>(() => {
    if (owner.lines.some((line) => line.startsWith('serving'))) return 'serving';
    if (owner.ended !== undefined) return `ended ${owner.ended}`;
    return stateOf(owner.child.pid) === 'T' ? 'stopped' : undefined;
  }, `owner settled; stderr: ${owner.stderr}`);
}

/** Sends a line and waits for the next one it answers. */
export async function ask(owner: Owner, line: string): Promise<string> {
  const before = owner.lines.length;
  owner.child.stdin?.write(`${line}\n`);
  return eventually(() => owner.lines[before], `answer to ${line}`);
}

export async function kill(owner: Owner): Promise<void> {
  owner.child.kill('SIGKILL');
  await eventually(() => owner.ended !== undefined, 'end of the owner');
}
