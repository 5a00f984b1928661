// bind-thread through the real CLI, daemons, host and SDKs on the sandbox, for both kinds.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { builtDist } from '../support/built-dist.ts';
import { programLines } from '../support/chat-world.ts';
import { Stack, waitFor } from '../support/stack.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start({ dist: builtDist() });
  await stack.mustCli('ensure');
});
afterAll(async () => {
  await stack.close();
});

describe.each(['slack', 'discord'] as const)('%s', (kind) => {
  test('binds a session of the CLI to a thread that a person had, and believes the store', async () => {
    const world = stack.worlds[kind];
    const before = (await world.roots()).length;
    await world.run('alice', 'run -- cat');
    const root = await waitFor('a root', async () => (await world.roots()).at(before));
    const session = (await stack.mustCli('run', '--', 'cat')).trim();
    const thread = kind === 'slack' ? `${world.facts.channel}/${root.id}` : root.id;
    const bind = ['bind-thread', kind, '--session', session, '--thread', thread];

    const taken = await stack.cli(...bind);
    expect(taken.code).toBe(1);
    expect(taken.stderr).toContain('root_taken: the thread is bound to session');
    const moved = await stack.mustCli(...bind, '--move');
    expect(moved).toContain(`${session} is bound to ${world.facts.channel}/${root.id}`);
    expect(await stack.mustCli(...bind)).toContain('is already bound to');

    const line = `typed after the bind in ${kind}`;
    await world.type('alice', root.id, line);
    await waitFor(`"${line}"`, async () =>
      programLines(await world.thread(root.id)).includes(line) ? true : undefined,
    );

    const unbound = await stack.mustCli('unbind-thread', kind, '--session', session);
    expect(unbound).toContain(`${session} is bound to no thread`);
    expect(await stack.mustCli('end', session)).toContain('exited');
    const check = await stack.mustCli('store', 'check', kind);
    expect(check).toContain(`${kind}: ok`);
  });

  test('names what cannot be bound, and does nothing', async () => {
    const nobody = ['--session', 'nobody', '--thread'];
    const thread = kind === 'slack' ? 'C0123/1700000000.000100' : '123456789';
    const missing = await stack.cli('bind-thread', kind, ...nobody, thread);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('session_not_found');
    const nonsense = await stack.cli('bind-thread', kind, ...nobody, 'the one over there');
    expect(nonsense.code).toBe(2);
    expect(nonsense.stderr).toContain('expected a');
  });
});
