// What ensure, stop and reload share: a controller for a kind, and the printing of results.

import { ChatdError } from '../base/errors.ts';
import { daemonPaths, type Kind } from '../base/paths.ts';
import { systemClock } from '../base/system-clock.ts';
import { systemRandom } from '../base/system-random.ts';
import { type Config, problemLine, readConfig } from '../config.ts';
import { Controller } from '../control/controller.ts';
import { CHAT_DAEMON_GENERATION } from '../control/generation.ts';
import { systemMachineTime } from '../control/machine-time.ts';
import { type ActionResult, combinedExitCode } from '../control/outcomes.ts';
import type { CliContext } from './context.ts';

/**
 * The configuration, or undefined when there is none: then nothing is configured.
 * @throws {ChatdError} config-invalid
 */
export function optionalConfig(context: CliContext): Config | undefined {
  const result = readConfig(context.paths.config);
  if (result.kind === 'ok') return result.config;
  if (result.kind === 'absent') return undefined;
  throw new ChatdError('config-invalid', result.problems.map(problemLine).join('\n'));
}

export function controllerOf(
  context: CliContext,
  kind: Kind,
  config: Config | undefined,
): Controller {
  const identity = config?.identityOf(kind);
  return new Controller({
    kind,
    paths: daemonPaths(context.paths.state, kind),
    configured:
      config === undefined || identity === undefined
        ? undefined
        : { identity, configHash: config.hashOf(kind) },
    generation: CHAT_DAEMON_GENERATION,
    self: context.self,
    clock: systemClock,
    machine: systemMachineTime(),
    random: systemRandom,
    spawn: async (ownerId) => {
      // Who only attaches does not pay for loading what starts processes.
      const { spawnDaemon } = await import('./spawn-daemon.ts');
      return await spawnDaemon(context, kind, ownerId);
    },
  });
}

/** Prints results as a line each, or as JSON, and returns the exit code. */
export function report(
  context: CliContext,
  results: readonly ActionResult[],
  named: boolean,
): number {
  if (context.json) {
    context.out(JSON.stringify(results, null, 2));
  } else {
    for (const result of results) {
      // Off is worth a line only to who asked for that kind.
      if (named || result.outcome !== 'disabled') printResult(context, result);
    }
    const allOff = results.every((result) => result.outcome === 'disabled');
    if (!named && allOff) context.out(`nothing is configured in ${context.paths.config}`);
  }
  return combinedExitCode(results, named);
}

function printResult(context: CliContext, result: ActionResult): void {
  const line = `${result.kind}: ${result.outcome}: ${result.message}`;
  if (result.ok) context.out(line);
  else context.err(line);
  for (const warning of result.warnings) context.err(`${result.kind}: note: ${warning}`);
}
