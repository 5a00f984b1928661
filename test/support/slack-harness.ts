// The Slack adapter on a sandbox of its own, as the contract of chat platforms wants it.

import { silentLog } from '../../src/base/log.ts';
import { seededRandom } from '../../src/base/random.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import type { ThreadRoot } from '../../src/bots/chat-platform.ts';
import { type SlackConfig, SlackPlatform } from '../../src/bots/slack/platform.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SlackOptions as SlackSandboxOptions } from '../../src/sandbox/slack/options.ts';
import type { Harness, Read } from '../contract/bots/chat-platform.contract.ts';
import { PlatformRecorder, until } from './platform-recorder.ts';
import { manifestEvents, manifestScopes } from './slack-manifest.ts';

interface Shown {
  readonly ts: string;
  readonly user?: string;
  readonly shown: string;
  readonly pings: readonly unknown[];
  readonly files?: readonly { readonly name: string }[];
}

export interface SlackHarness extends Harness {
  readonly sandbox: Sandbox;
  readonly platform: SlackPlatform;
}

const TARGETS = {
  post: 'slack:chat.postMessage',
  edit: 'slack:chat.update',
  find: 'slack:conversations.replies',
  upload: 'slack:files.completeUploadExternal',
} as const;
const FAULTS = {
  'rate-limit': { kind: 'rate-limit', retryAfterSec: 1 },
  'long-limit': { kind: 'rate-limit', retryAfterSec: 300 },
  reset: { kind: 'reset' },
  'reset-processed': { kind: 'reset', processed: true },
  'server-error': { kind: 'reply', status: 503 },
} as const;

export function platformOn(sandbox: Sandbox, changed: Partial<SlackConfig> = {}): SlackPlatform {
  const { apiUrl, appId, appToken, botToken, teamId } = sandbox.slack;
  return new SlackPlatform({
    config: { apiUrl, appId, appToken, botToken, teamId, groups: [], ...changed },
    clock: systemClock,
    random: seededRandom(7),
    log: silentLog,
  });
}

export async function startSlack(options: SlackSandboxOptions = {}): Promise<SlackHarness> {
  const sandbox = await startSandbox({
    clock: systemClock,
    random: seededRandom(11),
    slack: {
      rateLimits: 'off',
      fileShareDelayMs: [50, 200],
      metadataDeclared: true,
      scopes: manifestScopes(),
      botEvents: manifestEvents(),
      ...options,
    },
  });
  const platform = platformOn(sandbox);
  const recorder = new PlatformRecorder();
  await platform.start(recorder);
  await until('connected', () => recorder.connectedCount > 0);
  const channelId = sandbox.slack.channel;
  const channel: ThreadRoot = { space: sandbox.slack.teamId, channel: channelId, root: '' };
  const users = (await sandbox.control('slack/users')) as readonly { id: string; name: string }[];
  const personId = users.find((user) => user.name === 'alice')?.id ?? '';
  const thread = async (
    place: ThreadRoot,
  ): Promise<{ messages: readonly Shown[]; ephemeral: readonly Shown[] }> =>
    (await sandbox.control('slack/thread', { channel: channelId, ts: place.root })) as {
      messages: readonly Shown[];
      ephemeral: readonly Shown[];
    };
  return {
    sandbox,
    platform,
    recorder,
    channel,
    personId,
    seesOwnPosts: true,
    say: async (place, text) => {
      const sent = (await sandbox.control('slack/type', {
        user: 'alice',
        channel: channelId,
        text,
        ...(place.root === '' ? {} : { thread_ts: place.root }),
      })) as { ts: string };
      return sent.ts;
    },
    press: async (_place, messageId, label) => {
      acked(
        await sandbox.control('slack/click', {
          user: 'alice',
          channel: channelId,
          ts: messageId,
          label,
        }),
      );
    },
    command: async (command) => {
      await sandbox.control('slack/command', {
        user: 'alice',
        channel: channelId,
        command: '/chatd',
        text: `run -- ${command}`,
      });
    },
    submit: async (_place, _modal, values) => {
      await until('the modal', async () => {
        const views = (await sandbox.control('slack/views', { user: 'alice' })) as unknown[];
        return views.length > 0;
      });
      acked(await sandbox.control('slack/submit', { user: 'alice', values }));
    },
    read: async (place): Promise<readonly Read[]> =>
      (await thread(place)).messages.map((message) => ({
        id: message.ts,
        text: message.shown,
        mine: message.user === sandbox.slack.botUserId,
        pings: message.pings.map(String),
        files: (message.files ?? []).map((file) => file.name),
      })),
    privateTexts: async (place) => (await thread(place)).ephemeral.map((note) => note.shown),
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
      await sandbox.control('slack/sockets/drop');
    },
    archive: async () => {
      await sandbox.control('slack/archive', { channel: channelId });
    },
    reopen: async () => {
      await sandbox.control('slack/unarchive', { channel: channelId });
    },
    lock: async (place) => {
      await sandbox.control('slack/lock-thread', { channel: channelId, ts: place.root });
    },
    close: async () => {
      await platform.stop();
      await sandbox.close();
    },
  };
}

/** @throws {Error} when the person saw an error instead. */
function acked(answer: unknown): void {
  const { kind } = answer as { kind: string };
  if (kind !== 'acked') throw new Error(`not acknowledged: ${JSON.stringify(answer)}`);
}
