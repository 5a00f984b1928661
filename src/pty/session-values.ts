// What host and clients talk about, as values and as a port. No behaviour.

import type { Frame, Line, Mark, View } from '../term/values.ts';

/** How a program ended, or that it has not. Only an exit the keeper observed is an exit. */
export type SessionState =
  | { readonly kind: 'running' }
  | {
      readonly kind: 'exited';
      /** Exit code, or the signal's name, or neither when the status could not be had. */
      readonly code?: number;
      readonly signal?: string;
      /** A background process still holds the terminal; later output is still served. */
      readonly terminalOpen: boolean;
      readonly atWallMs: number;
      /** Who ended it and why, when it was ended through chatd. */
      readonly cause?: string;
    };

/** What a program is started with. */
export interface CreateRequest {
  /** Idempotency token: the same token answers with the session it created. */
  readonly token: string;
  /** Empty: the user's login shell. */
  readonly command: readonly string[];
  /** Absolute, or starting with `~`. */
  readonly cwd: string;
  /** Added to the login environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cols: number;
  readonly rows: number;
  /** Who asked, for the record: `slack:U0123`, `operator`, … */
  readonly actor: string;
  /** Profile name, for lists. */
  readonly profile?: string;
}

export interface SessionInfo {
  readonly sessionId: string;
  readonly incarnation: string;
  readonly state: SessionState;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly pid: number;
  readonly cols: number;
  readonly rows: number;
  readonly startedAtWallMs: number;
  readonly lastOutputAtWallMs: number;
  readonly offset: number;
  readonly finalCount: number;
  readonly lostBytes: number;
  readonly clients: number;
  readonly actor: string;
  readonly profile?: string;
}

/** Terminal state of the slave, read through the master. `unknown` where it cannot be had. */
export interface TtyState {
  readonly echo: boolean;
  readonly canonical: boolean;
  readonly foregroundGroup: number;
  /** A process of the foreground group is blocked reading the terminal. */
  readonly blockedRead: boolean;
}

export interface InputRequest {
  readonly sessionId: string;
  readonly incarnation: string;
  /** Identity of the input: a repeat is answered `already` or `unknown`, never written twice. */
  readonly messageId: string;
  readonly actor: string;
  readonly bytes: Uint8Array;
  /** Write only if the terminal is in this state at the write. */
  readonly onlyIf?: { readonly echo?: boolean; readonly canonical?: boolean };
  /** The bytes are a secret: recorded as actor, id and length only. */
  readonly secret?: boolean;
}

export type InputOutcome =
  | { readonly kind: 'written'; readonly sizeBytes: number }
  | { readonly kind: 'already' }
  /** Accepted earlier and not known to be written. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'refused'; readonly because: InputRefusal };

export type InputRefusal =
  | 'session-not-found'
  | 'other-incarnation'
  | 'exited'
  | 'terminal-state'
  | 'line-too-long'
  | 'queue-full';

/** What a feed knows about its session right now. */
export type FeedStatus =
  | { readonly kind: 'attached' }
  | { readonly kind: 'unreachable'; readonly because: string; readonly sinceMonotonicMs: number }
  /** Proven: exited (with `state`), or the host answers that it never knew this incarnation. */
  | { readonly kind: 'other-incarnation' }
  | { readonly kind: 'not-known-here' };

export interface LinesRead {
  readonly from: number;
  readonly lines: readonly Line[];
  /** Lines [from, to) that can no longer be had. */
  readonly gap?: { readonly from: number; readonly to: number };
}

/** A reader of one session's transcript. Pulls; the newest view wins; never slows the program. */
export interface LineFeed {
  readonly sessionId: string;
  readonly incarnation: string;
  readonly status: FeedStatus;
  /** The newest view; undefined until the first arrives. */
  readonly view: View | undefined;
  readonly state: SessionState;
  /** Called after `view`, `state` or `status` changed. One listener. */
  onChange(listener: () => void): void;
  /** Final lines [from, to). @throws {ChatdError} host-unreachable */
  readLines(from: number, to: number): Promise<LinesRead>;
  /** Marks from `seq` on, at most `max`. @throws {ChatdError} host-unreachable */
  readMarks(fromSeq: number, max: number): Promise<readonly Mark[]>;
  close(): void;
}

/** A client of the bytes, for a local terminal. */
export interface ByteFeed {
  readonly incarnation: string;
  readonly status: FeedStatus;
  close(): void;
}

export interface ByteFeedListener {
  /** In order, each byte once. Resolves when consumed: that is what credit follows. */
  bytes(offset: number, bytes: Uint8Array): Promise<void> | void;
  /** Bytes [from, to) are skipped; `snapshot` redraws the screen at `to`. */
  snapshot(to: number, snapshot: Snapshot, gap: { from: number; to: number } | undefined): void;
  exited(state: SessionState): void;
  status(status: FeedStatus): void;
}

/** A redrawable screen: write `ansi` to a terminal of `cols` × `rows`. */
export interface Snapshot {
  readonly offset: number;
  readonly cols: number;
  readonly rows: number;
  readonly ansi: string;
  readonly title: string;
}

/** The port. `HostClient` is its real implementation; tests of the bots have a second one. */
export interface Host {
  /**
   * Starts a program.
   * @throws {ChatdError} command-not-found, command-not-executable, directory-not-found,
   *   session-limit, spawn-failed: nothing was recorded. host-unreachable: not known; ask again
   *   with the same token.
   */
  create(request: CreateRequest): Promise<SessionInfo>;
  list(): Promise<readonly SessionInfo[]>;
  /** Attach binds, it never creates. Without `incarnation` the answer names the running one. */
  followLines(target: { sessionId: string; incarnation?: string }): Promise<LineFeed>;
  followBytes(
    target: { sessionId: string; incarnation?: string; sinceOffset?: number },
    listener: ByteFeedListener,
  ): Promise<ByteFeed>;
  input(request: InputRequest): Promise<InputOutcome>;
  resize(target: SessionTarget, cols: number, rows: number): Promise<void>;
  /** Signals the foreground group by name (`SIGINT`, …). */
  signal(target: SessionTarget, signal: string, actor: string): Promise<void>;
  ttyState(target: SessionTarget): Promise<TtyState | 'unknown'>;
  frame(target: SessionTarget): Promise<Frame>;
  snapshot(target: SessionTarget): Promise<Snapshot>;
  /** Hang up, TERM, KILL after stated grace. Resolves when the exit is observed. */
  end(target: SessionTarget, actor: string): Promise<SessionState>;
  kill(target: SessionTarget, actor: string): Promise<SessionState>;
  /** Raw bytes [from, to) of the journal, for `!log`. */
  readBytes(
    target: SessionTarget,
    from: number,
    to: number,
  ): Promise<{ readonly from: number; readonly bytes: Uint8Array }>;
  close(): void;
}

export interface SessionTarget {
  readonly sessionId: string;
  readonly incarnation: string;
}
