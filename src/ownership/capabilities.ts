// The self-test of src/sys as a long-running process meets it at its start: what it cannot do
// without ends it with a reason, what it can do without is logged, once, with what that costs.

import { ChatdError, errorText } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Capabilities, type Capability, selfTest } from '../sys/self-test.ts';

/** Without these nobody can prove who owns what. */
const NEEDED: readonly Capability[] = ['flock', 'ofd-lock', 'process-facts', 'boot-clock'];

/** What is lost without the others. */
const COST: Partial<Record<Capability, string>> = {
  pidfd: 'processes are judged unknown and never signalled',
  'pidfd-inode': 'a pid reused within 10 ms cannot be told from its predecessor',
  'peer-pidfd': 'peers are known by pid and uid only',
  'fd-passing': 'terminals cannot be handed to a host',
  splice: 'output read but not yet journaled is lost when a host is killed',
  'spawn-closefrom': 'descriptors rely on close-on-exec alone',
};

/**
 * Tests and reports. `otherPid` is any second process.
 * @throws {ChatdError} capability-missing
 */
export function requireCapabilities(
  log: Log,
  selfPid: number,
  otherPid: number,
  test: (selfPid: number, otherPid: number) => Capabilities = selfTest,
): void {
  let capabilities: Capabilities;
  try {
    capabilities = test(selfPid, otherPid);
  } catch (error) {
    // No temporary directory to try in: each use still reports its own failure.
    log.warn('capabilities.not-tested', { because: errorText(error) });
    return;
  }
  const absent = Object.entries(capabilities).flatMap(([name, state]) =>
    state.present ? [] : [{ name: name as Capability, because: state.because }],
  );
  for (const { name, because } of absent) {
    log.warn('capability.missing', {
      capability: name,
      because,
      costs: COST[name] ?? 'nothing yet',
    });
  }
  const needed = absent.find(({ name }) => NEEDED.includes(name));
  if (needed !== undefined) {
    throw new ChatdError(
      'capability-missing',
      `Cannot start: ${needed.name} does not work here (${needed.because})`,
    );
  }
}
