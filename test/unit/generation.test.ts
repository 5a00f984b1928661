import { describe, expect, it } from 'vitest';
import {
  CONTRACTS,
  contractFiles,
  essence,
  hashContract,
  judgePin,
  readPinned,
} from '../support/generation-contract.ts';

describe('the generation guard', () => {
  it.each(CONTRACTS.map((contract) => [contract.name, contract] as const))(
    'the %s contract changes only with its generation',
    async (_name, contract) => {
      const current = { generation: contract.generation, hash: await hashContract(contract) };
      const pinned = readPinned()[contract.name];
      expect(judgePin(current, pinned, contract.constant)).toBeUndefined();
    },
  );

  it('covers what decides ownership and control', () => {
    const files = CONTRACTS.flatMap(contractFiles);
    for (const file of [
      'src/ownership/kept-lock.ts',
      'src/ownership/process-incarnation.ts',
      'src/control/classify.ts',
      'src/control/records.ts',
      'src/control/command-server.ts',
      'src/daemon/owner-state.ts',
      'src/pty/protocol.ts',
    ]) {
      expect(files).toContain(file);
    }
  });

  it('sees code, not comments, types or layout', async () => {
    const one = await essence('// a\nexport const x: number = 1; // b\n');
    expect(await essence('/** c */ export const x =\n  1;')).toBe(one);
    expect(await essence('export const x = 2;')).not.toBe(one);
    expect(await essence("export const x = '// 1';")).not.toBe(
      await essence("export const x = '';"),
    );
  });

  it('asks for a bump, then for a record of it, and never goes back', () => {
    const pinned = { generation: 3, hash: 'a', because: 'the first' };
    expect(judgePin({ generation: 3, hash: 'a' }, pinned, 'G')).toBeUndefined();
    expect(judgePin({ generation: 3, hash: 'b' }, pinned, 'G')).toMatch(/bump G/);
    expect(judgePin({ generation: 4, hash: 'b' }, pinned, 'G')).toMatch(/record it/);
    expect(judgePin({ generation: 4, hash: 'a' }, pinned, 'G')).toMatch(/record it/);
    expect(judgePin({ generation: 2, hash: 'a' }, pinned, 'G')).toMatch(/went back/);
  });
});
