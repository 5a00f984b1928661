// Named places between two steps of the ownership protocols, where tests kill, stop or fail a real
// process. Production passes `noFailpoints`; nothing in src reads a failpoint from its surroundings.

/** Every point, in the order of the steps: the fault matrix iterates over this list. */
export const FAILPOINTS = [
  'lock.before-open',
  'lock.opened',
  'lock.flocked',
  'lock.ofd-locked',
  'lock.verified',
  'lock.record-written',
  'write.before-temporary',
  'write.before-publish',
  'write.published',
  'endpoint.before-bind',
  'endpoint.bound',
  'endpoint.before-link',
  'endpoint.linked',
  'endpoint.probed-once',
  'endpoint.probed-twice',
  'endpoint.renamed',
  'endpoint.verified',
  'spawn.locked',
  'spawn.started',
  'spawn.before-announce',
] as const;

export type FailpointName = (typeof FAILPOINTS)[number];

export interface Failpoints {
  /** May throw, and may not return at all. */
  hit(name: FailpointName): void;
}

export const noFailpoints: Failpoints = { hit: () => undefined };
