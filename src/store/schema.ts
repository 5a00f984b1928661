// The schema of store.db, as numbered migrations. A migration that has been released is frozen; a
// change is a new one at the end. docs/store.md says what each table means.

/** "chtd" in ASCII: tells our file from any other SQLite database. */
export const APPLICATION_ID = 0x63687464;

const V1 = `
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE bindings (
  b TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('opening', 'active', 'superseded', 'ended')),
  version INTEGER NOT NULL,
  space TEXT NOT NULL,
  channel TEXT NOT NULL,
  root TEXT,
  request_id TEXT,
  first_line INTEGER NOT NULL,
  next_seq INTEGER NOT NULL,
  next_mark INTEGER NOT NULL,
  cursor TEXT,
  settings TEXT NOT NULL,
  end_proof TEXT,
  park_until INTEGER,
  park_count INTEGER NOT NULL DEFAULT 0,
  park_reason TEXT,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  CHECK (state <> 'active' OR root IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX bindings_one_per_session ON bindings (session_id)
  WHERE state IN ('opening', 'active');
CREATE UNIQUE INDEX bindings_one_per_root ON bindings (space, channel, root)
  WHERE state IN ('opening', 'active') AND root IS NOT NULL;
CREATE UNIQUE INDEX bindings_one_per_request ON bindings (request_id)
  WHERE request_id IS NOT NULL;
CREATE INDEX bindings_by_root ON bindings (channel, root);

CREATE TABLE outbox (
  b TEXT NOT NULL REFERENCES bindings (b) ON UPDATE CASCADE ON DELETE CASCADE,
  s INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('root', 'text', 'flood', 'gap', 'screen', 'notice', 'file')),
  state TEXT NOT NULL CHECK (state IN ('intent', 'posted', 'sealed', 'gone')),
  start_line INTEGER NOT NULL,
  start_col INTEGER NOT NULL,
  end_line INTEGER,
  end_col INTEGER,
  omit_to INTEGER,
  frame_mark INTEGER,
  body TEXT,
  nonce TEXT NOT NULL,
  anchor TEXT,
  sent_at INTEGER NOT NULL,
  first_sent_at INTEGER NOT NULL,
  message_id TEXT,
  shown_hash TEXT,
  shown_offset INTEGER,
  pending_hash TEXT,
  pending_offset INTEGER,
  pending_at INTEGER,
  doubt_until INTEGER,
  file_id TEXT,
  PRIMARY KEY (b, s)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_open ON outbox (b, s) WHERE state IN ('intent', 'posted');
CREATE INDEX outbox_by_message ON outbox (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE notices (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  b TEXT NOT NULL REFERENCES bindings (b) ON UPDATE CASCADE ON DELETE CASCADE,
  line INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('notice', 'file')),
  lane TEXT NOT NULL,
  body TEXT NOT NULL,
  queued_at INTEGER NOT NULL
) STRICT;
CREATE INDEX notices_by_binding ON notices (b, id);

CREATE TABLE told (
  b TEXT NOT NULL REFERENCES bindings (b) ON UPDATE CASCADE ON DELETE CASCADE,
  key TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (b, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipts (
  id TEXT PRIMARY KEY,
  b TEXT,
  actor TEXT NOT NULL,
  kind TEXT NOT NULL,
  message_id TEXT,
  state TEXT NOT NULL
    CHECK (state IN ('claimed', 'written', 'refused', 'unknown', 'offered', 'done')),
  at INTEGER NOT NULL,
  running_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_by_age ON receipts (running_at);
CREATE INDEX receipts_by_binding ON receipts (b, at);
CREATE INDEX receipts_unsettled ON receipts (at) WHERE state = 'claimed';

CREATE TABLE claims (
  key TEXT PRIMARY KEY,
  receipt TEXT NOT NULL REFERENCES receipts (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_by_receipt ON claims (receipt);

CREATE TABLE sessions (
  token TEXT PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('requested', 'created', 'failed')),
  session_id TEXT,
  incarnation TEXT,
  actor TEXT NOT NULL,
  profile TEXT,
  place TEXT NOT NULL,
  request TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_id ON sessions (session_id);
CREATE INDEX sessions_by_age ON sessions (at);

CREATE TABLE backoff (
  scope TEXT PRIMARY KEY,
  until INTEGER NOT NULL,
  detail TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  session_id TEXT,
  incarnation TEXT,
  message_id TEXT,
  outcome TEXT NOT NULL,
  detail TEXT
) STRICT;
CREATE INDEX audit_by_session ON audit (session_id, id);
`;

/** Migration k brings a store from version k to k + 1. */
export const MIGRATIONS: readonly string[] = [V1];

export const SCHEMA_VERSION = MIGRATIONS.length;
