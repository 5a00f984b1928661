// What an SDK rejects where nobody waits costs a connection and not the process; a bug does end it.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

function run(rejection: string): { status: number | null; said: string } {
  const child = fileURLToPath(new URL('../../support/rejecting-main.ts', import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, ['--import', 'tsx', child, rejection], {
    encoding: 'utf8',
    timeout: 50_000,
  });
  return { status, said: stdout };
}

it.each(['nothing', 'sdk'])('survives a rejection of the SDK (%s)', (rejection) => {
  expect(run(rejection)).toEqual({ status: 0, said: 'rebuilt\nalive\n' });
});

it('does not survive a bug', () => {
  const { said, status } = run('bug');
  expect(status).not.toBe(0);
  expect(said).toBe('');
});
