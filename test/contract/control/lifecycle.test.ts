// ensure, stop, reload and status on real processes: the real CLI bundle and the fixture daemon.

import { readFileSync, rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildChatd, type ChatdBuild } from '../../support/chatd-build.ts';
import { type ChatdHome, chatdHome, SLACK_CONFIG } from '../../support/chatd-home.ts';
import { eventually, stateOf } from '../../support/processes.ts';

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

function alive(pid: number): boolean {
  const state = stateOf(pid);
  return state !== undefined && state !== 'Z';
}

describe('ensure', () => {
  it('I1: starts one daemon for fifty callers on a cold directory, and attaches the other 49', async () => {
    const runs = await Promise.all(Array.from({ length: 50 }, () => home.act(['ensure', 'slack'])));
    const outcomes = runs.map((run) => run.outcome).sort();
    expect(outcomes.filter((outcome) => outcome === 'spawned')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'attached')).toHaveLength(49);
    expect(runs.every((run) => run.exitCode === 0)).toBe(true);
    expect(new Set(runs.map((run) => run.after?.pid)).size).toBe(1);
    expect(home.pids()).toHaveLength(1);
  }, 180_000);

  it('attaches to the daemon that runs, and says so when its configuration differs', async () => {
    const first = await home.act(['ensure', 'slack']);
    home.configure(`${SLACK_CONFIG}drivers = ["U0123"]\n`);
    const second = await home.act(['ensure', 'slack']);
    expect(second).toMatchObject({
      outcome: 'attached',
      after: { pid: first.after?.pid },
      warnings: ['its configuration differs from the file; to apply: chatd reload slack'],
    });
    const reloaded = await home.act(['reload', 'slack']);
    expect(reloaded.outcome).toBe('reloaded');
    expect((await home.act(['ensure', 'slack'])).warnings).toEqual([]);
  });

  it('I11: starts another one after the owner was killed', async () => {
    const first = await home.act(['ensure', 'slack']);
    process.kill(first.after?.pid ?? 0, 'SIGKILL');
    await eventually(() => !alive(first.after?.pid ?? 0), 'death');
    const second = await home.act(['ensure', 'slack']);
    expect(second.outcome).toBe('spawned');
    expect(second.after?.pid).not.toBe(first.after?.pid);
  });

  it('is off for a kind that is not configured: 21 when named, 0 among all', async () => {
    expect((await home.run(['ensure', 'discord'])).code).toBe(21);
    expect((await home.run(['ensure'])).code).toBe(0);
  });

  it('says why a daemon ended before it was connected, with the exit code of the cause', async () => {
    const run = await home.act(['ensure', 'slack'], { prepareError: 'slack.bot_token: no such' });
    expect(run).toMatchObject({
      outcome: 'did-not-become-ready',
      exitCode: 2,
      message: 'it ended: slack.bot_token: no such',
    });
  });

  it('stops a daemon that signed in to another account', async () => {
    const run = await home.act(['ensure', 'slack'], { signedInAs: 'T0999/A0999' });
    expect(run.exitCode).toBe(2);
    expect(run.message).toContain(
      'the token is for T0999/A0999, the configuration says T0123/A0123',
    );
  });

  it('reports a daemon that owns but is not connected, and leaves it running', async () => {
    const run = await home.act(['ensure', 'slack', '--no-wait'], { healthy: false });
    expect(run.outcome).toBe('spawned');
    expect(run.message).toContain('not connected: ');
    expect(alive(run.after?.pid ?? 0)).toBe(true);
  });

  it('prints one line and exit code 2 for a broken configuration', async () => {
    home.configure('[slack]\nbot_tokn = "x"\n');
    const run = await home.run(['ensure', 'slack']);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain(`${home.path}/chatd.toml:2: slack.bot_tokn: unknown key`);
    expect(run.stderr).not.toContain('    at ');
  });
});

