// The REST routes: each a method, a template and what it does. Rate limits, authorisation and the
// wire are rest.ts's.

import { checkCommand, checkCommands } from './commands.ts';
import {
  ApiError,
  FormErrors,
  missingAccess,
  missingPermissions,
  notFound,
  unknownChannel,
  unknownCommand,
  unknownGuild,
  unknownMessage,
  unknownUser,
} from './errors.ts';
import type { Gateway } from './gateway.ts';
import type { Guild } from './guild.ts';
import type { Interactions } from './interactions.ts';
import { type Json, numberOf, recordOf, stringOf } from './json.ts';
import { readMessageForm, type UploadedFile } from './message-form.ts';
import type { Messages } from './messages.ts';
import { CHANNEL, type ChannelRecord, FLAG, INTENT, type MessageRecord } from './records.ts';
import { compareIds, isSnowflake } from './snowflake.ts';
import { checkedName, type Threads } from './threads.ts';
import {
  channelJson,
  guildJson,
  memberWithUserJson,
  messageJson,
  roleJson,
  threadMemberJson,
  userJson,
} from './wire.ts';

/** Everything a route can reach. */
export interface Services {
  readonly guild: Guild;
  readonly threads: Threads;
  readonly messages: Messages;
  readonly interactions: Interactions;
  readonly gateway: Gateway;
  readonly commands: CommandBook;
}

export interface Call {
  readonly target: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly value: unknown;
  readonly form: Json;
  readonly files: readonly UploadedFile[];
}

export interface Answer {
  readonly status: number;
  readonly json?: unknown;
}

export interface Route {
  readonly method: string;
  readonly template: string;
  /** Without the bot's token: the path carries its own. */
  readonly open?: boolean;
  run(services: Services, call: Call): Answer;
}

const NO_CONTENT: Answer = { status: 204 };
const ok = (json: unknown): Answer => ({ status: 200, json });

/** Registered application commands by scope: `global` or the guild's id. */
export class CommandBook {
  readonly #byScope = new Map<string, Json[]>();

  list(scope: string): readonly Json[] {
    return this.#byScope.get(scope) ?? [];
  }

  replace(scope: string, commands: Json[]): void {
    this.#byScope.set(scope, commands);
  }

