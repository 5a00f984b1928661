// Ids that are minted once and never reused.

import type { Random } from './random.ts';

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';

/** `length` characters of [0-9a-z], about 5.17 bits each. 12 give 62 bits, enough for a session. */
export function mintId(random: Random, length = 12): string {
  let id = '';
  while (id.length < length) {
    for (const byte of random.bytes(length * 2)) {
      // 252 is the largest multiple of 36 below 256: larger bytes would favour some letters.
      if (byte < 252 && id.length < length) id += ALPHABET.charAt(byte % 36);
    }
  }
  return id;
}

/** A random (version 4) UUID in lower case. */
export function mintUuid(random: Random): string {
  const bytes = random.bytes(16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Buffer.from(bytes).toString('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-');
}