describe('stop', () => {
  it('§4.4: proves the end, answers the request, and is idempotent', async () => {
    const { after } = await home.act(['ensure', 'slack']);
    const stopped = await home.act(['stop', 'slack']);
    expect(stopped).toMatchObject({ outcome: 'stopped', ok: true, before: { pid: after?.pid } });
    expect(alive(after?.pid ?? 0)).toBe(false);
    expect(home.state()).toMatchObject({ phase: 'stopped', stopCause: { code: 'stop' } });
    const response: unknown = JSON.parse(readFileSync(home.daemon.controlResponse, 'utf8'));
    expect(response).toMatchObject({ action: 'stop', outcome: 'accepted' });
    expect((await home.act(['stop', 'slack'])).outcome).toBe('not-running');
  });

  it('works without a configuration, and by a bare SIGTERM', async () => {
    const first = await home.act(['ensure', 'slack']);
    process.kill(first.after?.pid ?? 0, 'SIGTERM');
    await eventually(() => !alive(first.after?.pid ?? 0), 'end');
    expect(home.state()).toMatchObject({ phase: 'stopped', stopCause: { code: 'signal' } });
    await home.act(['ensure', 'slack']);
    home.configure('');
    expect((await home.act(['stop', 'slack'])).outcome).toBe('stopped');
  });

  it('I12: is not held up by a service that does not stop, nor by a command that hangs', async () => {
    await home.act(['ensure', 'slack'], { stopMs: 3_600_000, hangCommand: true });
    expect((await home.act(['stop', 'slack'])).outcome).toBe('stopped');
  });
});

describe('reload', () => {
  it('starts one when nobody runs, unless told not to', async () => {
    expect((await home.act(['reload', 'slack', '--no-spawn'])).outcome).toBe('nothing-to-reload');
    expect((await home.act(['reload', 'slack'])).outcome).toBe('spawned');
  });

  it('leaves one daemon after two reloads and an ensure at once', async () => {
    await home.act(['ensure', 'slack']);
    const runs = await Promise.all([
      home.act(['reload', 'slack']),
      home.act(['reload', 'slack']),
      home.act(['ensure', 'slack']),
    ]);
    for (const run of runs) expect([run.outcome, run.ok]).toEqual([run.outcome, true]);
    expect(home.pids()).toHaveLength(1);
    expect(runs.filter((run) => run.outcome === 'reloaded').length).toBeGreaterThan(0);
  });

  it('I12: has a defined outcome when it races a stop', async () => {
    await home.act(['ensure', 'slack']);
    const [stop, reload] = await Promise.all([
      home.act(['stop', 'slack']),
      home.act(['reload', 'slack']),
    ]);
    expect(['stopped', 'not-running', 'owner-changed']).toContain(stop.outcome);
    expect(['reloaded', 'spawned', 'did-not-become-ready']).toContain(reload.outcome);
    expect(home.pids().length).toBeLessThanOrEqual(1);
  });
});

describe('a running daemon', () => {
  it('I2, I7: beats from its loop, and stops, writing nothing more, when its lock file is replaced', async () => {
    const { after } = await home.act(['ensure', 'slack']);
    const before = home.state()?.heartbeat.seq ?? 0;
    await eventually(() => (home.state()?.heartbeat.seq ?? 0) > before, 'a heartbeat');
    rmSync(home.daemon.lock);
    await eventually(() => !alive(after?.pid ?? 0), 'the end of an owner without a lock');
    expect(home.state()?.phase).not.toBe('stopped');
    expect((await home.act(['ensure', 'slack'])).outcome).toBe('spawned');
  });

  it('is refused when another state directory uses the same token', async () => {
    const other = chatdHome(build);
    try {
      const token = `xoxb-${process.pid}`;
      await home.act(['ensure', 'slack'], { token });
      const refused = await other.act(['ensure', 'slack'], { token });
      expect(refused.exitCode).toBe(21);
      expect(refused.message).toContain('another chatd on this machine uses the same token');
    } finally {
      other.destroy();
    }
  });
});
