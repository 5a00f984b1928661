// A picture a program printed into its terminal (sixel, iTerm2, kitty), as a file a chat can show.
// Pure; bytes in, bytes out. Never reads a file the program names: only what it printed.

import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import { encodePng } from './png-encoder.ts';
import { decodeSixel } from './sixel.ts';

const inflateAsync = promisify(inflate);
/** What both platforms take without asking (Discord's bound for everybody is 10 MB). */
const FILE_BYTES_MAX = 8 * 1024 * 1024;
/** 4,096 × 1,024 pixels of four bytes. */
const RAW_BYTES_MAX = 16 * 1024 * 1024;

/** Base64 of the largest raw picture. Nobody has to read more of the journal than this. */
export const OUTPUT_BYTES_MAX = 24 * 1024 * 1024;

export type PrintedPicture =
  | { readonly kind: 'file'; readonly name: string; readonly bytes: Buffer }
  /** Said in the thread where the picture would be. */
  | { readonly kind: 'not-shown'; readonly because: string };

/** `output` is what an image mark spans: the whole sequence, all chunks of it. */
export async function decodePicture(protocol: string, output: Uint8Array): Promise<PrintedPicture> {
  if (output.length > OUTPUT_BYTES_MAX) return notShown('too large');
  const text = Buffer.from(output).toString('latin1');
  switch (protocol) {
    case 'sixel':
      return await fromSixel(text);
    case 'iterm2':
      return fromIterm(text);
    case 'kitty':
      return await fromKitty(text);
    default:
      return notShown('unknown protocol');
  }
}

function notShown(because: string): PrintedPicture {
  return { kind: 'not-shown', because };
}

async function fromSixel(text: string): Promise<PrintedPicture> {
  const data = /^(?:\u001bP|\u00c2\u0090)[0-9;]*q([^\u001b]*)/.exec(text)?.[1];
  const pixels = data === undefined ? undefined : decodeSixel(data);
  if (pixels === undefined) return notShown('empty or too large');
  return { kind: 'file', name: 'picture.png', bytes: await toPng(pixels) };
}

function toPng(pixels: { words: Uint32Array; width: number; height: number }): Promise<Buffer> {
  return encodePng(pixels.words, pixels.width, pixels.height);
}

/** `1337;File=key=value;…:base64`: the payload is an image file. */
function fromIterm(text: string): PrintedPicture {
  const payload = /1337;File=[^:]*:([A-Za-z0-9+/=\r\n]*)/.exec(text)?.[1];
  if (payload === undefined) return notShown('sent in a form chatd does not read');
  return asFile(Buffer.from(payload, 'base64'));
}

function asFile(bytes: Buffer): PrintedPicture {
  if (bytes.length > FILE_BYTES_MAX) return notShown('too large');
  const extension = extensionOf(bytes);
  if (extension === undefined) return notShown('not a PNG, JPEG, GIF or WebP');
  return { kind: 'file', name: `picture.${extension}`, bytes };
}

/** By content: a name is only what a program says. */
function extensionOf(bytes: Buffer): string | undefined {
  const head = bytes.toString('latin1', 0, 12);
  if (head.startsWith('\u0089PNG\r\n\u001a\n')) return 'png';
  if (head.startsWith('\u00ff\u00d8\u00ff')) return 'jpg';
  if (head.startsWith('GIF8')) return 'gif';
  return head.startsWith('RIFF') && head.endsWith('WEBP') ? 'webp' : undefined;
}

/** `_Gkeys;base64`, in chunks; the keys of the first one say what it is. */
async function fromKitty(text: string): Promise<PrintedPicture> {
  const chunks = [...text.matchAll(/_G([^;\u001b]*)(?:;([A-Za-z0-9+/=]*))?/g)];
  const keys = new Map(
    (chunks[0]?.[1] ?? '').split(',').map((pair) => [pair.slice(0, 1), pair.slice(2)] as const),
  );
  // Other media are names of files and shared memory: not ours to read because a program says so.
  if ((keys.get('t') ?? 'd') !== 'd') return notShown('sent as a file name');
  const payload = chunks.map((chunk) => chunk[2] ?? '').join('');
  const bytes = await unpack(Buffer.from(payload, 'base64'), keys.get('o') === 'z');
  if (bytes === undefined) return notShown('damaged or too large');
  const format = keys.get('f') ?? '32';
  if (format === '100') return asFile(bytes);
  return await fromRaw(
    bytes,
    Number(keys.get('s')),
    Number(keys.get('v')),
    format === '24' ? 3 : 4,
  );
}

async function unpack(bytes: Buffer, compressed: boolean): Promise<Buffer | undefined> {
  if (!compressed) return bytes;
  try {
    return await inflateAsync(bytes, { maxOutputLength: RAW_BYTES_MAX });
  } catch {
    return undefined;
  }
}

async function fromRaw(
  bytes: Buffer,
  width: number,
  height: number,
  channels: 3 | 4,
): Promise<PrintedPicture> {
  const count = width * height;
  const fits = Number.isInteger(count) && count > 0 && count * 4 <= RAW_BYTES_MAX;
  if (!fits || bytes.length < count * channels) return notShown('damaged or too large');
  const words = new Uint32Array(count);
  for (let pixel = 0, at = 0; pixel < count; pixel += 1, at += channels) {
    words[pixel] = bytes.readUIntLE(at, 3);
  }
  return { kind: 'file', name: 'picture.png', bytes: await toPng({ words, width, height }) };
}
