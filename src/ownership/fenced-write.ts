// Atomic writes that only the holder of a lock makes: the proof is taken again after the temporary
// file is complete, right before it is published, so that a paused predecessor publishes nothing.

import { readdir, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { writeAtomic } from '../base/atomic-file.ts';
import { errnoCode } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import { type Failpoints, noFailpoints } from './failpoints.ts';
import type { KeptLock } from './kept-lock.ts';

export interface FencedWrite {
  readonly random: Random;
  /** For what must survive a power cut. Ownership records need none: the boot id ends them. */
  readonly durable?: boolean;
  readonly failpoints?: Failpoints;
}

/** @throws {ChatdError} ownership-lost, ownership-unknown: the old content stands. And I/O errors. */
export async function writeFenced(
  lock: KeptLock,
  path: string,
  content: string | Uint8Array,
  options: FencedWrite,
): Promise<void> {
  const failpoints = options.failpoints ?? noFailpoints;
  failpoints.hit('write.before-temporary');
  await writeAtomic(path, content, {
    nonce: mintId(options.random, 12),
    durable: options.durable ?? false,
    beforePublish: () => {
      failpoints.hit('write.before-publish');
      lock.assertHeld();
    },
  });
  failpoints.hit('write.published');
}

/**
 * Removes what interrupted writes of earlier owners left beside `path`. Call it once, after the
 * lock was taken and before the first write.
 * @returns how many were removed. @throws {ChatdError} as the fence
 */
export async function sweepTemporaries(lock: KeptLock, path: string): Promise<number> {
  const directory = dirname(path);
  const prefix = `${basename(path)}.`;
  let removed = 0;
  for (const name of await readdir(directory)) {
    const nonce = name.startsWith(prefix) ? name.slice(prefix.length) : '';
    if (!/^[0-9a-z]{12}\.tmp$/.test(nonce)) continue;
    lock.assertHeld();
    try {
      await unlink(join(directory, name));
      removed++;
    } catch (error) {
      if (errnoCode(error) !== 'ENOENT') throw error;
    }
  }
  return removed;
}
