// The control calls of the Discord half: act as a person, break the connection, read back.

import {
  type Fields,
  fieldsOf,
  optionalFlag,
  optionalNumber,
  optionalText,
  textField,
} from '../fields.ts';
import { ControlError, type ControlHandler } from '../module.ts';
import type { Limit } from './buckets.ts';
import type { Gateway } from './gateway.ts';
import type { InteractionRecord } from './interactions.ts';
import { isRecord, type Json, numberOf, recordsOf } from './json.ts';
import type { People } from './people.ts';
import {
  shownChannel,
  shownChannels,
  shownDialogs,
  shownMessage,
  shownMessages,
  shownPeople,
} from './readback.ts';
import { CHANNEL, type Overwrite } from './records.ts';
import type { Rest } from './rest.ts';
import type { Services } from './routes.ts';

interface Parts {
  readonly services: Services;
  readonly rest: Rest;
  readonly people: People;
}

type Call = (fields: Fields) => unknown;

export function discordControl(parts: Parts): Record<string, ControlHandler> {
  const calls: Record<string, Call> = {
    ...personCalls(parts),
    ...interactionCalls(parts),
    ...threadCalls(parts),
    ...readCalls(parts),
    ...worldCalls(parts),
    ...platformCalls(parts),
  };
  return Object.fromEntries(
    Object.entries(calls).map(([name, call]): [string, ControlHandler] => [
      `discord/${name}`,
      async (body) => call(fieldsOf(body)),
    ]),
  );
}

function personCalls({ services, people }: Parts): Record<string, Call> {
  const { guild } = services;
  return {
    type: (fields) => shownMessage(guild, people.type(fields)),
    reply: (fields) => {
      const target = people.message(fields);
      return shownMessage(
        guild,
        people.type({ ...fields, channel: target.channelId, replyTo: target.id }),
      );
    },
    edit: (fields) => shownMessage(guild, people.edit(fields)),
    delete: (fields) => people.remove(fields),
    react: (fields) => people.react(fields),
    typing: (fields) => people.typing(fields),
    unfurl: (fields) => people.unfurl(fields),
  };
}

function interactionCalls({ services, people }: Parts): Record<string, Call> {
  const started = (record: InteractionRecord): Json => ({ interaction: record.id });
  return {
    command: (fields) => started(people.command(fields)),
    /** Asks for suggestions of one option and waits for the bot's answer. */
    autocomplete: async (fields) => {
      const record = people.command({ ...fields, focused: textField(fields, 'focused') });
      await settled(services, record);
      return { interaction: record.id, choices: record.choices };
    },
    click: (fields) => started(people.click(fields)),
    submit: (fields) => started(people.submit(fields)),
    dismiss: (fields) => people.dismiss(fields),
    interaction: (fields) => {
      const record = services.interactions.find(textField(fields, 'id'));
      if (record === undefined) throw new ControlError('there is no such interaction');
      return {
        id: record.id,
        answer: record.answer ?? null,
        expired: record.expired,
        ephemeral: record.ephemeral,
        loading: record.isLoading,
        originalId: record.originalId ?? null,
      };
    },
  };
}

/** Waits until the interaction is answered or its window is over. */
async function settled(services: Services, record: InteractionRecord): Promise<void> {
  const { clock } = services.guild.core;
  while (record.answer === undefined && !record.expired) await clock.sleep(20);
}

function threadCalls({ services, people }: Parts): Record<string, Call> {
  const { guild } = services;
  const patched =
    (form: (fields: Fields) => Json): Call =>
    (fields) =>
      shownChannel(guild, people.patchThread(fields, form(fields)));
  return {
    archive: patched((fields) => ({ archived: optionalFlag(fields, 'archived') ?? true })),
    lock: patched((fields) => ({ locked: optionalFlag(fields, 'locked') ?? true })),
    rename: patched((fields) => ({ name: textField(fields, 'name') })),
    deleteThread: (fields) => people.deleteThread(fields),
    startThread: (fields) => shownChannel(guild, people.startThread(fields)),
  };
}

