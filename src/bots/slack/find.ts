// Finds the message of an outbox row by the metadata it carries, never by its text: DELIVERY LOOK.

import type { Found, RowName, ThreadRoot } from '../chat-platform.ts';
import { textField } from '../fields.ts';
import { isOwn, msToTs, rowOf } from './decode.ts';
import { readPage } from './pages.ts';
import type { Call } from './people.ts';

/** As much as Slack recommends for one page. */
const PAGE = 200;
/** 2,000 messages since the anchor: more in one outage is not a search any more. */
const PAGES_MAX = 10;
/** Without an anchor the search starts this long before the post was sent. */
const BEFORE_MS = 60_000;

export interface FindRequest {
  readonly place: ThreadRoot;
  readonly row: RowName;
  readonly anchor: string | undefined;
  readonly sentAtPlatformMs: number;
}

/** `none` only after every page was read. */
export async function findRow(
  request: FindRequest,
  us: { readonly botId: string; readonly botUserId: string },
  call: Call,
): Promise<Found> {
  const { place, row } = request;
  const method = place.root === '' ? 'conversations.history' : 'conversations.replies';
  const where = place.root === '' ? {} : { ts: place.root };
  const oldest = request.anchor ?? (place.root || msToTs(request.sentAtPlatformMs - BEFORE_MS));
  let cursor: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await readPage(call, method, {
      channel: place.channel,
      ...where,
      oldest,
      limit: PAGE,
      include_all_metadata: true,
      ...(cursor === undefined ? {} : { cursor }),
    });
    if (page.kind !== 'ok') return { kind: 'unknown', detail: page.detail };
    const message = page.value.messages.find((one) => isOwn(one, us) && names(one, row));
    const messageId = textField(message ?? {}, 'ts');
    if (messageId !== undefined) return { kind: 'found', messageId };
    cursor = page.value.cursor;
    if (cursor === undefined) return { kind: 'none' };
  }
  return { kind: 'unknown', detail: 'more messages than could be read' };
}

function names(message: Readonly<Record<string, unknown>>, row: RowName): boolean {
  const named = rowOf(message);
  return named?.b === row.b && named.s === row.s;
}
