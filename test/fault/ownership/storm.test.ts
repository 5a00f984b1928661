import { describe, expect, it } from 'vitest';
import { runStorm } from '../../support/storm.ts';

describe('the ownership storm, short form (test/storm has the long one)', () => {
  it('I1, I6, I11: 8 contenders under random SIGKILL: one owner, reached, never a wedge', async () => {
    const report = await runStorm({
      contenders: 8,
      acquisitions: 150,
      maxMs: 60_000,
      killChance: 0.01,
      seed: 20_261_130,
    });
    expect(report.violations).toEqual([]);
    // The oracle was reached: owners were killed in their section, and the rest went on.
    expect(report.acquisitions).toBeGreaterThanOrEqual(150);
    expect(report.killedOwning).toBeGreaterThan(3);
    expect(report.serves).toBeGreaterThan(50);
  });

  it('catches two owners when the lock is not kept (the storm’s own control)', async () => {
    const report = await runStorm({
      contenders: 6,
      acquisitions: 5000,
      maxMs: 60_000,
      killChance: 0,
      seed: 7,
      entry: 'test/support/storm-broken-main.ts',
    });
    expect(report.violations.length).toBeGreaterThan(0);
  });
});
