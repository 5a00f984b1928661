// checkpoint.bin: the newest checkpoint of a session's model, replaced whole.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const NAME = 'checkpoint.bin';

export function readCheckpoint(directory: string): Buffer | undefined {
  try {
    return readFileSync(join(directory, NAME));
  } catch {
    return undefined;
  }
}

/** False when the disk refused it: the one before stays. One writer, so one temporary name. */
export function writeCheckpoint(directory: string, bytes: Uint8Array): boolean {
  const path = join(directory, NAME);
  try {
    writeFileSync(`${path}.tmp`, bytes, { mode: 0o600 });
    renameSync(`${path}.tmp`, path);
    return true;
  } catch {
    return false;
  }
}
