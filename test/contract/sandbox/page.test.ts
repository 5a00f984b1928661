// The page in a real browser: what a person types, presses and sees, at a desk and on a phone.
// CHATD_PICTURES=docs/pictures keeps the screenshots there.

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { DiscordBox, idOf, until } from '../../support/discord-box.ts';

const DESK = { width: 1440, height: 860 };
const PHONE = { width: 390, height: 800 };

let browser: Browser;
let box: DiscordBox;
let pictures: string;
const complaints: string[] = [];

beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
});

afterAll(async () => {
  await browser.close();
});

beforeEach(async () => {
  box = await DiscordBox.start();
  pictures = process.env['CHATD_PICTURES'] ?? (await mkdtemp(join(tmpdir(), 'chatd-pictures-')));
  await mkdir(pictures, { recursive: true });
  complaints.length = 0;
});

afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
  await box.close();
  if (process.env['CHATD_PICTURES'] === undefined) await rm(pictures, { recursive: true });
  expect(complaints).toEqual([]);
});

async function open(hash: string, viewport: { width: number; height: number }): Promise<Page> {
  const page = await browser.newPage({ viewport });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (line) => {
    // A refused control call is a 400 the page shows in words.
    if (line.type() === 'error' && !line.text().includes('400')) complaints.push(line.text());
  });
  await page.goto(`${box.sandbox.url}/${hash}`);
  return page;
}

async function sessionThread(): Promise<{ readonly thread: string; readonly live: string }> {
  const root = await box.call('POST', `/channels/${box.ops}/messages`, {
    content: '🟢 **build-7** on `devbox` in `~/src/app`\n-# bash · running · alice',
    allowed_mentions: { parse: [] },
  });
  const thread = await box.call(
    'POST',
    `/channels/${box.ops}/messages/${idOf(root.json)}/threads`,
    {
      name: 'build-7',
    },
  );
  const id = idOf(thread.json);
  const live = await box.call('POST', `/channels/${id}/messages`, {
    content: '```ansi\n$ npm test\n\u001b[32m ✓\u001b[0m text.test.ts\n```',
    components: [
      { type: 1, components: [{ type: 2, style: 2, label: '^C', custom_id: 'ctrl_c' }] },
    ],
  });
  return { thread: id, live: idOf(live.json) };
}

test('a person types into a Discord thread and reads live edits, at a desk', async () => {
  const { thread, live } = await sessionThread();
  const page = await open(`#/discord/${box.ops}/${thread}`, DESK);
  const pane = page.getByRole('region', { name: 'Thread' });
  await pane.getByRole('textbox').fill('npm test');
  await pane.getByRole('textbox').press('Enter');
  await pane.getByText('npm test', { exact: true }).waitFor();
  const stored = await box.messages(thread);
  expect(stored.at(-1)).toMatchObject({ content: 'npm test', author: { name: 'alice' } });

  await box.call('PATCH', `/channels/${thread}/messages/${live}`, {
    content:
      '```ansi\n$ npm test\n\u001b[32m ✓\u001b[0m text.test.ts\n\u001b[31m ✗\u001b[0m gate.test.ts\n```',
  });
  await pane.getByText('gate.test.ts').waitFor();
  await pane.getByText('(edited)').waitFor();
  expect(await pane.locator('pre .fg-r').textContent()).toContain('✗');
  await page.getByRole('button', { name: 'Desktop client' }).click();
  await pane.locator('pre .fg-r').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Phone client' }).click();
  await pane.getByLabel('Attach a file').setInputFiles({
    name: 'notes.txt',
    mimeType: 'text/plain',
    buffer: Buffer.from('hello'),
  });
  await pane.getByText('notes.txt').waitFor();
  await page.screenshot({ path: join(pictures, 'sandbox-discord.png') });
});

test('buttons, modals and ephemeral answers belong to the person who acts, by keyboard alone', async () => {
  const { thread, live } = await sessionThread();
  const gateway = await box.gateway();
  await gateway.op(10);
  gateway.identify(box.info.token);
  await gateway.event('GUILD_CREATE');
  const page = await open(`#/discord/${box.ops}/${thread}`, DESK);
  const pane = page.getByRole('region', { name: 'Thread' });
  await pane.getByRole('button', { name: '^C' }).focus();
  await page.keyboard.press('Enter');
  const click = (await gateway.event('INTERACTION_CREATE')).d as { id: string; token: string };
  await box.call('POST', `/interactions/${click.id}/${click.token}/callback`, {
    type: 9,
    data: {
      title: 'Send a line',
      custom_id: 'send',
      components: [
        { type: 18, label: 'Line', component: { type: 4, custom_id: 'line', style: 1 } },
      ],
    },
  });
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Send a line').waitFor();
  await dialog.getByRole('textbox').fill('whoami');
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  const submit = (
    await until(
      () => gateway.frames.find((frame) => (frame.d as { type?: number } | null)?.type === 5),
      'modal submit',
    )
  ).d as { id: string; token: string };
  await box.call('POST', `/interactions/${submit.id}/${submit.token}/callback`, {
    type: 4,
    data: { content: 'sent to the shell', flags: 64 },
  });
  await pane.getByText('sent to the shell').waitFor();
  await pane.getByText('Only visible to alice').waitFor();
  await page.getByRole('combobox', { name: 'Person' }).selectOption('bob');
  await pane.getByText('sent to the shell').waitFor({ state: 'detached' });
  expect(live).not.toBe('');
});

