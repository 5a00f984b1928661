// chatd keeper run: become the keeper, in the foreground, under the same pid.

import type { CliContext } from './context.ts';
import { execBundle } from './exec.ts';
import { foregroundKeeperOptions } from './host-access.ts';

/** `startHost`: as `chatd host run` does. */
export async function runKeeper(context: CliContext, startHost: boolean): Promise<number> {
  const options = await foregroundKeeperOptions(context, startHost);
  return execBundle(context, 'keeper', [JSON.stringify(options)]);
}
