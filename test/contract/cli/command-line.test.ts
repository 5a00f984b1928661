// What a person gets from the command line itself: exit codes, one line, no stack traces, and no
// surprise when chatd was not built.

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildChatd, type ChatdBuild } from '../../support/chatd-build.ts';
import { type ChatdHome, chatdHome } from '../../support/chatd-home.ts';

let build: ChatdBuild;
let home: ChatdHome;

beforeAll(async () => {
  build = await buildChatd();
}, 120_000);
afterAll(() => build.remove());
beforeEach(() => {
  home = chatdHome(build);
});
afterEach(() => home.destroy());

describe('the command line', () => {
  it.each([
    [['frob'], 2, "unknown command 'frob'"],
    [['status', '--frob'], 2, "unknown option '--frob'"],
    [['daemon'], 2, "missing required argument 'kind'"],
    [['stop', 'irc'], 2, 'Cannot use kind irc: expected slack or discord'],
    [['status', 'irc'], 2, 'Cannot use kind irc: expected slack or discord'],
    [['daemon', 'discord'], 21, 'off: set [discord] enabled = true'],
    [['bind-thread', 'slack', '--session', 's', '--thread', 'C0123/1.2'], 21, 'nobody is running'],
    [['bind-thread', 'slack', '--session', 's', '--thread', 'x'], 2, 'Cannot read thread x'],
    [['store', 'check', 'slack'], 1, 'there is none'],
  ])('%j exits %d and says why in one line', async (args, code, said) => {
    const run = await home.run(args);
    expect({ code: run.code, stderr: run.stderr }).toEqual({
      code,
      stderr: expect.stringContaining(said) as string,
    });
    expect(run.stderr).not.toMatch(/^ {4}at /m);
  });

  it('helps without failing', async () => {
    const run = await home.run(['--help']);
    expect(run.code).toBe(0);
    expect(run.stdout).toContain('Real terminals in Slack and Discord threads');
  });

  it('says that it was not built when a daemon’s bundle is missing', async () => {
    const broken = await buildChatd();
    const there = chatdHome(broken);
    try {
      rmSync(join(broken.bundles, 'slack.js'));
      const run = await there.run(['ensure', 'slack']);
      expect(run.code).toBe(1);
      expect(run.stderr).toContain('run "npm run build" first');
    } finally {
      there.destroy();
      broken.remove();
    }
  });
});

describe('the warm path', () => {
  it('means the same as the whole grammar', async () => {
    const warm = await home.run(['status', '--json']);
    const whole = await home.run(['-v', 'status', '--json']);
    expect(JSON.parse(warm.stdout)).toEqual(JSON.parse(whole.stdout));
  });
});

describe('config check', () => {
  it('names each secret that cannot be had', async () => {
    const run = await home.run(['config', 'check']);
    expect(run.code).toBe(2);
    expect(run.stderr.trim().split('\n')).toEqual([
      expect.stringContaining('slack.bot_token: environment variable BOT is not set'),
      expect.stringContaining('slack.app_token: environment variable APP is not set'),
    ]);
  });

  it('says where the example is when there is no file', async () => {
    rmSync(join(home.path, 'chatd.toml'));
    const run = await home.run(['config', 'check']);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('copy config/chatd.example.toml there');
  });
});

describe('status', () => {
  it('explains every fact, and goes on while the configuration is broken', async () => {
    await home.run(['ensure', 'slack']);
    writeFileSync(join(home.path, 'chatd.toml'), 'broken');
    const run = await home.run(['status', 'slack', '--explain']);
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(/owner\.lock: held/);
    expect(run.stdout).toMatch(/that process: alive \(same pid, start time and boot\)/);
    expect(run.stdout).toContain('so: compatible');
    expect(run.stderr).toContain('chatd.toml:1: not TOML');
  });
});
