// The counter-proof to slack-sdk-bugs: chatd's Slack adapter on the same sandbox, through seeded storms
// of everything that kills, blinds or doubles the bare SDKs. Time runs twenty times as fast for both.

import { afterEach, expect, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import { type Random, seededRandom } from '../../../src/base/random.ts';
import { systemClock } from '../../../src/base/system-clock.ts';
import type { Inbound, ThreadRoot } from '../../../src/bots/chat-platform.ts';
import { SlackPlatform } from '../../../src/bots/slack/platform.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import { SandboxClock } from '../../../src/sandbox/sandbox-clock.ts';
import { PlatformRecorder, until } from '../../support/platform-recorder.ts';
import { manifestEvents, manifestScopes } from '../../support/slack-manifest.ts';

const SPEED = 20;
const MESSAGES = 40;
const endings: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

interface Storm {
  readonly sandbox: Sandbox;
  readonly clock: SandboxClock;
  readonly random: Random;
}

type Strike = (storm: Storm) => Promise<unknown>;

const control =
  (name: string, body: object = {}): Strike =>
  ({ sandbox }) =>
    sandbox.control(name, body);
const fault =
  (on: string, kind: string, more: object = {}): Strike =>
  ({ sandbox }) =>
    sandbox.control('faults/add', { on, fault: { kind, ...more } });

const STRIKES: readonly Strike[] = [
  control('slack/sockets/drop'),
  control('slack/sockets/half-open'),
  control('slack/sockets/suppress-pongs'),
  control('slack/sockets/disconnect', { reason: 'warning' }),
  control('slack/sockets/disconnect', { reason: 'refresh_requested' }),
  control('slack/app-rate-limited'),
  control('slack/sockets/raw', { text: '{"type":"events_api"}' }),
  control('slack/sockets/raw', { text: 'garbage' }),
  control('slack/sockets/raw', { base64: 'AAECAw==' }),
  fault('slack:socket', 'no-hello'),
  fault('slack:socket', 'no-hello', { delayMs: 10_000 }),
  fault('slack:socket', 'refuse-upgrade', { status: 409 }),
  fault('slack:socket', 'ignore-ack'),
  fault('slack:apps.connections.open', 'reply', { status: 503 }),
  fault('slack:apps.connections.open', 'reply', { status: 408 }),
  fault('slack:apps.connections.open', 'error', { code: 'fatal_error' }),
  fault('slack:apps.connections.open', 'rate-limit', { retryAfterSec: 2 }),
  fault('slack:apps.connections.open', 'rate-limit', { html: true }),
  fault('slack:apps.connections.open', 'reset'),
  fault('slack:conversations.history', 'reply', { status: 500 }),
  fault('slack:users.info', 'error', { code: 'internal_error' }),
  fault('slack:event', 'duplicate'),
  fault('slack:event', 'reorder'),
  fault('slack:event', 'late', { ms: 20_000 }),
  fault('slack:event', 'lose'),
];

async function standing(
  seed: number,
): Promise<Storm & { platform: SlackPlatform; recorder: PlatformRecorder }> {
  const clock = new SandboxClock(systemClock, SPEED);
  const sandbox = await startSandbox({
    clock,
    random: seededRandom(seed),
    slack: {
      rateLimits: 'off',
      metadataDeclared: true,
      scopes: manifestScopes(),
      botEvents: manifestEvents(),
    },
  });
  endings.push(() => clock.close());
  endings.push(() => sandbox.close());
  const { apiUrl, appId, appToken, botToken, teamId } = sandbox.slack;
  const platform = new SlackPlatform({
    config: { apiUrl, appId, appToken, botToken, teamId, groups: [] },
    clock,
    random: seededRandom(seed + 1),
    log: silentLog,
  });
  endings.push(() => platform.stop());
  const recorder = new PlatformRecorder();
  await platform.start(recorder);
  await until('connected', () => recorder.connectedCount > 0);
  return { sandbox, clock, random: seededRandom(seed + 2), platform, recorder };
}

async function type(sandbox: Sandbox, text: string, root?: string): Promise<string> {
  const sent = await sandbox.control('slack/type', {
    user: 'alice',
    channel: '#ops',
    text,
    ...(root === undefined ? {} : { thread_ts: root }),
  });
  return (sent as { ts: string }).ts;
}

test.each([1, 2, 3])(
  'seed %i: every message typed during a storm arrives, as typed, and no socket leaks',
  async (seed) => {
    const storm = await standing(seed);
    const { clock, platform, random, recorder, sandbox } = storm;
    const root = await type(sandbox, 'root');
    const place: ThreadRoot = { space: sandbox.slack.teamId, channel: sandbox.slack.channel, root };
    const caught: Inbound[] = [];
    const catchUp = async (): Promise<boolean> => {
      const read = await platform.catchUp([{ place, sinceMessageId: root }]);
      if (read.kind !== 'ok') return false;
      caught.push(...read.value);
      return true;
    };
    const typed = new Map<string, string>();
    for (let i = 0; i < MESSAGES; i += 1) {
      const text = `echo "${i}" && ls -la | wc`;
      typed.set(await type(sandbox, text, root), text);
      const strike = STRIKES[Math.floor(random.next() * STRIKES.length)];
      await strike?.(storm);
      await clock.sleep(random.next() * 4_000);
    }
    const rules = (await sandbox.control('faults/list')) as {
      fault: { kind: string };
      struck: number;
    }[];
    // The storm has reached its subject, or the rest proves nothing.
    expect(rules.reduce((sum, rule) => sum + rule.struck, 0)).toBeGreaterThan(10);
    await sandbox.control('faults/clear');
    // One more loss, so that a reconnect follows everything that was lost.
    const before = recorder.connectedCount;
    await sandbox.control('slack/sockets/drop');
    await until('the last reconnect', () => recorder.connectedCount > before && recorder.healthy);
    await until('a catch-up', catchUp);
    const arrived = new Map<string, string>();
    for (const act of [...recorder.acts, ...caught])
      if (act.kind === 'message') arrived.set(act.messageId, act.text);
    for (const [ts, text] of typed) expect([ts, arrived.get(ts)]).toEqual([ts, text]);
    const heard = new Set(
      recorder.acts.map((act) => (act.kind === 'message' ? act.messageId : '')),
    );
    // Both ways count: without the catch-up some are missing, without events most are.
    expect(heard.size).toBeGreaterThan(10);
    expect(recorder.fatalReason).toBeUndefined();
    await until('two sockets and no more', async () => {
      const { open } = (await sandbox.control('slack/sockets')) as {
        open: { half_open: boolean }[];
      };
      return open.filter((one) => !one.half_open).length === 2;
    });
    await platform.stop();
    await until('no socket', async () => {
      const { open } = (await sandbox.control('slack/sockets')) as {
        open: { half_open: boolean }[];
      };
      return open.filter((one) => !one.half_open).length === 0;
    });
  },
);