test('a slash command is typed with its option, and a command nobody knows is refused in words', async () => {
  await box.call(
    'PUT',
    `/applications/${box.info.applicationId}/guilds/${box.info.guildId}/commands`,
    [
      {
        name: 'term',
        description: 'Terminals',
        options: [
          {
            type: 1,
            name: 'run',
            description: 'Run a command',
            options: [{ type: 3, name: 'command', description: 'What', required: true }],
          },
        ],
      },
    ],
  );
  const gateway = await box.gateway();
  await gateway.op(10);
  gateway.identify(box.info.token);
  await gateway.event('GUILD_CREATE');
  const page = await open(`#/discord/${box.ops}`, DESK);
  const field = page.getByRole('textbox');
  // A box that the first view of the page shows may make way for the channel's own: typed until it stays.
  await expect
    .poll(
      async () => {
        await field.fill('/te');
        return await page.getByText('/term run').isVisible();
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  await field.fill('/term run command:top -d 1');
  await field.press('Enter');
  expect((await gateway.event('INTERACTION_CREATE')).d).toMatchObject({
    data: {
      name: 'term',
      options: [{ name: 'run', options: [{ name: 'command', value: 'top -d 1' }] }],
    },
  });
  // The box takes the next command once the one before is sent.
  await expect.poll(() => field.inputValue(), { timeout: 20_000 }).toBe('');
  await field.fill('/nothing');
  await field.press('Enter');
  await page.getByRole('alert').getByText('There is no command nothing').waitFor();
});

test('a person types into a Slack thread, on a phone too, and nothing overflows', async () => {
  const { slack } = box.sandbox;
  const post = async (method: string, body: object): Promise<string> => {
    const response = await fetch(`${slack.apiUrl}${method}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${slack.botToken}`,
        'content-type': 'application/json; charset=utf-8',
      },
      body: JSON.stringify(body),
    });
    return ((await response.json()) as { ts: string }).ts;
  };
  const root = await post('chat.postMessage', {
    channel: slack.channel,
    text: ':large_green_circle: *build-7* on `devbox` in `~/src/app`',
  });
  const live = await post('chat.postMessage', {
    channel: slack.channel,
    thread_ts: root,
    text: `\`\`\`\n$ npm test\n${'very-long-word-'.repeat(12)}\n\`\`\``,
  });
  for (const [name, viewport, typed] of [
    ['sandbox-slack', DESK, 'npm test'],
    ['sandbox-slack-phone', PHONE, 'git status'],
  ] as const) {
    const page = await open(`#/slack/${slack.channel}/${root}`, viewport);
    const pane = page.getByRole('region', { name: 'Thread' });
    await pane.getByRole('textbox').fill(typed);
    await pane.getByRole('textbox').press('Enter');
    await pane.getByText(typed, { exact: true }).waitFor();
    const output = `$ ${typed}\n ✓ text.test.ts  12 passed\n ✗ gate.test.ts  &lt;expected 3, got 2&gt;\nend of ${typed}`;
    await post('chat.update', {
      channel: slack.channel,
      ts: live,
      text: `\`\`\`\n${output}\n\`\`\``,
    });
    await pane.getByText(`end of ${typed}`).waitFor();
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
      viewport.width,
    );
    await page.screenshot({ path: join(pictures, `${name}.png`) });
  }
  const phone = browser.contexts().at(-1)?.pages()[0];
  await phone?.getByRole('button', { name: 'Back' }).last().click();
  await phone?.getByRole('region', { name: 'Channel' }).getByText('build-7').waitFor();
});

test('the fault panel makes the next post fail, and the log and the violations say what happened', async () => {
  const page = await open(`#/discord/${box.ops}`, DESK);
  await page.getByRole('button', { name: 'Faults' }).click();
  await page.getByRole('button', { name: 'Add fault' }).click();
  await page.getByText('struck 0 of 1').waitFor();
  const refused = await box.call('POST', `/channels/${box.ops}/messages`, { content: 'x' });
  expect(refused.status).toBe(429);
  await page.getByText('struck 1 of 1').waitFor();
  await box.call('POST', `/channels/${box.ops}/messages`, { content: ' ' });
  await page.getByRole('button', { name: 'Log', exact: true }).click();
  await page.getByText('rate-limit', { exact: true }).waitFor();
  await page.getByRole('button', { name: '1 violations' }).click();
  await page.getByText('Cannot send an empty message').waitFor();
});
