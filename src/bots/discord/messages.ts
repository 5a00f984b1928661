// Reading Discord's pages: the message of a row in doubt (DELIVERY LOOK), and what people wrote
// while nobody listened. Reads only.

import type { Clock } from '../../base/clock.ts';
import type { Found, Inbound, Outcome, ThreadRoot } from '../chat-platform.ts';
import { type Fields, fieldsOf, listField, numberField, textField } from '../fields.ts';
import { type DecodeContext, decodeMessage, SILENT_FLAG } from './decode.ts';
import type { Places } from './places.ts';
import type { DiscordRest } from './rest.ts';
import { compareSnowflakes, snowflakeAt } from './snowflake.ts';

/** As much as one call gives. */
const PAGE = 100;
/** Of one thread: what is older is in the thread for everybody to read. */
const PAGES_MAX = 10;
/** Without an anchor a search starts this long before the post was sent. */
const BEFORE_MS = 60_000;
/** Waiting for limits ends a catch-up after this long; the next one goes on from the claims. */
const WAITS_TOTAL_MS = 10 * 60_000;

/** The id Discord's route wants: a thread is a channel. */
export function channelOf(place: ThreadRoot): string {
  return place.root === '' ? place.channel : place.root;
}

type ReadPage = (channel: string, after: string) => Promise<Outcome<readonly Fields[]>>;

/** Messages after `after`, oldest first. */
function reader(rest: DiscordRest): ReadPage {
  return async (channel, after) => {
    const answer = await rest.list(`/channels/${channel}/messages`, {
      after,
      limit: String(PAGE),
    });
    if (answer.kind !== 'ok') return answer;
    const sorted = [...answer.value].sort((a, b) =>
      compareSnowflakes(textField(a, 'id') ?? '', textField(b, 'id') ?? ''),
    );
    return { kind: 'ok', value: sorted };
  };
}

export interface FindRequest {
  readonly place: ThreadRoot;
  readonly anchor: string | undefined;
  readonly sentAtPlatformMs: number;
  readonly knownIds: ReadonlySet<string>;
}

export type FoundMessage =
  | { readonly kind: 'found'; readonly message: Fields }
  | Exclude<Found, { kind: 'found' }>;

/**
 * Discord does not return the nonce: the message of the row in doubt is the first of ours after the
 * anchor that belongs to no other row. One call in flight per thread makes it at most one.
 */
export async function findUnclaimed(
  request: FindRequest,
  ourUserId: string,
  rest: DiscordRest,
): Promise<FoundMessage> {
  const read = reader(rest);
  const channel = channelOf(request.place);
  let after =
    request.anchor ??
    (request.place.root === ''
      ? snowflakeAt(request.sentAtPlatformMs - BEFORE_MS)
      : request.place.root);
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await read(channel, after);
    if (page.kind !== 'ok') return { kind: 'unknown', detail: page.detail };
    const message = page.value.find(
      (one) => isRowLike(one, ourUserId) && !request.knownIds.has(textField(one, 'id') ?? ''),
    );
    if (message !== undefined) return { kind: 'found', message };
    const last = textField(page.value.at(-1) ?? {}, 'id');
    if (page.value.length < PAGE || last === undefined) return { kind: 'none' };
    after = last;
  }
  return { kind: 'unknown', detail: 'more messages than could be read' };
}

