// What a bot may do in a channel, by Discord's rules: base permissions of its roles, then the
// channel's overwrites for everyone, for roles, for the member. Pure.

import { type Fields, fieldsOf, listField, textField } from '../fields.ts';

const BITS = {
  ADMINISTRATOR: 1n << 3n,
  ADD_REACTIONS: 1n << 6n,
  VIEW_CHANNEL: 1n << 10n,
  SEND_MESSAGES: 1n << 11n,
  EMBED_LINKS: 1n << 14n,
  ATTACH_FILES: 1n << 15n,
  READ_MESSAGE_HISTORY: 1n << 16n,
  MANAGE_THREADS: 1n << 34n,
  CREATE_PUBLIC_THREADS: 1n << 35n,
  SEND_MESSAGES_IN_THREADS: 1n << 38n,
} as const;

export type Permission = keyof typeof BITS;

/** Without these a thread cannot be served. */
export const NEEDED_IN_THREAD: readonly Permission[] = [
  'VIEW_CHANNEL',
  'SEND_MESSAGES_IN_THREADS',
  'READ_MESSAGE_HISTORY',
];

export interface PermissionFacts {
  readonly guildId: string;
  readonly userId: string;
  /** Ids of the bot's roles. */
  readonly memberRoles: readonly string[];
  readonly guildRoles: readonly Fields[];
  readonly overwrites: readonly Fields[];
}

/** The permissions of `wanted` that are missing. */
export function missingPermissions(
  facts: PermissionFacts,
  wanted: readonly Permission[],
): readonly Permission[] {
  const held = permissionsOf(facts);
  if ((held & BITS.ADMINISTRATOR) !== 0n) return [];
  return wanted.filter((name) => (held & BITS[name]) === 0n);
}

function permissionsOf(facts: PermissionFacts): bigint {
  const { guildId, guildRoles, memberRoles, overwrites, userId } = facts;
  const roleIds = new Set([guildId, ...memberRoles]);
  let held = 0n;
  for (const role of guildRoles) {
    if (roleIds.has(textField(role, 'id') ?? '')) held |= bits(role, 'permissions');
  }
  const of = (ids: ReadonlySet<string>): readonly Fields[] =>
    overwrites.filter((overwrite) => ids.has(textField(overwrite, 'id') ?? ''));
  const layers = [new Set([guildId]), new Set(memberRoles), new Set([userId])];
  for (const layer of layers) {
    const applying = of(layer);
    for (const overwrite of applying) held &= ~bits(overwrite, 'deny');
    for (const overwrite of applying) held |= bits(overwrite, 'allow');
  }
  return held;
}

function bits(holder: Fields, name: string): bigint {
  const value = textField(holder, name);
  return value !== undefined && /^\d{1,20}$/.test(value) ? BigInt(value) : 0n;
}

/** Overwrites of a channel object. */
export function overwritesOf(channel: Fields): readonly Fields[] {
  return listField(channel, 'permission_overwrites').map(fieldsOf);
}
