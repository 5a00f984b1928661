// The CLI: arguments in, one subcommand, an exit code out. Each subcommand's file is loaded only when
// it is used, so that `status` and a warm `ensure` stay near the cost of starting Node.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, CommanderError, Option } from 'commander';
import { ChatdError, type ErrorCode, errorText } from './base/errors.ts';
import { resolvePaths } from './base/paths.ts';
import type { CliContext } from './cli/context.ts';

/** Exit codes of chatd and of every process it starts. */
const EXIT = {
  /** Done; also attached, already, nothing to do. */
  done: 0,
  /** Failed, reason printed. */
  failed: 1,
  /** Usage or configuration. */
  usage: 2,
  /** Somebody else owns it: adopt. */
  occupied: 20,
  /** Refused: off, newer, unauthorized. */
  refused: 21,
  /** Versions do not fit. */
  versions: 22,
  /** Host or daemon lost and not back in time. */
  lost: 23,
  /** Outcome not known. */
  unknown: 24,
  /** Time ran out. */
  late: 25,
} as const;

const EXIT_OF_ERROR: { readonly [code in ErrorCode]?: number } = {
  'config-invalid': EXIT.usage,
  'state-directory-unusable': EXIT.usage,
  'endpoint-path-too-long': EXIT.usage,
  'platform-credentials': EXIT.usage,
  'wrong-account': EXIT.usage,
  occupied: EXIT.occupied,
  refused: EXIT.refused,
  'version-mismatch': EXIT.versions,
  'host-unreachable': EXIT.lost,
  'host-starting': EXIT.lost,
  'ownership-unknown': EXIT.unknown,
  'deadline-exceeded': EXIT.late,
};

/** Where the bundles are; run from source, where they would be. */
function bundleDirectory(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const folder = here.endsWith('/chunks') ? dirname(here) : here;
  return existsSync(join(folder, 'main.ts')) ? join(dirname(folder), 'dist') : folder;
}

