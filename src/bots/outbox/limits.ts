// Numbers of the delivery, per platform, each with its reason.

import type { PlatformKind } from '../chat-platform.ts';

export interface DeliveryLimits {
  /** How long an abandoned request may still land: more than the HTTP time-out (5 s) and a margin. */
  readonly settleMs: number;
  /** The same for an edit: it is repeated after that, or a late one would have the last word. */
  readonly editSettleMs: number;
  /** How long a repeated post is trusted to answer with the first message. 0: not at all. */
  readonly repeatWindowMs: number;
  /** An upload is one request, in doubt as a whole (Discord); else it has an id before it shows. */
  readonly uploadIsOneRequest: boolean;
  /** An upload that has not appeared by then is discarded and made anew. */
  readonly uploadSettleMs: number;
  /** Edits of messages older than an hour are throttled (Discord 30046): rolled before. */
  readonly rollAfterMs: number;
  /** More new messages than this at once: head, last lines and a file instead. */
  readonly floodMessages: number;
  /** The same after an outage. */
  readonly catchUpMessages: number;
  /** Lines of a flood that stay readable in the thread. */
  readonly floodLastLines: number;
  /** A flood is over when nothing came for this long. */
  readonly floodQuietMs: number;
}

export function deliveryLimits(kind: PlatformKind, repeatWindowMs: number): DeliveryLimits {
  return {
    settleMs: 10_000,
    editSettleMs: 10_000,
    repeatWindowMs,
    uploadIsOneRequest: kind === 'discord',
    uploadSettleMs: 60_000,
    rollAfterMs: 50 * 60_000,
    // About 10,000 characters on either: what a person still scrolls through.
    floodMessages: kind === 'discord' ? 5 : 3,
    catchUpMessages: 2,
    floodLastLines: 15,
    floodQuietMs: 2_000,
  };
}
