// Measures what a reader of a thread sees of the recorded sessions, in virtual time: calls, first
// output, median and 95th percentile of the delay, worst, settling, exactness; beside a naive poster
// and a fixed one-second editor, and with several sessions sharing one app. `--json` prints rows.
// Limits and delays of the platforms are OUTPUT.md §4's: Discord 5 posts and 5 edits in 5 s, 180 and
// 150 ms; Slack 1 post/s (burst 3) and 50 edits/min (burst 5), 250 and 200 ms.

import { stripVTControlCharacters } from 'node:util';
import { silentLog } from '../../src/base/log.ts';
import { seededRandom } from '../../src/base/random.ts';
import type {
  ChatPlatform,
  Content,
  MessageBudget,
  PlatformKind,
} from '../../src/bots/chat-platform.ts';
import type { PacingLimits } from '../../src/bots/outbox/pacing.ts';
import { Scheduler } from '../../src/bots/outbox/scheduler.ts';
import { ThreadOutbox } from '../../src/bots/outbox/thread-outbox.ts';
import type { TranscriptSource } from '../../src/bots/outbox/transcript.ts';
import { chunksOf } from '../../src/bots/render/chunks.ts';
import { discordBudget } from '../../src/bots/render/discord-format.ts';
import { slackBudget } from '../../src/bots/render/slack-format.ts';
import { bind } from '../../src/store/bindings.ts';
import { openMemoryStore, type Store } from '../../src/store/store.ts';
import type { Line, View } from '../../src/term/values.ts';
import { type Cast, castNames, expectedTranscript, readCast } from '../support/casts.ts';
import { ModelRun } from '../support/model-run.ts';
import { SimClock } from '../support/sim-clock.ts';

const LEFT_OUT = ['sudo-like-getpass', 'resize-reflow', 'ink-overflow'];
const DELAYS = { discord: { post: 180, edit: 150 }, slack: { post: 250, edit: 200 } };
/** OUTPUT.md §4, "figures to beat". */
const TARGETS = {
  discord: { calls: 119, first: 0.26, p95: 0.99, worst: 2.1, settle: 1.3 },
  slack: { calls: 116, first: 0.33, p95: 0.76, worst: 3.1, settle: 0.9 },
};

interface Shown {
  readonly id: string;
  content: Content;
  readonly file?: string;
}

/** What one run of one recording came to. */
interface Outcome {
  readonly name: string;
  readonly calls: number;
  readonly delaysMs: readonly number[];
  readonly firstMs: number;
  readonly settleMs: number;
  readonly exact: boolean;
}

/** A recording being played: what is on the screen now, and when each state came to be. */
class Player implements TranscriptSource {
  readonly run: ModelRun;
  readonly #waiting: { atMs: number; offset: number }[] = [];
  readonly delaysMs: number[] = [];
  view: View | undefined;
  lastMs = 0;
  settledMs = 0;
  #state = '';
  #logState = '';
  #screenRows: ReadonlySet<string> = new Set();

  constructor(cast: Cast) {
    this.run = ModelRun.of(cast);
  }

  play(clock: SimClock, cast: Cast, changed: () => void, ended: () => void): void {
    const startMs = clock.monotonicMs() + 1_500;
    for (const event of cast.events) {
      clock.timer(startMs + event.atMs - clock.monotonicMs(), () => {
        this.run.play([event]);
        this.#moved(clock.monotonicMs());
        changed();
      });
    }
    const endMs = (cast.events.at(-1)?.atMs ?? 0) + 1;
    clock.timer(startMs + endMs - clock.monotonicMs(), () => {
      this.run.exit();
      this.view = this.run.model.view();
      changed();
      ended();
    });
  }

