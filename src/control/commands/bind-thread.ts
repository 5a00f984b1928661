// bind-thread: binds a session to a thread that already exists. The answer is an ok with session
// incarnation, binding version and root; the CLI believes it only after reading the store.

import * as z from 'zod/mini';
import { type CommandSpec, commandSpec, field, requiredField } from './command.ts';

export interface BindThreadArgs {
  readonly session: string;
  /** Empty: whichever incarnation runs. */
  readonly incarnation: string;
  /** Empty where the link names the thread alone (Discord). */
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
    channel: field,
    root: requiredField,
    move: z.boolean(),
  }),
);
