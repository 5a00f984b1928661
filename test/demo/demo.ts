// The tour: sandbox, keeper, host and both chat daemons as real processes in a private directory, each
// step verified against what the sandbox stored. Exits 0 only if every step was.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Kind } from '../../src/base/paths.ts';
import { type ChatWorld, pressOn, programLines, type SeenMessage } from '../support/chat-world.ts';
import { Stack, waitFor } from '../support/stack.ts';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const MENU = fileURLToPath(new URL('../support/programs/menu.mjs', import.meta.url));
const LINES = 120;
const KINDS: readonly Kind[] = ['slack', 'discord'];

const startedMs = Date.now();

function say(text: string): void {
  const seconds = ((Date.now() - startedMs) / 1000).toFixed(1).padStart(5);
  process.stdout.write(`${seconds} s  ${text}\n`);
}

function check(condition: boolean, what: string): void {
  if (!condition) throw new Error(`Not so: ${what}`);
  say(`  ✓ ${what}`);
}

/** Prints a thread the way a person reads it. */
function show(kind: Kind, messages: readonly SeenMessage[], last: number): void {
  process.stdout.write(`\n        ┌─ the thread in ${kind}\n`);
  for (const message of messages.slice(-last)) {
    const who = message.isBot ? 'chatd' : 'alice';
    const words = message.notes === '' ? [] : message.notes.split('\n');
    const shown = [...words, ...message.lines.map((line) => `▏ ${line}`)];
    const more = shown.length > 14 ? [`… ${shown.length - 14} lines more`] : [];
    for (const [index, line] of [...shown.slice(0, 14), ...more].entries()) {
      process.stdout.write(`        │ ${index === 0 ? who.padEnd(6) : '      '} ${line}\n`);
    }
    if (message.buttons.length > 0) {
      process.stdout.write(`        │        [${message.buttons.join('] [')}]\n`);
    }
  }
  process.stdout.write('        └─\n\n');
}

async function startSession(world: ChatWorld): Promise<string> {
  const before = (await world.roots()).length;
  await world.run('alice', 'run');
  const root = await waitFor(`a root message in ${world.kind}`, async () =>
    (await world.roots()).at(before),
  );
  check(/session [0-9a-z]+ · /.test(root.notes), `${world.kind}: a root message names the session`);
  return root.id;
}

async function seesLine(world: ChatWorld, root: string, line: string): Promise<void> {
  await waitFor(`"${line}" in ${world.kind}`, async () =>
    programLines(await world.thread(root)).includes(line) ? true : undefined,
  );
  check(true, `${world.kind}: the thread shows "${line}"`);
}

async function typesACommand(world: ChatWorld, root: string): Promise<void> {
  await world.type('alice', root, 'echo "the answer is $((6 * 7))"');
  await seesLine(world, root, 'the answer is 42');
}

async function drivesAFullScreenProgram(world: ChatWorld, root: string): Promise<void> {
  await world.type('alice', root, `node ${MENU}`);
  await sees(world, root, 'the menu', '> espresso');
  await world.type('alice', root, '!keys down');
  await waitFor('a button below the menu', () => pressOn(world, root, '> cappuccino', '↓'));
  const moved = await sees(world, root, 'the menu after a button', '> tea');
  check(
    moved.edited,
    `${world.kind}: a button moves the menu, and the live screen is edited in place`,
  );
  show(world.kind, await world.thread(root), 2);
  await waitFor('the choice', () => pressOn(world, root, '> tea', 'Enter'));
  await seesLine(world, root, 'You chose tea.');
}

async function sees(
  world: ChatWorld,
  root: string,
  what: string,
  line: string,
): Promise<SeenMessage> {
  return await waitFor(`${what} in ${world.kind}`, async () =>
    (await world.thread(root)).findLast((message) => message.lines.includes(line)),
  );
}

/** Numbers of the counted lines in a thread, in the order they stand there. */
async function counted(world: ChatWorld, root: string): Promise<readonly number[]> {
  return programLines(await world.thread(root)).flatMap((line) => {
    const match = /^count (\d+)$/.exec(line);
    return match === null ? [] : [Number(match[1])];
  });
}

