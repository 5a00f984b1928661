import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveLaunch } from '../../../src/pty/host/launch.ts';

let home = '';
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'chatd-launch-'));
  mkdirSync(join(home, 'bin'));
  writeFileSync(join(home, 'bin', 'tool'), '#!/bin/sh\n');
  chmodSync(join(home, 'bin', 'tool'), 0o755);
  writeFileSync(join(home, 'bin', 'plain'), 'x');
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const user = () => ({ name: 'someone', home, shell: '/bin/sh' });
const surroundings = () => ({
  PATH: `${join(home, 'bin')}:/bin`,
  HOME: '/elsewhere',
  CHATD_SLACK_BOT_TOKEN: 'secret-1',
  AWS_SECRET_ACCESS_KEY: 'secret-2',
  MY_TOKEN: 'secret-3',
  NODE_OPTIONS: '--inspect',
  LC_TIME: 'C',
});
const request = (command: string[], cwd = '~') => ({ command, cwd, env: {} });

test('no command is the login shell of the user, at home, with its dash', () => {
  const launch = resolveLaunch(request([]), user(), surroundings());
  expect(launch).toMatchObject({ file: '/bin/sh', argv: ['-sh'], cwd: home });
});

test('the environment is a login and nothing of ours', () => {
  const { env } = resolveLaunch(
    { ...request([]), env: { EXTRA: '1', LANG: 'de_DE.UTF-8' } },
    user(),
    surroundings(),
  );
  expect(env).toMatchObject({
    HOME: home,
    USER: 'someone',
    LOGNAME: 'someone',
    SHELL: '/bin/sh',
    TERM: 'xterm-256color',
    LC_TIME: 'C',
    LANG: 'de_DE.UTF-8',
    EXTRA: '1',
    PWD: home,
  });
  expect(JSON.stringify(env)).not.toMatch(/secret|NODE_OPTIONS|CHATD_/);
  expect(resolveLaunch(request([]), user(), {}).env['LANG']).toBe('C.UTF-8');
});

test('programs are found on the PATH, by path, and from the directory', () => {
  const file = join(home, 'bin', 'tool');
  expect(resolveLaunch(request(['tool', 'a']), user(), surroundings())).toMatchObject({
    file,
    argv: ['tool', 'a'],
  });
  expect(resolveLaunch(request(['./tool'], '~/bin'), user(), surroundings()).file).toBe(file);
});

test('what is missing is named, each with its own code', () => {
  const code = (command: string[], cwd?: string) => {
    try {
      resolveLaunch(request(command, cwd), user(), surroundings());
      return undefined;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  expect(code(['nothing-here'])).toBe('command-not-found');
  expect(code(['plain'])).toBe('command-not-executable');
  expect(code(['./bin'], '~')).toBe('command-not-executable');
  expect(code(['tool'], '~/absent')).toBe('directory-not-found');
  expect(code(['tool'], 'relative')).toBe('directory-not-found');
  expect(code(['tool'], '~/bin/tool')).toBe('directory-not-found');
  expect(code([''])).toBe('command-not-found');
});
