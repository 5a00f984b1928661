// Turns what changed in the workspace into Events API deliveries, for what the app subscribed to and
// where it is a member, and into entries of the page's change feed.

import { mintId } from '../../base/ids.ts';
import type { Fields } from '../fields.ts';
import type { SlackApp } from './api-call.ts';
import type { ChannelKind, SlackChannel, SlackMessage } from './model.ts';
import { messageView, noteView } from './read-back.ts';
import { channelShape, messageShape } from './shapes.ts';
import { BOT_USER, type WorkspaceChange } from './workspace.ts';

const SUBSCRIPTION: Readonly<Record<ChannelKind, string>> = {
  public: 'message.channels',
  private: 'message.groups',
  im: 'message.im',
  mpim: 'message.mpim',
};
const CHANNEL_TYPE: Readonly<Record<ChannelKind, string>> = {
  public: 'channel',
  private: 'group',
  im: 'im',
  mpim: 'mpim',
};

export interface Publisher {
  readonly app: SlackApp;
  readonly botEvents: readonly string[];
  readonly metadataDeclared: boolean;
}

/** Everything that follows from one change. */
export function publish(publisher: Publisher, change: WorkspaceChange): void {
  tellPage(publisher.app, change);
  switch (change.kind) {
    case 'posted':
      publishPosted(publisher, change.message);
      return;
    case 'changed':
    case 'touched':
      publishMessage(publisher, change.message.channel, {
        subtype: 'message_changed',
        hidden: true,
        message: shape(publisher, change.message),
        previous_message: shape(publisher, change.before),
        ts: publisher.app.workspace.nowTs(),
      });
      return;
    case 'deleted':
      publishMessage(publisher, change.message.channel, {
        subtype: 'message_deleted',
        hidden: true,
        deleted_ts: change.message.ts,
        previous_message: shape(publisher, change.message),
        ts: publisher.app.workspace.nowTs(),
      });
      return;
    case 'reaction':
      publishReaction(publisher, change);
      return;
    case 'file-shared':
      publishEvent(publisher, 'file_shared', change.message.channel, {
        file_id: change.file.id,
        user_id: change.file.user,
        file: { id: change.file.id },
        channel_id: change.message.channel,
      });
      return;
    case 'joined':
      publishEvent(publisher, 'member_joined_channel', change.channel.id, {
        user: change.user,
        channel: change.channel.id,
        channel_type: change.channel.kind === 'public' ? 'C' : 'G',
        team: publisher.app.workspace.teamId,
      });
      return;
    case 'channel':
      publishChannel(publisher, change);
      return;
    case 'ephemeral': // Nobody but its reader hears of it.
    case 'left':
      return;
  }
}

function shape(publisher: Publisher, message: SlackMessage): Fields {
  const view = publisher.metadataDeclared ? 'full' : 'type-only';
  return messageShape(publisher.app.shapes, message, view);
}

function publishPosted(publisher: Publisher, message: SlackMessage): void {
  const channel = publisher.app.workspace.channels.get(message.channel);
  const root =
    message.isBroadcast && message.threadTs !== undefined
      ? channel?.messages.get(message.threadTs)
      : undefined;
  const event = {
    ...shape(publisher, message),
    ...(root === undefined ? {} : { root: shape(publisher, root) }),
  };
  publishMessage(publisher, message.channel, event);
  const mentionsApp = !message.isFromApp && message.text.includes(`<@${BOT_USER}>`);
  if (mentionsApp && channel !== undefined && channel.kind !== 'im')
    publishEvent(publisher, 'app_mention', message.channel, {
      ...event,
      type: 'app_mention',
      channel: message.channel,
    });
}

function publishMessage(publisher: Publisher, channelId: string, fields: Fields): void {
  const channel = publisher.app.workspace.channels.get(channelId);
  if (channel === undefined) return;
  publishEvent(publisher, SUBSCRIPTION[channel.kind], channelId, {
    ...fields,
    type: 'message',
    channel: channelId,
    channel_type: CHANNEL_TYPE[channel.kind],
    event_ts: fields['ts'],
  });
}

function publishReaction(
  publisher: Publisher,
  change: Extract<WorkspaceChange, { kind: 'reaction' }>,
): void {
  const name = change.on ? 'reaction_added' : 'reaction_removed';
  publishEvent(publisher, name, change.message.channel, {
    user: change.user,
    reaction: change.name,
    item_user: change.message.user,
    item: { type: 'message', channel: change.message.channel, ts: change.message.ts },
  });
}

function publishChannel(
  publisher: Publisher,
  change: Extract<WorkspaceChange, { kind: 'channel' }>,
): void {
  const { channel, event } = change;
  const fields =
    event === 'channel_rename'
      ? { channel: { id: channel.id, name: channel.name, created: 1_760_000_000 } }
      : event === 'channel_id_changed'
        ? { old_channel_id: change.previousId, new_channel_id: channel.id }
        : { channel: channel.id, user: 'U0ALICE001' };
  publishEvent(publisher, event, channel.id, fields);
}

/** `subscription` is the name in the manifest; the event's type is in `fields`, or the same name. */
function publishEvent(
  publisher: Publisher,
  subscription: string,
  channelId: string,
  fields: Fields,
): void {
  const { app } = publisher;
  const channel = app.workspace.channels.get(channelId);
  const isHeard = channel?.members.has(BOT_USER) === true;
  if (!isHeard || !publisher.botEvents.includes(subscription)) return;
  deliverEvent(app, channel, {
    type: subscription,
    event_ts: app.workspace.nowTs(),
    ...fields,
  });
}

function deliverEvent(app: SlackApp, channel: SlackChannel, event: Fields): void {
  app.sockets.deliver({
    type: 'events_api',
    acceptsResponse: false,
    isRepeated: true,
    payload: {
      token: 'deprecated',
      team_id: app.workspace.teamId,
      context_team_id: app.workspace.teamId,
      context_enterprise_id: null,
      api_app_id: app.shapes.appId,
      event,
      type: 'event_callback',
      event_id: `Ev${mintId(app.core.random, 10).toUpperCase()}`,
      event_time: Math.floor(app.core.clock.wallMs() / 1000),
      event_context: `4-${mintId(app.core.random, 20)}`,
      is_ext_shared_channel: channel.isExtShared,
      authorizations: [
        {
          enterprise_id: null,
          team_id: app.workspace.teamId,
          user_id: BOT_USER,
          is_bot: true,
          is_enterprise_install: false,
        },
      ],
    },
    onAck: () => undefined,
    onFailure: () => undefined,
  });
}

function tellPage(app: SlackApp, change: WorkspaceChange): void {
  const push = (type: string, data: unknown): void =>
    app.core.changes.push({ platform: 'slack', type, data });
  switch (change.kind) {
    case 'posted':
    case 'changed':
    case 'touched':
    case 'reaction':
    case 'file-shared':
      push('message', messageView(app, change.message));
      return;
    case 'deleted':
      push('message-deleted', { channel: change.message.channel, ts: change.message.ts });
      return;
    case 'ephemeral':
      push('ephemeral', noteView(app, change.note));
      return;
    case 'joined':
    case 'left':
    case 'channel':
      push('channel', {
        ...channelShape(app.shapes, change.channel),
        members: [...change.channel.members],
      });
  }
}
