import { afterEach, beforeEach, expect, test } from 'vitest';
import { runStorm } from '../../storm/host-storm.ts';
import { TestHost } from '../../support/test-host.ts';

let host: TestHost;
beforeEach(() => {
  host = new TestHost();
});
afterEach(() => host.stop());

test('hosts killed and handed over under floods and pastes lose no byte, no exit and no pid', async () => {
  const report = await runStorm(host, {
    seed: 4,
    floods: 6,
    bursts: 20,
    burstLines: 4_000,
    hostKills: 6,
    handOvers: 2,
    keeperKills: 0,
    pasters: 2,
    pauseMs: 150,
  });
  expect(report.inputs.written).toBeGreaterThan(0);
});

test('a killed keeper is replaced by the host; sessions, bytes and pids go on', async () => {
  await runStorm(host, {
    seed: 5,
    floods: 4,
    bursts: 20,
    burstLines: 4_000,
    hostKills: 2,
    handOvers: 0,
    keeperKills: 2,
    pasters: 1,
    pauseMs: 200,
  });
});
