// Fails when the code that daemons and controllers of different versions share has changed and the
// generation has not. Did the meaning of a record, a document or an order change? Bump
// CHAT_DAEMON_GENERATION. Either way, write the new hash below.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CHAT_DAEMON_GENERATION } from '../../../src/control/generation.ts';
import { contractHash } from '../../support/contract-hash.ts';

const GUARDED = { generation: 1, hash: 'a22154b47163f4fa' };

it('is bumped when the protected contract changes', () => {
  expect({ generation: CHAT_DAEMON_GENERATION, hash: contractHash() }).toEqual(GUARDED);
});

it('sees a change of code, and no change of comments or layout', () => {
  const now = contractHash();
  const changed = (from: string, to: string): string =>
    contractHash((file) => readFileSync(file, 'utf8').replaceAll(from, to));
  expect(changed('20_000', '21_000')).not.toBe(now);
  expect(changed('\n', '\n\n')).toBe(now);
  expect(changed('// ', '// Much later: ')).toBe(now);
});
