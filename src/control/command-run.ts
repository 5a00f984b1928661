// One command, once: ownership proof, claim, re-read, commit, answer, retire, in this order. Claiming
// before re-reading is what makes "cancelled" definitive: the other order commits after it.

import { unlink } from 'node:fs/promises';
import { readBounded } from '../base/bounded-file.ts';
import { errorText } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { type Claim, claimResponse } from './command-claim.ts';
import {
  type Answer,
  type CommandRequest,
  DOCUMENT_BYTES_MAX,
  encodePadded,
  parseResponse,
  requestPath,
  reservation,
  responsePath,
  responseTo,
} from './command-documents.ts';
import type { CommitFence, FenceRefusal, HandlerAnswer } from './commands/command.ts';
import { type CommandHandlers, type Dispatch, dispatch } from './commands/registry.ts';
import type { MachineTime } from './machine-time.ts';
import { type OwnerTuple, sameOwner } from './owner-tuple.ts';

/** Named places between two steps, where tests delay, stop or fail. Production passes none. */
export type CommandStep =
  | 'proved'
  | 'claimed'
  | 'reread'
  | 'handled'
  | 'answered'
  | 'published'
  | 'cancelling'
  | 'cancelled'
  | 'request-removed';

export type StepHook = (step: CommandStep) => Promise<void>;

export interface CommandRun {
  readonly directory: string;
  readonly owner: OwnerTuple;
  readonly proven: () => boolean;
  readonly handlers: CommandHandlers;
  readonly machine: MachineTime;
  readonly random: Random;
  readonly log: Log;
  readonly step?: StepHook | undefined;
  readonly request: CommandRequest;
  /** The request as read: a re-read must find the same bytes. */
  readonly bytes: Buffer;
}

export interface RunResult {
  /** `left`: somebody else decides this request; `abandoned`: its submitter is gone. */
  readonly outcome: Answer['outcome'] | 'left' | 'abandoned';
  readonly code: string;
}

/** Serves one request. At most one caller per request at a time. */
export async function runCommand(run: CommandRun): Promise<RunResult> {
  const fence = new Fence(run);
  try {
    const handled = await handle(run, fence);
    await run.step?.('handled');
    const decided = decideAnswer(fence.state, handled);
    return await conclude(run, fence, decided);
  } finally {
    await fence.close();
  }
}

/** What a handler did, before the fence has its say. */
export type Handled =
  | { readonly kind: 'answered'; readonly answer: HandlerAnswer }
  | { readonly kind: 'threw'; readonly subject: string };

export interface FenceState {
  readonly granted: boolean;
  readonly refusal: FenceRefusal | undefined;
}

async function handle(run: CommandRun, fence: Fence): Promise<Handled> {
  if (!sameOwner(run.request.owner, run.owner)) {
    fence.refuse('owner_changed');
    return rejected('owner_changed');
  }
  if (isExpired(run.machine, run.request)) {
    fence.refuse('expired');
    return rejected('expired');
  }
  const target: Dispatch = dispatch(run.request.command, run.request.args, run.handlers);
  if (target.kind === 'rejected') return rejected(target.code);
  try {
    return { kind: 'answered', answer: await target.run(fence) };
  } catch (error) {
    const { requestId } = run.request;
    run.log.error('command-handler.threw', { requestId, error: errorText(error) });
    return { kind: 'threw', subject: target.subject };
  }
}

function rejected(code: string): Handled {
  return { kind: 'answered', answer: { kind: 'rejected', code } };
}

/** Pure precedence: unknown outranks the fence's reason, which outranks the handler's. */
export function decideAnswer(fence: FenceState, handled: Handled): Answer | 'abandon' {
  if (handled.kind === 'threw' && fence.granted) {
    return { outcome: 'outcome_unknown', code: `${handled.subject}_outcome_unknown`, result: {} };
  }
  switch (fence.refusal) {
    case 'owner_changed':
    case 'expired':
      return { outcome: fence.refusal, code: fence.refusal, result: {} };
    case 'cancelled':
      return 'abandon';
    case 'request_changed':
      return { outcome: 'rejected', code: fence.refusal, result: {} };
    case undefined:
      return handlerAnswer(fence, handled);
  }
}

function handlerAnswer(fence: FenceState, handled: Handled): Answer {
  if (handled.kind === 'threw') {
    return { outcome: 'rejected', code: `${handled.subject}_failed`, result: {} };
  }
  const { answer } = handled;
  if (answer.kind === 'rejected') {
    return { outcome: 'rejected', code: answer.code, result: answer.detail ?? {} };
  }
  if (!fence.granted) return { outcome: 'rejected', code: 'commit_authority_missing', result: {} };
  return { outcome: 'ok', code: 'ok', result: answer.result };
}

