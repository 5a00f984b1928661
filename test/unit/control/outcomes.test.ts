import { describe, expect, it } from 'vitest';
import { decideAnswer } from '../../../src/control/command-run.ts';
import { CONNECTED_MS, OWNED_MS } from '../../../src/control/controller.ts';
import { GRACEFUL_MS } from '../../../src/control/end-owner.ts';
import {
  type ActionOutcome,
  type ActionResult,
  combinedExitCode,
  exitCodeOf,
} from '../../../src/control/outcomes.ts';
import {
  COMMANDS_STOP_MS,
  SERVICE_LATE_MS,
  SERVICE_STOP_MS,
} from '../../../src/daemon/chat-daemon.ts';

describe('the answer to a command', () => {
  const ok = { kind: 'answered', answer: { kind: 'ok', result: {} } } as const;
  const threw = { kind: 'threw', subject: 'binding' } as const;
  const rejected = { kind: 'answered', answer: { kind: 'rejected', code: 'root_taken' } } as const;
  const granted = { granted: true, refusal: undefined };
  const before = { granted: false, refusal: undefined };

  it('is unknown when the handler threw after authority, whatever else is known', () => {
    for (const refusal of [undefined, 'owner_changed', 'expired', 'cancelled'] as const) {
      expect(decideAnswer({ granted: true, refusal }, threw)).toMatchObject({
        outcome: 'outcome_unknown',
        code: 'binding_outcome_unknown',
      });
    }
  });

  it('is the fence’s reason rather than the handler’s', () => {
    for (const handled of [ok, threw, rejected]) {
      expect(decideAnswer({ granted: false, refusal: 'owner_changed' }, handled)).toMatchObject({
        outcome: 'owner_changed',
      });
      expect(decideAnswer({ granted: false, refusal: 'cancelled' }, handled)).toBe('abandon');
    }
  });

  it('is the handler’s where the fence has no reason', () => {
    expect(decideAnswer(granted, ok)).toMatchObject({ outcome: 'ok' });
    expect(decideAnswer(granted, rejected)).toMatchObject({ code: 'root_taken' });
    expect(decideAnswer(before, threw)).toMatchObject({
      outcome: 'rejected',
      code: 'binding_failed',
    });
    expect(decideAnswer(before, ok)).toMatchObject({ code: 'commit_authority_missing' });
  });
});

describe('exit codes', () => {
  const result = (outcome: ActionOutcome): ActionResult => ({
    kind: 'slack',
    action: 'ensure',
    outcome,
    ok: exitCodeOf(outcome) === 0,
    message: '',
    before: null,
    after: null,
    warnings: [],
    exitCode: exitCodeOf(outcome),
  });

  it('count a kind that is off only for who named it', () => {
    expect(combinedExitCode([result('disabled'), result('spawned')], false)).toBe(0);
    expect(combinedExitCode([result('disabled')], true)).toBe(21);
    expect(combinedExitCode([result('disabled'), result('unhealthy')], false)).toBe(25);
  });
});

describe('bounds that must fit into each other', () => {
  it('I12: a graceful stop is over before the controller gives up on it', () => {
    const recordsMs = 500;
    const sum = COMMANDS_STOP_MS + SERVICE_STOP_MS + SERVICE_LATE_MS + recordsMs;
    expect(sum).toBeLessThan(GRACEFUL_MS);
  });

  it('an owner has longer to connect than to own', () => {
    expect(OWNED_MS).toBeLessThan(CONNECTED_MS);
  });
});
