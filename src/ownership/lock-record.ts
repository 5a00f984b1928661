// What the holder of a kept lock writes into it: who it is. The lock decides whether there is an
// owner; this record only says who, and a record of a lock that is free says nothing.

import * as z from 'zod/mini';
import { ProcessIncarnationSchema } from './process-incarnation.ts';

/** Large enough for every field at its own bound. */
export const LOCK_RECORD_BYTES_MAX = 4096;

export const LockRecordSchema = z.object({
  v: z.literal(1),
  incarnation: ProcessIncarnationSchema,
  /** Minted by whoever started the process, or by itself. */
  ownerId: z.string().check(z.minLength(1), z.maxLength(128)),
  /** The code contract of the owner. */
  generation: z.int().check(z.minimum(0)),
  /** Fresh per acquisition; other records repeat it. */
  nonce: z.string().check(z.minLength(8), z.maxLength(128)),
  /** For people; decides nothing. */
  createdAtMs: z.int().check(z.minimum(0)),
});

export type LockRecord = z.infer<typeof LockRecordSchema>;

export type ParsedLockRecord =
  | { readonly kind: 'record'; readonly record: LockRecord }
  | { readonly kind: 'absent' }
  | { readonly kind: 'malformed'; readonly because: string };

/** Parses the content of a lock file; unknown keys are dropped. */
export function parseLockRecord(text: string): ParsedLockRecord {
  if (text.trim() === '') return { kind: 'absent' };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'malformed', because: 'not JSON' };
  }
  const parsed = LockRecordSchema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { kind: 'malformed', because: `bad field ${issue?.path.join('.') ?? '?'}` };
  }
  return { kind: 'record', record: parsed.data };
}

export function encodeLockRecord(record: LockRecord): string {
  return `${JSON.stringify(record)}\n`;
}
