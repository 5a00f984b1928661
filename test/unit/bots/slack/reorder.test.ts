// Lines that came by two sockets are put in order; a line that came alone does not wait.

import { beforeEach, expect, it } from 'vitest';
import { Reorder } from '../../../../src/bots/slack/reorder.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

let clock: FakeClock;
let released: string[];
let reorder: Reorder<string>;

beforeEach(() => {
  clock = new FakeClock();
  released = [];
  reorder = new Reorder(clock, (item) => released.push(item));
});

function arrive(ts: string, socket: number): void {
  reorder.offer({ item: ts, ts, socket });
}

it('passes on at once what comes by one socket', () => {
  arrive('1.1', 0);
  arrive('1.2', 0);
  expect(released).toEqual(['1.1', '1.2']);
});

it('passes on at once what comes by the other one later', async () => {
  arrive('1.1', 0);
  await clock.advance(400);
  arrive('1.2', 1);
  expect(released).toEqual(['1.1', '1.2']);
});

it('puts in order what both deliver at about the same time', async () => {
  arrive('1.1', 0);
  arrive('1.4', 1);
  arrive('1.2', 0);
  arrive('1.3', 0);
  expect(released).toEqual(['1.1']);
  await clock.advance(150);
  expect(released).toEqual(['1.1', '1.2', '1.3', '1.4']);
});

it('holds nothing for longer than its bound, however much comes', async () => {
  for (let turn = 0; turn < 100; turn += 1) {
    arrive(`1.${String(turn).padStart(3, '0')}`, turn % 2);
    await clock.advance(20);
  }
  await clock.advance(150);
  expect(released).toEqual([...released].sort());
  expect(released.length).toBe(100);
});
