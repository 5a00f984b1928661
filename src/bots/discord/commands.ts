// The slash command of Discord, and whether what the guild has is already that.

import { type Fields, fieldsOf, listField, textField } from '../fields.ts';

interface Option {
  readonly type: 1 | 3;
  readonly name: string;
  readonly description: string;
  readonly options?: readonly Option[];
}

export interface Command extends Omit<Option, 'type'> {
  readonly type: 1;
  readonly options: readonly Option[];
}

/** `/term`: one command with subcommands, so that the guild's list stays short. */
export const TERM_COMMAND: Command = {
  type: 1,
  name: 'term',
  description: 'Terminals in threads',
  options: [
    {
      type: 1,
      name: 'run',
      description: 'Start a terminal in a new thread',
      options: [
        { type: 3, name: 'profile', description: 'A profile of the configuration' },
        { type: 3, name: 'command', description: 'A command to run instead of a shell' },
      ],
    },
    { type: 1, name: 'list', description: 'The sessions of this machine' },
    { type: 1, name: 'help', description: 'What can be done here' },
  ],
};

/** Whether one of `existing` is `wanted`: registering costs one of 200 creates a day. */
export function isRegistered(existing: readonly Fields[], wanted: Command): boolean {
  return existing.some((command) => isSame(command, wanted));
}

function isSame(existing: Fields, wanted: Option): boolean {
  if (textField(existing, 'name') !== wanted.name) return false;
  if (textField(existing, 'description') !== wanted.description) return false;
  // Discord leaves the type of a plain command out in older answers.
  if ((existing['type'] ?? 1) !== wanted.type || existing['required'] === true) return false;
  const options = listField(existing, 'options').map(fieldsOf);
  const wantedOptions = wanted.options ?? [];
  return (
    options.length === wantedOptions.length &&
    wantedOptions.every((option, index) => isSame(options[index] ?? {}, option))
  );
}
