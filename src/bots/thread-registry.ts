// All threads of one chat daemon: claims what comes in, finds the thread it belongs to, starts
// sessions, brings every binding back after a restart. One per process; knows no platform.

import { Backoff } from '../base/backoff.ts';
import type { Clock } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { Host } from '../pty/client.ts';
import { audit } from '../store/audit.ts';
import {
  type Binding,
  newestBindingOfRoot,
  openBindingOfRoot,
  openBindings,
  renameChannel,
} from '../store/bindings.ts';
import { catchUpCursor, claim, pruneReceipts, settleReceipt } from '../store/claims.ts';
import { type StartedSession, startedSession } from '../store/sessions.ts';
import type { Store } from '../store/store.ts';
import { type AccessPolicy, decideAccess } from './access.ts';
import { Bridge, type BridgeDeps, FRESH_MS, type MentionKind } from './bridge.ts';
import type {
  ChatPlatform,
  Inbound,
  Person,
  ThreadRoot,
  TransportHealth,
} from './chat-platform.ts';
import { parseStartText, type StartText } from './control-words.ts';
import { START_HELP, stateText } from './phrases.ts';
import { ScreenPainter } from './render/png.ts';
import {
  factsOf,
  SessionStarter,
  type StartDefaults,
  type StartOutcome,
  type StartProfile,
} from './session-starter.ts';

type Act = Extract<Inbound, { kind: 'message' | 'action' | 'command' | 'modal' }>;

/** Receipts are looked through this often; removal needs two looks (store/claims.ts). */
const PRUNE_PERIOD_MS = 300_000;
/** Catch-up and re-attachment are tried again for ever, at most this far apart. */
const RETRY = { initialMs: 500, maxMs: 30_000, factor: 2 };
/** Acts kept for a thread that is not attached yet. */
const EARLY_MAX = 64;
/** Sessions shown by `list`. */
const LIST_MAX = 30;

export interface RegistryDeps {
  readonly platform: ChatPlatform;
  readonly host: Host;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly policy: AccessPolicy;
  readonly profiles: readonly StartProfile[];
  readonly defaults: StartDefaults;
  readonly redacts: boolean;
  readonly mention: readonly MentionKind[];
  /** Ownership, proven now: asked before every effect. */
  readonly proven: () => boolean;
  readonly openOutbox: BridgeDeps['openOutbox'];
  readonly health: (health: TransportHealth) => void;
  readonly fatal: (reason: string) => void;
}

export class ThreadRegistry {
  readonly #deps: RegistryDeps;
  readonly #starter: SessionStarter;
  readonly #painter = new ScreenPainter();
  readonly #bridges = new Map<string, Bridge>();
  readonly #stop = new AbortController();
  readonly #background = new Set<Promise<void>>();
  readonly #servingSincePlatformMs: number;
  /** Acts whose thread is not attached yet, by binding. */
  readonly #early = new Map<
    string,
    { event: Exclude<Act, { kind: 'command' }>; receipt: string }[]
  >();
  /** Messages in threads that may turn out to be ours. */
  readonly #rootless: Act[] = [];
  #catchUpsWanted = 0;