interface GlobalOptions {
  readonly home?: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

function contextOf(options: GlobalOptions): CliContext {
  return {
    paths: resolvePaths(process.env, options.home),
    home: options.home,
    json: options.json === true,
    verbose: options.verbose === true,
    env: process.env,
    bundles: bundleDirectory(),
    self: { pid: process.pid, uid: process.getuid?.() ?? 0 },
    out: (text) => {
      process.stdout.write(`${text}\n`);
    },
    err: (text) => {
      process.stderr.write(`${text}\n`);
    },
  };
}

type Run = (context: CliContext) => Promise<number>;

/** Runs a subcommand and sets the exit code. Users get one line; -v adds the stack. */
async function finish(program: Command, run: Run): Promise<void> {
  const options = program.opts<GlobalOptions>();
  try {
    process.exitCode = await run(contextOf(options));
  } catch (error) {
    process.stderr.write(`chatd: ${errorText(error)}\n`);
    if (options.verbose === true && error instanceof Error) {
      process.stderr.write(`${error.stack ?? ''}\n`);
    }
    process.exitCode =
      error instanceof ChatdError ? (EXIT_OF_ERROR[error.code] ?? EXIT.failed) : EXIT.failed;
  }
}

const KIND_OR_ALL = 'slack, discord or all';

function addLifecycle(program: Command): void {
  program
    .command('ensure [kind]')
    .description('start the chat daemon of a kind, or attach to the one that runs')
    .option('--no-wait', 'do not wait until it is connected')
    .action((kind: string | undefined, options: { wait: boolean }) =>
      finish(program, async (context) => {
        const { runEnsure } = await import('./cli/ensure.ts');
        return await runEnsure(context, kind, { noWait: !options.wait });
      }),
    );
  program
    .command('stop [kind]')
    .description('end it gracefully; sessions and host go on')
    .option('--force', 'SIGKILL after the grace')
    .action((kind: string | undefined, options: { force?: boolean }) =>
      finish(program, async (context) => {
        const { runStop } = await import('./cli/stop.ts');
        return await runStop(context, kind, { force: options.force === true });
      }),
    );
  program
    .command('reload [kind]')
    .description('end it and start it again with the configuration as it is now')
    .option('--force', 'SIGKILL after the grace')
    .option('--no-spawn', 'with nobody running, start nobody')
    .option('--no-wait', 'do not wait until it is connected')
    .action(
      (kind: string | undefined, options: { force?: boolean; spawn: boolean; wait: boolean }) =>
        finish(program, async (context) => {
          const { runReload } = await import('./cli/reload.ts');
          const { force, spawn, wait } = options;
          const reload = { force: force === true, noSpawn: !spawn, noWait: !wait };
          return await runReload(context, kind, reload);
        }),
    );
  program
    .command('status [kind]')
    .description(`what is running (${KIND_OR_ALL})`)
    .option('--explain', 'every fact that was seen, and what could not be told')
    .action((kind: string | undefined, options: { explain?: boolean }) =>
      finish(program, async (context) => {
        const { runStatus } = await import('./cli/status.ts');
        return await runStatus(context, kind, { explain: options.explain === true });
      }),
    );
  program
    .command('daemon <kind>')
    .description('run a chat daemon in the foreground, for services and debugging')
    .action((kind: string) =>
      finish(program, async (context) => {
        const { runDaemon } = await import('./cli/daemon.ts');
        return await runDaemon(context, kind);
      }),
    );
}

function addConfiguration(program: Command): void {
  const config = program.command('config').description('the configuration file');
  config
    .command('check')
    .description('check chatd.toml and its secrets, and explain every error')
    .action(() =>
      finish(program, async (context) => {
        const { runConfigCheck } = await import('./cli/config.ts');
        return await runConfigCheck(context);
      }),
    );
  config
    .command('path')
    .description('print where chatd.toml is read from')
    .action(() =>
      finish(program, (context) => {
        context.out(context.paths.config);
        return Promise.resolve(EXIT.done);
      }),
    );
  program
    .command('sandbox')
    .description('a Slack workspace and a Discord guild on this machine, with a page to look at')
    .allowUnknownOption()
    .argument('[arguments...]')
    .action((passed: string[]) =>
      finish(program, async (context) => {
        const { runSandbox } = await import('./cli/sandbox.ts');
        return await runSandbox(context, passed);
      }),
    );
}

function addSessions(program: Command): void {
  program
    .command('run')
    .description('start a program in a session and attach to it; without one, your shell')
    .argument('[command...]')
    .action((command: string[]) =>
      finish(program, async (context) => {
        const { runRun } = await import('./cli/attach.ts');
        return await runRun(context, command);
      }),
    );
  program
    .command('attach <session>')
    .description('this terminal on a running session; Ctrl-] leaves it')
    .action((session: string) =>
      finish(program, async (context) => {
        const { runAttach } = await import('./cli/attach.ts');
        return await runAttach(context, session);
      }),
    );
  program
    .command('sessions')
    .description('all sessions of this machine')
    .action(() =>
      finish(program, async (context) => {
        const { runSessions } = await import('./cli/host.ts');
        return await runSessions(context);
      }),
    );
}

function addHost(program: Command): void {
  const host = program.command('host').description('the process that serves all sessions');
  host
    .command('status')
    .description('keeper, host and every session with its queues, gaps and clients')
    .action(() =>
      finish(program, async (context) => {
        const { runHostStatus } = await import('./cli/host.ts');
        return await runHostStatus(context);
      }),
    );
  host
    .command('reload')
    .description('replace the host by this version; sessions go on')
    .action(() =>
      finish(program, async (context) => {
        const { runHostReload } = await import('./cli/host.ts');
        return await runHostReload(context);
      }),
    );
  host
    .command('stop')
    .description('end the host; refused while sessions run')
    .option('--end-sessions', 'end every session first')
    .action((options: { endSessions?: boolean }) =>
      finish(program, async (context) => {
        const { runHostStop } = await import('./cli/host.ts');
        return await runHostStop(context, options.endSessions === true);
      }),
    );
  for (const [parent, startHost] of [
    [host, true],
    [program.command('keeper').description('the parent of every session'), false],
  ] as const) {
    parent
      .command('run')
      .description('run in the foreground, for services and debugging')
      .action(() =>
        finish(program, async (context) => {
          const { runKeeper } = await import('./cli/keeper.ts');
          return await runKeeper(context, startHost);
        }),
      );
  }
}

function buildProgram(): Command {
  const program = new Command('chatd')
    .description('Real terminals in Slack and Discord threads')
    .addOption(new Option('--home <directory>', 'configuration and state under one directory'))
    .option('--json', 'print JSON')
    .option('-v, --verbose', 'say more; show stack traces')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(`chatd: ${text}`) })
    .showSuggestionAfterError();
  addLifecycle(program);
  addSessions(program);
  addHost(program);
  addConfiguration(program);
  return program;
}

async function main(): Promise<void> {
  try {
    await buildProgram().parseAsync(process.argv);
  } catch (error) {
    // Commander has printed its line already; help and version are no failures.
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? EXIT.done : EXIT.usage;
  }
}

await main();
