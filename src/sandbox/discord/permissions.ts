// Permission bits and the documented order in which roles and overwrites decide them.

import type { ChannelRecord, MemberRecord, Overwrite, RoleRecord } from './records.ts';

export const PERMISSION = {
  ADD_REACTIONS: 1n << 6n,
  ADMINISTRATOR: 1n << 3n,
  MANAGE_CHANNELS: 1n << 4n,
  VIEW_CHANNEL: 1n << 10n,
  SEND_MESSAGES: 1n << 11n,
  MANAGE_MESSAGES: 1n << 13n,
  EMBED_LINKS: 1n << 14n,
  ATTACH_FILES: 1n << 15n,
  READ_MESSAGE_HISTORY: 1n << 16n,
  MENTION_EVERYONE: 1n << 17n,
  USE_APPLICATION_COMMANDS: 1n << 31n,
  MANAGE_THREADS: 1n << 34n,
  CREATE_PUBLIC_THREADS: 1n << 35n,
  CREATE_PRIVATE_THREADS: 1n << 36n,
  SEND_MESSAGES_IN_THREADS: 1n << 38n,
  PIN_MESSAGES: 1n << 51n,
} as const;

export type PermissionName = keyof typeof PERMISSION;

export const ALL_PERMISSIONS = (1n << 53n) - 1n;

/** What the invite link of a terminal bot asks for: chatd's documented sum. */
export const BOT_PERMISSIONS = 2_252_194_950_794_304n;

/** What an ordinary member may do in a fresh guild; mentioning everyone is not in it. */
export const EVERYONE_PERMISSIONS =
  PERMISSION.ADD_REACTIONS |
  PERMISSION.VIEW_CHANNEL |
  PERMISSION.SEND_MESSAGES |
  PERMISSION.EMBED_LINKS |
  PERMISSION.ATTACH_FILES |
  PERMISSION.READ_MESSAGE_HISTORY |
  PERMISSION.USE_APPLICATION_COMMANDS |
  PERMISSION.CREATE_PUBLIC_THREADS |
  PERMISSION.SEND_MESSAGES_IN_THREADS;

/** The bits a member has in a channel. For a thread pass its parent: threads inherit. */
export function permissionsIn(options: {
  readonly ownerId: string;
  readonly everyoneId: string;
  readonly roles: ReadonlyMap<string, RoleRecord>;
  readonly member: MemberRecord;
  readonly channel: ChannelRecord | undefined;
}): bigint {
  const { member, roles, everyoneId, channel } = options;
  if (member.userId === options.ownerId) return ALL_PERMISSIONS;
  let bits = roles.get(everyoneId)?.permissions ?? 0n;
  for (const roleId of member.roleIds) bits |= roles.get(roleId)?.permissions ?? 0n;
  if ((bits & PERMISSION.ADMINISTRATOR) !== 0n) return ALL_PERMISSIONS;
  const overwrites = channel?.overwrites ?? [];
  bits = apply(
    bits,
    overwrites.filter((entry) => entry.id === everyoneId),
  );
  bits = apply(
    bits,
    overwrites.filter((entry) => member.roleIds.has(entry.id)),
  );
  bits = apply(
    bits,
    overwrites.filter((entry) => entry.id === member.userId),
  );
  // Without VIEW_CHANNEL nothing else in the channel is of use.
  return (bits & PERMISSION.VIEW_CHANNEL) === 0n ? 0n : bits;
}

function apply(bits: bigint, entries: readonly Overwrite[]): bigint {
  const deny = entries.reduce((sum, entry) => sum | entry.deny, 0n);
  const allow = entries.reduce((sum, entry) => sum | entry.allow, 0n);
  return (bits & ~deny) | allow;
}