  constructor(deps: RegistryDeps) {
    this.#deps = deps;
    this.#servingSincePlatformMs = deps.clock.wallMs();
    this.#starter = new SessionStarter({
      host: deps.host,
      store: deps.store,
      random: deps.random,
      log: deps.log,
      defaults: deps.defaults,
    });
  }

  /** Brings every binding back and begins to connect; does not wait for host or platform. */
  async start(): Promise<void> {
    for (const binding of openBindings(this.#deps.store)) this.#bringBack(binding);
    for (const pending of this.#starter.pending()) this.#resumeLater(pending.token);
    this.#run('prune', () => this.#pruneForEver());
    await this.#deps.platform.start({
      inbound: (event) => this.inbound(event),
      health: (health) => this.#deps.health(health),
      connected: () => this.#catchUpSoon(),
      fatal: (reason) => this.#deps.fatal(reason),
    });
  }

  /** Stops taking events, flushes what `graceMs` allows. Never ends a session. */
  async stop(graceMs: number): Promise<void> {
    this.#stop.abort(new Error('stopping'));
    await Promise.all([...this.#bridges.values()].map((bridge) => bridge.close(graceMs)));
    await this.#deps.platform.stop();
    await Promise.all(this.#background);
  }

  bridgeOfSession(sessionId: string): Bridge | undefined {
    return [...this.#bridges.values()].find((bridge) => bridge.binding.sessionId === sessionId);
  }

  /** Opens a bridge for a binding made elsewhere (bind-thread), as soon as the host answers. */
  adoptSoon(binding: Binding): void {
    this.#bringBack(binding, true);
  }

  /** Closes the bridge of a binding that was moved or unbound. */
  async release(b: string): Promise<void> {
    const bridge = this.#bridges.get(b);
    this.#bridges.delete(b);
    await bridge?.close(0);
  }

  /** Resolves when the act is claimed durably, or needs no claim. */
  async inbound(event: Inbound): Promise<void> {
    if (!this.#deps.proven()) throw new Error('Ownership is not proven');
    switch (event.kind) {
      case 'own-message':
        this.#bridges.get(event.row.b)?.outbox.ownMessage(event.messageId, event.row);
        return;
      case 'place-changed':
        for (const bridge of this.#bridgesAt(event.place)) {
          bridge.outbox.placeChanged(event.change, event.messageId);
        }
        return;
      case 'channel-id-changed':
        renameChannel(this.#deps.store, event.from, event.to);
        for (const bridge of this.#bridgesAt({ space: '', channel: event.from, root: '' })) {
          await this.release(bridge.binding.b);
        }
        for (const binding of openBindings(this.#deps.store)) this.#bringBack(binding);
        return;
      default:
        this.#claimAndRoute(event);
    }
  }

  #claimAndRoute(event: Act): void {
    const { store, random } = this.#deps;
    const bridge = this.#bridgeAt(event.place);
    const { space, channel, root } = event.place;
    // After a restart an act may come before its thread is attached to its session again.
    const binding =
      bridge?.binding ?? (root === '' ? undefined : openBindingOfRoot(store, space, channel, root));
    if (binding === undefined && event.kind === 'message' && !event.mentionsUs) {
      this.#keepForRoot(event);
      return;
    }
    if (event.author.isBot) return;
    const outcome = claim(store, {
      id: mintId(random, 16),
      keys: event.dedupeKeys,
      b: binding?.b,
      actor: this.#actor(event.author),
      kind: event.kind,
      ...(event.kind === 'message' ? { messageId: event.messageId } : {}),
    });
    if (outcome.kind === 'already') return;
    if (outcome.kind === 'full') {
      this.#run('answer', () =>
        this.#answer(event, 'Not done: more was asked in a day than chatd keeps account of.'),
      );
      return;
    }
    const receipt = outcome.receipt.id;
    if (binding !== undefined && event.kind !== 'command') {
      if (bridge !== undefined) this.#toBridge(bridge, event, receipt);
      else this.#keepForLater(binding.b, event, receipt);
      return;
    }
    this.#run('outside', () => this.#outside(event, receipt));
  }

  /** A thread can be written in a moment before its root is known to us: while one is being posted. */
  #keepForRoot(event: Act): void {
    const isOpening = [...this.#bridges.values()].some(
      (bridge) => bridge.place.root === '' && bridge.place.channel === event.place.channel,
    );
    if (event.place.root === '' || !isOpening || this.#rootless.length >= EARLY_MAX) return;
    this.#rootless.push(event);
  }

  /** A root stands: what was written below it meanwhile is found its thread. */
  #rootOpened(): void {
    const kept = this.#rootless.splice(0);
    for (const event of kept) {
      if (this.#platformNowMs() - event.sentAtPlatformMs < FRESH_MS) this.#claimAndRoute(event);
    }
  }

  #keepForLater(b: string, event: Exclude<Act, { kind: 'command' }>, receipt: string): void {
    const kept = this.#early.get(b) ?? [];
    this.#early.set(b, kept);
    if (kept.length < EARLY_MAX) {
      kept.push({ event, receipt });
      return;
    }
    settleReceipt(this.#deps.store, receipt, 'refused');
    this.#run('answer', () =>
      this.#answer(event, 'Not typed: the host of this terminal does not answer yet.'),
    );
  }

  #toBridge(bridge: Bridge, event: Exclude<Act, { kind: 'command' }>, receipt: string): void {
    const taken = bridge.act({
      receipt,
      event,
      ageMs: this.#platformNowMs() - event.sentAtPlatformMs,
      // A press is answered within seconds or is dead by itself; only messages wait for us.
      whileAway:
        event.kind === 'message' &&
        (event.caughtUp || event.sentAtPlatformMs < this.#servingSincePlatformMs + this.#skewMs()),
    });
    if (taken) return;
    settleReceipt(this.#deps.store, receipt, 'refused');
    this.#run('answer', () =>
      this.#answer(event, 'Not typed: too much is waiting for this terminal already.'),
    );
  }

  /** A mention or command outside a bound thread, or something that belongs to no thread any more. */
  async #outside(event: Act, receipt: string): Promise<void> {
    settleReceipt(this.#deps.store, receipt, 'done');
    if (event.kind === 'message' || event.kind === 'command') {
      await this.#startText(event, receipt, parseStartText(event.text));
      return;
    }
    const old = newestBindingOfRoot(this.#deps.store, event.place.channel, event.place.root);
    await this.#answer(
      event,
      old === undefined
        ? 'This belongs to no terminal.'
        : `Not done: the program of this thread has ended (${old.endProof ?? old.state}).`,
    );
  }

  async #startText(
    event: Extract<Act, { kind: 'message' | 'command' }>,
    receipt: string,
    wanted: StartText,
  ): Promise<void> {
    const right = wanted.kind === 'run' ? 'drive' : 'view';
    const decision = decideAccess(this.#deps.policy, event.author, event.place, right);
    if (decision.kind === 'ignored') return;
    if (decision.kind === 'refused') {
      this.#audit(event.author, wanted.kind, 'refused');
      await this.#answer(event, `Not done: ${decision.because}.`);
      return;
    }
    switch (wanted.kind) {
      case 'help':
        await this.#answer(event, START_HELP);
        return;
      case 'list':
        await this.#answer(event, await this.#listText());
        return;
      case 'not-understood':
        await this.#answer(event, `Not understood. ${START_HELP}`);
        return;
      case 'run':
        await this.#startRun(event, receipt, wanted);
        return;
    }
  }

  async #startRun(
    event: Extract<Act, { kind: 'message' | 'command' }>,
    receipt: string,
    wanted: Extract<StartText, { kind: 'run' }>,
  ): Promise<void> {
    if (this.#isStale(event)) {
      await this.#answer(
        event,
        'This came too late and was not started. Ask again if you still want it.',
      );
      return;
    }
    const profile = this.#deps.profiles.find((known) => known.name === wanted.profile);
    if (wanted.profile !== undefined && profile === undefined) {
      const known = this.#deps.profiles.map(({ name }) => name).join(', ');
      await this.#answer(
        event,
        `There is no profile ${wanted.profile}. ${known === '' ? 'None are configured' : `Known are ${known}`}. A command goes after --: run -- ${wanted.profile}`,
      );
      return;
    }
    if (profile?.approve === 'start' && !this.#mayApprove(event)) {
      await this.#answer(
        event,
        `Profile ${profile.name} is started by approvers only (approve = "start" in chatd.toml). Ask one of them to start it.`,
      );
      return;
    }
    const wish = {
      token: receipt,
      actor: this.#actor(event.author),
      place: { space: event.place.space, channel: event.place.channel },
      profile,
      command: wanted.command,
    };
    const outcome = await this.#starter.start(wish);
    this.#audit(event.author, 'start', outcome.kind);
    if (outcome.kind === 'not-known') this.#resumeLater(receipt);
    await this.#tellStart(event, outcome);
  }

  async #tellStart(event: Act, outcome: StartOutcome): Promise<void> {
    switch (outcome.kind) {
      case 'started':
        await this.#open(outcome.binding);
        if (event.kind === 'command') {
          await event.reply.privately(
            `Started session ${outcome.facts.sessionId}; its thread is opening.`,
          );
        }
        return;
      case 'refused':
        await this.#answer(event, `Not started: ${outcome.because}.`);
        return;
      case 'not-known':
        await this.#answer(
          event,
          `The host did not answer (${outcome.because}). chatd keeps asking; the thread opens when it does.`,
        );
        return;
    }
  }

  #resumeLater(token: string): void {
    this.#run('resume-start', () =>
      this.#keepTrying(async () => {
        const pending = this.#starter.pending().find((known) => known.token === token);
        return pending === undefined || (await this.#resume(pending));
      }),
    );
  }

  async #resume(pending: StartedSession): Promise<boolean> {
    const profile = this.#deps.profiles.find((known) => known.name === pending.profile);
    const outcome = await this.#starter.resume(pending, profile);
    if (outcome.kind === 'started') await this.#open(outcome.binding);
    return outcome.kind !== 'not-known';
  }

  async #listText(): Promise<string> {
    const sessions = await this.#deps.host.list();
    if (sessions.length === 0) return 'No sessions.';
    const lines = sessions.slice(0, LIST_MAX).map((session) => {
      const bridge = this.bridgeOfSession(session.sessionId);
      const thread =
        bridge === undefined ? 'no thread here' : this.#deps.platform.linkOf(bridge.place);
      const program = session.command.length === 0 ? 'shell' : session.command.join(' ');
      return `${session.sessionId} · ${program} · ${stateText(session.state)} · ${thread}`;
    });
    const more = sessions.length > LIST_MAX ? [`and ${sessions.length - LIST_MAX} more`] : [];
    return [...lines, ...more].join('\n');
  }

  #isStale(event: Extract<Act, { kind: 'message' | 'command' }>): boolean {
    if (event.kind === 'message' && event.caughtUp) return true;
    return this.#platformNowMs() - event.sentAtPlatformMs > FRESH_MS;
  }

  #mayApprove(event: Act): boolean {
    return decideAccess(this.#deps.policy, event.author, event.place, 'approve').kind === 'allowed';
  }

  /** Attaches to the session of a binding and opens its bridge; tries until the host answers. */
  #bringBack(binding: Binding, summary = false): void {
    this.#run('bring-back', () =>
      this.#keepTrying(async () => {
        await this.#open(binding, summary);
        return true;
      }),
    );
  }

  async #open(binding: Binding, summary = false): Promise<void> {
    if (this.#bridges.has(binding.b) || this.#stopping()) return;
    const { sessionId, incarnation } = binding;
    const feed = await this.#deps.host.followLines({ sessionId, incarnation });
    // Another caller may have opened it, or we may be stopping, while the host answered.
    if (this.#bridges.has(binding.b) || this.#stopping()) {
      feed.close();
      return;
    }
    const facts = factsOf(binding, this.#deps.defaults.machine);
    const { platform, host, store, clock, log, policy, redacts, mention, openOutbox } = this.#deps;
    const bridge = new Bridge(
      {
        platform,
        host,
        store,
        clock,
        log,
        policy,
        redacts,
        mention,
        startedBy: this.#starterOf(sessionId),
        openOutbox,
        painter: this.#painter,
        rootOpened: () => this.#rootOpened(),
        ended: (ended) => this.#ended(ended),
      },
      binding,
      facts,
      feed,
    );
    this.#bridges.set(binding.b, bridge);
    for (const early of this.#early.get(binding.b) ?? []) {
      this.#toBridge(bridge, early.event, early.receipt);
    }
    this.#early.delete(binding.b);
    if (summary) bridge.summarize();
  }

  #starterOf(sessionId: string): string | undefined {
    const actor = startedSession(this.#deps.store, sessionId)?.actor;
    const prefix = `${this.#deps.platform.kind}:`;
    return actor?.startsWith(prefix) === true ? actor.slice(prefix.length) : undefined;
  }

  #ended(binding: Binding): void {
    const bridge = this.#bridges.get(binding.b);
    if (bridge === undefined) return;
    this.#bridges.delete(binding.b);
    // From inside the bridge's own mailbox: closing waits for that mailbox.
    this.#run('close-bridge', () => bridge.close(0));
  }

  #bridgeAt(place: ThreadRoot): Bridge | undefined {
    if (place.root === '') return undefined;
    return this.#bridgesAt(place)[0];
  }

  /** Bridges in a thread, or in a whole channel where no thread is named. */
  #bridgesAt(place: ThreadRoot): readonly Bridge[] {
    return [...this.#bridges.values()].filter(
      (bridge) =>
        bridge.place.channel === place.channel &&
        (place.root === '' || bridge.place.root === place.root),
    );
  }

  #catchUpSoon(): void {
    this.#catchUpsWanted += 1;
    if (this.#catchUpsWanted > 1) return;
    this.#run('catch-up', async () => {
      // Connections that come while one runs are one more round, however many they are.
      while (this.#catchUpsWanted > 0 && !this.#stopping()) {
        this.#catchUpsWanted = 1;
        await this.#keepTrying(() => this.#catchUp());
        this.#catchUpsWanted -= 1;
      }
    });
  }

  async #catchUp(): Promise<boolean> {
    const { platform, store } = this.#deps;
    for (const bridge of this.#bridges.values()) bridge.outbox.refresh();
    // From the store: a thread that is not attached yet is caught up with all the same.
    const places = openBindings(store).flatMap(({ b, space, channel, root }) =>
      root === undefined
        ? []
        : [{ place: { space, channel, root }, sinceMessageId: catchUpCursor(store, b) }],
    );
    if (places.length === 0) return true;
    const outcome = await platform.catchUp(places);
    if (outcome.kind !== 'ok') {
      this.#deps.log.warn('catch-up.failed', { because: outcome.kind });
      return outcome.kind === 'gone';
    }
    for (const event of outcome.value) await this.inbound(event);
    return true;
  }

  async #answer(event: Act, text: string): Promise<void> {
    if (event.kind !== 'message') {
      await event.reply.privately(text);
      return;
    }
    const outcome = await this.#deps.platform.whisper(event.place, event.author.id, text);
    if (outcome.kind !== 'ok') this.#deps.log.warn('whisper.failed', { because: outcome.kind });
  }

  /** Repeats until `attempt` says it is done or we stop. */
  async #keepTrying(attempt: () => Promise<boolean>): Promise<void> {
    const backoff = new Backoff(RETRY, this.#deps.random);
    while (!this.#stopping()) {
      try {
        if (await attempt()) return;
      } catch (error) {
        this.#deps.log.warn('attempt.failed', { error });
      }
      await this.#pause(backoff.nextMs());
    }
  }

  async #pause(ms: number): Promise<void> {
    try {
      await this.#deps.clock.sleep(ms, this.#stop.signal);
    } catch {
      // Stopping: the loop around looks at the signal.
    }
  }

  async #pruneForEver(): Promise<void> {
    while (!this.#stopping()) {
      await this.#pause(PRUNE_PERIOD_MS);
      if (!this.#stopping() && this.#deps.proven()) pruneReceipts(this.#deps.store);
    }
  }

  #run(name: string, work: () => Promise<void>): void {
    const task = work()
      .catch((error: unknown) => {
        this.#deps.log.error('task.failed', { name, error, because: errorText(error) });
      })
      .finally(() => this.#background.delete(task));
    this.#background.add(task);
  }

  #stopping(): boolean {
    return this.#stop.signal.aborted;
  }

  #skewMs(): number {
    return this.#deps.platform.clockSkewMs() ?? 0;
  }

  #platformNowMs(): number {
    return this.#deps.clock.wallMs() + this.#skewMs();
  }

  #actor(person: Person): string {
    return `${this.#deps.platform.kind}:${person.id}`;
  }

  #audit(person: Person, action: string, outcome: string): void {
    audit(this.#deps.store, { actor: this.#actor(person), action, outcome });
  }
}
