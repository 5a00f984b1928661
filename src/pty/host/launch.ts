// What a session is started with: program, arguments, environment and directory, as the user's own
// terminal would have them. Everything that is missing is found here, before anything is recorded.

import { accessSync, constants, statSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join, resolve } from 'node:path';
import { ChatdError, errnoCode } from '../../base/errors.ts';
import { passedEnvironment } from '../passed-environment.ts';
import type { CreateRequest } from '../session-values.ts';

/** The user as the password database knows them. */
export interface LoginUser {
  readonly name: string;
  readonly home: string;
  readonly shell: string | undefined;
}

export interface Launch {
  readonly file: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The environment of a login on this user's terminal, then what the request adds. */
export function loginEnvironment(
  user: LoginUser,
  surroundings: Readonly<Record<string, string | undefined>>,
  shell: string,
  added: Readonly<Record<string, string>>,
): Record<string, string> {
  const env = passedEnvironment(surroundings);
  env['PATH'] ??= DEFAULT_PATH;
  // Programs draw boxes and read keys by it; C would turn every accent into a question mark.
  if (env['LANG'] === undefined && env['LC_ALL'] === undefined) env['LANG'] = 'C.UTF-8';
  Object.assign(env, { HOME: user.home, USER: user.name, LOGNAME: user.name, SHELL: shell });
  env['TERM'] = 'xterm-256color';
  env['TERM_PROGRAM'] = 'chatd';
  env['COLORTERM'] ??= 'truecolor';
  return { ...env, ...added };
}

/**
 * @throws {ChatdError} directory-not-found, command-not-found, command-not-executable
 */
export function resolveLaunch(
  request: Pick<CreateRequest, 'command' | 'cwd' | 'env'>,
  user: LoginUser,
  surroundings: Readonly<Record<string, string | undefined>>,
): Launch {
  const shell = user.shell ?? '/bin/sh';
  const env = loginEnvironment(user, surroundings, shell, request.env);
  const cwd = resolveDirectory(request.cwd, user.home);
  env['PWD'] = cwd;
  const [name, ...rest] = request.command;
  if (name === undefined) {
    const file = findProgram(shell, env['PATH'] ?? DEFAULT_PATH, cwd);
    return { file, argv: [`-${basename(shell)}`], env, cwd };
  }
  return {
    file: findProgram(name, env['PATH'] ?? DEFAULT_PATH, cwd),
    argv: [name, ...rest],
    env,
    cwd,
  };
}

function resolveDirectory(cwd: string, home: string): string {
  const path =
    cwd === '~' || cwd === '' ? home : cwd.startsWith('~/') ? join(home, cwd.slice(2)) : cwd;
  if (!isAbsolute(path) || path.includes('\0')) {
    throw notFound('directory-not-found', `Cannot start in ${cwd}: not an absolute directory`);
  }
  try {
    if (!statSync(path).isDirectory()) {
      throw notFound('directory-not-found', `Cannot start in ${path}: not a directory`);
    }
    accessSync(path, constants.X_OK);
  } catch (error) {
    if (error instanceof ChatdError) throw error;
    throw notFound('directory-not-found', `Cannot start in ${path}: ${reason(error)}`);
  }
  return path;
}

function findProgram(name: string, path: string, cwd: string): string {
  if (name === '' || name.includes('\0')) {
    throw notFound('command-not-found', 'Cannot start program: its name is empty or not a name');
  }
  if (name.includes('/')) {
    const file = resolve(cwd, name);
    const found = look(file);
    if (found === 'executable') return file;
    throw refusal(name, found);
  }
  let seen: Look = 'absent';
  for (const directory of path.split(delimiter)) {
    const file = resolve(cwd, directory === '' ? '.' : directory, name);
    const found = look(file);
    if (found === 'executable') return file;
    if (found !== 'absent') seen = found;
  }
  throw refusal(name, seen);
}

type Look = 'executable' | 'not-executable' | 'absent';

function look(file: string): Look {
  try {
    if (!statSync(file).isFile()) return 'not-executable';
  } catch {
    return 'absent';
  }
  try {
    accessSync(file, constants.X_OK);
    return 'executable';
  } catch {
    return 'not-executable';
  }
}

function refusal(name: string, found: Look): ChatdError {
  return found === 'not-executable'
    ? notFound('command-not-executable', `Cannot start ${name}: not an executable file`)
    : notFound('command-not-found', `Cannot start ${name}: not found`);
}

function notFound(
  code: 'directory-not-found' | 'command-not-found' | 'command-not-executable',
  message: string,
): ChatdError {
  return new ChatdError(code, message);
}

function reason(error: unknown): string {
  const code = errnoCode(error);
  if (code === 'ENOENT') return 'it does not exist';
  if (code === 'EACCES') return 'permission denied';
  return code ?? 'it cannot be used';
}
