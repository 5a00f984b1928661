// The sandbox as a JS API: builds the shared core, the platform halves and the server.

import { fileURLToPath } from 'node:url';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { Scope } from '../base/scope.ts';
import { ChangeFeed } from './change-feed.ts';
import { sandboxControl } from './control.ts';
import { type DiscordOptions, discordModule } from './discord/discord-module.ts';
import { Faults } from './faults.ts';
import type { ControlHandler, SandboxCore, SandboxModule } from './module.ts';
import { RequestLog } from './requests.ts';
import { SandboxClock } from './sandbox-clock.ts';
import { startServer } from './server.ts';
import type { SlackOptions } from './slack/options.ts';
import { createSlackModule, type SlackFacts } from './slack/slack-module.ts';
import { Violations } from './violations.ts';

export interface SandboxOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** 0 (default) lets the system choose. */
  readonly port?: number;
  /** Sandbox seconds per real second; default 1. */
  readonly timeScale?: number;
  /** The page's files; default: web/ beside this file. */
  readonly webDirectory?: string;
  readonly slack?: SlackOptions;
  readonly discord?: DiscordOptions;
}

export interface Sandbox {
  readonly url: string;
  readonly core: SandboxCore;
  /** What a Slack bot needs to log in. */
  readonly slack: SlackFacts;
  /** Calls a control function in-process, exactly as POST /control/<name> does. */
  control(name: string, body?: unknown): Promise<unknown>;
  /** All a process outside needs to use it; printed as the ready line. */
  facts(): Promise<unknown>;
  close(): Promise<void>;
}

/** @throws {Error} when the port cannot be had. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const scope = new Scope();
  let url = 'http://127.0.0.1';
  const clock = scope.own(
    'clock',
    new SandboxClock(options.clock, options.timeScale ?? 1),
    (owned) => owned.close(),
  );
  const changes = scope.own('changes', new ChangeFeed(), (feed) => feed.close());
  const core: SandboxCore = {
    clock,
    random: options.random,
    faults: new Faults(options.random),
    requests: new RequestLog((entry) =>
      changes.push({
        platform: entry.value.platform,
        type: 'request',
        data: { ...entry.value, requestSeq: entry.seq },
      }),
    ),
    violations: new Violations(clock, (violation) =>
      changes.push({ platform: violation.platform, type: 'violation', data: violation }),
    ),
    changes,
    baseUrl: () => url,
  };
  const slack = createSlackModule(core, options.slack);
  const discord = discordModule(core, options.discord);
  // Discord first: its /api/v10/ lies within Slack's /api/.
  const modules: readonly SandboxModule[] = [discord, slack];
  for (const module of modules) scope.own(module.platform, module, (owned) => owned.close());
  const control = new Map<string, ControlHandler>(
    [sandboxControl(core, modules), ...modules.map((module) => module.control)].flatMap((calls) =>
      Object.entries(calls),
    ),
  );
  const server = scope.own(
    'server',
    await startServer({
      core,
      modules,
      control,
      webDirectory: options.webDirectory ?? fileURLToPath(new URL('./web/', import.meta.url)),
      port: options.port ?? 0,
    }),
    (owned) => owned.close(),
  );
  url = server.url;
  const facts = async (): Promise<unknown> => ({
    url,
    slack: slack.facts(),
    discord: await call('discord/info'),
  });
  control.set('facts', facts);
  const call = async (name: string, body: unknown = {}): Promise<unknown> => {
    const handler = control.get(name);
    if (handler === undefined) throw new Error(`no control call named ${name}`);
    return handler(body);
  };
  return {
    url,
    core,
    slack: slack.facts(),
    control: call,
    facts,
    close: () => scope.close(),
  };
}
