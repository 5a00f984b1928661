// Randomness as a parameter, so that a failing run can be replayed from its seed.

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** `count` random bytes. Cryptographic in production, seeded in tests. */
  bytes(count: number): Uint8Array;
}

/** A small deterministic generator (mulberry32) for tests, storms and simulations. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return {
    next,
    bytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(next() * 256)),
  };
}
