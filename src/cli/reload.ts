// chatd reload: end a chat daemon, and start it again once its end is proven.

import { type CliContext, kindsOf } from './context.ts';
import { controllerOf, optionalConfig, report } from './lifecycle.ts';

export async function runReload(
  context: CliContext,
  word: string | undefined,
  options: { readonly force: boolean; readonly noSpawn: boolean; readonly noWait: boolean },
): Promise<number> {
  const { kinds, named } = kindsOf(word);
  const config = optionalConfig(context);
  const results = await Promise.all(
    kinds.map((kind) => controllerOf(context, kind, config).reload(options)),
  );
  return report(context, results, named);
}
