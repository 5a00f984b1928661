// Pictures for a thread, made at the moment they are sent: of the screen, of the last screen of a
// program that has ended, and what programs print as pictures. What was asked for is durable, its
// bytes are not: they are made again after a restart.

import type { Host, LineFeed, SessionTarget } from '../pty/client.ts';
import type { Frame, Mark } from '../term/values.ts';
import type { FileBody } from './outbox/rows.ts';
import type { MadeFile } from './outbox/thread-outbox.ts';
import type { ScreenPainter } from './render/png.ts';
import { decodePicture, OUTPUT_BYTES_MAX } from './render/printed-picture.ts';

/** What is made; kept as JSON with the row. */
type Wish =
  | { readonly kind: 'screen' }
  | { readonly kind: 'last-screen'; readonly mark: number }
  | {
      readonly kind: 'printed';
      readonly protocol: string;
      readonly from: number;
      readonly to: number;
    };

export interface FileMaking {
  readonly host: Host;
  readonly target: SessionTarget;
  readonly feed: LineFeed;
  readonly painter: ScreenPainter;
  /** Masks secrets: nothing leaves unmasked, in pixels neither. */
  readonly masked: (frame: Frame) => Frame;
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
};

/** The screen as it is when the picture is made. */
export function screenPicture(): FileBody {
  return {
    fileName: 'screen.png',
    source: { kind: 'made', what: { kind: 'screen' } satisfies Wish },
  };
}

/** What a mark is worth a picture of; undefined for most. */
export function pictureOf(mark: Mark): FileBody | undefined {
  const { what } = mark;
  if (what.kind === 'mode' && what.mode === 'log') {
    if (what.frame.rows.every((row) => row.text.trim() === '')) return undefined;
    const wish: Wish = { kind: 'last-screen', mark: mark.seq };
    return { fileName: 'last-screen.png', source: { kind: 'made', what: wish } };
  }
  if (what.kind !== 'image') return undefined;
  const from = mark.offset - what.sizeBytes;
  const wish: Wish = { kind: 'printed', protocol: what.protocol, from, to: mark.offset };
  return { fileName: 'picture.png', source: { kind: 'made', what: wish } };
}

/** Makes the bytes of `what`; never throws for what a person could cause. */
export async function makeFile(what: unknown, making: FileMaking): Promise<MadeFile> {
  const wish = parseWish(what);
  switch (wish?.kind) {
    case undefined:
      return { kind: 'failed', because: 'chatd makes no such file' };
    case 'screen':
      return await painted(await making.host.frame(making.target), making);
    case 'last-screen':
      return await lastScreen(wish.mark, making);
    case 'printed':
      return await printed(wish, making);
  }
}

async function painted(frame: Frame, making: FileMaking): Promise<MadeFile> {
  const bytes = await making.painter.paint(making.masked(frame));
  return { kind: 'made', mediaType: 'image/png', bytes };
}

async function lastScreen(seq: number, making: FileMaking): Promise<MadeFile> {
  const [mark] = await making.feed.readMarks(seq, 1);
  if (mark?.seq !== seq || mark.what.kind !== 'mode' || mark.what.mode !== 'log') {
    return { kind: 'failed', because: 'the screen is no longer kept' };
  }
  return await painted(mark.what.frame, making);
}

async function printed(
  { protocol, from, to }: Extract<Wish, { kind: 'printed' }>,
  making: FileMaking,
): Promise<MadeFile> {
  if (to - from > OUTPUT_BYTES_MAX) return { kind: 'failed', because: 'it is too large' };
  const parts: Uint8Array[] = [];
  for (let at = from; at < to; ) {
    const read = await making.host.readBytes(making.target, at, to);
    if (read.from !== at || read.bytes.length === 0) {
      return { kind: 'failed', because: 'its bytes are no longer kept' };
    }
    parts.push(read.bytes);
    at += read.bytes.length;
  }
  const picture = await decodePicture(protocol, Buffer.concat(parts));
  if (picture.kind === 'not-shown') return { kind: 'failed', because: picture.because };
  const extension = picture.name.split('.').at(-1) ?? '';
  const mediaType = MEDIA_TYPES[extension] ?? 'application/octet-stream';
  return { kind: 'made', mediaType, bytes: picture.bytes };
}

/** Rows come back from the store: of this version, or of another. */
function parseWish(what: unknown): Wish | undefined {
  if (typeof what !== 'object' || what === null || !('kind' in what)) return undefined;
  if (what.kind === 'screen') return { kind: 'screen' };
  if (what.kind === 'last-screen' && 'mark' in what && isCount(what.mark)) {
    return { kind: 'last-screen', mark: what.mark };
  }
  if (what.kind !== 'printed' || !('protocol' in what && 'from' in what && 'to' in what)) {
    return undefined;
  }
  const { protocol, from, to } = what;
  if (typeof protocol !== 'string' || !isCount(from) || !isCount(to)) return undefined;
  return { kind: 'printed', protocol, from, to };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
