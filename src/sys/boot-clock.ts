// The clock that goes on while the machine is suspended, and is the same for every process of one
// boot (outside time namespaces). Node has none.

import { checked, libc, memory, onDarwin } from './libc.ts';

const clockGettime = libc('int clock_gettime(int clock, void *time)');

// Linux CLOCK_BOOTTIME and CLOCK_MONOTONIC. On macOS CLOCK_MONOTONIC (6) counts sleep and
// CLOCK_UPTIME_RAW (8) does not.
const COUNTS_SUSPEND = onDarwin ? 6 : 7;
const STOPS_IN_SUSPEND = onDarwin ? 8 : 1;

function read(clock: number): number {
  const time = memory(16);
  checked('clock_gettime', clockGettime(clock, time));
  return Number(time.readBigInt64LE(0)) * 1000 + Number(time.readBigInt64LE(8)) / 1e6;
}

/** Milliseconds since boot, suspend included. */
export function bootClockMs(): number {
  return read(COUNTS_SUSPEND);
}

/** Milliseconds since boot without suspend; comparable between processes, unlike `performance`. */
export function machineMonotonicMs(): number {
  return read(STOPS_IN_SUSPEND);
}
