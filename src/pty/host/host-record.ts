// host.json: who serves, and where. Clients take the socket's path from it.

import type { ProcessIncarnation } from '../../ownership/process-incarnation.ts';

/** The code contract of a host. Raised when host.json or the way of replacing a host changes. */
export const HOST_GENERATION = 1;

export interface HostRecord {
  readonly v: 1;
  readonly pid: number;
  readonly incarnation: ProcessIncarnation;
  readonly instance: string;
  readonly generation: number;
  readonly version: string;
  readonly protocol: number;
  readonly socket: string;
  readonly endpoint: string;
  readonly startedAtMs: number;
}
