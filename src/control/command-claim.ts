// The response file is the arbiter of a command: whoever creates it decides, the daemon before it
// commits, a submitter before it says "cancelled". Its blocks are written before the name appears, so
// a full disk shows before the commit and never between commit and answer.

import { link, lstat, open, unlink } from 'node:fs/promises';
import { errnoCode } from '../base/errors.ts';

/** A won response. Its holder answers at most once. */
export interface Claim {
  /** Overwrites the reservation in place: needs no new block. @throws I/O errors */
  answer(document: Buffer): Promise<void>;
  /** Gives the claim back: nobody answers, the name is free again. Only while the request is gone. */
  release(): Promise<void>;
  close(): Promise<void>;
}

export type ClaimAttempt =
  | { readonly kind: 'won'; readonly claim: Claim }
  /** Somebody else decides. */
  | { readonly kind: 'exists' }
  /** Not won for another reason: as good as lost. */
  | { readonly kind: 'failed'; readonly because: string };

/** Tries to create `path` holding `content` (a reservation or a whole document). */
export async function claimResponse(
  path: string,
  content: Buffer,
  nonce: string,
): Promise<ClaimAttempt> {
  const temporary = temporaryName(path, nonce);
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(temporary, 'wx', 0o600);
  } catch (error) {
    return { kind: 'failed', because: errnoCode(error) ?? 'unknown error' };
  }
  try {
    await file.writeFile(content);
    await link(temporary, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    await unlink(temporary).catch(() => undefined);
    const code = errnoCode(error) ?? 'unknown error';
    return code === 'EEXIST' ? { kind: 'exists' } : { kind: 'failed', because: code };
  }
  await unlink(temporary).catch(() => undefined);
  return { kind: 'won', claim: await holdClaim(path, file) };
}

async function holdClaim(path: string, file: Awaited<ReturnType<typeof open>>): Promise<Claim> {
  const mine = await file.stat();
  return {
    answer: async (document) => {
      await file.write(document, 0, document.length, 0);
    },
    release: async () => {
      const found = await lstat(path).catch(() => undefined);
      // Never remove a name that by now means another file.
      if (found?.ino === mine.ino && found.dev === mine.dev) await unlink(path);
    },
    close: async () => {
      await file.close();
    },
  };
}

/** Publishes a complete document under a name that must not exist. */
export async function publishNew(
  path: string,
  content: Buffer,
  nonce: string,
): Promise<ClaimAttempt['kind']> {
  const attempt = await claimResponse(path, content, nonce);
  if (attempt.kind === 'won') await attempt.claim.close();
  return attempt.kind;
}

/** Temporary names end in `.tmp`, so that the owner can sweep what a crash left. */
function temporaryName(path: string, nonce: string): string {
  return `${path}.${nonce}.tmp`;
}

export type Removal = 'gone' | 'still-there';

/** Unlinks `path` and says whether the name is proven gone. */
export async function removeProven(path: string): Promise<Removal> {
  try {
    await unlink(path);
    return 'gone';
  } catch (error) {
    if (errnoCode(error) === 'ENOENT') return 'gone';
  }
  return (await isProvenGone(path)) ? 'gone' : 'still-there';
}

/** Only ENOENT proves absence; an entry that cannot be looked at counts as present. */
export async function isProvenGone(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return false;
  } catch (error) {
    return errnoCode(error) === 'ENOENT';
  }
}
