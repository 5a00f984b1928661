// The host as its clients see it: the only thing bots, daemon and CLI import of src/pty besides
// protocol.ts. A `HostClient` connects or starts the host, reconnects with back-off and re-attaches
// by itself; what it cannot tell it reports as `unreachable`, never as an exit.

export type {
  ByteFeed,
  ByteFeedListener,
  CreateRequest,
  FeedStatus,
  Host,
  InputOutcome,
  InputRefusal,
  InputRequest,
  LineFeed,
  LinesRead,
  SessionInfo,
  SessionState,
  SessionTarget,
  Snapshot,
  TtyState,
} from './session-values.ts';
