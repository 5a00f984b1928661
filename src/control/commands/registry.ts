// The commands a chat daemon can be asked to execute. A new one is a file beside this and a line here.

import { bindThread } from './bind-thread.ts';
import type { CommandHandler, CommandSpec, CommitFence, HandlerAnswer } from './command.ts';
import { rotateLog } from './rotate-log.ts';
import { unbindThread } from './unbind-thread.ts';

const COMMANDS = {
  'bind-thread': bindThread,
  'unbind-thread': unbindThread,
  'rotate-log': rotateLog,
} as const;

export type CommandName = keyof typeof COMMANDS;
export type ArgsOf<N extends CommandName> =
  (typeof COMMANDS)[N] extends CommandSpec<infer Args> ? Args : never;

/** Handlers by name. A command without one is answered `command_not_supported`. */
export type CommandHandlers = { readonly [N in CommandName]?: CommandHandler<ArgsOf<N>> };

/** A command bound to its handler and its parsed arguments, ready to run. */
export type Dispatch =
  | {
      readonly kind: 'run';
      readonly subject: string;
      readonly run: (fence: CommitFence) => Promise<HandlerAnswer>;
    }
  | { readonly kind: 'rejected'; readonly code: string };

/** Finds the handler of `name` and parses `args` for it. Pure. */
export function dispatch(name: string, args: unknown, handlers: CommandHandlers): Dispatch {
  switch (name) {
    case 'bind-thread':
      return bound(COMMANDS[name], args, handlers[name]);
    case 'unbind-thread':
      return bound(COMMANDS[name], args, handlers[name]);
    case 'rotate-log':
      return bound(COMMANDS[name], args, handlers[name]);
    default:
      return { kind: 'rejected', code: 'command_unknown' };
  }
}

function bound<Args>(
  spec: CommandSpec<Args>,
  args: unknown,
  handler: CommandHandler<Args> | undefined,
): Dispatch {
  const parsed = spec.parse(args);
  if (parsed === undefined) return { kind: 'rejected', code: 'arguments_invalid' };
  if (handler === undefined) return { kind: 'rejected', code: 'command_not_supported' };
  return { kind: 'run', subject: spec.subject, run: (fence) => handler(parsed, fence) };
}
