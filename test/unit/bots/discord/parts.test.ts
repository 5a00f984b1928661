// The small pure parts of the Discord adapter: permissions, commands, ids, answers to interactions.

import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../../src/base/log.ts';
import { isRegistered, TERM_COMMAND } from '../../../../src/bots/discord/commands.ts';
import { Interaction } from '../../../../src/bots/discord/interaction.ts';
import { missingPermissions } from '../../../../src/bots/discord/permissions.ts';
import type { RestCall } from '../../../../src/bots/discord/rest.ts';
import {
  compareSnowflakes,
  snowflakeAt,
  snowflakeMs,
} from '../../../../src/bots/discord/snowflake.ts';
import { fieldsOf } from '../../../../src/bots/fields.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

describe('permissions', () => {
  const facts = {
    guildId: '1',
    userId: '9',
    memberRoles: ['2'],
    guildRoles: [
      { id: '1', permissions: String(1n << 10n) },
      { id: '2', permissions: String(1n << 38n) },
      { id: '3', permissions: String(1n << 3n) },
    ],
    overwrites: [],
  };
  const wanted = ['VIEW_CHANNEL', 'SEND_MESSAGES_IN_THREADS'] as const;

  it('adds up the roles of the member and nobody else', () => {
    expect(missingPermissions(facts, wanted)).toEqual([]);
    expect(missingPermissions({ ...facts, memberRoles: [] }, wanted)).toEqual([
      'SEND_MESSAGES_IN_THREADS',
    ]);
  });

  it('lets the overwrites of the channel win, the narrower over the wider', () => {
    const deny = { id: '1', deny: String(1n << 10n), allow: '0' };
    expect(missingPermissions({ ...facts, overwrites: [deny] }, wanted)).toEqual(['VIEW_CHANNEL']);
    const allow = { id: '9', deny: '0', allow: String(1n << 10n) };
    expect(missingPermissions({ ...facts, overwrites: [allow, deny] }, wanted)).toEqual([]);
  });

  it('lets administrators do everything', () => {
    const deny = { id: '1', deny: String(1n << 10n), allow: '0' };
    const admin = { ...facts, memberRoles: ['3'], overwrites: [deny] };
    expect(missingPermissions(admin, wanted)).toEqual([]);
  });
});

describe('the slash command', () => {
  it('is recognised however Discord returns it, and any difference is one', () => {
    const stored = fieldsOf({
      ...structuredClone(TERM_COMMAND),
      id: '5',
      version: '6',
      default_member_permissions: null,
    });
    expect(isRegistered([stored], TERM_COMMAND)).toBe(true);
    expect(isRegistered([], TERM_COMMAND)).toBe(false);
    expect(isRegistered([{ ...stored, description: 'old' }], TERM_COMMAND)).toBe(false);
    expect(isRegistered([{ ...stored, options: [] }], TERM_COMMAND)).toBe(false);
  });
});

it('orders ids by age and knows their time', () => {
  expect(compareSnowflakes('99', '100')).toBeLessThan(0);
  expect(compareSnowflakes('200', '100')).toBeGreaterThan(0);
  expect(compareSnowflakes('100', '100')).toBe(0);
  expect(snowflakeMs(snowflakeAt(1_760_000_000_123))).toBe(1_760_000_000_123);
  expect(snowflakeMs('junk')).toBe(0);
});

describe('an interaction', () => {
  function made(payload: Readonly<Record<string, unknown>>) {
    const clock = new FakeClock();
    const calls: { method: string; route: string; body: unknown }[] = [];
    const call: RestCall = async (method, route, request) => {
      calls.push({ method, route, body: request?.body });
      return { kind: 'ok', value: {} };
    };
    const interaction = new Interaction({
      payload: { id: '1', token: 'secret', ...payload },
      applicationId: '5',
      call,
      clock,
      log: silentLog,
    });
    const types = () => calls.map(({ body }) => fieldsOf(body)['type'] ?? 'message');
    return { clock, calls, interaction, types };
  }
  const button = { type: 3, message: { id: '4' } };
  const spec = { id: 'm', title: 't', fields: [{ id: 'f', label: 'l', multiline: false }] };

  it('is acknowledged without a word before Discord gives up, though nobody claims it', async () => {
    const { clock, types } = made(button);
    await clock.advance(1_900);
    expect(types()).toEqual([]);
    await clock.advance(200);
    expect(types()).toEqual([6]);
  });

  it('is acknowledged soon after the claim, and leaves time for a modal', async () => {
    const { clock, interaction, types } = made(button);
    interaction.claimed();
    await clock.advance(300);
    expect(types()).toEqual([]);
    await interaction.modal(spec);
    await clock.advance(10_000);
    expect(types()).toEqual([9]);
  });

  it('refuses a modal when it was acknowledged already', async () => {
    const { clock, interaction, types } = made(button);
    await clock.advance(2_100);
    await expect(interaction.modal(spec)).rejects.toThrow('already answered');
    expect(types()).toEqual([6]);
  });

  it('answers directly while it can, and by its webhook after that', async () => {
    const { calls, interaction, types } = made(button);
    await interaction.privately('one');
    await interaction.privately('two');
    expect(types()).toEqual([4, 'message']);
    expect(calls[1]).toMatchObject({ method: 'POST', route: '/webhooks/5/secret' });
  });

  it('replaces the "thinking" of a command by its answer', async () => {
    const { calls, clock, interaction, types } = made({ type: 2 });
    await clock.advance(2_100);
    expect(types()).toEqual([5]);
    await interaction.privately('done');
    expect(calls[1]).toMatchObject({
      method: 'PATCH',
      route: '/webhooks/5/secret/messages/@original',
    });
  });

  it('does not leave a command at "thinking" for ever', async () => {
    const { calls, clock } = made({ type: 2 });
    await clock.advance(120_000);
    expect(calls.map(({ method }) => method)).toEqual(['POST', 'PATCH']);
  });

  it('does not name its token when it fails', async () => {
    const interaction = new Interaction({
      payload: { id: '1', token: 'secret', ...button },
      applicationId: '5',
      call: async () => ({ kind: 'refused', because: 'invalid', detail: '10062' }),
      clock: new FakeClock(),
      log: silentLog,
    });
    const failure = interaction.privately('x');
    await expect(failure).rejects.toThrow('10062');
    await expect(failure).rejects.not.toThrow('secret');
  });
});