async function conclude(
  run: CommandRun,
  fence: Fence,
  decided: Answer | 'abandon',
): Promise<RunResult> {
  if (decided === 'abandon') {
    const outcome = fence.lost ? 'left' : 'abandoned';
    if (fence.lost) await retireDecided(run);
    return { outcome, code: 'cancelled' };
  }
  const claim = await fence.claimToAnswer();
  if (claim === undefined) {
    // Somebody else decides; if that is settled for good, the request has served its time.
    await retireDecided(run);
    return { outcome: 'left', code: decided.code };
  }
  await claim.answer(encodePadded(responseTo(run.request, decided)));
  await run.step?.('answered');
  await retireRequest(run);
  return { outcome: decided.outcome, code: decided.code };
}

/**
 * Another process decided. A whole document there is final, so the request may go; a mere claim may
 * still become an answer until the request has expired.
 */
async function retireDecided(run: CommandRun): Promise<void> {
  const path = responsePath(run.directory, run.request.requestId);
  const read = await readBounded(path, DOCUMENT_BYTES_MAX);
  if (read.kind === 'absent') return;
  const settled = read.kind === 'content' && parseResponse(read.bytes) !== undefined;
  if (settled || isExpired(run.machine, run.request)) await retireRequest(run);
}

/** Removes the request we read, as the holder of the lock; another one by that name stays. */
async function retireRequest(run: CommandRun): Promise<void> {
  if (!run.proven()) return;
  const path = requestPath(run.directory, run.request.requestId);
  const now = await readBounded(path, DOCUMENT_BYTES_MAX);
  if (now.kind !== 'content' || !now.bytes.equals(run.bytes)) return;
  await unlink(path).catch((error: unknown) => {
    run.log.warn('command-request.kept', { error: errorText(error) });
  });
}

function isExpired(machine: MachineTime, request: CommandRequest): boolean {
  if (request.bootId !== machine.bootId) return true;
  const nowMs = machine.bootMs();
  // A request from the future was not written by a clock of this boot.
  return nowMs >= request.expiresBootMs || nowMs < request.createdBootMs - 100;
}

/** The gate of one request. */
class Fence implements CommitFence {
  readonly #run: CommandRun;
  #claim: Claim | undefined;
  #granted = false;
  #refusal: FenceRefusal | undefined;
  /** The claim was tried and not won. */
  lost = false;

  constructor(run: CommandRun) {
    this.#run = run;
  }

  get requestId(): string {
    return this.#run.request.requestId;
  }

  get state(): FenceState {
    return { granted: this.#granted, refusal: this.#refusal };
  }

  proven(): boolean {
    return this.#granted && this.#refusal === undefined && this.#run.proven();
  }

  refuse(because: FenceRefusal): void {
    this.#refusal = because;
  }

  async enter(): ReturnType<CommitFence['enter']> {
    if (this.#granted) return { granted: true };
    if (this.#refusal === undefined) this.#refusal = await this.#findRefusal();
    if (this.#refusal !== undefined) return { granted: false, because: this.#refusal };
    this.#granted = true;
    return { granted: true };
  }

  async #findRefusal(): Promise<FenceRefusal | undefined> {
    if (!this.#run.proven()) return 'owner_changed';
    await this.#run.step?.('proved');
    if (!(await this.#take())) return 'cancelled';
    await this.#run.step?.('claimed');
    const changed = await this.#reread();
    await this.#run.step?.('reread');
    if (changed !== undefined) return changed;
    // Taking authority took time, and authority only ever ends.
    return this.#run.proven() ? undefined : 'owner_changed';
  }

  async #take(): Promise<boolean> {
    if (this.#claim !== undefined) return true;
    const path = responsePath(this.#run.directory, this.requestId);
    const attempt = await claimResponse(path, reservation(), mintId(this.#run.random));
    if (attempt.kind === 'won') {
      this.#claim = attempt.claim;
      return true;
    }
    this.lost = true;
    if (attempt.kind === 'failed') {
      const { requestId } = this;
      this.#run.log.warn('command-claim.failed', { requestId, because: attempt.because });
    }
    return false;
  }

  async #reread(): Promise<FenceRefusal | undefined> {
    const path = requestPath(this.#run.directory, this.requestId);
    const read = await readBounded(path, DOCUMENT_BYTES_MAX);
    if (read.kind === 'absent') {
      await this.#claim?.release();
      return 'cancelled';
    }
    if (read.kind === 'unusable' || !read.bytes.equals(this.#run.bytes)) return 'request_changed';
    return isExpired(this.#run.machine, this.#run.request) ? 'expired' : undefined;
  }

  /** The claim to answer with, won now if the fence was never entered; undefined: not ours. */
  async claimToAnswer(): Promise<Claim | undefined> {
    if (this.#claim !== undefined) return this.#claim;
    if (this.lost || !(await this.#take())) return undefined;
    const gone = (await this.#reread()) === 'cancelled';
    if (gone) this.lost = true;
    return gone ? undefined : this.#claim;
  }

  async close(): Promise<void> {
    await this.#claim?.close();
  }
}
