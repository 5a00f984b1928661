// Length-prefixed frames: u32 LE length of what follows, u8 type, payload. The same shape on the
// wire (host, keeper pair) and in record files. Knows no frame's meaning.

import { ChatdError } from './errors.ts';

export interface RawFrame {
  readonly type: number;
  readonly payload: Buffer;
}

/** Bytes before a frame's payload. */
export const FRAME_HEADER_BYTES = 5;

/** One frame as one buffer. */
export function encodeFrame(type: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  frame.writeUInt32LE(payload.length + 1, 0);
  frame[4] = type;
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

/** Cuts a byte stream into frames. Holds at most one incomplete frame of `maxBytes`. */
export class FrameDecoder {
  #maxBytes: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  /** Total bytes of the frame being collected, header included; 0 while the length is not known. */
  #wantedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * The frames that `chunk` completes. Payloads may share memory with it.
   * @throws {ChatdError} protocol-violation on a length of 0 or above the bound.
   */
  push(chunk: Buffer): RawFrame[] {
    const frames: RawFrame[] = [];
    let rest = chunk;
    if (this.#pendingBytes > 0) {
      this.#pending.push(chunk);
      this.#pendingBytes += chunk.length;
      if (this.#wantedBytes > 0 && this.#pendingBytes < this.#wantedBytes) return frames;
      rest = Buffer.concat(this.#pending, this.#pendingBytes);
      this.#pending = [];
      this.#pendingBytes = 0;
      this.#wantedBytes = 0;
    }
    let at = 0;
    while (rest.length - at >= 4) {
      const lengthBytes = rest.readUInt32LE(at);
      if (lengthBytes === 0 || lengthBytes > this.#maxBytes) {
        throw new ChatdError(
          'protocol-violation',
          `Cannot read frame: length ${lengthBytes} is outside 1..${this.#maxBytes}`,
        );
      }
      const end = at + 4 + lengthBytes;
      if (end > rest.length) {
        this.#wantedBytes = 4 + lengthBytes;
        break;
      }
      frames.push({
        type: rest[at + 4] ?? 0,
        payload: rest.subarray(at + FRAME_HEADER_BYTES, end),
      });
      at = end;
    }
    if (at < rest.length) {
      this.#pending = [rest.subarray(at)];
      this.#pendingBytes = rest.length - at;
    }
    return frames;
  }

  /** From the next frame on, frames may have up to `maxBytes`. */
  widen(maxBytes: number): void {
    this.#maxBytes = maxBytes;
  }

  /** Bytes held of an incomplete frame. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }
}

/**
 * The whole frames at the start of a record file, and where they end. What follows `validBytes` is
 * a torn record: its writer died there.
 */
export function readRecords(
  bytes: Buffer,
  maxBytes: number,
): { readonly records: RawFrame[]; readonly validBytes: number } {
  const records: RawFrame[] = [];
  let at = 0;
  while (bytes.length - at >= FRAME_HEADER_BYTES) {
    const lengthBytes = bytes.readUInt32LE(at);
    const end = at + 4 + lengthBytes;
    if (lengthBytes === 0 || lengthBytes > maxBytes || end > bytes.length) break;
    records.push({
      type: bytes[at + 4] ?? 0,
      payload: bytes.subarray(at + FRAME_HEADER_BYTES, end),
    });
    at = end;
  }
  return { records, validBytes: at };
}
