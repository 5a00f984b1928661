// bind-thread and unbind-thread as the daemon runs them: everything slow is proven before the fence
// is entered, and the commit is one store transaction with ownership proven inside it again.

import { mintId } from './base/ids.ts';
import type { Random } from './base/random.ts';
import type { AccessPolicy } from './bots/access.ts';
import type { ChatPlatform, ThreadRoot } from './bots/chat-platform.ts';
import type { ThreadRegistry } from './bots/thread-registry.ts';
import type { BindThreadArgs } from './control/commands/bind-thread.ts';
import type { CommitFence, HandlerAnswer } from './control/commands/command.ts';
import type { CommandHandlers } from './control/commands/registry.ts';
import type { UnbindThreadArgs } from './control/commands/unbind-thread.ts';
import type { Host, SessionInfo } from './pty/client.ts';
import {
  type Binding,
  type BindOutcome,
  bind,
  openBindingOfRoot,
  openBindingOfSession,
  supersedeBinding,
} from './store/bindings.ts';
import type { Store } from './store/store.ts';

export interface ThreadCommandDeps {
  readonly registry: ThreadRegistry;
  readonly platform: ChatPlatform;
  readonly host: Host;
  readonly store: Store;
  readonly random: Random;
  readonly policy: AccessPolicy;
}

/** Where lines and marks of a session stand: what came before is not the new thread's to show. */
interface Position {
  readonly line: number;
  readonly mark: number;
}

export function threadCommands(deps: ThreadCommandDeps): CommandHandlers {
  return {
    'bind-thread': (args, fence) => bindThread(deps, args, fence),
    'unbind-thread': (args, fence) => unbindThread(deps, args, fence),
  };
}

async function bindThread(
  deps: ThreadCommandDeps,
  args: BindThreadArgs,
  fence: CommitFence,
): Promise<HandlerAnswer> {
  const sessions = await deps.host.list();
  const session = sessions.find(({ sessionId }) => sessionId === args.session);
  const refusal = refusalOf(session, args);
  if (session === undefined || refusal !== undefined)
    return rejected(refusal ?? 'session_not_found');
  const proof = await deps.platform.proveRoot({
    space: deps.policy.space,
    channel: args.channel,
    root: args.root,
  });
  if (proof.kind === 'in-doubt') return rejected('platform_did_not_answer');
  if (proof.kind === 'gone') return rejected('thread_not_found');
  if (proof.kind === 'refused') return rejected(proof.because.replaceAll('-', '_'));
  const { root } = proof.value;
  if (!deps.policy.channels.has(root.channel)) return rejected('channel_not_allowed');
  const position = await positionOf(deps.host, session);
  const entry = await fence.enter();
  if (!entry.granted) return rejected(entry.because);
  const commit = commitBinding(deps, fence, { session, root, position, move: args.move });
  if (commit === undefined) return rejected('owner_changed');
  return await settleBinding(deps, commit, session);
}

function refusalOf(session: SessionInfo | undefined, args: BindThreadArgs): string | undefined {
  if (session === undefined) return 'session_not_found';
  if (session.state.kind === 'exited') return 'session_exited';
  const wanted = args.incarnation;
  return wanted === '' || wanted === session.incarnation ? undefined : 'other_incarnation';
}

async function positionOf(host: Host, session: SessionInfo): Promise<Position> {
  const { sessionId, incarnation } = session;
  const feed = await host.followLines({ sessionId, incarnation });
  try {
    return { line: feed.view?.finalCount ?? session.finalCount, mark: feed.view?.markCount ?? 0 };
  } finally {
    feed.close();
  }
}

interface Commit {
  readonly outcome: BindOutcome;
  /** Bindings that made way. */
  readonly released: readonly Binding[];
}

/** One transaction; undefined when ownership is no longer proven, and nothing was changed. */
function commitBinding(
  deps: ThreadCommandDeps,
  fence: CommitFence,
  wanted: {
    readonly session: SessionInfo;
    readonly root: ThreadRoot;
    readonly position: Position;
    readonly move: boolean;
  },
): Commit | undefined {
  const { store } = deps;
  const { session, root, position } = wanted;
  return store.transaction(() => {
    if (!fence.proven()) return undefined;
    const released = wanted.move ? makeWay(store, session, root) : [];
    const outcome = bind(store, {
      b: mintId(deps.random),
      sessionId: session.sessionId,
      incarnation: session.incarnation,
      space: root.space,
      channel: root.channel,
      root: root.root,
      requestId: fence.requestId,
      firstLine: position.line,
      nextMark: position.mark,
      settings: {
        command: session.command.join(' '),
        directory: session.cwd,
        ...(session.profile === undefined ? {} : { profile: session.profile }),
      },
    });
    return { outcome, released };
  });
}

/** With --move whatever holds the session or the root makes way; exactly this binding stays. */
function makeWay(store: Store, session: SessionInfo, root: ThreadRoot): readonly Binding[] {
  const bySession = openBindingOfSession(store, session.sessionId);
  const byRoot = openBindingOfRoot(store, root.space, root.channel, root.root);
  if (bySession !== undefined && bySession.b === byRoot?.b) return [];
  const holders = [bySession, byRoot].filter((holder) => holder !== undefined);
  return holders.map((holder) => supersedeBinding(store, holder));
}

async function settleBinding(
  deps: ThreadCommandDeps,
  { outcome, released }: Commit,
  session: SessionInfo,
): Promise<HandlerAnswer> {
  if (outcome.kind === 'session-taken' || outcome.kind === 'root-taken') {
    const { holder } = outcome;
    return {
      kind: 'rejected',
      code: outcome.kind.replace('-', '_'),
      detail: { session: holder.sessionId, channel: holder.channel, root: holder.root ?? '' },
    };
  }
  for (const old of released) await deps.registry.release(old.b);
  if (outcome.kind === 'bound') deps.registry.adoptSoon(outcome.binding);
  const { binding } = outcome;
  return {
    kind: 'ok',
    result: {
      session: session.sessionId,
      incarnation: binding.incarnation,
      binding: binding.b,
      version: binding.version,
      channel: binding.channel,
      root: binding.root ?? '',
      already: outcome.kind === 'already',
    },
  };
}

async function unbindThread(
  deps: ThreadCommandDeps,
  args: UnbindThreadArgs,
  fence: CommitFence,
): Promise<HandlerAnswer> {
  const entry = await fence.enter();
  if (!entry.granted) return rejected(entry.because);
  const released = deps.store.transaction(() => {
    if (!fence.proven()) return undefined;
    const binding = openBindingOfSession(deps.store, args.session);
    return binding === undefined ? [] : [supersedeBinding(deps.store, binding)];
  });
  if (released === undefined) return rejected('owner_changed');
  for (const old of released) await deps.registry.release(old.b);
  return { kind: 'ok', result: { session: args.session, already: released.length === 0 } };
}

function rejected(code: string): HandlerAnswer {
  return { kind: 'rejected', code };
}
