import { describe, expect, it } from 'vitest';
import {
  chooseStartWay,
  type RunCommand,
  serviceOf,
} from '../../../src/ownership/service-cgroup.ts';

describe('the service a process is part of', () => {
  it.each([
    ['/', undefined],
    [undefined, undefined],
    ['/init.scope', undefined],
    ['/system.slice/docker-0123.scope', undefined],
    ['/docker/0123', undefined],
    ['/user.slice/user-1000.slice/session-3.scope', undefined],
    ['/user.slice/user-1000.slice/user@1000.service', undefined],
    ['/user.slice/user-1000.slice/user@1000.service/app.slice/app-term-1.scope', undefined],
    [
      '/user.slice/user-1000.slice/user@1000.service/app.slice/chatd-slack.service',
      'chatd-slack.service',
    ],
    ['/system.slice/chatd.service', 'chatd.service'],
    ['/system.slice/chatd.service/sub', 'chatd.service'],
  ])('%s: %s', (path, unit) => {
    expect(serviceOf(path)).toBe(unit);
  });
});

describe('the way to start what must outlive it', () => {
  const inService = '/user.slice/user-1000.slice/user@1000.service/app.slice/chatd-slack.service';

  /** Answers by the first words of a command; everything else cannot be run. */
  function runner(answers: Record<string, { code: number; stdout: string }>): {
    run: RunCommand;
    asked: string[];
  } {
    const asked: string[] = [];
    return {
      asked,
      run: async (file, args) => {
        const command = [file, ...args].join(' ');
        asked.push(command);
        return answers[Object.keys(answers).find((key) => command.startsWith(key)) ?? ''];
      },
    };
  }

  it('is direct, without running anything, outside a service', async () => {
    const { run, asked } = runner({});
    expect(await chooseStartWay('/', run)).toEqual({ kind: 'direct' });
    expect(asked).toEqual([]);
  });

  it('is direct when the unit ends its main process only', async () => {
    const { run } = runner({ 'systemctl --user show': { code: 0, stdout: 'KillMode=process\n' } });
    expect(await chooseStartWay(inService, run)).toEqual({ kind: 'direct' });
  });

  it('is a scope of the user manager when that works', async () => {
    const { run } = runner({
      'systemctl --user show': { code: 0, stdout: 'KillMode=control-group\n' },
      'systemd-run --user --scope': { code: 0, stdout: '' },
    });
    expect(await chooseStartWay(inService, run)).toEqual({
      kind: 'scope',
      prefix: ['systemd-run', '--user', '--scope', '--quiet', '--collect', '--'],
    });
  });

  it('is refused with a way out when neither works', async () => {
    const { run } = runner({ 'systemd-run --user': { code: 1, stdout: '' } });
    const way = await chooseStartWay(inService, run);
    expect(way).toMatchObject({ kind: 'refused' });
    expect(way.kind === 'refused' && way.because).toMatch(/chatd-slack\.service.*unit of its own/);
  });
});
