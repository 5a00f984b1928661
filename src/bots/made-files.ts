// Files made at the moment they are sent: recordings of a session. Pictures are the renderer's.

import type { Host, LineFeed, SessionTarget } from '../pty/client.ts';
import type { MadeFile } from './outbox/thread-outbox.ts';

export interface FileMaking {
  readonly host: Host;
  readonly target: SessionTarget;
  readonly feed: LineFeed;
}

/** Makes the bytes of `what`; never throws for what a person could cause. */
export async function makeFile(what: unknown, _making: FileMaking): Promise<MadeFile> {
  return { kind: 'failed', because: `chatd makes no such file (${typeof what})` };
}
