// session.json: what was started, by whom, and how it ended. The home of a session's identity
// between two hosts. Read tolerantly, written whole.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod/mini';
import { writeAtomic } from '../../base/atomic-file.ts';
import type { SessionState } from '../session-values.ts';

const state = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('running') }),
  z.object({
    kind: z.literal('exited'),
    code: z.optional(z.int()),
    signal: z.optional(z.string()),
    terminalOpen: z.boolean(),
    atWallMs: z.number(),
    cause: z.optional(z.string()),
  }),
]);

const schema = z.object({
  v: z.literal(1),
  sessionId: z.string().check(z.minLength(1), z.maxLength(64)),
  incarnation: z.string(),
  token: z.string(),
  command: z.array(z.string()),
  argv: z.array(z.string()),
  cwd: z.string(),
  /** Names only: values may be secrets. */
  envNames: z.array(z.string()),
  actor: z.string(),
  profile: z.optional(z.string()),
  cols: z.int(),
  rows: z.int(),
  startedAtWallMs: z.number(),
  pid: z.int(),
  process: z.unknown(),
  keeper: z.unknown(),
  state,
  /** Length of the output when the exit was recorded. */
  exitOffset: z.optional(z.number()),
  lostBytes: z.number(),
  lastOutputAtWallMs: z.number(),
});

export type SessionRecord = z.infer<typeof schema>;

export function parseSessionRecord(text: string): SessionRecord | undefined {
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

export function readSessionRecord(directory: string): SessionRecord | undefined {
  try {
    return parseSessionRecord(readFileSync(join(directory, 'session.json'), 'utf8'));
  } catch {
    return undefined;
  }
}

/** @throws the file system's error */
export async function writeSessionRecord(
  directory: string,
  record: SessionRecord,
  nonce: string,
): Promise<void> {
  const path = join(directory, 'session.json');
  await writeAtomic(path, `${JSON.stringify(record, undefined, 1)}\n`, { durable: true, nonce });
}

export function stateOf(record: SessionRecord): SessionState {
  return record.state as SessionState;
}
