// Becomes another bundle: same pid, same terminal, so that signals and service managers reach it.

import { execve } from '../sys/fd.ts';
import { bundlePath, type CliContext } from './context.ts';

/** Replaces this process by `<bundles>/<name>.js`. @throws when that is not possible */
export function execBundle(context: CliContext, name: string, args: readonly string[]): never {
  const argv = [process.execPath, bundlePath(context, name), ...args];
  return execve(process.execPath, argv, context.env, [0, 1, 2]);
}
