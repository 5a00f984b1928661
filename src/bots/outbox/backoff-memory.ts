// The scheduler's back-offs in the store: a daemon that restarts does not knock too early.

import { currentBackoffs, saveBackoff } from '../../store/backoffs.ts';
import type { Store } from '../../store/store.ts';
import type { BackoffMemory } from './scheduler.ts';

export function backoffsInStore(store: Store): BackoffMemory {
  return {
    load: () =>
      currentBackoffs(store).map(({ scope, untilWallMs }) => ({
        scope,
        leftMs: untilWallMs - store.wallMs(),
      })),
    save: (scope, forMs, detail) =>
      saveBackoff(store, { scope, untilWallMs: store.wallMs() + forMs, detail }),
  };
}
