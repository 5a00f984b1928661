import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { builtDist } from '../support/built-dist.ts';
import { type ChatWorld, pressOn, type SeenMessage } from '../support/chat-world.ts';
import { Stack, waitFor } from '../support/stack.ts';

const MENU = fileURLToPath(new URL('../support/programs/menu.mjs', import.meta.url));

let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start({ dist: builtDist() });
  await stack.mustCli('ensure');
});

afterAll(async () => {
  await stack.close();
});

function file(world: ChatWorld, root: string, name: string): Promise<SeenMessage> {
  return waitFor(`a file ${name} in ${world.kind}`, async () =>
    (await world.thread(root)).find(({ files }) => files.includes(name)),
  );
}

for (const kind of ['slack', 'discord'] as const) {
  describe(kind, () => {
    test('screens and printed pictures come as files', async () => {
      const world = stack.worlds[kind];
      await world.run('alice', 'run');
      const root = await waitFor('a root message', async () => (await world.roots()).at(0));
      await world.type('alice', root.id, '!screen');
      await file(world, root.id, 'screen.png');
      await world.type('alice', root.id, `printf '\\033Pq#0;2;100;0;0!20~\\033\\\\'`);
      await file(world, root.id, 'picture.png');
      await world.type('alice', root.id, `node ${MENU}`);
      await waitFor('the menu', () => pressOn(world, root.id, '> espresso', 'Enter'));
      await waitFor('its end', async () =>
        (await world.thread(root.id)).find(({ lines }) => lines.includes('You chose espresso.')),
      );
      if (kind === 'discord') await file(world, root.id, 'last-screen.png');
      expect(await stack.control.violations()).toEqual([]);
    });
  });
}
