// chatd stop: end a chat daemon and prove that it ended.

import { type CliContext, kindsOf } from './context.ts';
import { controllerOf, optionalConfig, report } from './lifecycle.ts';

export async function runStop(
  context: CliContext,
  word: string | undefined,
  options: { readonly force: boolean },
): Promise<number> {
  const { kinds, named } = kindsOf(word);
  const config = optionalConfig(context);
  const results = await Promise.all(
    kinds.map((kind) => controllerOf(context, kind, config).stop(options)),
  );
  return report(context, results, named);
}
