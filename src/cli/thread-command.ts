// chatd bind-thread and unbind-thread: ask the running owner, then believe only the store. An answer
// proves correlation, not authorship.

import { ChatdError, errorCode } from '../base/errors.ts';
import { daemonPaths, type Kind } from '../base/paths.ts';
import { systemClock } from '../base/system-clock.ts';
import { systemRandom } from '../base/system-random.ts';
import { classify } from '../control/classify.ts';
import { type SubmitOutcome, submitCommand } from '../control/command-client.ts';
import type { Scalar } from '../control/commands/command.ts';
import { CHAT_DAEMON_GENERATION } from '../control/generation.ts';
import { systemMachineTime } from '../control/machine-time.ts';
import { observe } from '../control/observe.ts';
import type { OwnerTuple } from '../control/owner-tuple.ts';
import { tupleOf } from '../control/records.ts';
import { type Binding, openBindingOfSession } from '../store/bindings.ts';
import { openStoreForReading } from '../store/store.ts';
import { type CliContext, kindOf } from './context.ts';
import { optionalConfig } from './lifecycle.ts';
import { parseThread, threadForms } from './thread-link.ts';

export interface BindOptions {
  readonly session: string;
  readonly thread: string;
  readonly incarnation?: string | undefined;
  readonly move: boolean;
}

export async function runBindThread(
  context: CliContext,
  word: string,
  options: BindOptions,
): Promise<number> {
  const kind = kindOf(word);
  const config = optionalConfig(context);
  const section = config?.[kind];
  const channels = section?.state === 'on' ? section.config.channels : [];
  const thread = parseThread(kind, options.thread, channels);
  if (thread === undefined) {
    throw new ChatdError(
      'config-invalid',
      `Cannot read thread ${options.thread}: expected ${threadForms(kind)}`,
    );
  }
  const { session, move, incarnation = '' } = options;
  const args = { session, incarnation, ...thread, move };
  const outcome = await ask(context, kind, 'bind-thread', args);
  return conclude(context, kind, session, outcome, (binding) =>
    binding !== undefined && binding.root === rootMeant(outcome, thread.root)
      ? boundLine(binding, outcome)
      : undefined,
  );
}

/** A link to a reply names its root less exactly than the answer does; the store must agree. */
function rootMeant(outcome: SubmitOutcome, pasted: string): string {
  const answered = outcome.kind === 'answered' ? outcome.answer.result['root'] : undefined;
  return typeof answered === 'string' ? answered : pasted;
}

export async function runUnbindThread(
  context: CliContext,
  word: string,
  session: string,
): Promise<number> {
  const kind = kindOf(word);
  const outcome = await ask(context, kind, 'unbind-thread', { session });
  return conclude(context, kind, session, outcome, (binding) =>
    binding === undefined ? `${session} is bound to no thread` : undefined,
  );
}

async function ask(
  context: CliContext,
  kind: Kind,
  command: string,
  args: Readonly<Record<string, Scalar>>,
): Promise<SubmitOutcome> {
  return await submitCommand({
    directory: daemonPaths(context.paths.state, kind).commands,
    kind,
    owner: ownerToAsk(context, kind),
    command,
    args,
    clock: systemClock,
    machine: systemMachineTime(),
    random: systemRandom,
  });
}

/** @throws {ChatdError} refused, version-mismatch: nobody, or somebody who must not be asked */
function ownerToAsk(context: CliContext, kind: Kind): OwnerTuple {
  const identity = optionalConfig(context)?.identityOf(kind);
  const seen = classify(observe(daemonPaths(context.paths.state, kind)), {
    identity,
    generation: CHAT_DAEMON_GENERATION,
  });
  switch (seen.class) {
    case 'compatible':
      return tupleOf(seen.owner.lock);
    case 'newer':
      throw new ChatdError('version-mismatch', `Cannot ask ${kind}: its daemon is newer; upgrade`);
    case 'replaceable':
      throw new ChatdError(
        'version-mismatch',
        `Cannot ask ${kind}: its daemon is older; run chatd reload ${kind}`,
      );
    case 'absent':
    case 'stopped':
      throw new ChatdError(
        'refused',
        `Cannot ask ${kind}: nobody is running; run chatd ensure ${kind}`,
      );
    default:
      throw new ChatdError('refused', `Cannot ask ${kind}: see chatd status ${kind} --explain`);
  }
}

