// Time that two processes of one machine can compare: the boot clock, which goes on in suspend and
// which no person sets, together with the boot it counts from.

import { bootClockMs, machineMonotonicMs } from '../sys/boot-clock.ts';
import { readBootId } from '../sys/process-facts.ts';

export interface MachineTime {
  readonly bootId: string;
  /** Milliseconds since boot, suspend included. */
  bootMs(): number;
  /** Milliseconds since boot without suspend. */
  monotonicMs(): number;
}

/** The machine's own time. @throws where the boot id cannot be read */
export function systemMachineTime(): MachineTime {
  return { bootId: readBootId(), bootMs: bootClockMs, monotonicMs: machineMonotonicMs };
}

/** A moment that another process wrote down. */
export interface Stamp {
  readonly bootId: string;
  readonly bootMs: number;
}

export function stamp(machine: MachineTime): Stamp {
  return { bootId: machine.bootId, bootMs: machine.bootMs() };
}

/**
 * Age of a stamp, suspend included. One of another boot is infinitely old; one from the future
 * (never written by us) too, so that nothing planted lives for ever.
 */
export function ageMs(machine: MachineTime, stamped: Stamp): number {
  if (stamped.bootId !== machine.bootId) return Number.POSITIVE_INFINITY;
  const age = machine.bootMs() - stamped.bootMs;
  // Two reads of one clock on two cores may differ by less than a tick.
  return age < -100 ? Number.POSITIVE_INFINITY : Math.max(0, age);
}
