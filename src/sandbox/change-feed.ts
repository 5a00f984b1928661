// A numbered stream of everything that changed in either workspace, for the page: server-sent
// events at /control/events. A reader that comes back with its last number misses nothing that is
// still kept, and is told (`reset`) when something is not.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SandboxPlatform } from './platform.ts';
import { type Numbered, Ring } from './ring.ts';

export interface Change {
  readonly platform: SandboxPlatform | 'sandbox';
  /** What happened: `message`, `ephemeral`, `reaction`, `modal`, `channel`, `request`, … */
  readonly type: string;
  readonly data: unknown;
}

const KEPT = 2_000;
// A page that is not read for this long in bytes is cut off; it comes back by its last number.
const BACKLOG_MAX_BYTES = 4 * 1024 * 1024;

export class ChangeFeed {
  readonly #ring = new Ring<Change>(KEPT);
  readonly #readers = new Set<ServerResponse>();
  readonly #listeners = new Set<(change: Numbered<Change>) => void>();

  push(change: Change): void {
    const entry = this.#ring.push(change);
    for (const listener of this.#listeners) listener(entry);
    for (const reader of this.#readers) this.#write(reader, entry);
  }

  get lastSeq(): number {
    return this.#ring.lastSeq;
  }

  /** In-process subscription; returns its end. */
  subscribe(listener: (change: Numbered<Change>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** GET /control/events?after=N, or Last-Event-ID as browsers send it on reconnect. */
  serve(request: IncomingMessage, response: ServerResponse, url: URL): void {
    const asked = request.headers['last-event-id'] ?? url.searchParams.get('after');
    const after = asked === null ? this.#ring.lastSeq : Number(asked);
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
    });
    response.write(': connected\n\n');
    if (!Number.isFinite(after) || after < this.#ring.droppedCount) {
      response.write(`event: reset\nid: ${this.#ring.lastSeq}\ndata: {}\n\n`);
    } else {
      for (const entry of this.#ring.after(after)) this.#write(response, entry);
    }
    this.#readers.add(response);
    response.on('close', () => this.#readers.delete(response));
  }

  close(): void {
    for (const reader of this.#readers) reader.end();
    this.#readers.clear();
    this.#listeners.clear();
  }

  #write(reader: ServerResponse, entry: Numbered<Change>): void {
    if (reader.writableLength > BACKLOG_MAX_BYTES) {
      this.#readers.delete(reader);
      reader.destroy();
      return;
    }
    reader.write(
      `id: ${entry.seq}\ndata: ${JSON.stringify({ seq: entry.seq, ...entry.value })}\n\n`,
    );
  }
}
