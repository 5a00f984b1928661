// The ownership storm: contenders fight for one directory while they are killed at random. Three
// oracles watch (storm-contender-main.ts); this file starts, kills, counts.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '../../src/base/random.ts';
import { bundleForChild } from './bundle.ts';

export interface StormRequest {
  readonly contenders: number;
  /** Goes on until that many acquisitions, or until `maxMs`. */
  readonly acquisitions: number;
  readonly maxMs: number;
  /** Chance of a contender to SIGKILL itself at each step of the protocols. */
  readonly killChance: number;
  readonly seed: number;
  /** The bundle's entry; tests of the storm itself pass a broken contender. */
  readonly entry?: string;
}

export interface StormReport {
  readonly seed: number;
  readonly acquisitions: number;
  readonly serves: number;
  /** Contenders that ended by SIGKILL, by their own hand or by ours. */
  readonly kills: number;
  /** Of these, in the owner's section. */
  readonly killedOwning: number;
  readonly violations: readonly string[];
  /** The longest time in which nobody acquired: a wedge would show as all of it. */
  readonly longestGapMs: number;
  /** Private names left in the directory at the end; the next owner sweeps them. */
  readonly scratchNames: number;
  readonly tookMs: number;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function countLines(path: string): { acquired: number; served: number; released: number } {
  const text = existsSync(path) ? readFileSync(path, 'latin1') : '';
  const count = (letter: string): number =>
    text.split('\n').filter((l) => l.startsWith(letter)).length;
  return { acquired: count('A '), served: count('S '), released: count('R ') };
}

/** The pid that acquired last and has not released. */
function ownerIn(history: string): number | undefined {
  if (!existsSync(history)) return undefined;
  const last = readFileSync(history, 'latin1').trimEnd().split('\n').at(-1)?.split(' ');
  return last?.[0] === 'A' || last?.[0] === 'S' ? Number(last[1]) : undefined;
}

export async function runStorm(request: StormRequest): Promise<StormReport> {
  const directory = mkdtempSync(join(tmpdir(), 'chatd-storm-'));
  const bundle = await bundleForChild(request.entry ?? 'test/support/storm-contender-main.ts');
  const random = seededRandom(request.seed);
  const contenders = new Set<ChildProcess>();
  let kills = 0;
  let started = 0;
  const start = (): void => {
    const args = [bundle, directory, String(request.seed + started++), String(request.killChance)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    contenders.add(child);
    child.once('exit', () => {
      contenders.delete(child);
      kills++;
    });
  };
  const history = join(directory, 'history');
  const began = Date.now();
  let lastCount = 0;
  let lastChange = began;
  let longestGapMs = 0;
  try {
    while (Date.now() - began < request.maxMs) {
      while (contenders.size < request.contenders) start();
      await sleep(random.next() * 40);
      const { acquired } = countLines(history);
      longestGapMs = Math.max(longestGapMs, Date.now() - lastChange);
      if (existsSync(join(directory, 'violations')) || acquired >= request.acquisitions) break;
      if (acquired === lastCount) continue;
      // From outside too, at no step in particular; paced by progress, so that a busy machine only
      // makes the storm longer. Half of these aim at whoever owns right now.
      if (random.next() < request.killChance * 10) {
        const owner = random.next() < 0.5 ? ownerIn(history) : undefined;
        const alive = [...contenders];
        const victim =
          alive.find((child) => child.pid === owner) ??
          alive[Math.floor(random.next() * alive.length)];
        victim?.kill('SIGKILL');
      }
      lastCount = acquired;
      lastChange = Date.now();
    }
    const { acquired, served, released } = countLines(history);
    const violations = existsSync(join(directory, 'violations'))
      ? readFileSync(join(directory, 'violations'), 'utf8').trim().split('\n')
      : [];
    return {
      seed: request.seed,
      acquisitions: acquired,
      serves: served,
      kills,
      killedOwning: acquired - released,
      violations,
      longestGapMs,
      scratchNames: readdirSync(directory).filter((name) => name.startsWith('.p')).length,
      tookMs: Date.now() - began,
    };
  } finally {
    const ends = [...contenders].map(
      (child) => new Promise((resolve) => child.once('exit', resolve)),
    );
    for (const child of contenders) child.kill('SIGKILL');
    await Promise.all(ends);
    rmSync(directory, { recursive: true, force: true });
  }
}
