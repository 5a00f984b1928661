// Who may do what in a thread: one decision for text, buttons, modals, commands and files. Default
// is nobody. Decides by immutable ids and the platform's own proof of where a person belongs.

import type { Person, ThreadRoot } from './chat-platform.ts';

/** `view` reads on demand, `drive` types and acts, `approve` confirms. */
export type Right = 'view' | 'drive' | 'approve';

export interface AccessPolicy {
  /** Team or guild served. Anyone from elsewhere is a stranger, whatever channel they are in. */
  readonly space: string;
  readonly channels: ReadonlySet<string>;
  readonly drivers: ReadonlySet<string>;
  readonly approvers: ReadonlySet<string>;
  readonly viewers: ReadonlySet<string>;
  /** Roles or user groups, by right. */
  readonly driverRoles: ReadonlySet<string>;
  readonly approverRoles: ReadonlySet<string>;
  readonly viewerRoles: ReadonlySet<string>;
}

export type AccessDecision =
  | { readonly kind: 'allowed' }
  /** Bots are ignored without a word: two bots that answer each other never stop. */
  | { readonly kind: 'ignored' }
  | { readonly kind: 'refused'; readonly because: string };

/** Decides whether `person` has `right` in `place`. */
export function decideAccess(
  policy: AccessPolicy,
  person: Person,
  place: Pick<ThreadRoot, 'space' | 'channel'>,
  right: Right,
): AccessDecision {
  if (person.isBot) return { kind: 'ignored' };
  // A missing space is foreign: Slack leaves it out for people of other organisations.
  if (person.space !== policy.space || place.space !== policy.space) {
    return refused('people of other workspaces cannot use this terminal');
  }
  if (!policy.channels.has(place.channel)) {
    return refused('this channel is not one chatd serves (channels in chatd.toml)');
  }
  if (has(policy, person, right)) return { kind: 'allowed' };
  const wanted = { view: 'viewers', drive: 'drivers', approve: 'approvers' }[right];
  return refused(
    `you are not among its ${wanted}. Ask whoever runs this machine to add ${person.id} to ${wanted} in chatd.toml`,
  );
}

function refused(because: string): AccessDecision {
  return { kind: 'refused', because };
}

function has(policy: AccessPolicy, person: Person, right: Right): boolean {
  if (holds(policy.approvers, policy.approverRoles, person) && right !== 'drive') return true;
  if (holds(policy.drivers, policy.driverRoles, person)) return true;
  return right === 'view' && holds(policy.viewers, policy.viewerRoles, person);
}

function holds(ids: ReadonlySet<string>, roles: ReadonlySet<string>, person: Person): boolean {
  return ids.has(person.id) || person.roles.some((role) => roles.has(role));
}
