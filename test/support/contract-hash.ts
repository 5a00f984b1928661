// The hash of the code that two processes of different versions must agree on: its tokens without
// comments and layout, so that only a change of meaning counts.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { transformSync } from 'esbuild';

/** What a chat daemon and a controller of another version read from each other, and in which order. */
export const CONTRACT_FILES = [
  'src/control/classify.ts',
  'src/control/command-claim.ts',
  'src/control/command-client.ts',
  'src/control/command-documents.ts',
  'src/control/command-run.ts',
  'src/control/control-request.ts',
  'src/control/end-owner.ts',
  'src/control/machine-time.ts',
  'src/control/owner-tuple.ts',
  'src/control/records.ts',
  'src/daemon/control-inbox.ts',
  'src/daemon/owner-state.ts',
  'src/ownership/kept-lock.ts',
  'src/ownership/lock-record.ts',
  'src/ownership/process-incarnation.ts',
] as const;

export function contractHash(read: (file: string) => string = readText): string {
  const hash = createHash('sha256');
  for (const file of CONTRACT_FILES) {
    const { code } = transformSync(read(file), { loader: 'ts', minifyWhitespace: true });
    hash.update(`${file}\n${code}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}

function readText(file: string): string {
  return readFileSync(file, 'utf8');
}
