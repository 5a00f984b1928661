// Slash commands, buttons, modals and shortcuts: the payloads an app gets for what a person did, and
// what becomes of the app's acknowledgement.

import { type Fields, isFields } from '../fields.ts';
import { ApiError, type SlackApp, textArg } from './api-call.ts';
import type { EphemeralNote, SlackChannel, SlackMessage, SlackUser, SlackView } from './model.ts';
import { escapedAgain, messageShape, noteShape } from './shapes.ts';
import { addView, checkedView, replaceView, viewChanged, viewJson } from './view-methods.ts';

/** What a person sees happen after an interaction. */
export type Interacted =
  | { readonly kind: 'acked' }
  | { readonly kind: 'failed'; readonly says: string }
  | { readonly kind: 'errors'; readonly errors: Readonly<Record<string, string>> };

function deliver(
  app: SlackApp,
  type: 'slash_commands' | 'interactive',
  acceptsResponse: boolean,
  payload: Fields,
  acked: (answer: Fields) => Interacted,
  failed: (reason: 'no-socket' | 'timeout') => Interacted,
): Promise<Interacted> {
  return new Promise((resolve) => {
    app.sockets.deliver({
      type,
      payload,
      acceptsResponse,
      isRepeated: false,
      onAck: (answer) => resolve(acked(answer)),
      onFailure: (reason) => resolve(failed(reason)),
    });
  });
}

function personShape(user: SlackUser): Fields {
  return { id: user.id, username: user.name, name: user.name, team_id: user.teamId };
}

function common(app: SlackApp, user: SlackUser): Fields {
  return {
    api_app_id: app.shapes.appId,
    team: { id: app.workspace.teamId, domain: 'acme' },
    enterprise: null,
    is_enterprise_install: false,
    user: personShape(user),
    token: 'deprecated',
    trigger_id: app.interactivity.mintTrigger(user.id),
  };
}

function channelNameFor(channel: SlackChannel): string {
  if (channel.kind === 'private') return 'privategroup';
  return channel.kind === 'im' ? 'directmessage' : channel.name;
}

/** A slash command carries no thread: there is no way to say one. */
export function slashCommand(
  app: SlackApp,
  request: {
    readonly user: SlackUser;
    readonly channel: SlackChannel;
    readonly command: string;
    readonly text: string;
  },
): Promise<Interacted> {
  const { channel, command, text, user } = request;
  const target = {
    channel: channel.id,
    user: user.id,
    threadTs: undefined,
    messageTs: undefined,
    noteTs: undefined,
  };
  const path = app.interactivity.mintResponsePath('commands', target);
  const payload = {
    token: 'deprecated',
    team_id: app.workspace.teamId,
    team_domain: 'acme',
    channel_id: channel.id,
    channel_name: channelNameFor(channel),
    user_id: user.id,
    user_name: user.name,
    command,
    text,
    api_app_id: app.shapes.appId,
    is_enterprise_install: 'false',
    response_url: `${app.core.baseUrl()}${path}`,
    trigger_id: app.interactivity.mintTrigger(user.id),
  };
  const acked = (answer: Fields): Interacted => {
    if (textArg(answer, 'text') !== undefined || answer['blocks'] !== undefined)
      respond(app, { ...target, body: answer });
    return { kind: 'acked' };
  };
  const failed = (reason: 'no-socket' | 'timeout'): Interacted => {
    const says =
      reason === 'timeout'
        ? `${command} failed with the error "operation_timeout"`
        : `${command} failed because the app did not respond`;
    app.workspace.note(
      {
        channel: channel.id,
        user: user.id,
        threadTs: undefined,
        text: says,
        blocks: undefined,
        fromSlackbot: true,
      },
      channel,
    );
    return { kind: 'failed', says };
  };
  return deliver(app, 'slash_commands', true, payload, acked, failed);
}

export interface ClickRequest {
  readonly user: SlackUser;
  readonly channel: SlackChannel;
  readonly on:
    | { readonly kind: 'message'; readonly message: SlackMessage }
    | { readonly kind: 'note'; readonly note: EphemeralNote };
  /** The element as it stands in the blocks. */
  readonly element: Fields;
  readonly blockId: string;
  /** Chosen option of a select menu. */
  readonly option?: string;
}

export function clickElement(app: SlackApp, request: ClickRequest): Promise<Interacted> {
  const { channel, on, user } = request;
  const [ts, threadTs] =
    on.kind === 'message' ? [on.message.ts, on.message.threadTs] : [on.note.ts, on.note.threadTs];
  const path = app.interactivity.mintResponsePath('actions', {
    channel: channel.id,
    user: user.id,
    threadTs,
    messageTs: on.kind === 'message' ? ts : undefined,
    noteTs: on.kind === 'note' ? ts : undefined,
  });
  const shown =
    on.kind === 'message'
      ? messageShape(app.shapes, on.message, 'type-only')
      : noteShape(app.shapes, on.note);
  const payload = {
    type: 'block_actions',
    ...common(app, user),
    container: {
      type: 'message',
      message_ts: ts,
      channel_id: channel.id,
      is_ephemeral: on.kind === 'note',
      ...(threadTs === undefined ? {} : { thread_ts: threadTs }),
    },
    channel: { id: channel.id, name: channelNameFor(channel) },
    ...(on.kind === 'message' ? { message: escapedAgain(shown) } : {}),
    state: { values: {} },
    response_url: `${app.core.baseUrl()}${path}`,
    actions: [actionShape(app, request)],
  };
  return deliver(
    app,
    'interactive',
    false,
    payload,
    () => ({ kind: 'acked' }),
    () => ({ kind: 'failed', says: 'This app did not respond. Try again later.' }),
  );
}

