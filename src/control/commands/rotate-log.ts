// rotate-log: starts a new log file of the daemon. Commits nothing durable but the file's name.

import * as z from 'zod/mini';
import { type CommandSpec, commandSpec } from './command.ts';

export type RotateLogArgs = Readonly<Record<string, never>>;

export const rotateLog: CommandSpec<RotateLogArgs> = commandSpec(
  'rotate-log',
  'log_rotation',
  z.strictObject({}),
);
