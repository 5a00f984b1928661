import { describe, expect, it } from 'vitest';
import { FAILPOINTS } from '../../../src/ownership/failpoints.ts';
import { explore } from '../../support/model-checker.ts';
import { type CommandVariant, commandModel } from './command-model.ts';
import { type EndpointVariant, endpointModel } from './endpoint-model.ts';
import { type LockVariant, lockModel } from './lock-model.ts';

describe('the owner lock, exhaustively', () => {
  it('I1, I2, I11: a kept lock has one owner and wedges nobody (4 processes, 3 crashes)', () => {
    const result = explore(lockModel('kept', 4, 3));
    expect(result.violation).toBeUndefined();
    expect(result.states).toBeGreaterThan(1000);
  });

  it('unlinking with a recheck of the inode keeps exclusion too, but is not what we do', () => {
    expect(explore(lockModel('unlink-on-release-recheck', 3, 2)).violation).toBeUndefined();
  });

  it.each<[LockVariant, number, number, RegExp]>([
    ['unlink-on-release', 3, 0, /I1: two owners/],
    ['reclaim-by-name', 3, 1, /I1: two owners/],
    ['exact-link-count', 2, 1, /wedge/],
    ['lease-by-time', 2, 0, /I1: two owners|I2/],
    ['probe-by-taking', 2, 0, /probe made the only starter lose/],
  ])('known bad: %s is caught', (variant, count, crashes, reason) => {
    const { violation } = explore(lockModel(variant, count, crashes));
    expect(violation?.reason).toMatch(reason);
    expect(violation?.trace.length).toBeGreaterThan(0);
  });
});

describe('publication of the endpoint, exhaustively', () => {
  it('I6, I11: under the lock, the name leads to the one that serves (3 processes, 3 crashes)', () => {
    const result = explore(endpointModel('locked', 3, 3));
    expect(result.violation).toBeUndefined();
    expect(result.states).toBeGreaterThan(200);
  });

  it.each<[EndpointVariant, number, RegExp]>([
    ['rename-only', 0, /I6/],
    ['probe-once', 1, /I6/],
    ['probe-twice-unlocked', 1, /I6: two processes serve|I6: the name/],
    ['close-unlinks', 0, /I6: the name does not lead/],
  ])('known bad: %s is caught', (variant, crashes, reason) => {
    const { violation } = explore(endpointModel(variant, 3, crashes));
    expect(violation?.reason).toMatch(reason);
  });

  it('race 5: the trace without a lock is two proofs of death, then two renames', () => {
    const { violation } = explore(endpointModel('probe-twice-unlocked', 3, 1));
    const renames = violation?.trace.filter((label) => label.endsWith('endpoint.renamed'));
    expect(renames).toHaveLength(2);
  });

  it('its steps are named like the failpoints of the code', () => {
    const names = new Set<string>(FAILPOINTS);
    const model = endpointModel('locked', 1, 0);
    let state = model.initial;
    const labels: string[] = [];
    for (;;) {
      const [next] = model.steps(state);
      if (next === undefined) break;
      labels.push(next[0].slice(2));
      state = next[1];
    }
    expect(labels.slice(0, -1).every((label) => names.has(label))).toBe(true);
  });
});

describe('the command channel, exhaustively', () => {
  it('I8, I9: cancelled is never committed, ok is, nothing is committed twice', () => {
    const result = explore(commandModel('as-specified'));
    expect(result.violation).toBeUndefined();
    expect(result.states).toBeGreaterThan(100);
  });

  it.each<[CommandVariant, RegExp]>([
    ['reread-before-claim', /I8: cancelled, yet committed/],
    ['retire-response-first', /I8: cancelled, yet committed|I9/],
    ['early-sweep', /I8: cancelled, yet committed|I9/],
    ['cancel-without-claim', /I8: cancelled, yet committed/],
    ['late-submitter', /I8: cancelled, yet committed/],
  ])('known bad: %s is caught', (variant, reason) => {
    const { violation } = explore(commandModel(variant));
    expect(violation?.reason).toMatch(reason);
  });
});
