// The grammar of the whole command line. Loaded for everything but the warm path, which must not pay
// for it (warm.ts).

import { Command, CommanderError, Option } from 'commander';
import type { Finish, GlobalFlags, Run } from './context.ts';

interface GlobalOptions {
  readonly home?: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

type RunIn = (program: Command, run: Run) => Promise<void>;

/** Parses and runs. `wrong`: the words make no sense; they have been explained. */
export async function runProgram(
  argv: readonly string[],
  finish: Finish,
): Promise<'run' | 'wrong'> {
  const run: RunIn = (program, command) => finish(flagsOf(program.opts()), command);
  try {
    await buildProgram(run).parseAsync(argv);
    return 'run';
  } catch (error) {
    // Commander has printed its line already; help and version are no failures.
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 'run' : 'wrong';
  }
}

function flagsOf(options: GlobalOptions): GlobalFlags {
  return {
    home: options.home,
    json: options.json === true,
    verbose: options.verbose === true,
  };
}

const KIND_OR_ALL = 'slack, discord or all';

function addLifecycle(program: Command, run: RunIn): void {
  program
    .command('ensure [kind]')
    .description('start the chat daemon of a kind, or attach to the one that runs')
    .option('--no-wait', 'do not wait until it is connected')
    .action((kind: string | undefined, options: { wait: boolean }) =>
      run(program, async (context) => {
        const { runEnsure } = await import('./ensure.ts');
        return await runEnsure(context, kind, { noWait: !options.wait });
      }),
    );
  program
    .command('stop [kind]')
    .description('end it gracefully; sessions and host go on')
    .option('--force', 'SIGKILL after the grace')
    .action((kind: string | undefined, options: { force?: boolean }) =>
      run(program, async (context) => {
        const { runStop } = await import('./stop.ts');
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
        run(program, async (context) => {
          const { runReload } = await import('./reload.ts');
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
      run(program, async (context) => {
        const { runStatus } = await import('./status.ts');
        return await runStatus(context, kind, { explain: options.explain === true });
      }),
    );
  program
    .command('daemon <kind>')
    .description('run a chat daemon in the foreground, for services and debugging')
    .action((kind: string) =>
      run(program, async (context) => {
        const { runDaemon } = await import('./daemon.ts');
        return await runDaemon(context, kind);
      }),
    );
}

function addConfiguration(program: Command, run: RunIn): void {
  const config = program.command('config').description('the configuration file');
  config
    .command('check')
    .description('check chatd.toml and its secrets, and explain every error')
    .action(() =>
      run(program, async (context) => {
        const { runConfigCheck } = await import('./config.ts');
        return await runConfigCheck(context);
      }),
    );
  config
    .command('path')
    .description('print where chatd.toml is read from')
    .action(() =>
      run(program, (context) => {
        context.out(context.paths.config);
        return Promise.resolve(0);
      }),
    );
  program
    .command('sandbox')
    .description('a Slack workspace and a Discord guild on this machine, with a page to look at')
    .allowUnknownOption()
    .argument('[arguments...]')
    .action((passed: string[]) =>
      run(program, async (context) => {
        const { runSandbox } = await import('./sandbox.ts');
        return await runSandbox(context, passed);
      }),
    );
}

function addSessions(program: Command, run: RunIn): void {
  program
    .command('run')
    .description('start a program in a session and attach to it; without one, your shell')
    .argument('[command...]')
    .action((command: string[]) =>
      run(program, async (context) => {
        const { runRun } = await import('./attach.ts');
        return await runRun(context, command);
      }),
    );
  program
    .command('attach <session>')
    .description('this terminal on a running session; Ctrl-] leaves it')
    .action((session: string) =>
      run(program, async (context) => {
        const { runAttach } = await import('./attach.ts');
        return await runAttach(context, session);
      }),
    );
  program
    .command('sessions')
    .alias('list')
    .description('all sessions of this machine')
    .action(() =>
      run(program, async (context) => {
        const { runSessions } = await import('./host.ts');
        return await runSessions(context);
      }),
    );
}

function addThreads(program: Command, run: RunIn): void {
  program
    .command('end <session>')
    .description('end a session: hang up, TERM, KILL')
    .action((session: string) =>
      run(program, async (context) => {
        const { runEnd } = await import('./end.ts');
        return await runEnd(context, session);
      }),
    );
  program
    .command('bind-thread <kind>')
    .description('bind a running session to a thread that exists')
    .requiredOption('--session <id>', 'the session; see chatd sessions')
    .requiredOption('--thread <link>', 'a link to the thread, or its ids')
    .option('--incarnation <id>', 'only if the session is still this one')
    .option('--move', 'also if the session or the thread is bound elsewhere')
    .action(
      (
        kind: string,
        options: { session: string; thread: string; incarnation?: string; move?: boolean },
      ) =>
        run(program, async (context) => {
          const { runBindThread } = await import('./thread-command.ts');
          return await runBindThread(context, kind, { ...options, move: options.move === true });
        }),
    );
  program
    .command('unbind-thread <kind>')
    .description('end the binding of a session; the session goes on')
    .requiredOption('--session <id>', 'the session; see chatd sessions')
    .action((kind: string, options: { session: string }) =>
      run(program, async (context) => {
        const { runUnbindThread } = await import('./thread-command.ts');
        return await runUnbindThread(context, kind, options.session);
      }),
    );
}

function addStore(program: Command, run: RunIn): void {
  const store = program.command('store').description('bindings, outbox, claims, audit of a kind');
  store
    .command('check <kind>')
    .description('read every page, index and reference')
    .action((kind: string) =>
      run(program, async (context) => {
        const { runStoreCheck } = await import('./store.ts');
        return await runStoreCheck(context, kind);
      }),
    );
  store
    .command('backup <kind> <file>')
    .description('copy it, consistent, while its owner goes on')
    .action((kind: string, file: string) =>
      run(program, async (context) => {
        const { runStoreBackup } = await import('./store.ts');
        return await runStoreBackup(context, kind, file);
      }),
    );
  store
    .command('export <kind> [file]')
    .description('every row as a line of JSON')
    .action((kind: string, file: string | undefined) =>
      run(program, async (context) => {
        const { runStoreExport } = await import('./store.ts');
        return await runStoreExport(context, kind, file);
      }),
    );
}

function addHost(program: Command, run: RunIn): void {
  const host = program.command('host').description('the process that serves all sessions');
  host
    .command('status')
    .description('keeper, host and every session with its queues, gaps and clients')
    .action(() =>
      run(program, async (context) => {
        const { runHostStatus } = await import('./host.ts');
        return await runHostStatus(context);
      }),
    );
  host
    .command('reload')
    .description('replace the host by this version; sessions go on')
    .action(() =>
      run(program, async (context) => {
        const { runHostReload } = await import('./host.ts');
        return await runHostReload(context);
      }),
    );
  host
    .command('stop')
    .description('end the host; refused while sessions run')
    .option('--end-sessions', 'end every session first')
    .action((options: { endSessions?: boolean }) =>
      run(program, async (context) => {
        const { runHostStop } = await import('./host.ts');
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
        run(program, async (context) => {
          const { runKeeper } = await import('./keeper.ts');
          return await runKeeper(context, startHost);
        }),
      );
  }
}

function buildProgram(run: RunIn): Command {
  const program = new Command('chatd')
    .description('Real terminals in Slack and Discord threads')
    .addOption(new Option('--home <directory>', 'configuration and state under one directory'))
    .option('--json', 'print JSON')
    .option('-v, --verbose', 'say more; show stack traces')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(`chatd: ${text}`) })
    .showSuggestionAfterError();
  addLifecycle(program, run);
  addSessions(program, run);
  addThreads(program, run);
  addStore(program, run);
  addHost(program, run);
  addConfiguration(program, run);
  return program;
}
