// What the set-up pages ask for is what the adapters need: numbers and names are not copied by hand.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { INTENTS } from '../../../src/bots/discord/gateway.ts';
import { manifestScopes } from '../../support/slack-manifest.ts';

function file(name: string): string {
  return readFileSync(fileURLToPath(new URL(`../../../${name}`, import.meta.url)), 'utf8');
}

it('adds the permissions of the Discord page up to the number in its invitation', () => {
  const page = file('docs/setup-discord.md');
  const bits = [...page.matchAll(/`1<<(\d+)`/g)].map((match) => 1n << BigInt(match[1] ?? 0));
  const sum = bits.reduce((all, bit) => all | bit, 0n);
  expect(bits.length).toBe(9);
  expect(/permissions=(\d+)/.exec(page)?.[1]).toBe(String(sum));
});

it('connects to Discord with the one privileged intent that the page switches on', () => {
  const privileged = (1 << 1) | (1 << 8) | (1 << 15);
  expect(INTENTS & privileged).toBe(1 << 15);
});

it('names every scope of the Slack manifest in the page, and no other', () => {
  const table = file('docs/setup-slack.md').split('## What each permission is for')[1] ?? '';
  const [rows = ''] = table.split('\n## ');
  const named = [...rows.matchAll(/^\| (`.*?) +\|/gm)].flatMap((row) =>
    [...(row[1] ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''),
  );
  expect(named.toSorted()).toEqual(manifestScopes().toSorted());
});
