// Directories that only we may use: 0700 and ours. One of ours that is too open is tightened; one
// of somebody else's, or a link in its place, is refused.

import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { ChatdError, errnoCode } from '../base/errors.ts';
import { type FilesystemVerdict, judgeFilesystem } from '../sys/filesystem.ts';

/**
 * Makes sure that `path` is a private directory of `uid`, creating it and its parents.
 * @returns whether its mode had to be tightened, to be logged.
 * @throws {ChatdError} state-directory-unusable
 */
export function ensurePrivateDirectory(path: string, uid: number): { readonly tightened: boolean } {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const stat = lstatSync(path);
    if (!stat.isDirectory()) throw unusable(path, 'not a directory');
    if (stat.uid !== uid) throw unusable(path, `owned by user ${stat.uid}`);
    const tooOpen = (stat.mode & 0o077) !== 0;
    if (tooOpen) chmodSync(path, 0o700);
    return { tightened: tooOpen };
  } catch (error) {
    if (error instanceof ChatdError) throw error;
    throw unusable(path, errnoCode(error) ?? 'unknown error', error);
  }
}

/**
 * Refuses a directory whose locks and sockets other machines may share.
 * @throws {ChatdError} state-directory-unusable
 */
export function refuseNetworkFilesystem(
  directory: string,
  judge: (directory: string) => FilesystemVerdict = judgeFilesystem,
): void {
  const verdict = judge(directory);
  if (verdict.kind === 'network') {
    throw unusable(directory, `on a network file system (${verdict.type}); set CHATD_STATE`);
  }
}

export function unusable(path: string, because: string, cause?: unknown): ChatdError {
  return new ChatdError('state-directory-unusable', `Cannot use ${path}: ${because}`, {
    details: { path },
    cause,
  });
}
