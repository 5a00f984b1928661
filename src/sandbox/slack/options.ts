// How a simulated Slack workspace is set up, with the defaults every test starts from.

import type { SlackUser } from './model.ts';

export type RateLimits =
  /** The tiers of PLATFORM §2.7. */
  | 'real'
  | 'off'
  /** All limits multiplied by this. */
  | number;

export interface SlackOptions {
  readonly teamId?: string;
  readonly teamName?: string;
  readonly appId?: string;
  readonly botToken?: string;
  readonly appToken?: string;
  readonly botName?: string;
  /** Bot scopes granted at installation. */
  readonly scopes?: readonly string[];
  /** Events the app subscribed to. */
  readonly botEvents?: readonly string[];
  readonly commands?: readonly string[];
  readonly rateLimits?: RateLimits;
  /** Posts a channel takes at once before 1 per second counts; undisclosed by Slack. */
  readonly postBurst?: number;
  /** How long after completeUploadExternal the file's message appears: drawn between these. */
  readonly fileShareDelayMs?: readonly [number, number];
  /** Close handshakes leave the TCP connection open, as the real one does. */
  readonly lingerAfterClose?: boolean;
  /** Server pings of the sockets. */
  readonly pingIntervalMs?: number;
  /** Life of a socket before it is refreshed; real: about an hour. */
  readonly connectionLifeMs?: number;
  /** After this long `chat.update` answers edit_window_closed; default never. */
  readonly editWindowMs?: number;
  /** Events carry metadata's payload only when its type is declared in the app's manifest. */
  readonly metadataDeclared?: boolean;
}

/** The scopes of PLATFORM §2.14 for a bot driven from threads. */
export const DEFAULT_SCOPES: readonly string[] = [
  'chat:write',
  'channels:history',
  'groups:history',
  'im:history',
  'mpim:history',
  'channels:read',
  'groups:read',
  'im:read',
  'mpim:read',
  'im:write',
  'app_mentions:read',
  'commands',
  'files:read',
  'files:write',
  'reactions:read',
  'reactions:write',
  'users:read',
];

export const DEFAULT_EVENTS: readonly string[] = [
  'message.channels',
  'message.groups',
  'message.im',
  'message.mpim',
  'app_mention',
  'reaction_added',
  'reaction_removed',
  'file_shared',
  'member_joined_channel',
  'channel_archive',
  'channel_unarchive',
  'channel_rename',
  'channel_deleted',
  'channel_id_changed',
];

export const DEFAULT_TEAM = 'T0CHATD001';
export const STRANGER_TEAM = 'T0OTHER001';

/** alice is meant to be a driver, bob nobody in particular, mallory is from another workspace. */
export function defaultPeople(teamId: string): readonly SlackUser[] {
  const person = (id: string, name: string, realName: string): SlackUser => ({
    id,
    name,
    realName,
    teamId,
    isBot: false,
    isStranger: false,
    isRestricted: false,
  });
  return [
    person('U0ALICE001', 'alice', 'Alice Archer'),
    person('U0BOB00001', 'bob', 'Bob Baker'),
    { ...person('U0MALLORY1', 'mallory', 'Mallory Moor'), teamId: STRANGER_TEAM, isStranger: true },
  ];
}

export const FILLED_IN = {
  teamName: 'Acme',
  appId: 'A0CHATD001',
  botToken: 'xoxb-1000-2000-sandboxbottoken',
  appToken: 'xapp-1-A0CHATD001-3000-sandboxapptoken',
  botName: 'chatd',
  commands: ['/chatd'],
  postBurst: 5,
  fileShareDelayMs: [50, 400],
  pingIntervalMs: 15_000,
  connectionLifeMs: 3_600_000,
} as const;
