// The host as its clients see it: the only thing bots, daemon and CLI import of src/pty besides
// protocol.ts. A `HostClient` connects or starts the host, reconnects with back-off and re-attaches
// by itself; what it cannot tell it reports as `unreachable`, never as an exit.

import { HostClient, type HostClientOptions, type HostControl } from './host-client.ts';
import { type HostSurroundings, hostClientOptions } from './host-surroundings.ts';

export type { HostClientOptions, HostControl } from './host-client.ts';
export type { HostSurroundings } from './host-surroundings.ts';
export type {
  ByteFeedListener,
  CreateRequest,
  FeedStatus,
  Host,
  InputOutcome,
  InputRefusal,
  LineFeed,
  LinesRead,
  SessionInfo,
  SessionState,
  SessionTarget,
  Snapshot,
  TtyState,
} from './session-values.ts';

/** A client of the host of one state directory. Connects, or starts one, when first asked. */
export function connectHost(options: HostClientOptions): HostControl {
  return new HostClient(options);
}

/** The same, for a composition root: from where the process stands. */
export function connectHostFrom(surroundings: HostSurroundings): HostControl {
  return new HostClient(hostClientOptions(surroundings));
}
