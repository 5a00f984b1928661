// chatd daemon <kind>: become that daemon, in the foreground, under the same pid. A service manager
// then watches the daemon itself and not a parent of it.

import { type CliContext, kindOf } from './context.ts';
import { execBundle } from './exec.ts';

export function runDaemon(context: CliContext, word: string): Promise<number> {
  const home = context.home === undefined ? [] : ['--home', context.home];
  const verbose = context.verbose ? ['--verbose'] : [];
  return execBundle(context, kindOf(word), [...home, ...verbose]);
}
