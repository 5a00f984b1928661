import { expect, test } from 'vitest';
import { type AccessPolicy, decideAccess, type Right } from '../../../src/bots/access.ts';
import type { Person } from '../../../src/bots/chat-platform.ts';

const nobody: AccessPolicy = {
  space: 'T1',
  channels: new Set(['C1']),
  drivers: new Set(),
  approvers: new Set(),
  viewers: new Set(),
  driverRoles: new Set(),
  approverRoles: new Set(),
  viewerRoles: new Set(),
};
const alice: Person = { id: 'U1', space: 'T1', roles: [], isBot: false, name: 'alice' };
const here = { space: 'T1', channel: 'C1' };

function kind(policy: Partial<AccessPolicy>, person: Partial<Person>, right: Right): string {
  return decideAccess({ ...nobody, ...policy }, { ...alice, ...person }, here, right).kind;
}

test('nobody may do anything when nobody is configured', () => {
  for (const right of ['view', 'drive', 'approve'] as const) {
    expect(kind({}, {}, right)).toBe('refused');
  }
});

test('a driver drives, approves and views; an approver does not drive; a viewer only views', () => {
  const drivers = { drivers: new Set(['U1']) };
  expect(['view', 'drive', 'approve'].map((r) => kind(drivers, {}, r as Right))).toEqual([
    'allowed',
    'allowed',
    'allowed',
  ]);
  const approvers = { approvers: new Set(['U1']) };
  expect(kind(approvers, {}, 'drive')).toBe('refused');
  expect(kind(approvers, {}, 'approve')).toBe('allowed');
  const viewers = { viewers: new Set(['U1']) };
  expect(kind(viewers, {}, 'drive')).toBe('refused');
  expect(kind(viewers, {}, 'view')).toBe('allowed');
});

test('a role counts like an id, a name does not', () => {
  expect(kind({ driverRoles: new Set(['S1']) }, { roles: ['S1'] }, 'drive')).toBe('allowed');
  expect(kind({ drivers: new Set(['alice']) }, {}, 'drive')).toBe('refused');
});

test('a stranger is refused even when their id is configured', () => {
  const drivers = { drivers: new Set(['U1']) };
  expect(kind(drivers, { space: 'T2' }, 'drive')).toBe('refused');
  expect(kind(drivers, { space: undefined }, 'drive')).toBe('refused');
});

test('a channel that is not served is refused', () => {
  const policy = { ...nobody, drivers: new Set(['U1']) };
  expect(decideAccess(policy, alice, { space: 'T1', channel: 'C2' }, 'drive').kind).toBe('refused');
});

test('bots are ignored without a word', () => {
  expect(kind({ drivers: new Set(['U1']) }, { isBot: true }, 'drive')).toBe('ignored');
});