function readCalls({ services, people }: Parts): Record<string, Call> {
  const { guild, interactions, gateway } = services;
  return {
    info: () => ({
      token: guild.token,
      applicationId: guild.botId,
      guildId: guild.id,
      apiUrl: `${guild.core.baseUrl()}/api`,
      channels: Object.fromEntries(
        [...guild.channels.values()]
          .filter((channel) => channel.thread === undefined && channel.guildId !== undefined)
          .map((channel) => [channel.name, channel.id]),
      ),
      users: Object.fromEntries([...guild.users.values()].map((user) => [user.username, user.id])),
      roles: Object.fromEntries([...guild.roles.values()].map((role) => [role.name, role.id])),
      connected: gateway.hasReadySession,
    }),
    channels: () => shownChannels(guild),
    people: () => shownPeople(guild),
    dialogs: () => shownDialogs(guild, interactions),
    commands: () => services.commands.all(),
    thread: (fields) => {
      const viewer = optionalText(fields, 'viewer');
      const viewerId = viewer === undefined ? undefined : people.user(viewer).id;
      const id = optionalText(fields, 'id');
      const channel = people.channel(id === undefined ? fields : { channel: id }, viewerId);
      return {
        channel: shownChannel(guild, channel),
        messages: shownMessages(guild, channel, {
          viewer: viewerId,
          limit: optionalNumber(fields, 'limit') ?? 20_000,
          system: optionalFlag(fields, 'system') ?? false,
        }),
      };
    },
    message: (fields) => shownMessage(guild, people.message(fields)),
  };
}

function worldCalls({ services, people }: Parts): Record<string, Call> {
  const { guild, threads } = services;
  return {
    addPerson: (fields) => guild.addUser(textField(fields, 'name'), false),
    addChannel: (fields) => {
      const type = optionalText(fields, 'kind') === 'forum' ? CHANNEL.FORUM : CHANNEL.TEXT;
      const tags = recordsOf(fields['tags']).map((tag) => ({
        id: guild.mint.mint(),
        name: String(tag['name']),
      }));
      const requiresTag = optionalFlag(fields, 'requiresTag') ?? false;
      const channel = guild.addChannel({
        name: textField(fields, 'name'),
        type,
        tags,
        requiresTag,
      });
      threads.created(channel);
      return { ...shownChannel(guild, channel), tags };
    },
    /** Gives or takes a role; makes it when there is none. */
    role: (fields) => {
      const user = people.user(textField(fields, 'user'));
      const name = textField(fields, 'role');
      const role =
        [...guild.roles.values()].find((entry) => entry.name === name) ?? guild.addRole(name, 0n);
      const permissions = optionalText(fields, 'permissions');
      if (permissions !== undefined) role.permissions = BigInt(permissions);
      if (optionalFlag(fields, 'remove') === true) guild.member(user.id).roleIds.delete(role.id);
      else guild.member(user.id).roleIds.add(role.id);
      services.gateway.memberChanged(user.id);
      return { id: role.id };
    },
    /** Overwrites in a channel: `allow` and `deny` are permission names for a role or person. */
    overwrite: (fields) => {
      const channel = people.channel(fields);
      const overwrite = readOverwrite(fields, { services, people });
      channel.overwrites = [
        ...channel.overwrites.filter((entry) => entry.id !== overwrite.id),
        overwrite,
      ];
      threads.updated(channel);
    },
    /** The permissions of the bot's own role, as a decimal bit set. */
    botPermissions: (fields) => {
      const [roleId] = guild.member(guild.botId).roleIds;
      const role = guild.roles.get(roleId ?? '');
      if (role !== undefined) role.permissions = BigInt(textField(fields, 'permissions'));
      const everyone = optionalText(fields, 'everyone');
      const base = guild.roles.get(guild.id);
      if (everyone !== undefined && base !== undefined) base.permissions = BigInt(everyone);
    },
  };
}

