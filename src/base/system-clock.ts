// The one place that touches the machine's time.

import type { Clock, Timer } from './clock.ts';

/** The clock of the running process. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  timer(delayMs: number, run: () => void): Timer {
    const handle = setTimeout(run, delayMs);
    return {
      cancel: () => clearTimeout(handle),
      unref: () => {
        handle.unref();
      },
    };
  },
  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(abortReason(signal));
        return;
      }
      const onAbort = (): void => {
        clearTimeout(handle);
        reject(abortReason(signal));
      };
      const handle = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      }, delayMs);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  },
};

function abortReason(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error('aborted', { cause: reason });
}
