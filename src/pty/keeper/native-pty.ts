// The only importer of node-pty: its native `open`. Everything else of it is not used, because its
// own reading and writing lose and misdeliver bytes (SESSIONS.md Part 2 §2).

import { requireBinary } from 'node-pty/requireBinary.js';
import { setCloseOnExec, setNonBlocking } from '../../sys/fd.ts';

interface NativePty {
  open(cols: number, rows: number): { master: number; slave: number; pty: string };
}

export interface OpenedTerminal {
  readonly master: number;
  readonly slave: number;
  /** Path of the slave. */
  readonly path: string;
}

let native: NativePty | undefined;

/** Loads the native code; afterwards nothing is loaded any more. @throws when it is missing */
export function loadNativePty(): void {
  native ??= requireBinary('pty.node') as NativePty;
}

/** A terminal, close-on-exec at once, its master non-blocking. The caller closes both. */
export function openTerminal(cols: number, rows: number): OpenedTerminal {
  loadNativePty();
  if (native === undefined) throw new Error('Cannot open terminal: native code not loaded');
  const { master, slave, pty } = native.open(cols, rows);
  setCloseOnExec(master, true);
  setCloseOnExec(slave, true);
  setNonBlocking(master, true);
  return { master, slave, path: pty };
}