function readOverwrite(
  fields: Fields,
  { services, people }: Pick<Parts, 'services' | 'people'>,
): Overwrite {
  const { guild } = services;
  const roleName = optionalText(fields, 'role');
  const role = [...guild.roles.values()].find((entry) => entry.name === roleName);
  const bits = (name: string): bigint => BigInt(optionalText(fields, name) ?? '0');
  if (role !== undefined) return { id: role.id, type: 0, allow: bits('allow'), deny: bits('deny') };
  return {
    id: people.user(textField(fields, 'user')).id,
    type: 1,
    allow: bits('allow'),
    deny: bits('deny'),
  };
}

function platformCalls({ services, rest }: Parts): Record<string, Call> {
  const { guild, gateway, threads } = services;
  return {
    gateway: (fields) => breakGateway(gateway, fields),
    settings: (fields) => {
      applySettings(services, fields);
      const limits = fields['limits'];
      if (isRecord(limits))
        rest.settings.limits = { ...rest.settings.limits, ...readLimits(limits) };
      for (const name of ['global', 'rename', 'oldEdit', 'invalid'] as const) {
        const limit = fields[name];
        if (isRecord(limit)) rest.settings[name] = readLimit(limit, name);
      }
      rest.settings.oldEditRetryAfter =
        optionalFlag(fields, 'oldEditRetryAfter') ?? rest.settings.oldEditRetryAfter;
      threads.activeMax = optionalNumber(fields, 'activeThreadsMax') ?? threads.activeMax;
    },
    /** Forgets every limit window and the count of invalid requests. */
    resetLimits: () => {
      rest.windows.clear();
      gateway.windows.clear();
    },
    counters: () => ({
      invalidRequests: rest.invalidCount(),
      identifiesLeft: gateway.identifiesLeft(),
      connections: gateway.connections.size,
    }),
    /** A new token, as the portal's "reset token" makes it: the old one is dead at once. */
    resetToken: () => {
      guild.token = `${guild.token.split('.').slice(0, 2).join('.')}.${'r'.repeat(8)}${guild.mint.mint()}`;
      for (const connection of [...gateway.connections]) connection.closeWith(4004);
      return { token: guild.token };
    },
  };
}

function applySettings({ guild, gateway }: Services, fields: Fields): void {
  guild.messageContentEnabled =
    optionalFlag(fields, 'messageContent') ?? guild.messageContentEnabled;
  const settings = gateway.settings;
  for (const name of [
    'heartbeatMs',
    'resumeWindowMs',
    'identifySpacingMs',
    'identifyBudget',
  ] as const)
    settings[name] = optionalNumber(fields, name) ?? settings[name];
  for (const name of ['url', 'resumeUrl'] as const)
    if (fields[name] !== undefined) settings[name] = optionalText(fields, name);
}

function readLimits(value: Json): Record<string, Limit> {
  return Object.fromEntries(
    Object.entries(value).map(([route, limit]): [string, Limit] => [
      route,
      readLimit(isRecord(limit) ? limit : {}, route),
    ]),
  );
}

function readLimit(value: Json, name: string): Limit {
  const limit = numberOf(value['limit']);
  const windowMs = numberOf(value['windowMs']);
  if (limit === undefined || windowMs === undefined)
    throw new ControlError(`${name} needs limit and windowMs`);
  return { limit, windowMs };
}

/** What happens to every open gateway connection. */
function breakGateway(gateway: Gateway, fields: Fields): Json {
  const action = textField(fields, 'action');
  const connections = [...gateway.connections];
  for (const connection of connections) {
    switch (action) {
      case 'reset':
        connection.reset();
        break;
      case 'reconnect':
        connection.askReconnect();
        break;
      case 'invalid-session':
        connection.invalidSession(optionalFlag(fields, 'resumable') ?? false);
        break;
      case 'close':
        connection.closeWith(optionalNumber(fields, 'code') ?? 4000);
        break;
      case 'zombie':
        connection.freeze();
        break;
      case 'heartbeat':
        connection.askHeartbeat();
        break;
      default:
        throw new ControlError(
          'action must be reset, reconnect, invalid-session, close, zombie or heartbeat',
        );
    }
  }
  return { connections: connections.length };
}
