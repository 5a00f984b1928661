// views.*: modals opened by a trigger within its three seconds, pushed, and updated by hash.

import type { Fields } from '../fields.ts';
import { isFields } from '../fields.ts';
import {
  type ApiCall,
  ApiError,
  type ApiHandler,
  objectArg,
  type SlackApp,
  textArg,
} from './api-call.ts';
import { checkBlocks, withBlockIds } from './blocks.ts';
import { VIEW_STACK_MAX } from './interactivity.ts';
import type { SlackView } from './model.ts';
import { BOT_ID } from './workspace.ts';

const VIEW_MAX_BYTES = 250_000;
const TITLE_MAX_UNITS = 24;
const PRIVATE_METADATA_MAX_UNITS = 3_000;

export const VIEW_METHODS: Readonly<Record<string, ApiHandler>> = {
  'views.open': (call) => openView(call, 'open'),
  'views.push': (call) => openView(call, 'push'),
  'views.update': updateView,
};

function openView(call: ApiCall, how: 'open' | 'push'): Fields {
  const { interactivity } = call.app;
  const view = checkedView(objectArg(call.args, 'view'), call.app);
  const trigger = interactivity.useTrigger(call.args['trigger_id']);
  if (trigger.kind === 'refused') throw new ApiError(trigger.error);
  const stack = interactivity.stackOf(trigger.user);
  if (how === 'push' && stack.length >= VIEW_STACK_MAX) throw new ApiError('push_limit_reached');
  const top = how === 'push' ? stack.at(-1) : undefined;
  if (how === 'push' && top === undefined) throw new ApiError('not_found');
  return { view: viewJson(call.app, addView(call.app, trigger.user, view, top)) };
}

/** A new view of `user`, on top of `top` or instead of everything open. */
export function addView(
  app: SlackApp,
  user: string,
  view: Fields,
  top: SlackView | undefined,
): SlackView {
  if (top === undefined)
    for (const old of app.interactivity.stackOf(user)) app.interactivity.views.delete(old.id);
  const id = app.workspace.mint('V');
  const stored: SlackView = {
    id,
    rootId: top?.rootId ?? id,
    previousId: top?.id,
    user,
    view,
    hash: app.interactivity.mintHash(),
    errors: {},
  };
  app.interactivity.openView(stored);
  viewChanged(app, stored, 'opened');
  return stored;
}

function updateView(call: ApiCall): Fields {
  const view = checkedView(objectArg(call.args, 'view'), call.app);
  const stored = storedViewOf(call);
  const hash = textArg(call.args, 'hash');
  if (hash !== undefined && hash !== stored.hash) throw new ApiError('hash_conflict');
  replaceView(call.app, stored, view);
  return { view: viewJson(call.app, stored) };
}

export function replaceView(app: SlackApp, stored: SlackView, view: Fields): void {
  stored.view = view;
  stored.errors = {};
  stored.hash = app.interactivity.mintHash();
  viewChanged(app, stored, 'updated');
}

function storedViewOf(call: ApiCall): SlackView {
  const { views } = call.app.interactivity;
  const byId = views.get(textArg(call.args, 'view_id') ?? '');
  const externalId = textArg(call.args, 'external_id');
  const found =
    byId ??
    [...views.values()].find(
      (view) => externalId !== undefined && view.view['external_id'] === externalId,
    );
  if (found === undefined) throw new ApiError('not_found');
  return found;
}

/**
 * Also for views that come in an acknowledgement.
 * @throws {ApiError} view_too_large, invalid_arguments with JSON pointers.
 */
export function checkedView(view: Fields | undefined, app: SlackApp): Fields {
  if (view === undefined) throw new ApiError('invalid_arguments');
  if (JSON.stringify(view).length > VIEW_MAX_BYTES) throw new ApiError('view_too_large');
  const messages: string[] = [];
  if (view['type'] !== 'modal') messages.push('[ERROR] unsupported type [json-pointer:/view/type]');
  const title = isFields(view['title']) ? view['title']['text'] : undefined;
  if (typeof title !== 'string' || title.length === 0)
    messages.push('[ERROR] missing required field: title [json-pointer:/view]');
  else if (title.length > TITLE_MAX_UNITS)
    messages.push(
      `[ERROR] must be less than ${TITLE_MAX_UNITS + 1} characters [json-pointer:/view/title/text]`,
    );
  const secret = view['private_metadata'];
  if (typeof secret === 'string' && secret.length > PRIVATE_METADATA_MAX_UNITS)
    messages.push(
      '[ERROR] must be less than 3001 characters [json-pointer:/view/private_metadata]',
    );
  const verdict = checkBlocks(view['blocks'], 'modal');
  if (verdict.kind === 'error') messages.push(...verdict.messages, `[ERROR] ${verdict.error}`);
  else if (hasInput(verdict.blocks) && !isFields(view['submit']))
    messages.push('[ERROR] missing required field: submit [json-pointer:/view]');
  if (messages.length > 0 || verdict.kind === 'error')
    throw new ApiError('invalid_arguments', { response_metadata: { messages } });
  return {
    ...view,
    blocks: withBlockIds(verdict.blocks, () => app.workspace.mint('b').slice(0, 5)),
  };
}

function hasInput(blocks: readonly Fields[]): boolean {
  return blocks.some((block) => block['type'] === 'input');
}

export function viewJson(app: SlackApp, view: SlackView, values: Fields = {}): Fields {
  return app.interactivity.viewShape(view, app.workspace.teamId, app.shapes.appId, BOT_ID, values);
}

export function viewChanged(
  app: SlackApp,
  view: SlackView,
  what: 'opened' | 'updated' | 'closed',
): void {
  app.core.changes.push({
    platform: 'slack',
    type: 'modal',
    data: { what, user: view.user, id: view.id, view: view.view, errors: view.errors },
  });
}
