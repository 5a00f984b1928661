// Starts a chat daemon's bundle in the background and waits until it owns.

import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Kind } from '../base/paths.ts';
import { systemClock } from '../base/system-clock.ts';
import { OWNED_MS } from '../control/controller.ts';
import { type SpawnReadyOutcome, spawnReady } from '../ownership/spawn-ready.ts';
import { bundlePath, type CliContext } from './context.ts';

export async function spawnDaemon(
  context: CliContext,
  kind: Kind,
  ownerId: string,
): Promise<SpawnReadyOutcome> {
  const stderrPath = join(context.paths.state, 'log', `${kind}.stderr`);
  mkdirSync(dirname(stderrPath), { recursive: true, mode: 0o700 });
  const home = context.home === undefined ? [] : ['--home', context.home];
  const verbose = context.verbose ? ['--verbose'] : [];
  return await spawnReady({
    file: process.execPath,
    args: [bundlePath(context, kind), '--owner-id', ownerId, ...home, ...verbose],
    environment: context.env,
    // Not where the person happens to stand: a daemon must not keep a directory busy.
    cwd: context.paths.state,
    stderrPath,
    timeoutMs: OWNED_MS,
    clock: systemClock,
  });
}
