// Threads of Discord: opened from a message, proved before they are bound.

import type { Outcome, ThreadRoot } from '../chat-platform.ts';
import { fieldsOf, listField, textField } from '../fields.ts';
import { missingPermissions, NEEDED_IN_THREAD, overwritesOf } from './permissions.ts';
import { isThread } from './places.ts';
import type { DiscordRest } from './rest.ts';
import { isSnowflake } from './snowflake.ts';

const NAME_MAX = 100;
/** Discord's longest. Edits do not count as activity, so a quiet screen needs it. */
const AUTO_ARCHIVE_MINUTES = 10_080;
const ALREADY_A_THREAD = '160004';

/** Opens the thread of a message; its id is the message's. That it exists already is as good. */
export async function openThread(
  rest: DiscordRest,
  place: ThreadRoot,
  messageId: string,
  title: string,
): Promise<Outcome<void>> {
  const answer = await rest.call(
    'POST',
    `/channels/${place.channel}/messages/${messageId}/threads`,
    { body: { name: threadName(title), auto_archive_duration: AUTO_ARCHIVE_MINUTES } },
  );
  if (answer.kind === 'ok') return { kind: 'ok', value: undefined };
  if (answer.kind === 'refused' && answer.detail === ALREADY_A_THREAD) {
    return { kind: 'ok', value: undefined };
  }
  return answer;
}

/** Names of threads ping and format nothing if they hold neither `@` nor markup. */
function threadName(title: string): string {
  const plain = title
    .replace(/[\p{Cc}\p{Cf}]/gu, '')
    .replace(/[*_~`|>#@\\]/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return [...(plain === '' ? 'terminal' : plain)].slice(0, NAME_MAX / 2).join('');
}

/** Exists, is a thread of our guild, is open, and we may write there. */
export async function proveThread(
  rest: DiscordRest,
  place: ThreadRoot,
  us: { readonly guildId: string; readonly userId: string },
): Promise<Outcome<{ readonly root: ThreadRoot }>> {
  if (!isSnowflake(place.root)) return { kind: 'refused', because: 'invalid', detail: 'not an id' };
  const answer = await rest.call('GET', `/channels/${place.root}`);
  if (answer.kind !== 'ok') return answer;
  const thread = answer.value;
  const channel = textField(thread, 'parent_id');
  if (!isThread(thread) || channel === undefined) {
    return { kind: 'refused', because: 'invalid', detail: 'not a thread' };
  }
  if (textField(thread, 'guild_id') !== us.guildId) {
    return { kind: 'refused', because: 'not-permitted', detail: 'thread of another guild' };
  }
  const state = fieldsOf(thread['thread_metadata']);
  if (state['locked'] === true) return { kind: 'refused', because: 'locked', detail: 'locked' };
  if (state['archived'] === true) {
    return { kind: 'refused', because: 'archived', detail: 'archived' };
  }
  const missing = await missingIn(rest, channel, us);
  if (missing.kind !== 'ok') return missing;
  if (missing.value.length > 0) {
    const detail = `permission missing: ${missing.value.join(', ')}`;
    return { kind: 'refused', because: 'not-permitted', detail };
  }
  const root = { space: us.guildId, channel, root: place.root };
  return { kind: 'ok', value: { root } };
}

/** A thread has the permissions of the channel it is in. */
async function missingIn(
  rest: DiscordRest,
  channelId: string,
  us: { readonly guildId: string; readonly userId: string },
): Promise<Outcome<readonly string[]>> {
  const channel = await rest.call('GET', `/channels/${channelId}`);
  if (channel.kind !== 'ok') return channel;
  const roles = await rest.list(`/guilds/${us.guildId}/roles`);
  if (roles.kind !== 'ok') return roles;
  const member = await rest.call('GET', `/guilds/${us.guildId}/members/${us.userId}`);
  if (member.kind !== 'ok') return member;
  const missing = missingPermissions(
    {
      guildId: us.guildId,
      userId: us.userId,
      memberRoles: listField(member.value, 'roles').filter((role) => typeof role === 'string'),
      guildRoles: roles.value,
      overwrites: overwritesOf(channel.value),
    },
    NEEDED_IN_THREAD,
  );
  return { kind: 'ok', value: missing };
}
