import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { builtDist } from '../support/built-dist.ts';
import { type ChatWorld, pressOn, programLines, type SeenMessage } from '../support/chat-world.ts';
import { Stack, waitFor } from '../support/stack.ts';

const MENU = fileURLToPath(new URL('../support/programs/menu.mjs', import.meta.url));

let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start({
    dist: builtDist(),
    config: '[profiles.missing]\ncommand = ["no-such-program"]\n',
  });
  await stack.mustCli('ensure');
});

afterAll(async () => {
  await stack.close();
});

async function open(world: ChatWorld, text = 'run'): Promise<SeenMessage> {
  const before = (await world.roots()).length;
  await world.run('alice', text);
  return await waitFor('a root message', async () => (await world.roots()).at(before));
}

function sees(world: ChatWorld, root: string, line: string): Promise<true> {
  return waitFor(`"${line}"`, async () =>
    programLines(await world.thread(root)).includes(line) ? true : undefined,
  );
}

function says(world: ChatWorld, root: string, words: string): Promise<SeenMessage> {
  return waitFor(`the words "${words}"`, async () =>
    (await world.thread(root)).find((message) => message.isBot && message.notes.includes(words)),
  );
}

function screenWith(world: ChatWorld, root: string, line: string): Promise<SeenMessage> {
  return waitFor(`a screen with "${line}"`, async () =>
    (await world.thread(root)).findLast(({ lines }) => lines.includes(line)),
  );
}

for (const kind of ['slack', 'discord'] as const) {
  describe(kind, () => {
    test('a root message names session, machine, directory, command and state', async () => {
      const root = await open(stack.worlds[kind], 'run -- cat');
      expect(root.notes).toContain('cat');
      expect(root.notes).toMatch(/session [0-9a-z]+ · \S+ · \/.*work/);
      expect(root.notes).toContain('running');
    });

    test('a message is typed, its output arrives, the message is marked as written', async () => {
      const world = stack.worlds[kind];
      const root = await open(world);
      const message = await world.type('alice', root.id, 'echo "a & b" \'<@U1>\' $((1 + 1))');
      await sees(world, root.id, 'a & b <@U1> 2');
      await waitFor('a mark on the message', async () => {
        const seen = (await world.thread(root.id)).find(({ id }) => id === message);
        return seen !== undefined && seen.reactions.length > 0 ? true : undefined;
      });
    });

    test('a full-screen program is one edited message, driven by keys and buttons', async () => {
      const world = stack.worlds[kind];
      const root = await open(world);
      await world.type('alice', root.id, `node ${MENU}`);
      await screenWith(world, root.id, '> espresso');
      await world.type('alice', root.id, '!keys down');
      await waitFor('the key', () => pressOn(world, root.id, '> cappuccino', '↓'));
      await screenWith(world, root.id, '> tea');
      await waitFor('the choice', () => pressOn(world, root.id, '> tea', 'Enter'));
      await sees(world, root.id, 'You chose tea.');
    });

    test('a double exclamation mark types one, and an unknown word is never typed', async () => {
      const world = stack.worlds[kind];
      const root = await open(world, 'run -- cat');
      await world.type('alice', root.id, '!!bang');
      await sees(world, root.id, '!bang');
      await world.type('alice', root.id, '!nonsense');
      await world.type('alice', root.id, 'after');
      await sees(world, root.id, 'after');
      expect(programLines(await world.thread(root.id)).join('\n')).not.toContain('nonsense');
    });

    test('the exit code is said, and what is typed afterwards is answered', async () => {
      const world = stack.worlds[kind];
      const root = await open(world, 'run -- exit 7');
      await says(world, root.id, 'exited with code 7');
    });

    test('a command that does not exist is a line in the thread', async () => {
      const world = stack.worlds[kind];
      const root = await open(world, 'run -- no-such-command-here');
      await waitFor('the line of the shell', async () =>
        programLines(await world.thread(root.id)).find((line) => line.includes('not found')),
      );
      await says(world, root.id, 'exited with code 127');
    });

    test('a password prompt refuses chat text and takes it from the form', async () => {
      const world = stack.worlds[kind];
      const root = await open(
        world,
        'run -- read -s -p "Password: " p; echo; printf "got %s characters\\n" "$(printf %s "$p" | wc -c)"',
      );
      await sees(world, root.id, 'Password:');
      await world.type('alice', root.id, 'hunter2');
      const refusal = await says(world, root.id, 'asks for a secret');
      await world.click('alice', root.id, refusal.id, 'Type it unseen');
      await waitFor('the form', async () => {
        await world.submit('alice', 'correct horse');
        return true as const;
      });
      await sees(world, root.id, 'got 13 characters');
    });

    test('nobody but a driver types, and being refused is said', async () => {
      const world = stack.worlds[kind];
      const root = await open(world, 'run -- cat');
      const message = await world.type('bob', root.id, 'let me in');
      await waitFor('a mark of refusal', async () => {
        const seen = (await world.thread(root.id)).find(({ id }) => id === message);
        return seen !== undefined && seen.reactions.length > 0 ? true : undefined;
      });
      await world.type('alice', root.id, 'mine');
      await sees(world, root.id, 'mine');
      expect(programLines(await world.thread(root.id))).not.toContain('let me in');
    });

    test('!end ends the program', async () => {
      const world = stack.worlds[kind];
      const root = await open(world, 'run -- sleep 1000');
      await world.type('alice', root.id, '!end');
      await says(world, root.id, 'The program ended by');
    });
  });
}

test('everything sent would have been accepted as it was by Slack and Discord', async () => {
  expect(await stack.control.violations()).toEqual([]);
});
