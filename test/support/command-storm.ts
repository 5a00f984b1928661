// The command channel under a storm: many submitters with little patience, an owner that is killed at
// random moments and followed by another, delays between all steps. Checks what each was told
// against what was committed.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mintUuid } from '../../src/base/ids.ts';
import { type Random, seededRandom } from '../../src/base/random.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import { submitCommand } from '../../src/control/command-client.ts';
import { systemMachineTime } from '../../src/control/machine-time.ts';
import type { OwnerTuple } from '../../src/control/owner-tuple.ts';
import { bundleForChild } from './bundle.ts';
import { fastClock } from './fast-clock.ts';
import { tempDir } from './temp-dir.ts';

export interface CommandStormOptions {
  readonly rounds: number;
  readonly submitters: number;
  readonly seed: number;
  readonly maxMs: number;
}

export interface CommandStormReport {
  readonly rounds: number;
  readonly kills: number;
  readonly commits: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

export async function runCommandStorm(options: CommandStormOptions): Promise<CommandStormReport> {
  const directory = tempDir();
  mkdirSync(join(directory.path, 'commands'), { mode: 0o700 });
  const random = seededRandom(options.seed);
  const program = await bundleForChild('test/support/command-server-main.ts');
  const storm = { over: false, kills: 0 };
  const owners = keepOwners(program, directory.path, random, storm);
  const told = new Map<string, string>();
  const untilMs = Date.now() + options.maxMs;
  try {
    await Promise.all(
      Array.from({ length: options.submitters }, async () => {
        while (told.size < options.rounds && Date.now() < untilMs) {
          const requestId = mintUuid(systemRandom);
          told.set(requestId, 'pending');
          told.set(requestId, await submitOne(directory.path, requestId, random));
        }
      }),
    );
  } finally {
    storm.over = true;
    await owners;
  }
  const commits = linesOf(join(directory.path, 'commits'));
  directory.remove();
  return {
    rounds: told.size,
    kills: storm.kills,
    commits: commits.length,
    outcomes: count([...told.values()]),
    violations: judge(told, commits),
  };
}

/** One owner after another; each is killed after up to 400 ms. */
async function keepOwners(
  program: string,
  directory: string,
  random: Random,
  storm: { over: boolean; kills: number },
): Promise<void> {
  while (!storm.over) {
    const seed = String(Math.floor(random.next() * 1e9));
    const child = spawn(process.execPath, [program, directory, seed], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const serving = new Promise((resolve) => child.stdout.once('data', resolve));
    await Promise.race([serving, ended]);
    await systemClock.sleep(random.next() * 400);
    child.kill('SIGKILL');
    await ended;
    storm.kills += 1;
  }
}

async function submitOne(directory: string, requestId: string, random: Random): Promise<string> {
  const owner = await firstOwner(directory);
  const outcome = await submitCommand({
    directory: join(directory, 'commands'),
    kind: 'slack',
    owner,
    command: 'bind-thread',
    args: { session: 's1', incarnation: '', space: '', channel: 'C1', root: '1.1', move: false },
    // 20 times faster: from 5 ms to 155 ms of patience, 250 ms to settle.
    timeoutMs: 100 + random.next() * 3000,
    requestId,
    clock: fastClock(20),
    machine: systemMachineTime(),
    random: systemRandom,
    step: () => systemClock.sleep(random.next() < 0.3 ? random.next() * 10 : 0),
  });
  return outcome.kind === 'answered' ? outcome.answer.outcome : outcome.kind;
}

/** The storm may be the whole program, so it does without the test runner's helpers. */
async function firstOwner(directory: string): Promise<OwnerTuple> {
  for (;;) {
    const owner = ownerIn(directory);
    if (owner !== undefined) return owner;
    await systemClock.sleep(10);
  }
}

function ownerIn(directory: string): OwnerTuple | undefined {
  const path = join(directory, 'owner.json');
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as OwnerTuple) : undefined;
}

function linesOf(path: string): string[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

function count(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

/** I8 and I9: cancelled is never committed, ok always; what is committed was told ok or unknown. */
function judge(told: ReadonlyMap<string, string>, commits: readonly string[]): string[] {
  const violations: string[] = [];
  const times = count(commits);
  for (const [requestId, outcome] of told) {
    const committed = times[requestId] ?? 0;
    const unknown = outcome === 'unknown' || outcome === 'outcome_unknown';
    if (committed > 1) violations.push(`${requestId}: committed ${committed} times`);
    if (outcome === 'ok' && committed === 0) violations.push(`${requestId}: ok, not committed`);
    if (committed > 0 && outcome !== 'ok' && !unknown) {
      violations.push(`${requestId}: committed, but told ${outcome}`);
    }
  }
  return violations;
}
