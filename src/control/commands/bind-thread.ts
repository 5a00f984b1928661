// bind-thread: binds a session to a thread that already exists. The answer is an ok with session
// incarnation, binding version and root; the CLI believes it only after reading the store.

import * as z from 'zod/mini';
import { type CommandSpec, commandSpec, field, requiredField } from './command.ts';

export interface BindThreadArgs {
  readonly session: string;
  /** Empty: whichever incarnation runs. */
  readonly incarnation: string;
  /** Guild of a Discord link; empty where what was pasted does not name it. */
  readonly space: string;
  /**
   * Empty where only the thread was named. Of a Discord message link it is what holds the message:
   * the thread itself, or the channel with the message that `root` names and that opened the thread.
   */
  readonly channel: string;
  readonly root: string;
  /** Rebind although the session or the root is bound elsewhere. */
  readonly move: boolean;
}

export const bindThread: CommandSpec<BindThreadArgs> = commandSpec(
  'bind-thread',
  'binding',
  z.strictObject({
    session: requiredField,
    incarnation: field,
    space: field,
    channel: field,
    root: requiredField,
    move: z.boolean(),
  }),
);
