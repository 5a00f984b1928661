// chatd store check | backup | export: what an operator does with a store while its owner goes on.

import { writeFileSync } from 'node:fs';
import { daemonPaths } from '../base/paths.ts';
import { systemClock } from '../base/system-clock.ts';
import { backupStore, checkStore, exportStore } from '../store/maintenance.ts';
import { openStoreForReading, type Store } from '../store/store.ts';
import { type CliContext, kindOf } from './context.ts';

function withStore<T>(context: CliContext, word: string, act: (store: Store) => T): T {
  const { store: path } = daemonPaths(context.paths.state, kindOf(word));
  const store = openStoreForReading(path, systemClock);
  try {
    return act(store);
  } finally {
    store.db.close();
  }
}

export function runStoreCheck(context: CliContext, word: string): Promise<number> {
  const found = withStore(context, word, checkStore);
  if (context.json) {
    context.out(JSON.stringify(found, null, 2));
  } else {
    for (const problem of found.problems) context.err(`${word}: ${problem}`);
    const counts = Object.entries(found.counts).map(([table, count]) => `${table} ${count}`);
    if (found.ok) context.out(`${word}: ok (${counts.join(', ')})`);
  }
  return Promise.resolve(found.ok ? 0 : 1);
}

export function runStoreBackup(context: CliContext, word: string, target: string): Promise<number> {
  withStore(context, word, (store) => backupStore(store, target));
  context.out(context.json ? JSON.stringify({ kind: word, backup: target }) : target);
  return Promise.resolve(0);
}

/** One JSON line for each row, to stdout or into a new file that only we can read. */
export function runStoreExport(
  context: CliContext,
  word: string,
  target: string | undefined,
): Promise<number> {
  withStore(context, word, (store) => {
    const lines: string[] = [];
    for (const row of exportStore(store)) {
      if (target === undefined) context.out(JSON.stringify(row));
      else lines.push(JSON.stringify(row));
    }
    if (target !== undefined) {
      writeFileSync(target, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' });
    }
  });
  return Promise.resolve(0);
}
