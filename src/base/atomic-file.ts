// Replaces a file so that a reader sees the old or the new content, never a torn one.

import { open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface AtomicWrite {
  /** Mode of the new file. Default 0600. */
  readonly mode?: number;
  /** Sync file and directory: for what must survive a power cut. Ownership records need none. */
  readonly durable?: boolean;
  /**
   * Called after the temporary file is complete and before it is published; throwing keeps the old
   * content. The place for a fence.
   */
  readonly beforePublish?: () => void | Promise<void>;
  /** Suffix of the temporary name: random, so that two writers never share one. */
  readonly nonce: string;
}

/** Writes `content` to a temporary sibling and renames it over `path`. */
export async function writeAtomic(
  path: string,
  content: string | Uint8Array,
  options: AtomicWrite,
): Promise<void> {
  const temporary = `${path}.${options.nonce}.tmp`;
  const file = await open(temporary, 'wx', options.mode ?? 0o600);
  try {
    try {
      await file.writeFile(content);
      if (options.durable === true) await file.sync();
    } finally {
      await file.close();
    }
    await options.beforePublish?.();
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  if (options.durable === true) await syncDirectory(dirname(path));
}

/** Makes a rename, link or unlink in `directory` survive a power cut. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