  #moved(nowMs: number): void {
    this.view = this.run.model.view();
    const state = this.lastText();
    if (state === this.#state) return;
    this.#state = state;
    if (process.env['TIMELINE'] !== undefined)
      console.error('state', Math.round(nowMs), state.slice(-40).replaceAll('\n', '|'));
    if (this.view.mode === 'log') {
      // Back from a screen to the line that was shown before it.
      if (state === this.#logState) return;
      this.#logState = state;
    }
    this.lastMs = nowMs;
    this.#waiting.push({ atMs: nowMs, offset: this.view.offset });
  }

  /** The last thing a reader would look for: the newest line, or the whole screen. */
  lastText(): string {
    const { view } = this;
    if (view?.mode === 'screen') {
      const rows = (view.frame?.rows ?? []).map((row) => row.text.trimEnd());
      // Programs erase their screen just before they leave it.
      if (rows.some((row) => row !== '')) this.#screenRows = new Set(rows);
      return rows.join('\n').trimEnd();
    }
    const isText = (line: Line): boolean => line.text.trim() !== '';
    const last = (view?.tail ?? []).findLast(isText) ?? this.run.lines.findLast(isText);
    return last?.text.trimEnd() ?? '';
  }

  /** The last frame of a screen that is no longer there. */
  isLastFrame(content: Content): boolean {
    const lines = (content.lines ?? []).map((line) => line.text.trimEnd());
    const known = lines.filter((line) => this.#screenRows.has(line)).length;
    return this.view?.mode === 'log' && known > 0 && known * 2 >= lines.length;
  }

  /** A message that shows the state at `offset` can be read now. */
  seen(offset: number, nowMs: number): void {
    while (this.#waiting[0] !== undefined && this.#waiting[0].offset <= offset) {
      this.delaysMs.push(nowMs - this.#waiting[0].atMs);
      this.#waiting.shift();
      this.settledMs = nowMs;
    }
  }

  get unseenCount(): number {
    return this.#waiting.length;
  }

  async readLines(from: number, to: number) {
    return { from, lines: this.run.lines.slice(from, to) };
  }

  async readMarks(fromSeq: number, max: number) {
    return this.run.marks.slice(fromSeq, fromSeq + max);
  }
}

function lastOf(content: Content): string {
  const lines = (content.lines ?? []).map((line) => line.text);
  return lines.findLast((text) => text.trim() !== '')?.trimEnd() ?? '';
}

class BenchPlatform {
  readonly messages = new Map<string, Shown>();
  calls = 0;
  readonly #kind: PlatformKind;
  readonly #clock: SimClock;
  readonly #players = new Map<string, Player>();
  #counter = 0;

  constructor(kind: PlatformKind, clock: SimClock) {
    this.#kind = kind;
    this.#clock = clock;
  }

  follow(b: string, player: Player): void {
    this.#players.set(b, player);
  }

  shown(b: string): readonly Shown[] {
    return [...this.messages.entries()]
      .filter(([key]) => key.startsWith(`${b}.`))
      .map(([, one]) => one);
  }

  port(): ChatPlatform {
    const delays = DELAYS[this.#kind];
    const put = async (b: string, id: string, content: Content, delayMs: number, file?: string) => {
      this.calls += 1;
      const player = this.#players.get(b);
      const view = player?.view;
      const isScreen = view?.mode === 'screen';
      const offset = view?.offset ?? 0;
      // A live screen is rendered from the frame of this very moment, clipped where it does not fit.
      const isNewest =
        file === undefined &&
        (isScreen ||
          lastOf(content) === player?.lastText() ||
          player?.isLastFrame(content) === true);
      if (process.env['TIMELINE'] !== undefined)
        console.error(
          '  call',
          Math.round(this.#clock.monotonicMs()),
          id,
          lastOf(content).slice(0, 40),
          isNewest,
        );
      await this.#clock.sleep(delayMs);
      this.messages.set(id, { id, content, ...(file === undefined ? {} : { file }) });
      if (isNewest) player?.seen(offset, this.#clock.monotonicMs());
      return { kind: 'ok' as const, value: { messageId: id } };
    };
    const next = (b: string): string => {
      this.#counter += 1;
      return `${b}.${String(this.#counter).padStart(6, '0')}`;
    };
    const port: Partial<ChatPlatform> = {
      kind: this.#kind,
      budget: budgetOf(this.#kind),
      repeatWindowMs: 0,
      clockSkewMs: () => 0,
      post: ({ row, content }) => put(row.b, next(row.b), content, delays.post),
      edit: ({ row, messageId, content }) => put(row.b, messageId, content, delays.edit),
      upload: ({ row, bytes }) =>
        put(row.b, next(row.b), {}, delays.post, Buffer.from(bytes).toString()),
    };
    return port as ChatPlatform;
  }
}

function budgetOf(kind: PlatformKind): MessageBudget {
  return kind === 'slack' ? slackBudget : discordBudget;
}

/** Several sessions of one app, each playing one recording. */
/** Other numbers of the policy, to try: `--pacing='{"quietMs":120}'`. */
const PACING = JSON.parse(
  process.argv.find((word) => word.startsWith('--pacing='))?.slice(9) ?? '{}',
) as Partial<PacingLimits>;

async function runAdaptive(kind: PlatformKind, names: readonly string[]): Promise<Outcome[]> {
  const clock = new SimClock();
  const store: Store = openMemoryStore({ clock, random: seededRandom(1) });
  const platform = new BenchPlatform(kind, clock);
  const scheduler = new Scheduler({
    kind,
    clock,
    memory: { load: () => [], save: () => undefined },
  });
  const runs = names.map((name, index) => {
    const cast = readCast(name);
    const player = new Player(cast);
    const b = `b${index}`;
    platform.follow(b, player);
    const bound = bind(store, {
      b,
      sessionId: b,
      incarnation: 'i',
      space: 'T',
      channel: 'C',
      root: `R${index}`,
      firstLine: 0,
      nextMark: 0,
      settings: {},
    });
    if (bound.kind !== 'bound') throw new Error(bound.kind);
    const outbox = new ThreadOutbox({
      binding: bound.binding,
      store,
      platform: platform.port(),
      source: player,
      clock,
      scheduler,
      log: silentLog,
      root: () => ({ title: '', content: {} }),
      makeFile: async () => ({ kind: 'failed', because: 'none' }),
      redact: (lines) => lines,
      pacing: PACING,
    });
    outbox.start();
    player.play(
      clock,
      cast,
      () => outbox.notify(),
      () => undefined,
    );
    return { name, cast, player, b };
  });
  const longestMs = Math.max(...runs.map(({ cast }) => cast.events.at(-1)?.atMs ?? 0));
  await clock.advance(longestMs + 120_000);
  const outcomes = runs.map(({ name, player, b }) =>
    outcomeOf(name, player, platform.calls, linesOf(platform.shown(b))),
  );
  scheduler.close();
  store.close();
  return outcomes;
}

function outcomeOf(name: string, player: Player, calls: number, lines: readonly string[]): Outcome {
  return {
    name,
    calls,
    delaysMs: player.delaysMs,
    firstMs: player.delaysMs[0] ?? Number.NaN,
    settleMs: Math.max(0, player.settledMs - player.lastMs),
    exact: isExact(name, lines) && player.unseenCount === 0,
  };
}

/** The text of a thread: messages in order, a flood's file where its lines were omitted. */
function linesOf(messages: readonly Shown[]): readonly string[] {
  const lines: string[] = [];
  let hole = -1;
  for (const { content, file } of messages) {
    if (file !== undefined) lines.splice(hole, 0, ...file.split('\n').slice(0, -1));
    else {
      if (/ lines? omitted/u.test(content.head ?? '')) hole = lines.length;
      lines.push(...(content.lines ?? []).map((line) => line.text));
    }
  }
  return lines;
}

function isExact(name: string, lines: readonly string[]): boolean {
  const expected = (expectedTranscript(name) ?? 'y\n'.repeat(100_000))
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '');
  const got = lines.map((line) => line.trimEnd()).filter((line) => line !== '');
  // Screens are shown as frames, which the transcript does not have: they are taken out by position.
  let at = 0;
  for (const line of got) if (line === expected[at]) at += 1;
  const isScreen = SCREENS.has(name);
  if (process.env['TIMELINE'] !== undefined)
    console.error('exact', name, at, expected.length, got.length);
  return at === expected.length && (isScreen || got.length === expected.length);
}

const SCREENS = new Set([
  'vim-session',
  'htop',
  'top',
  'watch',
  'whiptail',
  'fzf',
  'bash-osc133',
  'git-log-pager',
]);

// The two others, as simple as they are usually written.

interface Bucket {
  tokens: number;
  atMs: number;
  readonly capacity: number;
  readonly perMs: number;
}

function bucketsFor(kind: PlatformKind): { post: Bucket; edit: Bucket } {
  const make = (capacity: number, perSecond: number): Bucket => ({
    tokens: capacity,
    atMs: 0,
    capacity,
    perMs: perSecond / 1_000,
  });
  return kind === 'discord'
    ? { post: make(5, 1), edit: make(5, 1) }
    : { post: make(3, 1), edit: make(5, 50 / 60) };
}

async function take(bucket: Bucket, clock: SimClock): Promise<void> {
  for (;;) {
    const nowMs = clock.monotonicMs();
    bucket.tokens = Math.min(bucket.capacity, bucket.tokens + (nowMs - bucket.atMs) * bucket.perMs);
    bucket.atMs = nowMs;
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return;
    }
    await clock.sleep(Math.ceil((1 - bucket.tokens) / bucket.perMs));
  }
}

async function runSimple(
  kind: PlatformKind,
  name: string,
  policy: 'naive' | 'fixed',
): Promise<Outcome> {
  const clock = new SimClock();
  const cast = readCast(name);
  const player = new Player(cast);
  const buckets = bucketsFor(kind);
  const budget = budgetOf(kind);
  const shown: Shown[] = [];
  let calls = 0;
  let raw = '';
  let isOver = false;
  const call = async (method: 'post' | 'edit', land: () => void): Promise<void> => {
    await take(buckets[method], clock);
    calls += 1;
    await clock.sleep(DELAYS[kind][method]);
    land();
  };
  for (const event of cast.events) {
    if (event.kind === 'output')
      clock.timer(1_500 + event.atMs, () => {
        raw += event.bytes.toString();
      });
  }
  player.play(
    clock,
    cast,
    () => undefined,
    () => {
      isOver = true;
    },
  );
  const append = async (): Promise<void> => {
    const text = stripVTControlCharacters(raw).replaceAll('\r', '');
    const offset = player.view?.offset ?? 0;
    raw = '';
    const chunks = chunksOf(
      text.split('\n').map((line) => ({ text: line })),
      budget,
      false,
    );
    for (const chunk of chunks) {
      await call('post', () => shown.push({ id: '', content: { lines: chunk.lines } }));
    }
    player.seen(offset, clock.monotonicMs());
  };
  const update = async (): Promise<void> => {
    const { view } = player;
    if (view === undefined) return;
    const isScreen = view.mode === 'screen';
    const lines = isScreen ? [] : [...player.run.lines, ...view.tail];
    const chunks = chunksOf(lines, budget, false).filter(({ lines: all }) =>
      all.some(({ text }) => text.trim() !== ''),
    );
    const contents = isScreen
      ? [{ lines: view.frame?.rows ?? [] }]
      : chunks.map(({ lines: part }) => ({ lines: part }));
    const from = isScreen ? screenAt : 0;
    for (const [index, content] of contents.entries()) {
      const at = from + index;
      const known = shown[at];
      if (known === undefined)
        await call('post', () => {
          shown[at] = { id: '', content };
        });
      else if (JSON.stringify(known.content) !== JSON.stringify(content))
        await call('edit', () => {
          known.content = content;
        });
    }
    if (!isScreen) screenAt = shown.length;
    player.seen(view.offset, clock.monotonicMs());
  };
  let screenAt = 0;
  let isDone = false as boolean;
  const loop = async (): Promise<void> => {
    for (let idle = 0; idle < 3; ) {
      await clock.sleep(1_000);
      const before = calls;
      if (policy === 'naive') {
        if (raw !== '') await append();
      } else await update();
      idle = isOver && calls === before ? idle + 1 : 0;
    }
    isDone = true;
  };
  const running = loop();
  for (let hours = 0; !isDone && hours < 20; hours += 1) await clock.advance(600_000);
  await running;
  return outcomeOf(name, player, calls, linesOf(shown));
}

// Figures.

function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

interface Figures {
  readonly calls: number;
  readonly first: number;
  readonly p50: number;
  readonly p95: number;
  readonly worst: number;
  readonly settle: number;
  readonly exact: number;
}

function figuresOf(outcomes: readonly Outcome[], calls: number): Figures {
  const of = (pick: (one: Outcome) => number): number[] =>
    outcomes.map(pick).filter((value) => !Number.isNaN(value));
  const seconds = (ms: number): number => Math.round(ms) / 1_000;
  const p95s = of(({ delaysMs }) => quantile(delaysMs, 0.95));
  return {
    calls,
    first: seconds(
      quantile(
        of(({ firstMs }) => firstMs),
        0.5,
      ),
    ),
    p50: seconds(
      quantile(
        of(({ delaysMs }) => quantile(delaysMs, 0.5)),
        0.5,
      ),
    ),
    p95: seconds(quantile(p95s, 0.5)),
    worst: seconds(Math.max(...p95s)),
    settle: seconds(Math.max(...of(({ settleMs }) => settleMs))),
    exact: outcomes.filter(({ exact }) => exact).length,
  };
}

interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly against: string;
  readonly ratio: number;
  readonly target: string;
  readonly ok: boolean;
}

function rowsOf(kind: PlatformKind, policy: string, figures: Figures, traces: number): Row[] {
  const target = policy === 'adaptive' ? TARGETS[kind] : undefined;
  const row = (name: keyof Figures, unit: string, most: number | undefined): Row => ({
    name: `${kind} ${policy} ${name}`,
    value: figures[name],
    unit,
    against: 'OUTPUT.md §4',
    ratio: most === undefined ? 1 : figures[name] / most,
    target: most === undefined ? '' : `<= ${most}`,
    ok: most === undefined || figures[name] <= most,
  });
  return [
    row('calls', 'calls', target?.calls),
    row('first', 's', target?.first),
    row('p50', 's', undefined),
    row('p95', 's', target?.p95),
    row('worst', 's', target?.worst),
    row('settle', 's', target?.settle),
    {
      ...row('exact', 'recordings', undefined),
      target: target === undefined ? '' : `= ${traces}`,
      ok: target === undefined || figures.exact === traces,
    },
  ];
}

async function main(): Promise<void> {
  const only = process.argv.find((word) => word.startsWith('--only='))?.slice(7);
  const names = castNames().filter(
    (name) => !LEFT_OUT.includes(name) && (only === undefined || name === only),
  );
  const rows: Row[] = [];
  for (const kind of ['discord', 'slack'] as const) {
    for (const policy of process.argv.includes('--own')
      ? (['adaptive'] as const)
      : (['naive', 'fixed', 'adaptive'] as const)) {
      const outcomes: Outcome[] = [];
      for (const name of names) {
        if (policy === 'adaptive') outcomes.push(...(await runAdaptive(kind, [name])));
        else outcomes.push(await runSimple(kind, name, policy));
      }
      const calls = outcomes.reduce((sum, one) => sum + one.calls, 0);
      rows.push(...rowsOf(kind, policy, figuresOf(outcomes, calls), names.length));
      if (process.argv.includes('--each') && policy === 'adaptive') {
        for (const one of outcomes) {
          console.error(
            kind,
            one.name.padEnd(18),
            one.calls,
            'calls',
            one.firstMs,
            'first',
            quantile(one.delaysMs, 0.5),
            quantile(one.delaysMs, 0.95),
            'settle',
            one.settleMs,
            one.exact ? '' : 'NOT EXACT',
          );
        }
      }
    }
    for (const count of process.argv.includes('--own') ? [] : [2, 5, 20]) {
      // yes-100k alone would be the one that everybody waits for in the naive case; here it is one of many.
      const shared = Array.from(
        { length: count },
        (_, index) => names[(index * 7) % names.length] ?? 'cargo-build',
      );
      const outcomes = await runAdaptive(kind, shared);
      const figures = figuresOf(outcomes, outcomes[0]?.calls ?? 0);
      const p95s = outcomes
        .map(({ delaysMs }) => quantile(delaysMs, 0.95))
        .filter((value) => !Number.isNaN(value));
      const jain =
        p95s.reduce((a, b) => a + b, 0) ** 2 / (p95s.length * p95s.reduce((a, b) => a + b * b, 0));
      rows.push(
        {
          name: `${kind} ${count} sessions p95`,
          value: figures.p95,
          unit: 's',
          against: 'alone',
          ratio: 1,
          target: '',
          ok: true,
        },
        {
          name: `${kind} ${count} sessions worst`,
          value: figures.worst,
          unit: 's',
          against: 'alone',
          ratio: 1,
          target: '',
          ok: true,
        },
        {
          name: `${kind} ${count} sessions fairness`,
          value: Math.round(jain * 100) / 100,
          unit: 'Jain of p95',
          against: '1',
          ratio: jain,
          target: '',
          ok: true,
        },
        {
          name: `${kind} ${count} sessions exact`,
          value: figures.exact,
          unit: 'recordings',
          against: '',
          ratio: 1,
          target: `= ${count}`,
          ok: figures.exact === count,
        },
      );
    }
  }
  report(rows);
}

function report(rows: readonly Row[]): void {
  if (process.argv.includes('--json')) for (const row of rows) console.log(JSON.stringify(row));
  else {
    for (const row of rows) {
      console.log(
        `${row.ok ? ' ' : '!'} ${row.name.padEnd(34)} ${String(row.value).padStart(9)} ${row.unit.padEnd(12)} ${row.target}`,
      );
    }
  }
  if (rows.some((row) => !row.ok)) process.exitCode = 1;
}

await main();
