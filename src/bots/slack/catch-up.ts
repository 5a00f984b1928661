// What people wrote while nobody listened: one page of history per channel, and the replies of bound
// threads that may be newer than what was claimed. Reads only; a limit is waited out, so that many
// threads are caught up in one call, slowly.

import type { Clock } from '../../base/clock.ts';
import type { Inbound, Outcome, ThreadRoot } from '../chat-platform.ts';
import { type Fields, textField } from '../fields.ts';
import { type DecodeContext, decodeMessage } from './decode.ts';
import { type Page, readPage } from './pages.ts';
import type { Call } from './people.ts';

export interface Wanted {
  readonly place: ThreadRoot;
  readonly sinceMessageId: string | undefined;
}

export interface CatchUpOptions {
  readonly read: Call;
  readonly clock: Clock;
  readonly context: DecodeContext;
  /** Ends a wait: the adapter is stopping. */
  readonly signal: AbortSignal;
  /** Waits for names, within bounds. */
  readonly warm: (userIds: readonly string[]) => Promise<void>;
}

/** As much as one call gives. */
const PAGE = 200;
/** Of one thread: what is older is in the thread for everybody to read. */
const PAGES_MAX = 5;
/** Waiting for limits ends the catch-up after this long; the next one goes on from the claims. */
const WAITS_TOTAL_MS = 10 * 60_000;

/** Reads what is new in `wanted`, oldest first. */
export async function catchUp(
  wanted: readonly Wanted[],
  options: CatchUpOptions,
): Promise<Outcome<readonly Inbound[]>> {
  const reader = new PatientReader(options);
  const found: Found[] = [];
  const byChannel = new Map<string, Wanted[]>();
  for (const one of wanted) {
    byChannel.set(one.place.channel, [...(byChannel.get(one.place.channel) ?? []), one]);
  }
  for (const [channel, places] of byChannel) {
    const outcome = await catchUpChannel(channel, places, reader, found);
    if (outcome !== undefined) return outcome;
  }
  const authors = found.map(({ message }) => textField(message, 'user') ?? '');
  await options.warm([...new Set(authors.filter((id) => id !== ''))]);
  const acts = found
    .sort((a, b) => compareTs(a.message, b.message))
    .flatMap(({ channel, message }) => {
      const decoded = decodeMessage(message, channel, undefined, options.context);
      return decoded !== undefined && (decoded.kind === 'message' || decoded.kind === 'own-message')
        ? [decoded]
        : [];
    });
  return { kind: 'ok', value: acts };
}

interface Found {
  readonly channel: string;
  readonly message: Fields;
}

type Failed = Exclude<Outcome<never>, { kind: 'ok' }>;

async function catchUpChannel(
  channel: string,
  places: readonly Wanted[],
  reader: PatientReader,
  found: Found[],
): Promise<Failed | undefined> {
  const history = await reader.page('conversations.history', { channel, limit: PAGE });
  if (history.kind !== 'ok') {
    // A channel we were put out of is not a reason to leave the others unread.
    return isAboutThePlace(history) ? undefined : history;
  }
  const page = history.value.messages;
  for (const { place, sinceMessageId } of places) {
    if (place.root === '') {
      const newer = page.filter((message) => isNewer(message, sinceMessageId));
      found.push(...newer.filter(isTopLevel).map((message) => ({ channel, message })));
      continue;
    }
    const root = page.find((message) => message['ts'] === place.root);
    const latest = root === undefined ? undefined : (textField(root, 'latest_reply') ?? '');
    if (latest !== undefined && latest <= (sinceMessageId ?? '')) continue;
    const failed = await readThread({ channel, place, sinceMessageId }, reader, found);
    if (failed !== undefined) return failed;
  }
  return undefined;
}

async function readThread(
  thread: { channel: string; place: ThreadRoot; sinceMessageId: string | undefined },
  reader: PatientReader,
  found: Found[],
): Promise<Failed | undefined> {
  const { channel, place, sinceMessageId } = thread;
  let cursor: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const replies = await reader.page('conversations.replies', {
      channel,
      ts: place.root,
      oldest: sinceMessageId ?? place.root,
      limit: PAGE,
      include_all_metadata: true,
      ...(cursor === undefined ? {} : { cursor }),
    });
    if (replies.kind !== 'ok') return isAboutThePlace(replies) ? undefined : replies;
    const newer = replies.value.messages.filter(
      (message) => message['ts'] !== place.root && isNewer(message, sinceMessageId),
    );
    found.push(...newer.map((message) => ({ channel, message })));
    cursor = replies.value.cursor;
    if (cursor === undefined) return undefined;
  }
  return undefined;
}

function isAboutThePlace(failed: Failed): boolean {
  if (failed.kind === 'gone') return true;
  return (
    failed.kind === 'refused' &&
    (failed.because === 'place-gone' || failed.because === 'not-permitted')
  );
}

function isNewer(message: Fields, since: string | undefined): boolean {
  const ts = textField(message, 'ts');
  return ts !== undefined && (since === undefined || ts > since);
}

function isTopLevel(message: Fields): boolean {
  return message['thread_ts'] === undefined || message['thread_ts'] === message['ts'];
}

function compareTs(a: Fields, b: Fields): number {
  const left = textField(a, 'ts') ?? '';
  const right = textField(b, 'ts') ?? '';
  return left < right ? -1 : Number(left > right);
}

/** Waits limits out. */
class PatientReader {
  readonly #options: CatchUpOptions;
  #waitLeftMs = WAITS_TOTAL_MS;

  constructor(options: CatchUpOptions) {
    this.#options = options;
  }

  async page(
    method: 'conversations.history' | 'conversations.replies',
    args: Record<string, unknown>,
  ): Promise<Outcome<Page>> {
    for (;;) {
      const page = await readPage(this.#options.read, method, args);
      if (page.kind === 'ok') return page;
      const waitMs = limitOf(page);
      if (waitMs === undefined || waitMs > this.#waitLeftMs) return page;
      this.#waitLeftMs -= Math.max(waitMs, 1_000);
      try {
        await this.#options.clock.sleep(waitMs, this.#options.signal);
      } catch {
        return page;
      }
    }
  }
}

function limitOf(failed: Failed): number | undefined {
  if (failed.kind !== 'refused' || failed.because !== 'rate-limited') return undefined;
  return failed.retryAfterMs ?? 30_000;
}
