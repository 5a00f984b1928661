// Names one exact owner. A request is for this owner or for nobody: each part is another fence.

import * as z from 'zod/mini';

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
