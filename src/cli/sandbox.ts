// chatd sandbox: become the sandbox, with the arguments given.

import type { CliContext } from './context.ts';
import { execBundle } from './exec.ts';

export function runSandbox(context: CliContext, args: readonly string[]): Promise<number> {
  return execBundle(context, 'sandbox', args);
}