function actionShape(app: SlackApp, request: ClickRequest): Fields {
  const { element, option } = request;
  const isButton = element['type'] === 'button';
  return {
    type: element['type'],
    action_id: element['action_id'] ?? '',
    block_id: request.blockId,
    action_ts: app.workspace.nowTs(),
    ...(isButton ? { text: escapedAgain(element['text']) } : {}),
    ...(isButton && element['value'] !== undefined ? { value: element['value'] } : {}),
    ...(isButton && element['style'] !== undefined ? { style: element['style'] } : {}),
    ...(isButton ? {} : { selected_option: { value: option ?? '' } }),
  };
}

export function messageShortcut(
  app: SlackApp,
  request: {
    readonly user: SlackUser;
    readonly channel: SlackChannel;
    readonly message: SlackMessage;
    readonly callbackId: string;
  },
): Promise<Interacted> {
  const { channel, message, user } = request;
  const path = app.interactivity.mintResponsePath('app', {
    channel: channel.id,
    user: user.id,
    threadTs: message.threadTs,
    messageTs: undefined,
    noteTs: undefined,
  });
  const payload = {
    type: 'message_action',
    callback_id: request.callbackId,
    ...common(app, user),
    response_url: `${app.core.baseUrl()}${path}`,
    message: messageShape(app.shapes, message, 'type-only'),
    message_ts: message.ts,
    channel: { id: channel.id, name: channelNameFor(channel) },
    action_ts: app.workspace.nowTs(),
  };
  return deliver(
    app,
    'interactive',
    false,
    payload,
    () => ({ kind: 'acked' }),
    () => ({ kind: 'failed', says: 'This app did not respond. Try again later.' }),
  );
}

/** Submits a modal; `values` by block id or action id, else by the label a person reads. */
export function submitView(
  app: SlackApp,
  user: SlackUser,
  view: SlackView,
  values: Readonly<Record<string, string>>,
): Promise<Interacted> {
  const state = stateValues(view, values);
  const missing = missingInputs(view, state);
  if (Object.keys(missing).length > 0) return Promise.resolve({ kind: 'errors', errors: missing });
  const payload = {
    type: 'view_submission',
    ...common(app, user),
    view: viewJson(app, view, state),
    response_urls: [],
  };
  return deliver(
    app,
    'interactive',
    true,
    payload,
    (answer) => viewAnswered(app, view, answer),
    () => ({ kind: 'failed', says: 'We had some trouble connecting. Try again?' }),
  );
}

export async function closeView(
  app: SlackApp,
  user: SlackUser,
  view: SlackView,
): Promise<Interacted> {
  dismiss(app, view);
  if (view.view['notify_on_close'] !== true) return { kind: 'acked' };
  const payload = {
    type: 'view_closed',
    ...common(app, user),
    view: viewJson(app, view),
    is_cleared: false,
  };
  return deliver(
    app,
    'interactive',
    false,
    payload,
    () => ({ kind: 'acked' }),
    () => ({ kind: 'failed', says: 'This app did not respond. Try again later.' }),
  );
}

interface InputBlock {
  readonly blockId: string;
  readonly element: Fields;
  readonly label: string;
  readonly isOptional: boolean;
}

function inputsOf(view: SlackView): readonly InputBlock[] {
  const blocks: readonly unknown[] = Array.isArray(view.view['blocks']) ? view.view['blocks'] : [];
  return blocks.filter(isFields).flatMap((block) => {
    const element = block['element'];
    if (block['type'] !== 'input' || !isFields(element)) return [];
    const label = isFields(block['label']) ? textArg(block['label'], 'text') : undefined;
    return [
      {
        blockId: textArg(block, 'block_id') ?? '',
        element,
        label: label ?? '',
        isOptional: block['optional'] === true,
      },
    ];
  });
}

function stateValues(
  view: SlackView,
  values: Readonly<Record<string, string>>,
): Record<string, Fields> {
  const state: Record<string, Fields> = {};
  for (const input of inputsOf(view)) {
    const actionId = textArg(input.element, 'action_id') ?? '';
    const given =
      values[input.blockId] ??
      values[actionId] ??
      values[input.label] ??
      textArg(input.element, 'initial_value');
    const type = input.element['type'];
    // An empty box is null, not an empty text.
    const value = given === undefined || given === '' ? null : given;
    state[input.blockId] = {
      [actionId]:
        type === 'plain_text_input'
          ? { type, value }
          : { type, selected_option: value === null ? null : { value } },
    };
  }
  return state;
}

