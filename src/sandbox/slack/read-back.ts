// What tests and the page read: the stored workspace beside what a person sees of it.

import type { Fields } from '../fields.ts';
import type { SlackApp } from './api-call.ts';
import { pingsOf } from './escape.ts';
import type { EphemeralNote, SlackChannel, SlackMessage } from './model.ts';
import { type Names, type ShownPart, shownButtons, shownParts } from './render.ts';
import { channelShape, reactionsShape, userShape } from './shapes.ts';

export interface FileView {
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly mimetype: string;
  readonly size: number;
  /** Readable without a token, unlike url_private: for the page and for tests. */
  readonly viewUrl: string;
}

export interface MessageView {
  readonly channel: string;
  readonly ts: string;
  readonly thread_ts: string | undefined;
  readonly user: string;
  readonly user_name: string;
  readonly is_bot: boolean;
  readonly is_stranger: boolean;
  readonly subtype: string | undefined;
  /** As stored, escaped. */
  readonly text: string;
  readonly blocks: readonly Fields[] | undefined;
  readonly attachments: readonly Fields[] | undefined;
  readonly metadata: unknown;
  /** What a person sees, in order. */
  readonly parts: readonly ShownPart[];
  /** All of it as one text. */
  readonly shown: string;
  /** Lines inside preformatted blocks and fences only. */
  readonly pre: readonly string[];
  /** Lines outside of them. */
  readonly notes: readonly string[];
  readonly buttons: ReturnType<typeof shownButtons>;
  readonly files: readonly FileView[];
  readonly reactions: readonly Fields[];
  /** Shown as "(edited)". */
  readonly edited: boolean;
  /** How often its content was changed, shown or not. */
  readonly edit_count: number;
  readonly reply_count: number;
  readonly is_broadcast: boolean;
  readonly is_tombstone: boolean;
  readonly is_locked: boolean;
  /** Mentions in it that notify somebody. */
  readonly pings: readonly string[];
}

export function namesOf(app: SlackApp): Names {
  return {
    user: (id) => app.workspace.users.get(id)?.name ?? id,
    channel: (id) => app.workspace.channels.get(id)?.name ?? id,
  };
}

export function messageView(app: SlackApp, message: SlackMessage): MessageView {
  const parts = shownParts(message.text, message.blocks, namesOf(app));
  const user = app.workspace.users.get(message.user);
  const channel = app.workspace.channels.get(message.channel);
  return {
    channel: message.channel,
    ts: message.ts,
    thread_ts: message.threadTs,
    user: message.user,
    user_name: message.displayName ?? user?.name ?? message.user,
    is_bot: message.isFromApp,
    is_stranger: user?.isStranger === true,
    subtype: message.subtype,
    text: message.text,
    blocks: message.blocks,
    attachments: message.attachments,
    metadata: message.metadata,
    ...shownOf(parts),
    buttons: shownButtons(message.blocks),
    files: message.files.flatMap((id) => fileViews(app, id)),
    reactions: reactionsShape(message),
    edited: message.edited !== undefined,
    edit_count: message.editCount,
    reply_count: channel === undefined ? 0 : app.workspace.replies(channel, message.ts).length,
    is_broadcast: message.isBroadcast,
    is_tombstone: message.isTombstone,
    is_locked: message.isThreadLocked,
    pings: pingsOf(message.text),
  };
}

function shownOf(
  parts: readonly ShownPart[],
): Pick<MessageView, 'parts' | 'shown' | 'pre' | 'notes'> {
  const linesOf = (isPre: boolean): readonly string[] =>
    parts.filter((part) => (part.kind === 'pre') === isPre).flatMap((part) => part.lines);
  return {
    parts,
    shown: parts.flatMap((part) => part.lines).join('\n'),
    pre: linesOf(true),
    notes: linesOf(false),
  };
}

function fileViews(app: SlackApp, id: string): readonly FileView[] {
  const file = app.workspace.files.get(id);
  if (file === undefined || file.isDeleted) return [];
  return [
    {
      id,
      name: file.name,
      title: file.title,
      mimetype: file.mimetype,
      size: file.bytes.length,
      viewUrl: `${app.core.baseUrl()}/files/as-person/${id}/${encodeURIComponent(file.name)}`,
    },
  ];
}

export function noteView(app: SlackApp, note: EphemeralNote): Fields {
  const parts = shownParts(note.text, note.blocks, namesOf(app));
  return {
    channel: note.channel,
    ts: note.ts,
    thread_ts: note.threadTs,
    user: note.user,
    user_name: app.workspace.users.get(note.user)?.name ?? note.user,
    from: note.fromSlackbot ? 'slackbot' : 'app',
    text: note.text,
    blocks: note.blocks,
    ...shownOf(parts),
    buttons: shownButtons(note.blocks),
  };
}

export function threadView(
  app: SlackApp,
  channel: SlackChannel,
  rootTs: string,
): readonly MessageView[] {
  const root = channel.messages.get(rootTs);
  const replies = app.workspace.replies(channel, rootTs);
  return [...(root === undefined ? [] : [root]), ...replies].map((message) =>
    messageView(app, message),
  );
}

export function channelView(app: SlackApp, channel: SlackChannel): Fields {
  return {
    ...channelShape(app.shapes, channel),
    kind: channel.kind,
    posting: channel.posting,
    members: [...channel.members],
  };
}

export function workspaceView(app: SlackApp): Fields {
  const { workspace, interactivity } = app;
  return {
    teamId: workspace.teamId,
    teamName: app.settings.teamName,
    appId: app.shapes.appId,
    users: [...workspace.users.values()].map(userShape),
    channels: [...workspace.channels.values()].map((channel) => ({
      ...channelView(app, channel),
      messages: [...channel.messages.values()].map((message) => messageView(app, message)),
    })),
    ephemeral: workspace.notes.map((note) => noteView(app, note)),
    views: [...interactivity.views.values()].map((view) => ({
      id: view.id,
      user: view.user,
      view: view.view,
      errors: view.errors,
    })),
    sockets: app.sockets.describe(),
  };
}
