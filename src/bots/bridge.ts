// One binding: a session and its thread, one mailbox. What people do comes in as claimed acts, what
// the program does as changes of the feed. Knows no platform; delivery of output is the outbox's.

import type { Clock } from '../base/clock.ts';
import { ChatdError, errorCode, errorText } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { Mailbox } from '../base/mailbox.ts';
import type { Host, LineFeed, SessionState, SessionTarget } from '../pty/client.ts';
import { audit } from '../store/audit.ts';
import { type Binding, bindingByName, changeSettings, endBinding } from '../store/bindings.ts';
import { claim, settleReceipt } from '../store/claims.ts';
import { rowOfMessage } from '../store/outbox-rows.ts';
import type { Store } from '../store/store.ts';
import { type AccessPolicy, decideAccess, type Right } from './access.ts';
import { type Action, encodeAction, parseAction } from './actions.ts';
import { AttentionWatch, type Prompt } from './attention-watch.ts';
import type { ChatPlatform, Content, Inbound, Person, ThreadRoot } from './chat-platform.ts';
import { parseThreadText, type ThreadText } from './control-words.ts';
import { keyBytes, parseKeys } from './keys.ts';
import { makeFile, screenPicture } from './made-files.ts';
import type { NoticeBody } from './outbox/rows.ts';
import type { MadeFile, ThreadOutbox } from './outbox/thread-outbox.ts';
import {
  ageText,
  choiceButtons,
  keyButtons,
  rootText,
  SECRET_REFUSED,
  type SessionFacts,
  secretButtons,
  stateText,
  titleOf,
  WELCOME,
} from './phrases.ts';
import { PictureWatch } from './picture-watch.ts';
import type { ScreenPainter } from './render/png.ts';
import { type TypingOutcome, Typist } from './typist.ts';
import { runWord, type WordContext } from './words.ts';

/** Acts waiting for one thread. Chosen: more than people type in the 30 s after which it is stale. */
const ACTS_MAX = 256;
/** Input older than this is offered, never executed. */
export const FRESH_MS = 30_000;

export type MentionKind = 'prompt' | 'failed' | 'finished' | 'bell';

/** What a person did, already claimed: `receipt` names it towards the host. */
export interface ClaimedAct {
  readonly receipt: string;
  readonly event: Extract<Inbound, { kind: 'message' | 'action' | 'modal' }>;
  /** Age by the platform's clock when it reached us. */
  readonly ageMs: number;
  /** Typed while this daemon was not serving. */
  readonly whileAway: boolean;
}

type BridgeEvent =
  | { readonly kind: 'act'; readonly act: ClaimedAct }
  | { readonly kind: 'changed' }
  | { readonly kind: 'drained' };

/** What a bridge brings to its outbox. */
export interface OutboxWish {
  readonly binding: Binding;
  readonly feed: LineFeed;
  readonly root: () => { readonly title: string; readonly content: Content };
  readonly decorate: (about: {
    readonly kind: 'text' | 'screen';
    readonly open: boolean;
  }) => Partial<Content>;
  readonly makeFile: (what: unknown) => Promise<MadeFile>;
  readonly onRoot: (binding: Binding) => void;
}

export interface BridgeDeps {
  readonly platform: ChatPlatform;
  readonly host: Host;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly policy: AccessPolicy;
  readonly redacts: boolean;
  /** What pings the person who drives. */
  readonly mention: readonly MentionKind[];
  /** Who started the session, where it was someone of this platform. */
  readonly startedBy: string | undefined;
  readonly openOutbox: (wanted: OutboxWish) => ThreadOutbox;
  /** One for all threads: one picture is drawn at a time. */
  readonly painter: ScreenPainter;
  /** The root message stands and the thread is known. */
  readonly rootOpened: () => void;
  /** The binding has ended, with proof: its thread is free. */
  readonly ended: (binding: Binding) => void;
}

export class Bridge {
  readonly #deps: BridgeDeps;
  readonly #facts: SessionFacts;
  readonly #feed: LineFeed;
  readonly #outbox: ThreadOutbox;
  readonly #typist: Typist;
  readonly #watch: AttentionWatch;
  readonly #pictures: PictureWatch;
  readonly #mailbox: Mailbox<BridgeEvent>;
  readonly #log: Log;
  /** Told once each in the life of this process; the outbox keeps what must be told once for ever. */
  readonly #refusedPeople = new Set<string>();
  #binding: Binding;
  #exitTold = false;
  #lastDriver: string | undefined;
  #changedQueued = false;