function missingInputs(
  view: SlackView,
  state: Readonly<Record<string, Fields>>,
): Record<string, string> {
  const missing: Record<string, string> = {};
  for (const input of inputsOf(view)) {
    if (input.isOptional) continue;
    const [value] = Object.values(state[input.blockId] ?? {}).filter(isFields);
    const isEmpty = (value?.['value'] ?? value?.['selected_option'] ?? null) === null;
    if (isEmpty) missing[input.blockId] = 'Please complete this required field.';
  }
  return missing;
}

/** `response_action` of the acknowledgement: nothing closes the view. */
function viewAnswered(app: SlackApp, view: SlackView, answer: Fields): Interacted {
  try {
    switch (answer['response_action']) {
      case 'errors':
        return withErrors(app, view, answer);
      case 'update':
        replaceView(app, view, checkedView(viewField(answer), app));
        return { kind: 'acked' };
      case 'push':
        addView(app, view.user, checkedView(viewField(answer), app), view);
        return { kind: 'acked' };
      case 'clear':
        for (const open of app.interactivity.stackOf(view.user)) dismiss(app, open);
        return { kind: 'acked' };
      default:
        dismiss(app, view);
        return { kind: 'acked' };
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return refusedAnswer(app, error.code);
  }
}

function viewField(answer: Fields): Fields | undefined {
  return isFields(answer['view']) ? answer['view'] : undefined;
}

function withErrors(app: SlackApp, view: SlackView, answer: Fields): Interacted {
  const raw = answer['errors'];
  const known = new Set(inputsOf(view).map((input) => input.blockId));
  const entries = isFields(raw) ? Object.entries(raw) : [];
  if (entries.length === 0 || entries.some(([block]) => !known.has(block)))
    return refusedAnswer(app, 'errors name no input block of the view');
  view.errors = Object.fromEntries(entries.map(([block, text]) => [block, String(text)]));
  viewChanged(app, view, 'updated');
  return { kind: 'errors', errors: view.errors };
}

function refusedAnswer(app: SlackApp, detail: string): Interacted {
  app.core.violations.add({
    platform: 'slack',
    rule: 'view-answer-invalid',
    severity: 'refused',
    target: 'view_submission',
    detail,
  });
  return { kind: 'failed', says: 'We had some trouble connecting. Try again?' };
}

function dismiss(app: SlackApp, view: SlackView): void {
  app.interactivity.views.delete(view.id);
  viewChanged(app, view, 'closed');
}

/** What a response URL, or the acknowledgement of a command, may make happen. */
export function respond(
  app: SlackApp,
  request: {
    readonly channel: string;
    readonly user: string;
    readonly threadTs: string | undefined;
    readonly messageTs: string | undefined;
    readonly noteTs: string | undefined;
    readonly body: Fields;
  },
): 'ok' | 'channel_not_found' | 'no_text' {
  const { body } = request;
  const channel = app.workspace.channels.get(request.channel);
  if (channel === undefined) return 'channel_not_found';
  const original = channel.messages.get(request.messageTs ?? '');
  if (body['delete_original'] === true) {
    if (original !== undefined) app.workspace.remove(original, original.user);
    forgetNote(app, request.noteTs);
    return 'ok';
  }
  const text = textArg(body, 'text') ?? '';
  const blocks = Array.isArray(body['blocks']) ? body['blocks'].filter(isFields) : undefined;
  if (text === '' && blocks === undefined) return 'no_text';
  if (body['replace_original'] === true && original !== undefined) {
    app.workspace.change(original, (stored) => {
      stored.text = text;
      stored.blocks = blocks;
    });
    return 'ok';
  }
  if (body['replace_original'] === true) forgetNote(app, request.noteTs);
  say(app, channel, { ...request, text, blocks });
  return 'ok';
}

function say(
  app: SlackApp,
  channel: SlackChannel,
  said: {
    readonly user: string;
    readonly threadTs: string | undefined;
    readonly text: string;
    readonly blocks: readonly Fields[] | undefined;
    readonly body: Fields;
  },
): void {
  const threadTs = textArg(said.body, 'thread_ts') ?? said.threadTs;
  if (said.body['response_type'] === 'in_channel') {
    app.workspace.post({
      channel,
      user: app.shapes.botUser,
      isFromApp: true,
      text: said.text,
      ...(said.blocks === undefined ? {} : { blocks: said.blocks }),
      ...(threadTs === undefined ? {} : { threadTs }),
    });
    return;
  }
  app.workspace.note(
    {
      channel: channel.id,
      user: said.user,
      threadTs,
      text: said.text,
      blocks: said.blocks,
      fromSlackbot: false,
    },
    channel,
  );
}

function forgetNote(app: SlackApp, ts: string | undefined): void {
  const index = app.workspace.notes.findIndex((note) => note.ts === ts);
  if (index !== -1) app.workspace.notes.splice(index, 1);
}
