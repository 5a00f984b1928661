// The real clock, some times faster: bounded waits of seconds pass in fractions, in real processes.

import type { Clock } from '../../src/base/clock.ts';
import { systemClock } from '../../src/base/system-clock.ts';

export function fastClock(times: number): Clock {
  return {
    wallMs: () => systemClock.wallMs(),
    monotonicMs: () => systemClock.monotonicMs() * times,
    timer: (delayMs, run) => systemClock.timer(delayMs / times, run),
    sleep: (delayMs, signal) => systemClock.sleep(delayMs / times, signal),
  };
}