  constructor(deps: BridgeDeps, binding: Binding, facts: SessionFacts, feed: LineFeed) {
    this.#deps = deps;
    this.#binding = binding;
    this.#facts = facts;
    this.#lastDriver = deps.startedBy;
    this.#feed = feed;
    this.#log = deps.log.with({ b: binding.b, sessionId: binding.sessionId });
    this.#typist = new Typist(deps.host, deps.clock);
    this.#outbox = deps.openOutbox({
      binding,
      feed,
      root: () => this.#rootWords(),
      decorate: ({ kind, open }) =>
        kind === 'screen' && open ? { buttons: keyButtons(binding.incarnation) } : {},
      makeFile: (what) =>
        makeFile(what, {
          host: deps.host,
          target: this.#target,
          feed,
          painter: deps.painter,
          masked: (frame) => this.#outbox.maskedFrame(frame),
        }),
      onRoot: (active) => {
        this.#binding = active;
        deps.rootOpened();
      },
    });
    this.#watch = new AttentionWatch({
      host: deps.host,
      feed,
      target: { sessionId: binding.sessionId, incarnation: binding.incarnation },
      clock: deps.clock,
      prompt: (prompt) => this.#prompted(prompt),
      failed: (error) => this.#log.debug('attention.failed', { error }),
    });
    this.#pictures = new PictureWatch({
      feed,
      clock: deps.clock,
      // A Slack thread shows the last screen as text; there a picture is for who asks.
      lastScreens: deps.platform.kind === 'discord',
      picture: (body, line, once) => this.#outbox.file(body, { at: { line }, lane: 'final', once }),
      tooMany: (line, once) =>
        this.#outbox.notice(
          { head: 'The program prints more pictures than fit here; these are not shown.' },
          { at: { line }, lane: 'final', once },
        ),
      failed: (error) => this.#log.debug('pictures.failed', { error }),
    });
    this.#mailbox = new Mailbox({
      capacity: ACTS_MAX,
      handle: (event) => this.#handle(event),
      onError: (error, event) => this.#failed(error, event),
    });
    feed.onChange(() => this.#feedChanged());
    this.#welcome();
    this.#outbox.start();
    this.#feedChanged();
  }

  get binding(): Binding {
    return this.#binding;
  }

  get outbox(): ThreadOutbox {
    return this.#outbox;
  }

  get state(): SessionState {
    return this.#feed.state;
  }

  /** False when more is waiting than one thread can hold: the caller says so to the person. */
  act(act: ClaimedAct): boolean {
    return this.#mailbox.post({ kind: 'act', act });
  }

  /** A thread bound to a running session gets a summary and the screen, not the history. */
  summarize(): void {
    const view = this.#feed.view;
    const lines =
      view === undefined
        ? ''
        : ` ${view.finalCount} lines before this are not shown: !tail and !log have them.`;
    this.#say({
      head: `This thread now drives session ${this.#facts.sessionId} (${stateText(this.#feed.state)}).${lines}`,
      screen: true,
    });
  }

  /** Takes no more acts, flushes what is due within `graceMs`. The session goes on. */
  async close(graceMs: number): Promise<void> {
    this.#watch.close();
    this.#pictures.close();
    await this.#mailbox.close();
    await this.#outbox.close(graceMs);
    this.#feed.close();
  }

  get #target(): SessionTarget {
    return { sessionId: this.#binding.sessionId, incarnation: this.#binding.incarnation };
  }

  #feedChanged(): void {
    this.#outbox.notify();
    this.#watch.changed();
    this.#pictures.changed();
    if (this.#changedQueued) return;
    this.#changedQueued = this.#mailbox.post({ kind: 'changed' });
  }

  async #handle(event: BridgeEvent): Promise<void> {
    switch (event.kind) {
      case 'act':
        await this.#handleAct(event.act);
        return;
      case 'changed':
        this.#changedQueued = false;
        this.#noteExit();
        return;
      case 'drained':
        this.#finish();
        return;
    }
  }

  async #handleAct(act: ClaimedAct): Promise<void> {
    const { event } = act;
    if (event.kind === 'message') this.#outbox.personSpoke();
    const right: Right = event.kind === 'message' ? rightOf(event) : 'drive';
    const decision = decideAccess(this.#deps.policy, event.author, event.place, right);
    if (decision.kind === 'ignored') return;
    if (decision.kind === 'refused') {
      await this.#refuse(act, decision.because);
      return;
    }
    switch (event.kind) {
      case 'message':
        await this.#onMessage(act, event);
        return;
      case 'action':
        await this.#onAction(act, event);
        return;
      case 'modal':
        await this.#onModal(act, event);
        return;
    }
  }

  async #onMessage(act: ClaimedAct, event: Extract<Inbound, { kind: 'message' }>): Promise<void> {
    const parsed = parseThreadText(event.text, event.verbatim);
    if (parsed.kind === 'unknown-word') {
      await this.#whisper(
        event.author,
        `There is no control word !${parsed.word}. !help lists them; !!${parsed.word} types !${parsed.word}.`,
      );
      settleReceipt(this.#deps.store, act.receipt, 'refused');
      return;
    }
    if (act.whileAway || act.ageMs > FRESH_MS) {
      this.#offer(act, event);
      return;
    }
    if (parsed.kind === 'type') {
      await this.#type(act, event.author, parsed, event.messageId);
      return;
    }
    await runWord(this.#wordContext(act, event), parsed.word, parsed.argument);
    settleReceipt(this.#deps.store, act.receipt, 'done');
  }

  #wordContext(act: ClaimedAct, event: Extract<Inbound, { kind: 'message' }>): WordContext {
    return {
      host: this.#deps.host,
      feed: this.#feed,
      target: this.#target,
      facts: this.#facts,
      outbox: this.#outbox,
      actor: this.#actor(event.author),
      redacts: this.#deps.redacts,
      say: (body) => this.#say(body),
      setting: (key, value) => this.#setting(key, value),
      whisper: (text) => this.#whisper(event.author, text),
      offerSecret: () => this.#offerSecret(),
      press: async (source) => {
        const keys = parseKeys(source, { applicationCursor: this.#applicationCursor });
        if (keys.kind === 'unknown')
          return `There is no key "${keys.name}". Known are enter, tab, esc, up, down, left, right, home, end, pgup, pgdn, f1 to f12, ctrl-x, alt-x and "text".`;
        if (keys.kind === 'too-many') return `At most ${keys.max} keys at once.`;
        await this.#press(act, event.author, keys.bytes, event.messageId);
        return undefined;
      },
      note: (action, outcome) => this.#audit(event.author, action, outcome, event.messageId),
    };
  }

  async #type(
    act: ClaimedAct,
    author: Person,
    parsed: Extract<ThreadText, { kind: 'type' }>,
    messageId: string,
    options: { readonly secret?: boolean; readonly evenIfSecret?: boolean } = {},
  ): Promise<TypingOutcome> {
    const outcome = await this.#typist.type(
      {
        target: this.#target,
        messageId: act.receipt,
        actor: this.#actor(author),
        text: parsed.text,
        enter: parsed.enter,
        secret: options.secret ?? false,
        evenIfSecret: options.evenIfSecret ?? false,
      },
      this.#feed.view,
    );
    await this.#settleTyping(act, author, outcome, messageId, options.secret ?? false);
    return outcome;
  }

  async #press(act: ClaimedAct, author: Person, bytes: string, messageId: string): Promise<void> {
    const outcome = await this.#typist.press(
      { target: this.#target, messageId: act.receipt, actor: this.#actor(author) },
      bytes,
    );
    await this.#settleTyping(act, author, outcome, messageId, false);
  }

  async #settleTyping(
    act: ClaimedAct,
    author: Person,
    outcome: TypingOutcome,
    messageId: string,
    secret: boolean,
  ): Promise<void> {
    const { store } = this.#deps;
    this.#audit(author, secret ? 'secret' : 'input', outcome.kind, messageId);
    switch (outcome.kind) {
      case 'written':
      case 'already':
        this.#lastDriver = author.id;
        settleReceipt(store, act.receipt, 'written');
        await this.#react(act, 'written');
        return;
      case 'unknown':
        settleReceipt(store, act.receipt, 'unknown');
        await this.#react(act, 'unknown');
        this.#say({
          head: 'It is not known whether your last message was typed: the host was replaced in between. Look at the screen before you repeat it.',
        });
        return;
      case 'secret-prompt':
        settleReceipt(store, act.receipt, 'refused');
        await this.#react(act, 'refused');
        this.#offerSecret();
        return;
      case 'line-too-long':
        settleReceipt(store, act.receipt, 'refused');
        await this.#react(act, 'refused');
        this.#say({
          head: `Not typed: this program reads lines of at most ${outcome.bytesMax} bytes, and the terminal would cut the rest off silently.`,
        });
        return;
      case 'refused':
        settleReceipt(store, act.receipt, 'refused');
        await this.#react(act, 'refused');
        this.#say({ head: refusalText(outcome.because, this.#feed.state) });
        return;
    }
  }

  async #onAction(act: ClaimedAct, event: Extract<Inbound, { kind: 'action' }>): Promise<void> {
    const action = parseAction(event.action);
    if (action === undefined) {
      await event.reply.privately('This button is not one of chatd’s.');
      return;
    }
    if ('incarnation' in action && action.incarnation !== this.#binding.incarnation) {
      settleReceipt(this.#deps.store, act.receipt, 'refused');
      await event.reply.privately('This button belongs to a program that has ended.');
      return;
    }
    if (act.whileAway || act.ageMs > FRESH_MS) {
      settleReceipt(this.#deps.store, act.receipt, 'refused');
      await event.reply.privately(
        'This came too late and was not done. Press again if you still mean it.',
      );
      return;
    }
    await this.#runAction(act, event, action);
  }

  async #runAction(
    act: ClaimedAct,
    event: Extract<Inbound, { kind: 'action' }>,
    action: Action,
  ): Promise<void> {
    switch (action.kind) {
      case 'key': {
        const bytes = keyBytes(action.key, { applicationCursor: this.#applicationCursor });
        if (bytes !== undefined) await this.#press(act, event.author, bytes, event.messageId);
        return;
      }
      case 'screen':
        this.#say({ head: 'The screen now:', screen: true });
        this.#outbox.file(screenPicture(), { lane: 'prompt' });
        settleReceipt(this.#deps.store, act.receipt, 'done');
        return;
      case 'secret':
        await event.reply.modal({
          id: encodeAction(action),
          title: 'Type unseen',
          fields: [{ id: 'secret', label: 'Goes to the terminal only', multiline: false }],
        });
        settleReceipt(this.#deps.store, act.receipt, 'done');
        return;
      case 'choice':
        await this.#press(act, event.author, action.keys, event.messageId);
        return;
      case 'offer':
        await this.#acceptOffer(act, event, action.receipt);
        return;
      case 'approve-start':
      case 'decline-start':
        await event.reply.privately('This was already decided.');
        return;
    }
  }

  async #onModal(act: ClaimedAct, event: Extract<Inbound, { kind: 'modal' }>): Promise<void> {
    const action = parseAction(event.modal);
    if (action?.kind !== 'secret' || action.incarnation !== this.#binding.incarnation) {
      await event.reply.privately('This form belongs to a program that has ended.');
      return;
    }
    const text = event.values['secret'] ?? '';
    const outcome = await this.#type(act, event.author, { kind: 'type', text, enter: true }, '', {
      secret: true,
    });
    await event.reply.privately(
      outcome.kind === 'written' ? 'Typed into the terminal.' : 'Not typed: see the thread.',
    );
  }

  /** Too old to be executed: the person says whether it is still meant. */
  #offer(act: ClaimedAct, event: Extract<Inbound, { kind: 'message' }>): void {
    settleReceipt(this.#deps.store, act.receipt, 'offered');
    const why = act.whileAway ? 'while chatd was away' : `${ageText(act.ageMs)} ago`;
    const { incarnation } = this.#binding;
    const action = encodeAction({ kind: 'offer', incarnation, receipt: act.receipt });
    this.#outbox.notice(
      {
        head: `Written ${why}, so it was not typed: ${event.text}`,
        buttons: [[{ label: 'Type it now', action, style: 'primary' }]],
        data: { offer: act.receipt, text: event.text, verbatim: event.verbatim },
      },
      { lane: 'prompt', once: `offer:${act.receipt}` },
    );
  }

  async #acceptOffer(
    act: ClaimedAct,
    event: Extract<Inbound, { kind: 'action' }>,
    receipt: string,
  ): Promise<void> {
    const { store } = this.#deps;
    const row = rowOfMessage(store, this.#binding.b, event.messageId);
    const offer = offerOf(row?.body, receipt);
    if (offer === undefined || !this.#takeOffer(receipt, event)) {
      settleReceipt(this.#deps.store, act.receipt, 'refused');
      await event.reply.privately('This was already typed, or the offer is gone. Write it again.');
      return;
    }
    const parsed = parseThreadText(offer.text, offer.verbatim);
    if (parsed.kind !== 'type') {
      settleReceipt(this.#deps.store, act.receipt, 'refused');
      await event.reply.privately('Write the control word again.');
      return;
    }
    await this.#type(act, event.author, parsed, event.messageId);
  }

  /** True for the first who accepts it, for good. */
  #takeOffer(receipt: string, event: Extract<Inbound, { kind: 'action' }>): boolean {
    const outcome = claim(this.#deps.store, {
      id: `accept.${receipt}`,
      keys: [`accept:${receipt}`],
      b: this.#binding.b,
      actor: this.#actor(event.author),
      kind: 'accept-offer',
    });
    if (outcome.kind === 'claimed') settleReceipt(this.#deps.store, outcome.receipt.id, 'done');
    return outcome.kind === 'claimed';
  }

  #offerSecret(): void {
    this.#say({ head: SECRET_REFUSED, buttons: secretButtons(this.#binding.incarnation) });
  }

  async #refuse(act: ClaimedAct, because: string): Promise<void> {
    const { event } = act;
    settleReceipt(this.#deps.store, act.receipt, 'refused');
    this.#audit(event.author, event.kind, 'refused', '');
    if (event.kind !== 'message') {
      await event.reply.privately(`Not done: ${because}.`);
      return;
    }
    await this.#react(act, 'refused');
    // Once per person: someone who chats in the thread must not be answered every time.
    if (this.#refusedPeople.has(event.author.id)) return;
    if (this.#refusedPeople.size < 1000) this.#refusedPeople.add(event.author.id);
    await this.#whisper(event.author, `Not typed: ${because}.`);
  }

  /** The program waits: said once for each prompt, with buttons for what can be read off it. */
  #prompted({ waiting, key }: Prompt): void {
    const once = `prompt:${key}`;
    const mention = this.#mentionFor('prompt');
    if (waiting.kind === 'password') {
      this.#outbox.notice(
        {
          head: 'The program asks for a secret. Do not write it here: the button opens a field for it.',
          buttons: secretButtons(this.#binding.incarnation),
          mention,
        },
        { lane: 'prompt', once },
      );
      return;
    }
    const choices = waiting.kind === 'menu' ? waiting.choices : [];
    this.#outbox.notice(
      {
        head: 'The program waits for an answer.',
        buttons: choiceButtons(this.#binding.incarnation, choices),
        mention,
      },
      { lane: 'prompt', once },
    );
  }

  /** Whoever typed last, or else whoever started the session; nobody where the thread is quiet. */
  #mentionFor(what: MentionKind): readonly string[] {
    const quiet = this.#binding.settings['quiet'] === 'on';
    if (quiet || !this.#deps.mention.includes(what) || this.#lastDriver === undefined) return [];
    return [this.#lastDriver];
  }

  #noteExit(): void {
    const { state } = this.#feed;
    if (state.kind !== 'exited' || this.#exitTold) return;
    this.#exitTold = true;
    this.#log.info('session.exited', { code: state.code, signal: state.signal });
    this.#outbox.refresh();
    const failed = state.code !== 0;
    this.#outbox.notice(
      {
        head: `The program ${stateText(state)}.`,
        mention: this.#mentionFor(failed ? 'failed' : 'finished'),
      },
      { at: 'end', lane: 'exit', once: 'exit' },
    );
    this.#outbox.idle().then(
      () => this.#mailbox.post({ kind: 'drained' }),
      (error: unknown) => this.#log.error('outbox.failed', { error }),
    );
  }

  /** Everything the thread will ever show is shown, and the exit was observed: the root is free. */
  #finish(): void {
    const { state } = this.#feed;
    if (state.kind !== 'exited' || state.terminalOpen) return;
    const current = bindingByName(this.#deps.store, this.#binding.b);
    if (current?.state !== 'active') return;
    this.#binding = endBinding(this.#deps.store, current, stateText(state));
    this.#deps.ended(this.#binding);
  }

  #rootWords(): { readonly title: string; readonly content: Content } {
    return {
      title: titleOf(this.#facts),
      content: { head: rootText(this.#facts, stateText(this.#feed.state)) },
    };
  }

  #welcome(): void {
    this.#outbox.notice(
      { head: WELCOME, buttons: keyButtons(this.#binding.incarnation) },
      { at: { line: this.#binding.firstLine }, lane: 'prompt', once: 'welcome' },
    );
  }

  #setting(key: string, value: string): void {
    const current = bindingByName(this.#deps.store, this.#binding.b) ?? this.#binding;
    this.#binding = changeSettings(this.#deps.store, current, {
      ...current.settings,
      [key]: value,
    });
  }

  #say(body: NoticeBody): void {
    this.#outbox.notice(body, { at: 'end', lane: 'prompt' });
  }

  async #whisper(person: Person, text: string): Promise<void> {
    const outcome = await this.#deps.platform.whisper(this.place, person.id, text);
    if (outcome.kind !== 'ok') this.#log.warn('whisper.failed', { because: outcome.kind });
  }

  async #react(act: ClaimedAct, reaction: 'written' | 'refused' | 'unknown'): Promise<void> {
    if (act.event.kind !== 'message') return;
    const outcome = await this.#deps.platform.react(
      act.event.place,
      act.event.messageId,
      reaction,
      true,
    );
    if (outcome.kind !== 'ok') this.#log.debug('reaction.failed', { because: outcome.kind });
  }

  /** Root is empty until the root message is posted. */
  get place(): ThreadRoot {
    const { space, channel, root } = this.#binding;
    return { space, channel, root: root ?? '' };
  }

  get #applicationCursor(): boolean {
    return this.#feed.view?.applicationCursor ?? false;
  }

  #actor(person: Person): string {
    return `${this.#deps.platform.kind}:${person.id}`;
  }

  #audit(person: Person, action: string, outcome: string, messageId: string): void {
    audit(this.#deps.store, {
      actor: this.#actor(person),
      action,
      outcome,
      sessionId: this.#binding.sessionId,
      incarnation: this.#binding.incarnation,
      ...(messageId === '' ? {} : { messageId }),
    });
  }

  #failed(error: unknown, event: BridgeEvent): void {
    this.#log.error('act.failed', { kind: event.kind, error });
    if (event.kind !== 'act') return;
    const unreachable = errorCode(error) === 'host-unreachable';
    settleReceipt(this.#deps.store, event.act.receipt, 'unknown');
    this.#say({
      head: unreachable
        ? 'The host cannot be reached right now, so it is not known whether your message was typed. The session may still be running.'
        : `That did not work: ${error instanceof ChatdError ? errorText(error) : 'an internal error, see the log'}.`,
    });
  }
}

