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

for (const kind of ['slack', 'discord'] as const) {
  describe(kind, () => {
    test('what was written while chatd was away is offered, typed once when accepted', async () => {
      const world = stack.worlds[kind];
      await world.run('alice', 'run -- cat');
      const root = await waitFor('a root message', async () => (await world.roots()).at(-1));
      await world.type('alice', root.id, 'before');
      await waitFor('the line', async () =>
        programLines(await world.thread(root.id)).includes('before') ? true : undefined,
      );
      await stack.mustCli('stop', kind);
      await world.type('alice', root.id, 'rm -rf everything');
      await stack.mustCli('ensure', kind);
      const offer = await waitFor('the offer', async () =>
        (await world.thread(root.id)).find((message) => message.buttons.includes('Type it now')),
      );
      expect(offer.notes).toContain('rm -rf everything');
      expect(programLines(await world.thread(root.id))).not.toContain('rm -rf everything');
      await world.click('alice', root.id, offer.id, 'Type it now');
      await waitFor('the line of cat', async () =>
        programLines(await world.thread(root.id)).includes('rm -rf everything') ? true : undefined,
      );
      await world.click('alice', root.id, offer.id, 'Type it now');
      await world.type('alice', root.id, 'after');
      const lines = await waitFor('the line after', async () => {
        const seen = programLines(await world.thread(root.id));
        return seen.filter((line) => line === 'after').length === 2 ? seen : undefined;
      });
      // The terminal echoes it once and cat prints it once.
      expect(lines.filter((line) => line === 'rm -rf everything')).toHaveLength(2);
    });

    test('stopping and reloading a chat daemon leave the session and its shell alone', async () => {
      const world = stack.worlds[kind];
      const earlier = (await world.roots()).length;
      await world.run('alice', 'run');
      const root = await waitFor('a root message', async () => (await world.roots()).at(earlier));
      const pid = async (mark: string): Promise<string> => {
        await world.type('alice', root.id, `echo ${mark}=$$`);
        return await waitFor(`the pid ${mark}`, async () => {
          const line = programLines(await world.thread(root.id)).find((text) =>
            new RegExp(`^${mark}=\\d+$`).test(text),
          );
          return line?.split('=')[1];
        });
      };
      const first = await pid('first');
      await stack.mustCli('reload', kind);
      expect(await pid('second')).toBe(first);
    });
  });
}

test('nothing that was sent would have been refused or mangled', async () => {
  expect(await stack.control.violations()).toEqual([]);
});
