// Rate limits that outlive the process: a daemon that restarts must not knock again too early.

import { integer, text } from './database.ts';
import type { Store } from './store.ts';

export interface StoredBackoff {
  /** `app`, `method:edit`, `place:post:C1`, … */
  readonly scope: string;
  readonly untilWallMs: number;
  readonly detail: string;
}

export function saveBackoff(store: Store, backoff: StoredBackoff): void {
  store.db.run(
    `INSERT INTO backoff (scope, until, detail) VALUES (?, ?, ?)
     ON CONFLICT (scope) DO UPDATE SET until = excluded.until, detail = excluded.detail`,
    backoff.scope,
    Math.round(backoff.untilWallMs),
    backoff.detail,
  );
}

/** Those still running; the others are removed. */
export function currentBackoffs(store: Store): readonly StoredBackoff[] {
  return store.transaction(() => {
    store.db.run('DELETE FROM backoff WHERE until <= ?', store.wallMs());
    return store.db.all('SELECT * FROM backoff').map((row) => ({
      scope: text(row, 'scope'),
      untilWallMs: integer(row, 'until'),
      detail: text(row, 'detail'),
    }));
  });
}
