// host.json: who serves, and where. Clients take the socket's path from it.

import * as z from 'zod/mini';
import { ProcessIncarnationSchema } from '../../ownership/process-incarnation.ts';

/** The code contract of a host. Raised when host.json or the way of replacing a host changes. */
export const HOST_GENERATION = 1;

const schema = z.object({
  v: z.literal(1),
  pid: z.int(),
  incarnation: ProcessIncarnationSchema,
  instance: z.string(),
  generation: z.int(),
  version: z.string(),
  protocol: z.int(),
  socket: z.string().check(z.maxLength(4096)),
  endpoint: z.string(),
  startedAtMs: z.number(),
});

export type HostRecord = z.infer<typeof schema>;

/** Undefined for anything that is no such record. */
export function parseHostRecord(text: string): HostRecord | undefined {
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
