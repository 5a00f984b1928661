// Application commands: what a registration may say (point 36 of the conformance list).

import { ApiError, FormErrors } from './errors.ts';
import { type Json, listOf, numberOf, recordOf, recordsOf, stringOf } from './json.ts';

const NAME = /^[-_'\p{L}\p{N}\p{sc=Deva}\p{sc=Thai}]{1,32}$/u;
const TEXT_MAX = 8_000;
const SUB_COMMAND = 1;
const SUB_GROUP = 2;

/** Checks a whole bulk PUT. @throws {ApiError} 50035, or 30032 for too many. */
export function checkCommands(body: unknown): readonly Json[] {
  if (!Array.isArray(body)) {
    const errors = new FormErrors();
    errors.add('', 'LIST_TYPE_CONVERT', 'Only iterables may be used in a ListType');
    errors.throwIfAny();
  }
  const commands = recordsOf(body);
  const errors = new FormErrors();
  const seen = new Set<string>();
  for (const [index, command] of commands.entries()) {
    checkCommand(command, `${index}`, errors);
    const key = `${numberOf(command['type']) ?? 1}:${stringOf(command['name']) ?? ''}`;
    if (seen.has(key))
      errors.add(
        `${index}.name`,
        'APPLICATION_COMMANDS_DUPLICATE_NAME',
        'Application command names must be unique',
      );
    seen.add(key);
  }
  errors.throwIfAny();
  for (const [type, max] of [
    [1, 100],
    [2, 15],
    [3, 15],
  ] as const)
    if (commands.filter((command) => (command['type'] ?? 1) === type).length > max)
      throw new ApiError(400, 30032, `Maximum number of application commands reached (${max})`);
  return commands;
}

/** Checks one command. */
export function checkCommand(command: Json, path: string, errors: FormErrors): void {
  const type = numberOf(command['type'] ?? 1);
  const at = (key: string): string => (path === '' ? key : `${path}.${key}`);
  const name = stringOf(command['name']);
  if (name === undefined) errors.required(at('name'));
  else if (type === 1) checkName(name, at('name'), errors);
  else if (name.length < 1 || name.length > 32) errors.badLength(at('name'), 1, 32);
  if (type === 1) {
    checkDescription(command, at('description'), errors);
    checkOptions(command['options'], at('options'), errors, 0);
    if (textSize(command) > TEXT_MAX)
      errors.add(
        path,
        'APPLICATION_COMMAND_TOO_LARGE',
        `Command exceeds maximum size (${TEXT_MAX})`,
      );
  } else if (type !== 2 && type !== 3) errors.choices(at('type'), type);
}

function checkName(name: string, path: string, errors: FormErrors): void {
  if (name.length < 1 || name.length > 32) errors.badLength(path, 1, 32);
  else if (!NAME.test(name) || name !== name.toLowerCase())
    errors.add(path, 'APPLICATION_COMMAND_INVALID_NAME', 'Command name is invalid');
}

function checkDescription(entry: Json, path: string, errors: FormErrors): void {
  const text = stringOf(entry['description']);
  if (text === undefined) errors.required(path);
  else if (text.length < 1 || text.length > 100) errors.badLength(path, 1, 100);
}

function checkOptions(value: unknown, path: string, errors: FormErrors, depth: number): void {
  const options = recordsOf(value);
  if (options.length > 25) errors.badLength(path, 0, 25);
  const names = new Set<string>();
  for (const [index, option] of options.entries()) {
    const at = `${path}.${index}`;
    const name = stringOf(option['name']) ?? '';
    if (names.has(name))
      errors.add(
        `${at}.name`,
        'APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS',
        'Option name already exists',
      );
    names.add(name);
    checkOption(option, at, errors, depth);
  }
  const firstOptional = options.findIndex((option) => option['required'] !== true);
  const lastRequired = options.findLastIndex((option) => option['required'] === true);
  if (firstOptional !== -1 && lastRequired > firstOptional)
    errors.add(
      `${path}.${lastRequired}`,
      'APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID',
      'Required options must be placed before non-required options',
    );
}

function checkOption(option: Json, path: string, errors: FormErrors, depth: number): void {
  const type = numberOf(option['type']);
  if (type === undefined || type < 1 || type > 11) errors.choices(`${path}.type`, type);
  checkName(stringOf(option['name']) ?? '', `${path}.name`, errors);
  checkDescription(option, `${path}.description`, errors);
  checkChoices(option, path, errors);
  if ((type === SUB_COMMAND || type === SUB_GROUP) && depth < 2)
    checkOptions(option['options'], `${path}.options`, errors, depth + 1);
}

function checkChoices(option: Json, path: string, errors: FormErrors): void {
  const choices = recordsOf(option['choices']);
  if (choices.length > 25) errors.badLength(`${path}.choices`, 0, 25);
  for (const [index, choice] of choices.entries()) {
    const name = stringOf(choice['name']) ?? '';
    if (name.length < 1 || name.length > 100)
      errors.badLength(`${path}.choices.${index}.name`, 1, 100);
  }
}

function textSize(entry: Json): number {
  const own = ['name', 'description'].reduce(
    (sum, key) => sum + (stringOf(entry[key]) ?? '').length,
    0,
  );
  const choices = recordsOf(entry['choices']).reduce(
    (sum, choice) =>
      sum + (stringOf(choice['name']) ?? '').length + (stringOf(choice['value']) ?? '').length,
    0,
  );
  return (
    own +
    choices +
    listOf(entry['options']).reduce<number>((sum, option) => sum + textSize(recordOf(option)), 0)
  );
}
