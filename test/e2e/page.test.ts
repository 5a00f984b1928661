// The sandbox's page on the whole stack: a person opens a session in Slack and in Discord, types and
// presses in the page, and real shells answer. CHATD_PICTURES=docs/pictures keeps the picture there.

import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtDist } from '../support/built-dist.ts';
import { Stack } from '../support/stack.ts';

const MENU = fileURLToPath(new URL('../support/programs/menu.mjs', import.meta.url));
const kept = process.env['CHATD_PICTURES'];

let stack: Stack;
let browser: Browser;
let pictures: string;

beforeAll(async () => {
  pictures = kept ?? mkdtempSync(join(tmpdir(), 'chatd-pictures-'));
  mkdirSync(pictures, { recursive: true });
  stack = await Stack.start({ dist: builtDist() });
  copyFileSync(MENU, join(stack.home, 'work', 'menu.mjs'));
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
  await stack.mustCli('ensure');
});

afterAll(async () => {
  await browser.close();
  await stack.close();
  if (kept === undefined) rmSync(pictures, { recursive: true });
});

async function say(pane: Locator, text: string): Promise<void> {
  await pane.getByRole('textbox').fill(text);
  await pane.getByRole('textbox').press('Enter');
}

/** What every thread is put through, by the page alone. Returns the thread's address. */
async function drive(page: Page): Promise<string> {
  const thread = page.getByRole('region', { name: 'Thread' });
  await say(thread, 'echo "hello from $((40 + 2))"');
  await thread.locator('pre', { hasText: 'hello from 42' }).first().waitFor();
  await say(thread, 'node menu.mjs');
  await thread.locator('pre', { hasText: '> espresso' }).waitFor();
  await thread.getByRole('button', { name: '↓', exact: true }).last().click();
  await thread.locator('pre', { hasText: '> cappuccino' }).waitFor();
  await thread.getByRole('button', { name: 'Enter', exact: true }).last().click();
  await thread.locator('pre', { hasText: 'You chose cappuccino.' }).waitFor();
  return page.url();
}

test('shells in both workspaces are driven from the page, and a picture shows them side by side', async () => {
  const page = await browser.newPage({ viewport: { width: 1440, height: 860 } });
  page.setDefaultTimeout(60_000);
  await page.goto(stack.control.url);
  const channel = page.getByRole('region', { name: 'Channel' });

  await say(channel, '@chatd run');
  await channel
    .getByText(/session .* · .*work/)
    .first()
    .waitFor();
  const root = channel.locator('.message', { hasText: /session .* · / }).first();
  await root.hover();
  await root.getByRole('button', { name: 'Reply in thread' }).click();
  const slack = await drive(page);

  await page.goto(`${stack.control.url}/#/discord`);
  await page.getByRole('button', { name: 'ops' }).click();
  await say(channel, '/term run');
  await channel.getByRole('button', { name: 'Open thread ›' }).click();
  const discord = await drive(page);
  expect(await stack.control.violations()).toEqual([]);

  const frames = [slack, discord].map((url) => `<iframe src="${url}"></iframe>`).join('');
  await page.goto(`${stack.control.url}/vendor/htm.js`);
  await page.setContent(
    `<style>body{margin:0;display:flex}iframe{border:0;width:50vw;height:100vh}</style>${frames}`,
  );
  for (const frame of page.frames().slice(1))
    await frame.locator('pre', { hasText: 'You chose cappuccino.' }).waitFor();
  await page.screenshot({ path: join(pictures, 'sandbox-desktop.png') });
});
