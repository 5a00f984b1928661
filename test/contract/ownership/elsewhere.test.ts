// Verdicts from other places of the same machine: namespaces, another user, a /proc that hides.
// Each needs a privilege; where it is missing the unit tests of the judgement stand alone.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Judgement, ProcessIncarnation } from '../../../src/ownership/process-incarnation.ts';
import { incarnationOfChild, ownIncarnation } from '../../../src/ownership/process-observer.ts';
import { bundleForChild } from '../../support/bundle.ts';
import { eventually, startProcess, stateOf } from '../../support/processes.ts';

const uid = process.getuid?.() ?? 0;
const may = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;

const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
const hidden = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"';

/** What a process started through `wrapper` says about `record`. */
async function judgeThrough(wrapper: string[], record: ProcessIncarnation): Promise<Judgement> {
  const main = await bundleForChild('test/support/judge-main.ts');
  const [file = '', ...args] = [...wrapper, process.execPath, main, JSON.stringify(record)];
  const { stdout, stderr } = spawnSync(file, args, { encoding: 'utf8' });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as Judgement;
}

function liveChild(): { record: ProcessIncarnation; end: () => Promise<unknown> } {
  const child = startProcess('sleep', ['60']);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return {
    record: incarnationOfChild(child.pid, uid, 'nonce-of-child'),
    end: () => {
      child.kill('SIGKILL');
      return ended;
    },
  };
}

describe('an incarnation judged from elsewhere (P, race 11)', () => {
  it('is alive and then dead from a plain second process', async () => {
    const { record, end } = liveChild();
    expect((await judgeThrough(['env'], record)).verdict).toBe('alive');
    await end();
    expect((await judgeThrough(['env'], record)).verdict).toBe('dead');
  });

  it.runIf(may('unshare', '-pf', '--mount-proc', 'true'))(
    'is unknown from another pid namespace, alive or not',
    async () => {
      const { record, end } = liveChild();
      const inside = ['unshare', '-pf', '--mount-proc'];
      expect((await judgeThrough(inside, record)).verdict).toBe('unknown');
      await end();
      expect((await judgeThrough(inside, record)).verdict).toBe('unknown');
    },
  );

  it.runIf(may('unshare', '--time', '--boottime', '100000', 'true'))(
    'is unknown from another time namespace while it lives, and dead when its pid is free',
    async () => {
      const { record, end } = liveChild();
      const inside = ['unshare', '--time', '--boottime', '100000', '--fork'];
      expect((await judgeThrough(inside, record)).verdict).toBe('unknown');
      await end();
      expect((await judgeThrough(inside, record)).verdict).toBe('dead');
    },
  );

  it.runIf(may(asNobody[0] ?? '', ...asNobody.slice(1), process.execPath, '-e', '0'))(
    'is alive also for another user, who may not signal it',
    async () => {
      const { record } = liveChild();
      expect((await judgeThrough(asNobody, record)).verdict).toBe('alive');
    },
  );

  it.runIf(may('unshare', '-m', 'sh', '-c', hidden, 'sh', ...asNobody, 'true'))(
    'is unknown under hidepid: a missing /proc entry is no death',
    async () => {
      const { record, end } = liveChild();
      const inside = ['unshare', '-m', 'sh', '-c', hidden, 'sh', ...asNobody];
      expect((await judgeThrough(inside, record)).verdict).toBe('unknown');
      await end();
      expect((await judgeThrough(inside, record)).verdict).toBe('dead');
    },
  );

  it('is dead when its number is a thread of another process now', async () => {
    const owner = startProcess(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    const tid = await eventually(
      () =>
        readdirSync(`/proc/${owner.pid}/task`)
          .map(Number)
          .find((id) => id !== owner.pid),
      'a thread',
    );
    expect(stateOf(tid)).toBeDefined();
    const record = { ...ownIncarnation({ pid: process.pid, uid, nonce: 'n' }), pid: tid };
    expect(await judgeThrough(['env'], record)).toEqual({
      verdict: 'dead',
      because: 'the pid is a thread id now',
    });
  });
});
