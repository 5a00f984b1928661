// The Slack half, put together: one workspace with one installed app, its Web API, Socket Mode, files
// and people.

import type { ControlHandler, SandboxCore, SandboxModule } from '../module.ts';
import type { SlackApp } from './api-call.ts';
import { CHAT_METHODS } from './chat-methods.ts';
import { CONVERSATION_METHODS } from './conversation-methods.ts';
import { type Publisher, publish } from './events.ts';
import { faultControl } from './fault-control.ts';
import { fileMethods, Uploads } from './file-methods.ts';
import { type Routes, serveFile, serveHook, serveUpload } from './file-routes.ts';
import { Interactivity } from './interactivity.ts';
import { MISC_METHODS } from './misc-methods.ts';
import {
  DEFAULT_EVENTS,
  DEFAULT_SCOPES,
  DEFAULT_TEAM,
  defaultPeople,
  FILLED_IN,
  type SlackOptions,
} from './options.ts';
import { RateLimiter } from './rate-limiter.ts';
import { REACTION_METHODS } from './reaction-methods.ts';
import { workspaceView } from './read-back.ts';
import { peopleControl, placeControl, readControl } from './slack-control.ts';
import { SocketMode } from './socket-mode.ts';
import { STREAM_METHODS } from './stream-methods.ts';
import { VIEW_METHODS } from './view-methods.ts';
import { serveApi, type Tokens, type WebApi } from './web-api.ts';
import { BOT_ID, BOT_USER, Workspace, type WorkspaceChange } from './workspace.ts';

/** What a bot needs to log in, and whom a test may act as. */
export interface SlackFacts {
  /** With the trailing slash @slack/web-api wants. */
  readonly apiUrl: string;
  readonly botToken: string;
  readonly appToken: string;
  readonly teamId: string;
  readonly appId: string;
  readonly botUserId: string;
  readonly botId: string;
  /** Id of #ops. */
  readonly channel: string;
  /** Name → id. */
  readonly users: Readonly<Record<string, string>>;
}

export interface SlackModule extends SandboxModule {
  facts(): SlackFacts;
  readonly app: SlackApp;
}

export function createSlackModule(core: SandboxCore, options: SlackOptions = {}): SlackModule {
  const app = createApp(core, options);
  const tokens: Tokens = {
    bot: options.botToken ?? FILLED_IN.botToken,
    app: options.appToken ?? FILLED_IN.appToken,
    dead: new Map(),
  };
  const uploads = new Uploads();
  const postBurst = options.postBurst ?? FILLED_IN.postBurst;
  let limiter = new RateLimiter(core.clock, options.rateLimits ?? 'real', postBurst);
  const api: WebApi = {
    app,
    tokens,
    limiter: () => limiter,
    handlers: {
      ...MISC_METHODS,
      ...CHAT_METHODS,
      ...CONVERSATION_METHODS,
      ...REACTION_METHODS,
      ...VIEW_METHODS,
      ...STREAM_METHODS,
      ...fileMethods(uploads),
    },
  };
  const switches = {
    tokens,
    setRateLimits: (limits: NonNullable<SlackOptions['rateLimits']>) => {
      limiter = new RateLimiter(core.clock, limits, postBurst);
    },
    setScopes: (scopes: readonly string[]) => {
      app.settings.scopes = scopes;
    },
  };
  const commands = options.commands ?? FILLED_IN.commands;
  return {
    platform: 'slack',
    app,
    ...serving(api, { app, uploads, tokens }),
    control: {
      ...peopleControl(app, commands),
      ...readControl(app),
      ...placeControl(app),
      ...faultControl(app, switches),
      'slack/info': async () => factsOf(app, tokens),
    } satisfies Record<string, ControlHandler>,
    state: () => workspaceView(app),
    facts: () => factsOf(app, tokens),
    close: () => app.sockets.close(),
  };
}

function serving(api: WebApi, routes: Routes): Pick<SandboxModule, 'http' | 'upgrade'> {
  return {
    http: async (request, response, url) => {
      if (url.pathname.startsWith('/api/')) await serveApi(api, request, response, url);
      else if (url.pathname.startsWith('/upload/'))
        await serveUpload(routes, request, response, url);
      else if (url.pathname.startsWith('/files/')) await serveFile(routes, request, response, url);
      else if (url.pathname.startsWith('/hooks/')) await serveHook(routes, request, response, url);
      else return false;
      return true;
    },
    upgrade: (request, socket, head, url) => {
      if (!url.pathname.startsWith('/link')) return false;
      api.app.sockets.upgrade(request, socket, head, url);
      return true;
    },
  };
}

function createApp(core: SandboxCore, options: SlackOptions): SlackApp {
  const teamId = options.teamId ?? DEFAULT_TEAM;
  const appId = options.appId ?? FILLED_IN.appId;
  const botName = options.botName ?? FILLED_IN.botName;
  let publisher: Publisher | undefined;
  const workspace = new Workspace({
    teamId,
    clock: core.clock,
    random: core.random,
    changed: (change: WorkspaceChange) => {
      if (publisher !== undefined) publish(publisher, change);
    },
  });
  const app: SlackApp = {
    core,
    workspace,
    interactivity: new Interactivity(core.clock, core.random),
    sockets: new SocketMode({
      core,
      appId,
      pingIntervalMs: options.pingIntervalMs ?? FILLED_IN.pingIntervalMs,
      connectionLifeMs: options.connectionLifeMs ?? FILLED_IN.connectionLifeMs,
      lingerAfterClose: options.lingerAfterClose ?? false,
      changed: () =>
        core.changes.push({ platform: 'slack', type: 'sockets', data: app.sockets.describe() }),
    }),
    shapes: { workspace, appId, botName, botUser: BOT_USER, baseUrl: core.baseUrl },
    settings: {
      teamName: options.teamName ?? FILLED_IN.teamName,
      fileShareDelayMs: options.fileShareDelayMs ?? FILLED_IN.fileShareDelayMs,
      editWindowMs: options.editWindowMs,
      scopes: options.scopes ?? DEFAULT_SCOPES,
    },
    knobs: { neverShareFiles: false, filesNeedInfo: false },
  };
  populate(workspace, teamId, botName);
  publisher = {
    app,
    botEvents: options.botEvents ?? DEFAULT_EVENTS,
    metadataDeclared: options.metadataDeclared ?? false,
  };
  return app;
}

/** #ops is where the bot is; #general is not; alice, bob and the bot are in both or one of them. */
function populate(workspace: Workspace, teamId: string, botName: string): void {
  const people = defaultPeople(teamId);
  for (const person of people) workspace.users.set(person.id, person);
  workspace.users.set(BOT_USER, {
    id: BOT_USER,
    name: botName,
    realName: botName,
    teamId,
    isBot: true,
    isStranger: false,
    isRestricted: false,
  });
  const ours = people.filter((person) => !person.isStranger).map((person) => person.id);
  workspace.addChannel('ops', 'public', [...ours, BOT_USER], 'C0OPS00001');
  workspace.addChannel('general', 'public', ours, 'C0GENERAL1');
}

function factsOf(app: SlackApp, tokens: Tokens): SlackFacts {
  return {
    apiUrl: `${app.core.baseUrl()}/api/`,
    botToken: tokens.bot,
    appToken: tokens.app,
    teamId: app.workspace.teamId,
    appId: app.shapes.appId,
    botUserId: BOT_USER,
    botId: BOT_ID,
    channel: app.workspace.findChannel('ops')?.id ?? '',
    users: Object.fromEntries(
      [...app.workspace.users.values()].map((user) => [user.name, user.id]),
    ),
  };
}
