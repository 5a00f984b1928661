// One client following one session. Bytes: from the journal, as far as the client has consumed, and
// past the bound a snapshot with the gap stated. Lines: the newest view, one at a time. Neither can
// slow the program or another client.

import { FRAME_HEADER_BYTES } from '../../base/frame-codec.ts';
import { encodeBulk, FRAME_OUTPUT, FRAME_VIEW, type HostEvent, unpackValue } from '../protocol.ts';
import type { Snapshot } from '../session-values.ts';
import type { Attached, HostSession } from './host-session.ts';

/** Unacknowledged bytes under way, and how far behind a client may be before it is moved on. */
const WINDOW_BYTES = 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const BULK_BYTES = FRAME_HEADER_BYTES + 12;

export interface Outlet {
  send(frame: Buffer): void;
  event(event: HostEvent): void;
}

export interface SessionViews {
  /** False when the session has no model, and so no view. */
  wantView(session: HostSession, fresh: boolean): boolean;
  snapshot(session: HostSession): Promise<Snapshot>;
}

export class LinesAttachment implements Attached {
  readonly want = 'lines';
  readonly session: HostSession;
  readonly handle: number;
  readonly #outlet: Outlet;
  readonly #views: SessionViews;
  #credit = true;
  #stale = false;
  #exitDue = false;

  constructor(session: HostSession, handle: number, outlet: Outlet, views: SessionViews) {
    this.session = session;
    this.handle = handle;
    this.#outlet = outlet;
    this.#views = views;
  }

  start(): void {
    if (this.session.exitShown) this.exited(this.session);
    else this.#views.wantView(this.session, true);
  }

  /** The client has taken a view and is ready for the next. */
  ack(): void {
    this.#credit = true;
    this.#views.wantView(this.session, this.#stale);
    this.#stale = false;
  }

  grew(): void {
    // Lines follow the model, not the journal.
  }

  view(payload: Uint8Array, offset: number): void {
    if (!this.#credit) {
      this.#stale = true;
      return;
    }
    this.#credit = false;
    this.#outlet.send(encodeBulk(FRAME_VIEW, this.handle, offset, payload));
    if (this.#exitDue && offset >= (this.session.record.exitOffset ?? 0)) this.#tellExit();
  }

  /** Told after the view that shows it: asked for now, so it cannot be an older one. */
  exited(session: HostSession): void {
    this.#exitDue = true;
    if (!this.#views.wantView(session, true)) this.#tellExit();
  }

  #tellExit(): void {
    this.#exitDue = false;
    this.#outlet.event({ t: 'state', handle: this.handle, state: this.session.state });
  }
}

export class BytesAttachment implements Attached {
  readonly want = 'bytes';
  readonly session: HostSession;
  readonly handle: number;
  readonly #outlet: Outlet;
  readonly #views: SessionViews;
  readonly #lossless: boolean;
  #sent: number;
  #acked: number;
  #skipping = false;
  #exitTold: 'no' | 'open' | 'closed' = 'no';
  #closed = false;

  constructor(options: {
    readonly session: HostSession;
    readonly handle: number;
    readonly from: number;
    readonly lossless: boolean;
    readonly outlet: Outlet;
    readonly views: SessionViews;
  }) {
    this.session = options.session;
    this.handle = options.handle;
    this.#sent = options.from;
    this.#acked = options.from;
    this.#lossless = options.lossless;
    this.#outlet = options.outlet;
    this.#views = options.views;
  }

  start(): void {
    this.grew();
  }

  /** Consumed up to `offset`: what was only received is not acknowledged. */
  ack(offset: number): void {
    if (offset > this.#acked && offset <= this.#sent) this.#acked = offset;
    this.grew();
  }

  grew(): void {
    if (this.#skipping || this.#closed) return;
    const { session } = this;
    const stuck = this.#sent - this.#acked >= WINDOW_BYTES;
    if (!stuck && !this.#lossless && session.length - this.#sent > WINDOW_BYTES) {
      this.#skip();
      return;
    }
    while (this.#sent < session.length && this.#sent - this.#acked < WINDOW_BYTES) {
      const sent = this.#sendChunk();
      if (sent === 0) {
        this.#skip();
        return;
      }
    }
    this.#tellExit();
  }

  view(): void {
    // Bytes need no views.
  }

  exited(): void {
    this.grew();
  }

  close(): void {
    this.#closed = true;
  }

  #sendChunk(): number {
    const { session } = this;
    const wanted = Math.min(CHUNK_BYTES, session.length - this.#sent);
    const frame = Buffer.allocUnsafe(BULK_BYTES + wanted);
    const got = session.journal.readInto(frame.subarray(BULK_BYTES), this.#sent, wanted);
    if (got === 0) return 0;
    frame.writeUInt32LE(1 + 12 + got, 0);
    frame[4] = FRAME_OUTPUT;
    frame.writeUInt32LE(this.handle, FRAME_HEADER_BYTES);
    frame.writeDoubleLE(this.#sent, FRAME_HEADER_BYTES + 4);
    this.#outlet.send(frame.subarray(0, BULK_BYTES + got));
    this.#sent += got;
    return got;
  }

  /** In-stream, after the last byte there was at the exit. */
  #tellExit(): void {
    const { record, state } = this.session;
    if (state.kind !== 'exited' || this.#sent < (record.exitOffset ?? 0)) return;
    const now = state.terminalOpen ? 'open' : 'closed';
    if (this.#exitTold === now) return;
    this.#exitTold = now;
    this.#outlet.event({ t: 'state', handle: this.handle, state });
  }

  #skip(): void {
    this.#skipping = true;
    this.#views.snapshot(this.session).then(
      (snapshot) => this.#skipTo(snapshot),
      () => this.#skipTo(undefined),
    );
  }

  /** Without a model there is nothing to redraw: the gap is stated, the bytes go on. */
  #skipTo(snapshot: Snapshot | undefined): void {
    this.#skipping = false;
    if (this.#closed) return;
    const { session, handle } = this;
    const to = snapshot?.offset ?? session.length;
    if (to > this.#sent) {
      const gap = { from: this.#sent, to };
      const shown = snapshot ?? { offset: to, ...session.size, ansi: '', title: '' };
      this.#outlet.event({ t: 'skip', handle, to, snapshot: shown, gap });
      this.#sent = to;
      this.#acked = to;
    }
    while (this.#sent < session.length && this.#sent - this.#acked < WINDOW_BYTES) {
      if (this.#sendChunk() === 0) break;
    }
    this.#tellExit();
  }
}

/** A snapshot as the model packed it. */
export function unpackSnapshot(payload: Uint8Array): Snapshot {
  return unpackValue(payload) as Snapshot;
}
