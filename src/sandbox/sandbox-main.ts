// Composition root of the sandbox process: arguments, the ready line, signals.

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { errnoCode, errorText } from '../base/errors.ts';
import { seededRandom } from '../base/random.ts';
import { systemClock } from '../base/system-clock.ts';
import { systemRandom } from '../base/system-random.ts';
import { type Sandbox, startSandbox } from './sandbox.ts';

const USAGE = `Usage: sandbox [--port N] [--json] [--time-scale X] [--seed N] [--rate-limits real|off|X]
Serves a Slack workspace and a Discord guild on 127.0.0.1 until it is told to stop.`;

function numberOption(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (!Number.isFinite(number) || number < 0)
    throw new Error(`--${name} must be a number, 0 or more`);
  return number;
}

async function start(
  argv: readonly string[],
): Promise<{ sandbox: Sandbox; isJson: boolean } | undefined> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      port: { type: 'string' },
      json: { type: 'boolean' },
      'time-scale': { type: 'string' },
      seed: { type: 'string' },
      'rate-limits': { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return undefined;
  const seed = numberOption('seed', values.seed);
  const limits = values['rate-limits'] ?? 'real';
  const rateLimits =
    limits === 'real' || limits === 'off'
      ? limits
      : (numberOption('rate-limits', limits) ?? 'real');
  const sandbox = await startSandbox({
    clock: systemClock,
    random: seed === undefined ? systemRandom : seededRandom(seed),
    port: numberOption('port', values.port) ?? 0,
    timeScale: numberOption('time-scale', values['time-scale']) ?? 1,
    webDirectory: fileURLToPath(new URL('./web/', import.meta.url)),
    slack: { rateLimits },
    discord: { rateLimits },
  });
  return { sandbox, isJson: values.json === true };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(): Promise<void> {
  const started = await start(process.argv.slice(2));
  if (started === undefined) {
    say(USAGE);
    return;
  }
  const { sandbox, isJson } = started;
  const stop = (): void => {
    sandbox.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  if (isJson) say(JSON.stringify(await sandbox.facts()));
  else say(`The sandbox is at ${sandbox.url}`);
}

/** One line: what is wrong and what to do. */
function complaint(error: unknown): string {
  if (errnoCode(error) === 'EADDRINUSE')
    return 'Cannot start the sandbox: the port is in use; choose another with --port';
  return `Cannot start the sandbox: ${errorText(error).split('\n')[0] ?? ''} (--help shows the options)`;
}

main().catch((error: unknown) => {
  process.stderr.write(`${complaint(error)}\n`);
  process.exit(2);
});