async function survivesKills(stack: Stack, kind: Kind, root: string): Promise<void> {
  const world = stack.worlds[kind];
  await world.type(
    'alice',
    root,
    `for i in $(seq 1 ${LINES}); do echo "count $i"; sleep 0.025; done`,
  );
  await waitFor(`the first lines in ${kind}`, async () =>
    (await counted(world, root)).length > 5 ? true : undefined,
  );
  const daemon = stack.daemonPid(kind);
  process.kill(daemon, 'SIGKILL');
  say(`  SIGKILL to the ${kind} daemon (pid ${daemon}) in the middle of output`);
  await stack.mustCli('ensure', kind);
  if (kind === 'slack') {
    const host = stack.hostPid();
    process.kill(host, 'SIGKILL');
    say(`  SIGKILL to the host (pid ${host})`);
  }
  const numbers = await waitFor(`all ${LINES} lines in ${kind}`, async () => {
    const seen = await counted(world, root);
    return seen.length >= LINES ? seen : undefined;
  });
  check(
    numbers.length === LINES && numbers.every((number, index) => number === index + 1),
    `${kind}: all ${LINES} lines are there, each once, in order`,
  );
}

async function tour(stack: Stack): Promise<Readonly<Record<Kind, string>>> {
  say('1. Start the daemons');
  process.stdout.write(indent(await stack.mustCli('ensure')));

  say('2. Run a shell in Slack and in Discord');
  const roots = { slack: '', discord: '' };
  for (const kind of KINDS) roots[kind] = await startSession(stack.worlds[kind]);

  say('3. Type a command');
  for (const kind of KINDS) await typesACommand(stack.worlds[kind], roots[kind]);
  for (const kind of KINDS) show(kind, await stack.worlds[kind].thread(roots[kind]), 3);

  say('4. Drive a full-screen program with keys');
  for (const kind of KINDS) await drivesAFullScreenProgram(stack.worlds[kind], roots[kind]);

  say('5. Kill the daemons, then the host, in the middle of output');
  await Promise.all(KINDS.map((kind) => survivesKills(stack, kind, roots[kind])));

  say('6. Reload the daemons; the shells do not notice');
  process.stdout.write(indent(await stack.mustCli('reload')));
  for (const kind of KINDS) {
    await stack.worlds[kind].type('alice', roots[kind], 'echo "still the same shell: $?"');
    await seesLine(stack.worlds[kind], roots[kind], 'still the same shell: 0');
  }

  say('7. End the shells');
  for (const kind of KINDS) {
    await stack.worlds[kind].type('alice', roots[kind], 'exit 3');
    await waitFor(`the exit in ${kind}`, async () =>
      (await stack.worlds[kind].thread(roots[kind])).find((m) =>
        m.notes.includes('exited with code 3'),
      ),
    );
    check(true, `${kind}: the thread says the program exited with code 3`);
    show(kind, await stack.worlds[kind].thread(roots[kind]), 2);
  }
  return roots;
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '         ');
}

async function main(): Promise<void> {
  const serve = process.argv.includes('--serve');
  if (!existsSync(DIST)) throw new Error('There is no build: run npm run build');
  const stack = await Stack.start({ dist: DIST });
  let failed = false;
  try {
    say(`The page: ${stack.control.url}`);
    await tour(stack);
    const violations = await stack.control.violations();
    for (const violation of violations) say(`  violation: ${JSON.stringify(violation)}`);
    check(violations.length === 0, 'nothing was sent that Slack or Discord would refuse or mangle');
    if (serve) {
      say(`Left running. Open ${stack.control.url} and play; Ctrl-C ends everything.`);
      await new Promise((resolve) => process.once('SIGINT', resolve));
    }
    say('8. Stop');
    process.stdout.write(indent(await stack.mustCli('stop')));
  } catch (error) {
    failed = true;
    say(`FAILED: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    await stack.close();
  }
  say(failed ? 'The demo failed.' : 'Every step was verified against what the sandbox stored.');
  process.exitCode = failed ? 1 : 0;
}

await main();
