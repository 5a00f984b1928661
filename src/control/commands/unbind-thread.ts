// unbind-thread: ends the binding of a session in this kind. The session itself goes on.

import * as z from 'zod/mini';
import { type CommandSpec, commandSpec, requiredField } from './command.ts';

export interface UnbindThreadArgs {
  readonly session: string;
}

export const unbindThread: CommandSpec<UnbindThreadArgs> = commandSpec(
  'unbind-thread',
  'binding',
  z.strictObject({ session: requiredField }),
);
