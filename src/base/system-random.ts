// The one place that touches the machine's randomness.

import { randomBytes } from 'node:crypto';
import type { Random } from './random.ts';

/** Cryptographic randomness of the operating system. */
export const systemRandom: Random = {
  next: () => randomBytes(4).readUInt32LE(0) / 4_294_967_296,
  bytes: (count) => randomBytes(count),
};
