// Whether the foreground program waits for the keyboard, as far as /proc tells.

import { readFileSync } from 'node:fs';

/** read on x64 and arm64; readline and friends wait in select or poll and are not told apart. */
const READ_CALLS = new Set(['0', '63']);

/** True when the leader of the group is inside read(2). False also when it cannot be told. */
export function isBlockedReading(group: number): boolean {
  if (group <= 0) return false;
  try {
    const call = readFileSync(`/proc/${group}/syscall`, 'latin1').split(' ', 2);
    // The first argument is the descriptor: standard input, or the terminal opened for a password.
    return READ_CALLS.has(call[0] ?? '');
  } catch {
    return false;
  }
}
