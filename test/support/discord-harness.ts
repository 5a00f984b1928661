// The Discord adapter on a sandbox of its own, as the contract of chat platforms wants it.

import { silentLog } from '../../src/base/log.ts';
import { seededRandom } from '../../src/base/random.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import type { ThreadRoot } from '../../src/bots/chat-platform.ts';
import { type DiscordConfig, DiscordPlatform } from '../../src/bots/discord/platform.ts';
import { LIMITS } from '../../src/sandbox/discord/buckets.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import type { Harness, Read } from '../contract/bots/chat-platform.contract.ts';
import { PlatformRecorder, until } from './platform-recorder.ts';

export interface Info {
  readonly token: string;
  readonly applicationId: string;
  readonly guildId: string;
  readonly apiUrl: string;
  readonly channels: Readonly<Record<string, string>>;
  readonly users: Readonly<Record<string, string>>;
}

interface Shown {
  readonly id: string;
  readonly author: { readonly id: string };
  readonly shown: string;
  readonly flags: number;
  readonly mentions: readonly string[];
  readonly attachments: readonly { readonly filename: string }[];
  readonly onlyFor: string | null;
}

export interface DiscordHarness extends Harness {
  readonly sandbox: Sandbox;
  readonly platform: DiscordPlatform;
  readonly info: Info;
}

const TARGETS = {
  post: 'discord:POST /channels/:id/messages',
  edit: 'discord:PATCH /channels/:id/messages/:id',
  find: 'discord:GET /channels/:id/messages',
  upload: 'discord:POST /channels/:id/messages',
} as const;
const FAULTS = {
  'rate-limit': { kind: 'rate-limit', retryAfterSec: 1 },
  'long-limit': { kind: 'rate-limit', retryAfterSec: 300 },
  reset: { kind: 'reset' },
  'reset-processed': { kind: 'reset', processed: true },
  'server-error': { kind: 'reply', status: 502 },
} as const;

/** What docs/setup-discord.md asks for. */
export const BOT_PERMISSIONS = 326_417_632_320n;

export async function quietSandbox(): Promise<{ sandbox: Sandbox; info: Info }> {
  const sandbox = await startSandbox({ clock: systemClock, random: seededRandom(11) });
  const generous = { limit: 100_000, windowMs: 1_000 };
  await sandbox.control('discord/settings', {
    global: generous,
    limits: Object.fromEntries(Object.keys(LIMITS).map((route) => [route, generous])),
  });
  await sandbox.control('discord/botPermissions', { permissions: String(BOT_PERMISSIONS) });
  return { sandbox, info: (await sandbox.control('discord/info')) as Info };
}

export function platformOf(info: Info, changed: Partial<DiscordConfig> = {}): DiscordPlatform {
  const { apiUrl, applicationId, guildId, token } = info;
  return new DiscordPlatform({
    config: { apiUrl, applicationId, guildId, token, ...changed },
    // Tests ask faster than anything in a thread would.
    requestsPerSecond: 100_000,
    clock: systemClock,
    random: seededRandom(7),
    log: silentLog,
  });
}

export async function startDiscord(): Promise<DiscordHarness> {
  const { sandbox, info } = await quietSandbox();
  const platform = platformOf(info);
  const recorder = new PlatformRecorder();
  await platform.start(recorder);
  await until('connected', () => recorder.connectedCount > 0);
  const channelId = Object.values(info.channels)[0] ?? '';
  const channel: ThreadRoot = { space: info.guildId, channel: channelId, root: '' };
  const where = (place: ThreadRoot): string => (place.root === '' ? channelId : place.root);
  const messages = async (place: ThreadRoot): Promise<readonly Shown[]> => {
    const thread = (await sandbox.control('discord/thread', { channel: where(place) })) as {
      messages: readonly Shown[];
    };
    return thread.messages;
  };
  return {
    sandbox,
    platform,
    recorder,
    info,
    channel,
    personId: info.users['alice'] ?? '',
    seesOwnPosts: true,
    say: async (place, text) => {
      const sent = (await sandbox.control('discord/type', {
        user: 'alice',
        channel: where(place),
        text,
      })) as { id: string };
      return sent.id;
    },
    press: async (_place, messageId, label) => {
      await sandbox.control('discord/click', {
        user: 'alice',
        messageId,
        label,
      });
    },
    command: async (command) => {
      await sandbox.control('discord/command', {
        user: 'alice',
        channel: channelId,
        name: 'term run',
        options: { command },
      });
    },
    submit: async (_place, _modal, values) => {
      await until('the modal', async () => {
        const dialogs = (await sandbox.control('discord/dialogs')) as {
          modals: readonly unknown[];
        };
        return dialogs.modals.length > 0;
      });
      await sandbox.control('discord/submit', { user: 'alice', values });
    },
    read: async (place): Promise<readonly Read[]> =>
      (await messages(place)).map((message) => ({
        id: message.id,
        text: message.shown,
        mine: message.author.id === info.applicationId,
        pings: message.mentions,
        files: message.attachments.map((file) => file.filename),
      })),
    privateTexts: async (place) =>
      (await messages(place))
        .filter((message) => message.onlyFor !== null || (message.flags & 4_096) !== 0)
        .map((message) => message.shown),
    failNext: async (call, fault) => {
      await sandbox.control('faults/add', { on: TARGETS[call], fault: FAULTS[fault] });
    },
    faultsStruck: async () =>
      ((await sandbox.control('faults/list')) as { struck: number }[]).every(
        (rule) => rule.struck > 0,
      ),
    removeMessage: async (place, messageId) => {
      await platform.delete(place, messageId);
    },
    dropConnection: async () => {
      await sandbox.control('discord/gateway', { action: 'reset' });
    },
    archive: async (place) => {
      await sandbox.control('discord/archive', { user: 'olga', channel: place.root });
    },
    reopen: async (place) => {
      const outcome = await platform.unarchive(place);
      if (outcome.kind !== 'ok') throw new Error(outcome.detail);
    },
    lock: async (place) => {
      // With MANAGE_THREADS a lock does not bind us.
      await sandbox.control('discord/botPermissions', {
        permissions: String(BOT_PERMISSIONS & ~(1n << 34n)),
      });
      await sandbox.control('discord/lock', { user: 'olga', channel: place.root });
    },
    close: async () => {
      await platform.stop();
      await sandbox.close();
    },
  };
}
