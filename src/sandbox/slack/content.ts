// The content of a message a bot sends: checked, warned about, cut as Slack would do it.

import type { Fields } from '../fields.ts';
import {
  type ApiCall,
  ApiError,
  flagArg,
  jsonArg,
  objectArg,
  textArg,
  violate,
} from './api-call.ts';
import { checkBlocks, withBlockIds } from './blocks.ts';
import { bareLinks, hasUnescaped, pingsOf } from './escape.ts';
import type { Metadata } from './model.ts';
import { TEXT_MAX_UNITS, TEXT_SPLIT_UNITS } from './split-text.ts';

export interface Content {
  readonly text: string;
  readonly blocks: readonly Fields[] | undefined;
  readonly attachments: readonly Fields[] | undefined;
  readonly metadata: Metadata | undefined;
}

const MARKDOWN_MAX_UNITS = 12_000;
const ATTACHMENTS_MAX = 100;
/** Of the JSON of a payload; Slack's own number is undisclosed. */
const METADATA_MAX_UNITS = 8_000;

/** @throws {ApiError} as chat.postMessage and chat.update do. */
export function contentOf(call: ApiCall): Content {
  const { args } = call;
  const markdown = textArg(args, 'markdown_text');
  const text = textArg(args, 'text') ?? '';
  const blocks = blocksOf(call);
  const attachments = attachmentsOf(call);
  if (markdown !== undefined) {
    if (text !== '' || blocks !== undefined) throw new ApiError('markdown_text_conflict');
    if (markdown.length > MARKDOWN_MAX_UNITS) throw new ApiError('msg_too_long');
  }
  const said = markdown ?? text;
  const hasBlocks = blocks !== undefined && blocks.length > 0;
  if (said === '' && !hasBlocks && (attachments ?? []).length === 0) throw new ApiError('no_text');
  warnAboutText(call, said, hasBlocks);
  return { text: said, blocks, attachments, metadata: metadataOf(call) };
}

/** @throws {ApiError} msg_too_long: updates and ephemerals are never split. */
export function refuseLongText(text: string): void {
  if (text.length > TEXT_SPLIT_UNITS) throw new ApiError('msg_too_long');
}

/** Cuts at 40,000 with the warning Slack gives. */
export function truncated(call: ApiCall, text: string): string {
  if (text.length <= TEXT_MAX_UNITS) return text;
  call.warnings.push('message_truncated');
  violate(call, 'text-truncated', 'mangled', `${text.length} units`);
  return text.slice(0, TEXT_MAX_UNITS);
}

function blocksOf(call: ApiCall): readonly Fields[] | undefined {
  const raw = call.args['blocks'];
  if (raw === undefined || raw === '') return undefined;
  const verdict = checkBlocks(raw);
  if (verdict.kind === 'error') {
    throw new ApiError(
      verdict.error,
      verdict.messages.length === 0 ? {} : { response_metadata: { messages: verdict.messages } },
    );
  }
  return withBlockIds(verdict.blocks, () => call.app.workspace.mint('b').slice(0, 5));
}

function attachmentsOf(call: ApiCall): readonly Fields[] | undefined {
  const raw = call.args['attachments'];
  if (raw === undefined || raw === '') return undefined;
  const parsed = jsonArg(call.args, 'attachments');
  if (!Array.isArray(parsed)) throw new ApiError('invalid_attachments');
  const items: readonly Fields[] = parsed;
  if (items.length > ATTACHMENTS_MAX) throw new ApiError('too_many_attachments');
  return items;
}

function metadataOf(call: ApiCall): Metadata | undefined {
  if (call.args['metadata'] === undefined || call.args['metadata'] === '') return undefined;
  const metadata = objectArg(call.args, 'metadata');
  const type = metadata?.['event_type'];
  const payload = metadata === undefined ? undefined : objectArg(metadata, 'event_payload');
  if (typeof type !== 'string' || payload === undefined)
    throw new ApiError('invalid_metadata_format');
  // Letters, digits and underscore only: a point loses the whole metadata.
  if (!/^[a-zA-Z0-9_]+$/.test(type)) throw new ApiError('invalid_metadata_format');
  if (JSON.stringify(payload).length > METADATA_MAX_UNITS) throw new ApiError('metadata_too_large');
  return { event_type: type, event_payload: payload };
}

/** With blocks the text is only the notification's: pings count, links and fences do not. */
function warnAboutText(call: ApiCall, text: string, hasBlocks: boolean): void {
  if (hasUnescaped(text))
    violate(call, 'text-unescaped', 'mangled', 'a raw &, < or > outside of control sequences');
  const broadcast = pingsOf(text).find((ping) => ping.startsWith('<!'));
  if (broadcast !== undefined) violate(call, 'broadcast-ping', 'warned', broadcast);
  if (flagArg(call.args, 'link_names') === true && /(^|\s)[@#]\w/.test(text))
    violate(call, 'link-names-ping', 'warned', 'link_names turns @name into a mention');
  if (hasBlocks) return;
  if (text.split('```').length % 2 === 0)
    violate(call, 'fence-unbalanced', 'mangled', 'an odd number of ``` fences');
  const unfurls =
    flagArg(call.args, 'unfurl_links') !== false || flagArg(call.args, 'unfurl_media') !== false;
  const link = bareLinks(text)[0];
  if (link !== undefined && unfurls && call.method === 'chat.postMessage')
    violate(
      call,
      'link-unfurls',
      'warned',
      'a bare link without unfurl_links and unfurl_media off',
    );
}
