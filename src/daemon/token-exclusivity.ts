// One token, one chat daemon on this machine and account: a kept lock named by the token's hash. Two
// state directories with the same token would answer every event twice.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Secret } from '../base/secret.ts';
import { acquireKeptLock, type KeptLock } from '../ownership/kept-lock.ts';
import type { LockRecord } from '../ownership/lock-record.ts';
import { ensurePrivateDirectory } from '../ownership/private-directory.ts';

/**
 * Names a token at an address. The sandbox of another port is another platform, so its token is
 * another one too, even when it reads the same.
 */
export function tokenHash(apiUrl: string, token: Secret): string {
  return createHash('sha256').update(`${apiUrl}\n${token.reveal()}`).digest('hex').slice(0, 32);
}

/**
 * Directories for the locks: the runtime directory, and one that does not depend on the environment,
 * because a service and a shell may differ in $XDG_RUNTIME_DIR.
 */
export function exclusivityDirectories(runtime: string | undefined, uid: number): string[] {
  const always = join(`/tmp/chatd-${uid}`, 'tokens');
  return runtime === undefined ? [always] : [join(runtime, 'chatd', 'tokens'), always];
}

export type Exclusivity =
  | { readonly kind: 'held'; readonly locks: readonly KeptLock[] }
  | { readonly kind: 'taken'; readonly path: string };

/**
 * Takes a lock for each hash in each directory, all or none.
 * @throws {ChatdError} state-directory-unusable when a directory cannot be used.
 */
export function takeTokens(
  hashes: readonly string[],
  directories: readonly string[],
  options: { readonly uid: number; readonly record: LockRecord },
): Exclusivity {
  const locks: KeptLock[] = [];
  try {
    for (const directory of directories) {
      // Both levels are ours alone: /tmp/chatd-<uid> must not be somebody else's.
      ensurePrivateDirectory(join(directory, '..'), options.uid);
      ensurePrivateDirectory(directory, options.uid);
      for (const hash of hashes) {
        const path = join(directory, `${hash}.lock`);
        const attempt = acquireKeptLock(path, options);
        if (attempt.kind === 'busy') {
          releaseAll(locks);
          return { kind: 'taken', path };
        }
        locks.push(attempt.lock);
      }
    }
    return { kind: 'held', locks };
  } catch (error) {
    releaseAll(locks);
    throw error;
  }
}

export function releaseAll(locks: readonly KeptLock[]): void {
  for (const lock of locks) lock.release();
}