  all(): readonly Json[] {
    return [...this.#byScope.values()].flat();
  }
}

/** A channel the bot can see. @throws {ApiError} 10003, 50001. */
function channelOf(services: Services, id: string | undefined): ChannelRecord {
  const channel = services.guild.channel(id ?? '');
  if (!services.guild.may(services.guild.botId, 'VIEW_CHANNEL', channel)) throw missingAccess();
  return channel;
}

function messageOf(
  services: Services,
  call: Call,
): { readonly channel: ChannelRecord; readonly message: MessageRecord } {
  const channel = channelOf(services, call.params['channel']);
  const message = services.guild.message(channel.id, call.params['message'] ?? '');
  // Ephemeral messages exist for their interaction only.
  if (message.onlyFor !== undefined) throw unknownMessage();
  return { channel, message };
}

/** As the bot reads: no nonce, and blank without the privileged intent. */
function readJson(services: Services, message: MessageRecord): Json {
  return messageJson(services.guild, message, {
    messageContent: services.guild.messageContentEnabled,
  });
}

function refuseForeignGuild(services: Services, call: Call): void {
  const id = call.params['guild'];
  if (id !== undefined && id !== services.guild.id) throw unknownGuild();
}

// Messages.

function listMessages(services: Services, call: Call): Answer {
  const { guild } = services;
  const channel = channelOf(services, call.params['channel']);
  const limit = Number(call.query.get('limit') ?? '50');
  const errors = new FormErrors();
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    errors.add('limit', 'NUMBER_TYPE_MAX', 'int value should be between 1 and 100.');
  for (const key of ['before', 'after', 'around']) {
    const id = call.query.get(key);
    if (id !== null && !/^\d{1,20}$/.test(id))
      errors.add(key, 'NUMBER_TYPE_COERCE', `Value "${id}" is not snowflake.`);
  }
  errors.throwIfAny();
  // Without the right to read history Discord says there is none.
  if (!guild.may(guild.botId, 'READ_MESSAGE_HISTORY', channel)) return ok([]);
  const all = guild.messages(channel.id).filter((message) => message.onlyFor === undefined);
  const page = pageOf(all, call.query, limit);
  return ok([...page].reverse().map((message) => readJson(services, message)));
}

function pageOf(
  all: readonly MessageRecord[],
  query: URLSearchParams,
  limit: number,
): readonly MessageRecord[] {
  const around = query.get('around');
  if (around !== null) {
    const before = all
      .filter((message) => compareIds(message.id, around) <= 0)
      .slice(-Math.ceil(limit / 2));
    const after = all
      .filter((message) => compareIds(message.id, around) > 0)
      .slice(0, Math.floor(limit / 2));
    return [...before, ...after];
  }
  const after = query.get('after');
  if (after !== null)
    return all.filter((message) => compareIds(message.id, after) > 0).slice(0, limit);
  const before = query.get('before');
  const older = before === null ? all : all.filter((message) => compareIds(message.id, before) < 0);
  return older.slice(-limit);
}

function createMessage(services: Services, call: Call): Answer {
  const { guild, messages } = services;
  const channel = guild.channel(call.params['channel'] ?? '');
  const draft = readMessageForm(call.form, call.files, { action: 'create' });
  const { message } = messages.post(channel, draft, { authorId: guild.botId, target: call.target });
  return ok(messageJson(guild, message, { messageContent: true, withNonce: true }));
}

function editMessage(services: Services, call: Call): Answer {
  const { channel, message } = messageOf(services, call);
  const { guild, messages } = services;
  const keys = Object.keys(call.form);
  if (
    message.authorId !== guild.botId &&
    keys.every((key) => key === 'flags') &&
    guild.may(guild.botId, 'MANAGE_MESSAGES', channel)
  ) {
    const suppress = (numberOf(call.form['flags']) ?? 0) & FLAG.SUPPRESS_EMBEDS;
    message.flags = (message.flags & ~FLAG.SUPPRESS_EMBEDS) | suppress;
    messages.announceUpdate(message);
    return ok(readJson(services, message));
  }
  const draft = readMessageForm(call.form, call.files, {
    action: 'edit',
    currentFlags: message.flags,
  });
  messages.edit(channel, message, draft, { userId: guild.botId, target: call.target });
  return ok(messageJson(guild, message, { messageContent: true }));
}

function deleteMessage(services: Services, call: Call): Answer {
  const { channel, message } = messageOf(services, call);
  services.messages.remove(channel, message, services.guild.botId);
  return NO_CONTENT;
}

function emojiOf(call: Call): string {
  return call.params['emoji'] ?? '';
}

function addReaction(services: Services, call: Call): Answer {
  const { channel, message } = messageOf(services, call);
  services.messages.react(channel, message, emojiOf(call), services.guild.botId);
  return NO_CONTENT;
}

function removeReaction(services: Services, call: Call): Answer {
  const { channel, message } = messageOf(services, call);
  const userId = call.params['user'] ?? services.guild.botId;
  if (
    userId !== services.guild.botId &&
    !services.guild.may(services.guild.botId, 'MANAGE_MESSAGES', channel)
  )
    throw missingPermissions();
  services.messages.unreact(message, emojiOf(call), userId);
  return NO_CONTENT;
}

function listReactions(services: Services, call: Call): Answer {
  const { message } = messageOf(services, call);
  const users = [...(message.reactions.get(emojiOf(call)) ?? [])];
  return ok(
    users.flatMap((id) => {
      const user = services.guild.user(id);
      return user === undefined ? [] : [userJson(user)];
    }),
  );
}

function pinMessage(services: Services, call: Call): Answer {
  const { channel, message } = messageOf(services, call);
  const { guild } = services;
  if (!guild.may(guild.botId, 'PIN_MESSAGES', channel)) throw missingPermissions();
  if (guild.messages(channel.id).filter((entry) => entry.pinned).length >= 250 && !message.pinned)
    throw new ApiError(400, 30003, 'Maximum number of pins reached (250)');
  message.pinned = call.target.startsWith('PUT');
  services.messages.announceUpdate(message);
  return NO_CONTENT;
}

function typing(services: Services, call: Call): Answer {
  const { guild } = services;
  const channel = channelOf(services, call.params['channel']);
  const right = channel.thread === undefined ? 'SEND_MESSAGES' : 'SEND_MESSAGES_IN_THREADS';
  if (!guild.may(guild.botId, right, channel)) throw missingPermissions();
  services.threads.refuseLocked(channel, guild.botId);
  guild.dispatch({
    name: 'TYPING_START',
    intents: INTENT.GUILD_MESSAGE_TYPING,
    channelId: channel.id,
    data: () => ({
      channel_id: channel.id,
      guild_id: guild.id,
      user_id: guild.botId,
      timestamp: Math.floor(guild.core.clock.wallMs() / 1000),
      member: memberWithUserJson(guild, guild.botId),
    }),
  });
  guild.changed('typing', { channel: channel.id, user: guild.botId });
  return NO_CONTENT;
}

// Channels and threads.

function patchChannel(services: Services, call: Call): Answer {
  const { guild, threads } = services;
  const channel = channelOf(services, call.params['channel']);
  if (channel.thread !== undefined) threads.patch(channel, call.form, guild.botId);
  else {
    if (!guild.may(guild.botId, 'MANAGE_CHANNELS', channel)) throw missingPermissions();
    if (call.form['name'] !== undefined) channel.name = checkedName(call.form['name']);
    if (call.form['topic'] !== undefined) channel.topic = stringOf(call.form['topic']) ?? null;
    threads.updated(channel);
  }
  return ok(channelJson(guild, channel));
}

function deleteChannel(services: Services, call: Call): Answer {
  const { guild, threads } = services;
  const channel = channelOf(services, call.params['channel']);
  const right = channel.thread === undefined ? 'MANAGE_CHANNELS' : 'MANAGE_THREADS';
  if (!guild.may(guild.botId, right, channel)) throw missingPermissions();
  const json = channelJson(guild, channel);
  threads.remove(channel);
  return ok(json);
}

function threadFromMessage(services: Services, call: Call): Answer {
  const { channel, message } = messageOf(services, call);
  const { guild, messages } = services;
  const thread = messages.startThread(channel, message, call.form, guild.botId);
  return { status: 201, json: channelJson(services.guild, thread) };
}

function threadAlone(services: Services, call: Call): Answer {
  const { guild, threads, messages } = services;
  const channel = channelOf(services, call.params['channel']);
  if (channel.type !== CHANNEL.FORUM) {
    const thread = messages.startLoneThread(channel, call.form, guild.botId);
    return { status: 201, json: channelJson(guild, thread) };
  }
  const first = recordOf(call.form['message']);
  const draft = readMessageForm(first, call.files, { action: 'create' });
  const thread = threads.inForum(channel, call.form, guild.botId);
  const message = messages.add(thread, draft, {
    authorId: guild.botId,
    target: call.target,
    id: thread.id,
  });
  return {
    status: 201,
    json: { ...channelJson(guild, thread), message: readJson(services, message) },
  };
}

function joinThread(services: Services, call: Call): Answer {
  const thread = channelOf(services, call.params['channel']);
  if (thread.thread === undefined) throw unknownChannel();
  services.threads.refuseArchived(thread);
  const userId = call.params['user'] ?? services.guild.botId;
  if (!services.guild.members.has(userId)) throw unknownUser();
  services.threads.join(thread, userId);
  return NO_CONTENT;
}

function leaveThread(services: Services, call: Call): Answer {
  const thread = channelOf(services, call.params['channel']);
  thread.thread?.members.delete(call.params['user'] ?? services.guild.botId);
  return NO_CONTENT;
}

function listThreadMembers(services: Services, call: Call): Answer {
  const thread = channelOf(services, call.params['channel']);
  return ok([...(thread.thread?.members ?? [])].map((id) => threadMemberJson(thread, id)));
}

function activeThreads(services: Services, call: Call): Answer {
  refuseForeignGuild(services, call);
  const { guild } = services;
  const visible = guild
    .threads()
    .filter(
      (thread) =>
        thread.thread?.archived === false && guild.may(guild.botId, 'VIEW_CHANNEL', thread),
    );
  return ok({
    threads: visible.map((thread) => channelJson(guild, thread)),
    members: visible
      .filter((thread) => thread.thread?.members.has(guild.botId) === true)
      .map((thread) => threadMemberJson(thread, guild.botId)),
  });
}

function archivedThreads(services: Services, call: Call): Answer {
  const { guild } = services;
  const channel = channelOf(services, call.params['channel']);
  const found = guild
    .threads()
    .filter(
      (thread) =>
        thread.parentId === channel.id &&
        thread.thread?.archived === true &&
        thread.type === CHANNEL.PUBLIC_THREAD,
    )
    .sort((a, b) => (b.thread?.archiveChangedMs ?? 0) - (a.thread?.archiveChangedMs ?? 0));
  const limit = Math.min(100, Number(call.query.get('limit') ?? '50') || 50);
  return ok({
    threads: found.slice(0, limit).map((thread) => channelJson(guild, thread)),
    members: [],
    has_more: found.length > limit,
  });
}

// Interactions.

function callback(services: Services, call: Call): Answer {
  const { guild, interactions } = services;
  const { record, message } = interactions.callback(
    call.params['interaction'] ?? '',
    call.params['token'] ?? '',
    call.form,
    call.files,
  );
  if (call.query.get('with_response') !== 'true') return NO_CONTENT;
  const type = numberOf(call.form['type']);
  return ok({
    interaction: {
      id: record.id,
      type: record.type,
      ...(message === undefined
        ? {}
        : {
            response_message_id: message.id,
            response_message_loading: record.isLoading,
            response_message_ephemeral: record.ephemeral,
          }),
    },
    resource: {
      type,
      ...(message === undefined
        ? {}
        : { message: messageJson(guild, message, { messageContent: true }) }),
    },
  });
}

function ownApplication(services: Services, call: Call): void {
  if (call.params['application'] !== services.guild.botId)
    throw new ApiError(404, 10002, 'Unknown Application');
}

function followUp(services: Services, call: Call): Answer {
  const message = services.interactions.followUp(call.params['token'] ?? '', call.form, call.files);
  return ok(messageJson(services.guild, message, { messageContent: true }));
}

function webhookMessage(services: Services, call: Call): MessageRecord {
  const record = services.interactions.byToken(call.params['token'] ?? '');
  return services.interactions.messageOf(record, call.params['message'] ?? '');
}

function readWebhookMessage(services: Services, call: Call): Answer {
  return ok(messageJson(services.guild, webhookMessage(services, call), { messageContent: true }));
}

function editWebhookMessage(services: Services, call: Call): Answer {
  const { interactions, guild } = services;
  const message = interactions.editMessage(
    call.params['token'] ?? '',
    call.params['message'] ?? '',
    call.form,
    call.files,
  );
  return ok(messageJson(guild, message, { messageContent: true }));
}

function deleteWebhookMessage(services: Services, call: Call): Answer {
  services.messages.erase(webhookMessage(services, call));
  return NO_CONTENT;
}

// Application commands.

function scopeOf(services: Services, call: Call): string {
  ownApplication(services, call);
  refuseForeignGuild(services, call);
  return call.params['guild'] ?? 'global';
}

function stored(services: Services, scope: string, command: Json, id: string): Json {
  const { guild } = services;
  return {
    type: 1,
    nsfw: false,
    options: [],
    default_member_permissions: null,
    ...command,
    id,
    application_id: guild.botId,
    version: guild.mint.mint(),
    ...(scope === 'global' ? {} : { guild_id: scope }),
  };
}

function sameCommand(left: Json, right: Json): boolean {
  return left['name'] === right['name'] && (left['type'] ?? 1) === (right['type'] ?? 1);
}

/** 200 new commands a day; what already had its name does not count. @throws {ApiError} 30034. */
function countCreates(services: Services, scope: string, count: number): void {
  for (let made = 0; made < count; made += 1)
    if (
      !services.gateway.windows.take(`command-creates ${scope}`, {
        limit: 200,
        windowMs: 86_400_000,
      }).allowed
    )
      throw new ApiError(
        400,
        30034,
        'Max number of daily application command creates has been reached (200)',
      );
}

function putCommands(services: Services, call: Call): Answer {
  const scope = scopeOf(services, call);
  const commands = checkCommands(call.value);
  const before = services.commands.list(scope);
  const known = (command: Json): Json | undefined =>
    before.find((old) => sameCommand(old, command));
  countCreates(services, scope, commands.filter((command) => known(command) === undefined).length);
  const next = commands.map((command) =>
    stored(
      services,
      scope,
      command,
      stringOf(known(command)?.['id']) ?? services.guild.mint.mint(),
    ),
  );
  services.commands.replace(scope, next);
  services.guild.changed('commands', { scope });
  return ok(next);
}

function postCommand(services: Services, call: Call): Answer {
  const scope = scopeOf(services, call);
  const errors = new FormErrors();
  checkCommand(call.form, '', errors);
  errors.throwIfAny();
  const before = services.commands.list(scope);
  const old = before.find((entry) => sameCommand(entry, call.form));
  if (old === undefined) countCreates(services, scope, 1);
  const made = stored(
    services,
    scope,
    call.form,
    stringOf(old?.['id']) ?? services.guild.mint.mint(),
  );
  services.commands.replace(scope, [...before.filter((entry) => entry !== old), made]);
  return { status: old === undefined ? 201 : 200, json: made };
}

function findCommand(
  services: Services,
  call: Call,
): { readonly scope: string; readonly command: Json } {
  const scope = scopeOf(services, call);
  const command = services.commands
    .list(scope)
    .find((entry) => entry['id'] === call.params['command']);
  if (command === undefined) throw unknownCommand();
  return { scope, command };
}

function patchCommand(services: Services, call: Call): Answer {
  const { scope, command } = findCommand(services, call);
  const next = stored(services, scope, { ...command, ...call.form }, String(command['id']));
  const errors = new FormErrors();
  checkCommand(next, '', errors);
  errors.throwIfAny();
  services.commands.replace(
    scope,
    services.commands.list(scope).map((entry) => (entry === command ? next : entry)),
  );
  return ok(next);
}

function deleteCommand(services: Services, call: Call): Answer {
  const { scope, command } = findCommand(services, call);
  services.commands.replace(
    scope,
    services.commands.list(scope).filter((entry) => entry !== command),
  );
  return NO_CONTENT;
}

// Users, guild, gateway.

function gatewayBot(services: Services): Answer {
  const { gateway } = services;
  return ok({
    url: gateway.settings.url ?? gateway.gatewayUrl('/discord-gateway'),
    shards: 1,
    session_start_limit: {
      total: gateway.settings.identifyBudget,
      remaining: gateway.identifiesLeft(),
      reset_after: 14_400_000,
      max_concurrency: 1,
    },
  });
}

function readUser(services: Services, call: Call): Answer {
  const id = call.params['user'] === undefined ? services.guild.botId : call.params['user'];
  const user = services.guild.user(id);
  if (user === undefined) throw unknownUser();
  return ok(userJson(user));
}

function application(services: Services): Answer {
  const { guild } = services;
  return ok({
    id: guild.botId,
    name: 'chatd',
    description: '',
    icon: null,
    bot_public: false,
    bot_require_code_grant: false,
    verify_key: '0'.repeat(64),
    flags: guild.messageContentEnabled ? 1 << 19 : 0,
    guild_id: guild.id,
    owner: userJson(
      guild.user(guild.ownerId) ?? {
        id: guild.ownerId,
        username: 'olga',
        globalName: null,
        bot: false,
      },
    ),
    team: null,
  });
}

function readMember(services: Services, call: Call): Answer {
  refuseForeignGuild(services, call);
  const id = call.params['user'] ?? '';
  if (!services.guild.members.has(id)) throw new ApiError(404, 10007, 'Unknown Member');
  return ok(memberWithUserJson(services.guild, id));
}

function openDirect(services: Services, call: Call): Answer {
  const { guild } = services;
  const recipientId = stringOf(call.form['recipient_id']) ?? '';
  if (!isSnowflake(recipientId) || guild.user(recipientId)?.bot !== false)
    throw new ApiError(400, 50007, 'Cannot send messages to this user');
  return ok(channelJson(guild, directChannel(guild, recipientId)));
}

/** The direct channel between the bot and a person; one each. */
export function directChannel(guild: Guild, personId: string): ChannelRecord {
  const known = [...guild.channels.values()].find(
    (channel) => channel.type === CHANNEL.DM && channel.recipientId === personId,
  );
  return (
    known ??
    guild.addChannel({ name: '', type: CHANNEL.DM, guildId: undefined, recipientId: personId })
  );
}

function inGuild(read: (services: Services) => unknown): Route['run'] {
  return (services, call) => {
    refuseForeignGuild(services, call);
    return ok(read(services));
  };
}

const visibleChannels = (services: Services): readonly Json[] =>
  [...services.guild.channels.values()]
    .filter((channel) => channel.thread === undefined && channel.guildId !== undefined)
    .filter((channel) => services.guild.may(services.guild.botId, 'VIEW_CHANNEL', channel))
    .map((channel) => channelJson(services.guild, channel));

const MESSAGE_PATH = '/channels/:channel/messages/:message';
const COMMANDS = [
  '/applications/:application/commands',
  '/applications/:application/guilds/:guild/commands',
];

function route(method: string, template: string, run: Route['run'], open = false): Route {
  return { method, template, run, open };
}

export const ROUTES: readonly Route[] = [
  route(
    'GET',
    '/gateway',
    (services) => ok({ url: services.gateway.gatewayUrl('/discord-gateway') }),
    true,
  ),
  route('GET', '/gateway/bot', gatewayBot),
  route('GET', '/users/@me', readUser),
  route('GET', '/users/:user', readUser),
  route('POST', '/users/@me/channels', openDirect),
  route('GET', '/applications/@me', application),
  route('GET', '/oauth2/applications/@me', application),
  route(
    'GET',
    '/guilds/:guild',
    inGuild((services) => ({
      ...guildJson(services.guild),
      roles: [...services.guild.roles.values()].map(roleJson),
    })),
  ),
  route('GET', '/guilds/:guild/channels', inGuild(visibleChannels)),
  route(
    'GET',
    '/guilds/:guild/roles',
    inGuild((services) => [...services.guild.roles.values()].map(roleJson)),
  ),
  route(
    'GET',
    '/guilds/:guild/members',
    inGuild((services) =>
      [...services.guild.members.keys()].map((id) => memberWithUserJson(services.guild, id)),
    ),
  ),
  route('GET', '/guilds/:guild/members/:user', readMember),
  route('GET', '/guilds/:guild/threads/active', activeThreads),
  route('GET', '/channels/:channel', (services, call) =>
    ok(channelJson(services.guild, channelOf(services, call.params['channel']))),
  ),
  route('PATCH', '/channels/:channel', patchChannel),
  route('DELETE', '/channels/:channel', deleteChannel),
  route('GET', '/channels/:channel/messages', listMessages),
  route('POST', '/channels/:channel/messages', createMessage),
  route('GET', MESSAGE_PATH, (services, call) =>
    ok(readJson(services, messageOf(services, call).message)),
  ),
  route('PATCH', MESSAGE_PATH, editMessage),
  route('DELETE', MESSAGE_PATH, deleteMessage),
  route('PUT', `${MESSAGE_PATH}/reactions/:emoji/@me`, addReaction),
  route('DELETE', `${MESSAGE_PATH}/reactions/:emoji/@me`, removeReaction),
  route('DELETE', `${MESSAGE_PATH}/reactions/:emoji/:user`, removeReaction),
  route('GET', `${MESSAGE_PATH}/reactions/:emoji`, listReactions),
  route('PUT', '/channels/:channel/pins/:message', pinMessage),
  route('DELETE', '/channels/:channel/pins/:message', pinMessage),
  route('PUT', '/channels/:channel/messages/pins/:message', pinMessage),
  route('DELETE', '/channels/:channel/messages/pins/:message', pinMessage),
  route('POST', '/channels/:channel/typing', typing),
  route('POST', `${MESSAGE_PATH}/threads`, threadFromMessage),
  route('POST', '/channels/:channel/threads', threadAlone),
  route('GET', '/channels/:channel/threads/archived/public', archivedThreads),
  route('GET', '/channels/:channel/thread-members', listThreadMembers),
  route('PUT', '/channels/:channel/thread-members/@me', joinThread),
  route('PUT', '/channels/:channel/thread-members/:user', joinThread),
  route('DELETE', '/channels/:channel/thread-members/@me', leaveThread),
  route('DELETE', '/channels/:channel/thread-members/:user', leaveThread),
  route('POST', '/interactions/:interaction/:token/callback', callback, true),
  route('POST', '/webhooks/:application/:token', followUp, true),
  route('GET', '/webhooks/:application/:token/messages/:message', readWebhookMessage, true),
  route('PATCH', '/webhooks/:application/:token/messages/:message', editWebhookMessage, true),
  route('DELETE', '/webhooks/:application/:token/messages/:message', deleteWebhookMessage, true),
  ...COMMANDS.flatMap((template) => [
    route('GET', template, (services, call) => ok(services.commands.list(scopeOf(services, call)))),
    route('PUT', template, putCommands),
    route('POST', template, postCommand),
    route('GET', `${template}/:command`, (services, call) =>
      ok(findCommand(services, call).command),
    ),
    route('PATCH', `${template}/:command`, patchCommand),
    route('DELETE', `${template}/:command`, deleteCommand),
  ]),
];

/** The route of a request with its parameters, or a 404. @throws {ApiError} 404, 405. */
export function findRoute(
  method: string,
  pathname: string,
): { readonly route: Route; readonly params: Record<string, string> } {
  const parts = pathname.split('/');
  let otherMethod = false;
  for (const candidate of ROUTES) {
    const params = matchTemplate(candidate.template.split('/'), parts);
    if (params === undefined) continue;
    if (candidate.method === method) return { route: candidate, params };
    otherMethod = true;
  }
  if (otherMethod) throw new ApiError(405, 0, '405: Method Not Allowed');
  throw notFound();
}

/** A path segment as the client meant it; one that cannot be decoded stays as it is. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function matchTemplate(
  template: readonly string[],
  parts: readonly string[],
): Record<string, string> | undefined {
  if (template.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, piece] of template.entries()) {
    const part = decoded(parts[index] ?? '');
    if (!piece.startsWith(':')) {
      if (piece !== part) return undefined;
    } else {
      if (part === '') return undefined;
      params[piece.slice(1)] = part;
    }
  }
  return params;
}

/** `/channels/:id/messages`: how routes are named in the request log, in faults and in limits. */
export function genericTemplate(template: string): string {
  return template
    .replaceAll(/:(?:channel|message|guild|user|application|command|interaction)\b/g, ':id')
    .replaceAll(':emoji', ':reaction');
}
