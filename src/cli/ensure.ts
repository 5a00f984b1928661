// chatd ensure: start what is configured, or attach to what runs.

import { type CliContext, kindsOf } from './context.ts';
import { controllerOf, optionalConfig, report } from './lifecycle.ts';

export async function runEnsure(
  context: CliContext,
  word: string | undefined,
  options: { readonly noWait: boolean },
): Promise<number> {
  const { kinds, named } = kindsOf(word);
  const config = optionalConfig(context);
  const results = await Promise.all(
    kinds.map((kind) => controllerOf(context, kind, config).ensure(options)),
  );
  return report(context, results, named);
}