/** Posted by us as an ordinary message: no answer to an interaction, no word to one person. */
function isRowLike(message: Fields, ourUserId: string): boolean {
  if (textField(fieldsOf(message['author']), 'id') !== ourUserId) return false;
  if (message['type'] !== 0 && message['type'] !== 19) return false;
  if (((numberField(message, 'flags') ?? 0) & SILENT_FLAG) !== 0) return false;
  return (
    textField(message, 'webhook_id') === undefined &&
    !isPresent(message['interaction_metadata']) &&
    !isPresent(message['interaction'])
  );
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

export interface CatchUpOptions {
  readonly rest: DiscordRest;
  readonly clock: Clock;
  readonly places: Places;
  readonly context: DecodeContext;
  /** Ends a wait: the adapter is stopping. */
  readonly signal: AbortSignal;
  /** The author with roles: a page has none. Undefined: not a member any more. */
  readonly member: (userId: string) => Promise<{ roles: readonly string[] } | undefined>;
}

interface Wanted {
  readonly place: ThreadRoot;
  readonly sinceMessageId: string | undefined;
}

type Failed = Exclude<Outcome<never>, { kind: 'ok' }>;

/** Reads what is new in `wanted`, oldest first. */
export async function catchUp(
  wanted: readonly Wanted[],
  options: CatchUpOptions,
): Promise<Outcome<readonly Inbound[]>> {
  const read = patient(reader(options.rest), options);
  const acts: Inbound[] = [];
  for (const one of wanted) {
    if (!mayHaveMore(one, options.places)) continue;
    const failed = await catchUpPlace(one, read, options, acts);
    if (failed !== undefined) return failed;
  }
  acts.sort((a, b) => compareSnowflakes(idOf(a), idOf(b)));
  return { kind: 'ok', value: acts };
}

function idOf(act: Inbound): string {
  return 'messageId' in act ? (act.messageId ?? '') : '';
}

/** The gateway's READY told the newest message of every active thread. */
function mayHaveMore({ place, sinceMessageId }: Wanted, places: Places): boolean {
  const last = places.get(channelOf(place))?.lastMessageId;
  if (last === undefined || sinceMessageId === undefined) return true;
  return compareSnowflakes(last, sinceMessageId) > 0;
}

async function catchUpPlace(
  { place, sinceMessageId }: Wanted,
  read: ReadPage,
  options: CatchUpOptions,
  acts: Inbound[],
): Promise<Failed | undefined> {
  let after = sinceMessageId ?? channelOf(place);
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await read(channelOf(place), after);
    if (page.kind !== 'ok') return isAboutThePlace(page) ? undefined : page;
    acts.push(...(await decodePage(page.value, place, options)));
    const last = textField(page.value.at(-1) ?? {}, 'id');
    if (page.value.length < PAGE || last === undefined) return undefined;
    after = last;
  }
  return undefined;
}

async function decodePage(
  page: readonly Fields[],
  place: ThreadRoot,
  options: CatchUpOptions,
): Promise<readonly Inbound[]> {
  const acts: Inbound[] = [];
  for (const message of page) {
    const act = await decodeWithMember(message, place, options);
    if (act !== undefined) acts.push(act);
  }
  return acts;
}

async function decodeWithMember(
  message: Fields,
  place: ThreadRoot,
  options: CatchUpOptions,
): Promise<Inbound | undefined> {
  const decoded = decodeMessage(message, place, options.context);
  if (decoded?.kind !== 'message') return undefined;
  if (decoded.author.isBot) return decoded;
  const member = await options.member(decoded.author.id);
  const author =
    member === undefined
      ? { ...decoded.author, space: undefined }
      : { ...decoded.author, roles: member.roles };
  return { ...decoded, author };
}

function isAboutThePlace(failed: Failed): boolean {
  if (failed.kind === 'gone') return true;
  return (
    failed.kind === 'refused' &&
    (failed.because === 'place-gone' || failed.because === 'not-permitted')
  );
}

/** Waits limits out. */
function patient(
  read: ReadPage,
  { clock, signal }: Pick<CatchUpOptions, 'clock' | 'signal'>,
): ReadPage {
  let leftMs = WAITS_TOTAL_MS;
  return async (channel, after) => {
    for (;;) {
      const page = await read(channel, after);
      if (page.kind !== 'refused' || page.because !== 'rate-limited') return page;
      const waitMs = Math.max(page.retryAfterMs ?? 5_000, 50);
      if (waitMs > leftMs) return page;
      leftMs -= Math.max(waitMs, 1_000);
      try {
        await clock.sleep(waitMs, signal);
      } catch {
        return page;
      }
    }
  };
}

/** Attachments of a message, by id. */
export function attachmentOf(message: Fields, id: string): Fields | undefined {
  return listField(message, 'attachments')
    .map(fieldsOf)
    .find((file) => textField(file, 'id') === id);
}