/** The store's word on the session, turned into a line when it is what was asked for. */
type Proof = (binding: Binding | undefined) => string | undefined;

function conclude(
  context: CliContext,
  kind: Kind,
  session: string,
  outcome: SubmitOutcome,
  proof: Proof,
): number {
  const definite = refusalOf(outcome);
  if (definite !== undefined) return finish(context, kind, { ...definite, ok: false });
  const done = proof(bindingInStore(context, kind, session));
  if (done !== undefined)
    return finish(context, kind, { ok: true, code: 'ok', line: done, exit: 0 });
  const line = 'it may have been done; running the same command again is safe';
  return finish(context, kind, { ok: false, code: 'binding_outcome_unknown', line, exit: 24 });
}

interface Conclusion {
  readonly ok: boolean;
  readonly code: string;
  readonly line: string;
  readonly exit: number;
}

function finish(context: CliContext, kind: Kind, conclusion: Conclusion): number {
  const { ok, code, line, exit } = conclusion;
  if (context.json) context.out(JSON.stringify({ kind, ok, code, message: line }, null, 2));
  else if (ok) context.out(`${kind}: ${line}`);
  else context.err(`${kind}: ${code}: ${line}`);
  return exit;
}

/** What is certain without a look at the store; undefined: only the store can say. */
function refusalOf(outcome: SubmitOutcome): Omit<Conclusion, 'ok'> | undefined {
  switch (outcome.kind) {
    case 'cancelled':
      return { code: 'cancelled', line: 'no answer in time; nothing was done', exit: 25 };
    case 'unavailable':
      return { code: outcome.code, line: outcome.because, exit: 1 };
    case 'unknown':
    case 'untrusted':
      return undefined;
    case 'answered': {
      const { outcome: word, code, result } = outcome.answer;
      if (word === 'ok' || word === 'outcome_unknown') return undefined;
      if (word !== 'rejected') return { code, line: 'nothing was done; try again', exit: 1 };
      return { code, line: rejectionLine(code, result), exit: 1 };
    }
  }
}

/** Codes people can act on; any other stands for itself. */
const REJECTIONS: Readonly<Record<string, string>> = {
  session_not_found: 'no such session; see chatd sessions',
  session_exited: 'the session has exited',
  other_incarnation: 'the session was started again since; leave --incarnation out',
  thread_not_found: 'no such thread, or the bot cannot see it',
  channel_not_allowed: 'its channel is not listed in chatd.toml',
  platform_did_not_answer: 'the platform did not answer; try again',
  locked: 'the thread is locked',
  archived: 'the thread is archived',
};

function rejectionLine(code: string, result: Readonly<Record<string, Scalar>>): string {
  const holder = `${String(result['channel'] ?? '')}/${String(result['root'] ?? '')}`;
  if (code === 'session_taken') return `the session is bound to ${holder}; --move rebinds it`;
  if (code === 'root_taken') {
    return `the thread is bound to session ${String(result['session'] ?? '')}; --move rebinds it`;
  }
  return REJECTIONS[code] ?? 'rejected, nothing was done';
}

function boundLine(binding: Binding, outcome: SubmitOutcome): string {
  const already = outcome.kind === 'answered' && outcome.answer.result['already'] === true;
  const place = `${binding.channel}/${binding.root ?? ''}`;
  return `${binding.sessionId} is ${already ? 'already ' : ''}bound to ${place} (version ${binding.version})`;
}

function bindingInStore(context: CliContext, kind: Kind, session: string): Binding | undefined {
  try {
    const store = openStoreForReading(daemonPaths(context.paths.state, kind).store, systemClock);
    try {
      return openBindingOfSession(store, session);
    } finally {
      store.db.close();
    }
  } catch (error) {
    if (errorCode(error) === 'store-missing') return undefined;
    throw error;
  }
}
