// The submitter's side of the command channel. It says "cancelled" only after it has won the response
// itself, and never takes silence, a torn file or a foreign document for an answer.

import { readBounded } from '../base/bounded-file.ts';
import type { Clock } from '../base/clock.ts';
import { mintUuid } from '../base/ids.ts';
import type { Kind } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import { claimResponse, isProvenGone, publishNew, removeProven } from './command-claim.ts';
import {
  type Answer,
  answersRequest,
  type CommandRequest,
  DOCUMENT_BYTES_MAX,
  encodePadded,
  parseResponse,
  requestLifeMs,
  requestPath,
  responsePath,
  responseTo,
  SETTLE_MS,
  SUBMIT_POLL_MS,
  SUBMIT_TIMEOUT_MS,
} from './command-documents.ts';
import type { StepHook } from './command-run.ts';
import type { Scalar } from './commands/command.ts';
import type { MachineTime } from './machine-time.ts';
import type { OwnerTuple } from './owner-tuple.ts';

export type SubmitOutcome =
  | { readonly kind: 'answered'; readonly requestId: string; readonly answer: Answer }
  /** Definitive: it was not committed and never will be. */
  | { readonly kind: 'cancelled'; readonly requestId: string }
  /** It may have been committed. Look at the store; submitting again is safe. */
  | { readonly kind: 'unknown'; readonly requestId: string; readonly because: string }
  /** A whole document that is not about our request stands where the answer belongs. */
  | {
      readonly kind: 'untrusted';
      readonly requestId: string;
      readonly code: 'response_envelope_mismatch';
    }
  /** Nothing was submitted. */
  | {
      readonly kind: 'unavailable';
      readonly code: 'command_channel_unavailable' | 'request_id_unavailable';
      readonly because: string;
    };

export interface Submission {
  readonly directory: string;
  readonly kind: Kind;
  /** The exact owner that may serve it, read from its record just before. */
  readonly owner: OwnerTuple;
  readonly command: string;
  readonly args: Readonly<Record<string, Scalar>>;
  readonly timeoutMs?: number;
  /** Minted when not given. A replayed id is refused. */
  readonly requestId?: string;
  readonly clock: Clock;
  readonly machine: MachineTime;
  readonly random: Random;
  readonly step?: StepHook | undefined;
}

/** Submits one command and waits for what can be said about it. Bounded; never throws for I/O. */
export async function submitCommand(submission: Submission): Promise<SubmitOutcome> {
  const requestId = submission.requestId ?? mintUuid(submission.random);
  const timeoutMs = submission.timeoutMs ?? SUBMIT_TIMEOUT_MS;
  const request = buildRequest(submission, requestId, timeoutMs);
  const response = responsePath(submission.directory, requestId);
  if (!(await isProvenGone(response))) {
    const because = 'a response with this id already exists';
    return { kind: 'unavailable', code: 'request_id_unavailable', because };
  }
  const bytes = Buffer.from(JSON.stringify(request));
  if (bytes.length > DOCUMENT_BYTES_MAX) {
    const because = 'the request is larger than 8 KiB';
    return { kind: 'unavailable', code: 'command_channel_unavailable', because };
  }
  const published = await publishNew(
    requestPath(submission.directory, requestId),
    bytes,
    mintUuid(submission.random),
  );
  if (published === 'exists') {
    const because = 'a request with this id already exists';
    return { kind: 'unavailable', code: 'request_id_unavailable', because };
  }
  if (published === 'failed') {
    const because = 'the request could not be written';
    return { kind: 'unavailable', code: 'command_channel_unavailable', because };
  }
  await submission.step?.('published');
  return await awaitAnswer(submission, request, timeoutMs);
}

function buildRequest(
  submission: Submission,
  requestId: string,
  timeoutMs: number,
): CommandRequest {
  const createdBootMs = submission.machine.bootMs();
  return {
    version: 1,
    requestId,
    kind: submission.kind,
    command: submission.command,
    owner: submission.owner,
    args: submission.args,
    bootId: submission.machine.bootId,
    createdBootMs,
    expiresBootMs: createdBootMs + requestLifeMs(timeoutMs),
  };
}

async function awaitAnswer(
  submission: Submission,
  request: CommandRequest,
  timeoutMs: number,
): Promise<SubmitOutcome> {
  const answered = await pollResponse(submission, request, timeoutMs);
  if (answered !== undefined) return answered;
  await submission.step?.('cancelling');
  const cancelled = await tryCancel(submission, request);
  if (cancelled) return { kind: 'cancelled', requestId: request.requestId };
  const late = await pollResponse(submission, request, SETTLE_MS);
  if (late !== undefined) return late;
  const because = 'the owner took the request and has not answered';
  return { kind: 'unknown', requestId: request.requestId, because };
}

async function pollResponse(
  submission: Submission,
  request: CommandRequest,
  forMs: number,
): Promise<SubmitOutcome | undefined> {
  const { clock } = submission;
  const endMs = clock.monotonicMs() + forMs;
  for (;;) {
    const outcome = await readAnswer(submission.directory, request);
    if (outcome !== undefined) return outcome;
    if (clock.monotonicMs() >= endMs) return undefined;
    await clock.sleep(SUBMIT_POLL_MS);
  }
}

/** Undefined while no whole document is there: absent, reserved, torn, oversized, irregular. */
async function readAnswer(
  directory: string,
  request: CommandRequest,
): Promise<SubmitOutcome | undefined> {
  const { requestId } = request;
  const read = await readBounded(responsePath(directory, requestId), DOCUMENT_BYTES_MAX);
  if (read.kind !== 'content') return undefined;
  const response = parseResponse(read.bytes);
  if (response === undefined) return undefined;
  const { body } = response;
  // A cancellation that we did not write is as foreign as another envelope.
  if (!answersRequest(response, request) || body.outcome === 'cancelled') {
    return { kind: 'untrusted', requestId, code: 'response_envelope_mismatch' };
  }
  return { kind: 'answered', requestId, answer: { ...body, outcome: body.outcome } };
}

/**
 * Wins the response before reporting failure. Then retires: the request first, and the response only
 * once the request is proven gone. A response left behind is inert; one removed early would let the
 * request be served.
 */
async function tryCancel(submission: Submission, request: CommandRequest): Promise<boolean> {
  const response = responsePath(submission.directory, request.requestId);
  const body = { outcome: 'cancelled', code: 'cancelled', result: {} } as const;
  const document = encodePadded(responseTo(request, body));
  const attempt = await claimResponse(response, document, mintUuid(submission.random));
  if (attempt.kind !== 'won') return false;
  await submission.step?.('cancelled');
  const removed = await removeProven(requestPath(submission.directory, request.requestId));
  await submission.step?.('request-removed');
  if (removed === 'gone') await attempt.claim.release().catch(() => undefined);
  await attempt.claim.close().catch(() => undefined);
  return true;
}