function rightOf(event: Extract<Inbound, { kind: 'message' }>): Right {
  const parsed = parseThreadText(event.text, event.verbatim);
  const viewing = ['help', 'screen', 'tail', 'grep', 'log', 'status'];
  return parsed.kind === 'word' && viewing.includes(parsed.word) ? 'view' : 'drive';
}

function refusalText(because: string, state: SessionState): string {
  switch (because) {
    case 'exited':
      return `Not typed: the program ${stateText(state)}.`;
    case 'other-incarnation':
    case 'session-not-found':
      return 'Not typed: the program this thread showed is not there any more.';
    case 'queue-full':
      return 'Not typed: the program has not read what was typed before. Press ^C or wait.';
    default:
      return 'Not typed: the terminal changed while it was being typed. Look and try again.';
  }
}

function offerOf(
  body: unknown,
  receipt: string,
): { readonly text: string; readonly verbatim: boolean } | undefined {
  if (typeof body !== 'object' || body === null || !('data' in body)) return undefined;
  const { data } = body;
  if (typeof data !== 'object' || data === null) return undefined;
  if (!('offer' in data && 'text' in data && 'verbatim' in data)) return undefined;
  if (data.offer !== receipt || typeof data.text !== 'string') return undefined;
  return { text: data.text, verbatim: data.verbatim === true };
}
