// auth.test, apps.connections.open and the thread's status line.

import {
  type ApiCall,
  ApiError,
  type ApiHandler,
  memberChannelOf,
  textArg,
  violate,
} from './api-call.ts';
import { BOT_ID, BOT_USER } from './workspace.ts';

export const MISC_METHODS: Readonly<Record<string, ApiHandler>> = {
  'auth.test': (call) => ({
    url: 'https://acme.slack.com/',
    team: call.app.settings.teamName,
    user: call.app.shapes.botName,
    team_id: call.app.workspace.teamId,
    user_id: BOT_USER,
    bot_id: BOT_ID,
    app_id: call.app.shapes.appId,
    app_name: call.app.shapes.botName,
    is_enterprise_install: false,
  }),
  'apps.connections.open': (call) => {
    if (!call.app.sockets.isEnabled) throw new ApiError('link_disabled');
    return { url: call.app.sockets.mintUrl() };
  },
  'assistant.threads.setStatus': (call: ApiCall) => {
    const channel = memberChannelOf(call, 'channel_id');
    const threadTs = textArg(call.args, 'thread_ts') ?? '';
    const root = channel.messages.get(threadTs);
    if (root === undefined) throw new ApiError('thread_not_found');
    if (root.threadTs !== undefined && root.threadTs !== root.ts)
      violate(call, 'thread-ts-not-root', 'warned', 'thread_ts names a reply');
    call.app.core.changes.push({
      platform: 'slack',
      type: 'status',
      data: { channel: channel.id, ts: root.ts, status: textArg(call.args, 'status') ?? '' },
    });
    return {};
  },
};
