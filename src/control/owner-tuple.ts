// Names one exact owner. A request is for this owner or for nobody: each part is another fence.

import { createHash } from 'node:crypto';
import * as z from 'zod/mini';
import type { ProcessIncarnation } from '../ownership/process-incarnation.ts';

export interface OwnerTuple {
  readonly ownerId: string;
  readonly pid: number;
  /** Text form of the process incarnation. */
  readonly incarnation: string;
  readonly generation: number;
}

const bounded = z.string().check(z.minLength(1), z.maxLength(256));

export const ownerTupleSchema = z.object({
  ownerId: bounded,
  pid: z.int().check(z.gte(1)),
  incarnation: bounded,
  generation: z.int().check(z.gte(0)),
});

export function sameOwner(a: OwnerTuple, b: OwnerTuple): boolean {
  return (
    a.ownerId === b.ownerId &&
    a.pid === b.pid &&
    a.incarnation === b.incarnation &&
    a.generation === b.generation
  );
}

/** Short enough for a bounded field, whole enough that two incarnations never share it. */
export function incarnationText(incarnation: ProcessIncarnation): string {
  const { pid, startTicks, bootId, pidNs, hostId, nonce } = incarnation;
  const whole = createHash('sha256')
    .update(JSON.stringify([pid, startTicks, bootId, pidNs, hostId, nonce]))
    .digest('hex');
  return `${pid}.${startTicks}.${whole.slice(0, 32)}`;
}
