// The model of DELIVERY.md around the real outbox: a session that prints, changes and erases lines,
// a platform that loses and delays, a daemon that is SIGKILLed at any await and started again. One
// seed is one run; at the end the thread must show every line once, in order.

import type { Clock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { seededRandom } from '../../src/base/random.ts';
import type { PlatformKind } from '../../src/bots/chat-platform.ts';
import type { DeliveryLimits } from '../../src/bots/outbox/limits.ts';
import { Scheduler } from '../../src/bots/outbox/scheduler.ts';
import { ThreadOutbox } from '../../src/bots/outbox/thread-outbox.ts';
import { bind, bindingByName } from '../../src/store/bindings.ts';
import { openMemoryStore, type Store } from '../../src/store/store.ts';
import { SimClock } from './sim-clock.ts';
import { SIM_PLACE, type SimFaults, type SimMessage, SimPlatform } from './sim-platform.ts';
import { SimSession } from './sim-session.ts';

export interface Variant {
  readonly kind: PlatformKind;
  readonly limits?: Partial<DeliveryLimits>;
  readonly faults?: Partial<SimFaults>;
  /** Duplicates seen by event are deleted. */
  readonly heal?: boolean;
  readonly steps?: number;
  /** Looks at a run's end, to find out why it went wrong. */
  readonly inspect?: (session: SimSession, platform: SimPlatform, store: Store) => void;
  /** The store of a run; in memory by default. */
  readonly store?: (clock: Clock) => { open(): Store; done(): void };
}

export interface RunResult {
  readonly kills: number;
  readonly posts: number;
  /** Undefined: right. Else what is wrong, in one line. */
  readonly wrong: string | undefined;
}

interface Life {
  isDead: boolean;
  step: () => void;
}

const B = 'bbbbbbbbbbbb';

export async function runDelivery(variant: Variant, seed: number): Promise<RunResult> {
  const random = seededRandom(seed);
  const clock = new SimClock();
  const session = new SimSession(4);
  const faults: SimFaults = {
    rate: 0.25,
    lateMs: 9_000,
    events: true,
    nonceMs: 300_000,
    ...variant.faults,
  };
  const platform = new SimPlatform(variant.kind, clock, random, faults);
  const home = variant.store?.(clock);
  let store = home?.open() ?? openMemoryStore({ clock, random });
  bind(store, {
    b: B,
    sessionId: 's1',
    incarnation: 'i1',
    space: SIM_PLACE.space,
    channel: SIM_PLACE.channel,
    root: SIM_PLACE.root,
    firstLine: 0,
    nextMark: 0,
    settings: {},
  });
  let kills = 0;
  let lives = 0;
  let isCalm = false;
  let life: Life = { isDead: false, step: () => undefined };
  let outbox: ThreadOutbox | undefined;
  let restart: (() => void) | undefined;

  const die = (mine: Life): void => {
    if (mine.isDead) return;
    mine.isDead = true;
    kills += 1;
    clock.timer(200 + random.next() * 4_000, () => restart?.());
  };
  const live = (): void => {
    lives += 1;
    const mine: Life = { isDead: false, step: () => undefined };
    mine.step = () => {
      if (!isCalm && random.next() < 0.06) die(mine);
    };
    life = mine;
    if (home !== undefined && lives > 1) {
      store.close();
      store = home.open();
    }
    const mortal: Clock = {
      wallMs: () => clock.wallMs(),
      monotonicMs: () => clock.monotonicMs(),
      sleep: (ms) => clock.sleep(ms),
      timer: (ms, run) => clock.timer(ms, () => (mine.isDead ? undefined : run())),
    };
    const binding = bindingByName(store, B);
    if (binding === undefined) throw new Error('the binding is gone');
    const scheduler = new Scheduler({
      kind: variant.kind,
      clock: mortal,
      memory: { load: () => [], save: () => undefined },
    });
    const own = new ThreadOutbox({
      binding,
      store,
      platform: platform.portFor(mine),
      source: session,
      clock: mortal,
      scheduler,
      log: silentLog,
      root: () => ({ title: 't', content: { head: 'root' } }),
      makeFile: async () => ({ kind: 'failed', because: 'no maker here' }),
      redact: (lines) => lines,
      ...(variant.limits === undefined ? {} : { limits: variant.limits }),
    });
    platform.onOwn = (id, row) => {
      if (variant.heal !== false && !mine.isDead) own.ownMessage(id, row);
    };
    outbox = own;
    own.start();
  };
  restart = live;
  live();

  let noticeCount = 0;
  const steps = variant.steps ?? 60;
  for (let step = 0; step < steps; step += 1) {
    act(session, random.next(), step, random.next());
    if (!life.isDead) {
      if (random.next() < 0.05) outbox?.personSpoke();
      if (random.next() < 0.04) {
        noticeCount += 1;
        outbox?.notice({ head: `notice ${noticeCount}` });
      }
      outbox?.notify();
    }
    if (random.next() < 0.04) die(life);
    await clock.advance(random.next() < 0.1 ? random.next() * 30_000 : random.next() * 1_500);
  }
  session.exit();
  isCalm = true;
  faults.rate = 0;
  if (!life.isDead) outbox?.notify();
  await clock.advance(6_000);
  if (!life.isDead) outbox?.notify();
  await clock.advance(200_000);
  const wrong = wrongWith(session, platform.shown, noticeCount);
  variant.inspect?.(session, platform, store);
  life.isDead = true;
  restart = undefined;
  store.close();
  home?.done();
  return { kills, posts: platform.calls.post, wrong };
}

function act(session: SimSession, dice: number, step: number, second: number): void {
  if (session.frame !== undefined) {
    if (dice < 0.7) session.draw(`${step}`);
    else session.leaveScreen();
    return;
  }
  if (dice < 0.55) {
    const count = second < 0.1 ? 12 : 1 + Math.floor(second * 3);
    const width = second > 0.97 ? 2_500 : 20;
    for (let i = 0; i < count; i += 1) session.print(`line ${step}.${i} ${'x'.repeat(width)}`);
  } else if (dice < 0.72) session.change(1 + Math.floor(second * 3), `changed ${step}`);
  else if (dice < 0.8) session.write(`w${step} `);
  else if (dice < 0.87) session.erase(1 + Math.floor(second * 2));
  else if (dice < 0.92) {
    session.mark({ kind: 'prompt-start' });
    session.write('$ ');
    if (second < 0.5) {
      session.print('$ command');
      session.mark({ kind: 'command-start' });
    }
  } else if (dice < 0.96) session.enterScreen();
}

/** The thread against the session: lines, frames and notices, each once and in order. */
function wrongWith(
  session: SimSession,
  shown: readonly SimMessage[],
  noticeCount: number,
): string | undefined {
  const parts: string[] = [];
  const frames: string[] = [];
  const notices: string[] = [];
  for (const { content, file } of shown) {
    const head = content.head ?? '';
    // A flood's file stands for the lines omitted above its last ones.
    if (file !== undefined) {
      const hole = parts.indexOf(HOLE);
      if (hole < 0) return 'a file that no message announced';
      parts[hole] = file.text.slice(0, -1);
    } else if (head.startsWith('notice ')) notices.push(head);
    else if (content.lines?.[0]?.text.startsWith('screen ') === true) {
      frames.push(content.lines[0].text);
    } else {
      if (/ lines? omitted/u.test(head)) parts.push(HOLE);
      collect(parts, content);
    }
  }
  // A line that goes on below is glued to its rest, be that a message or a file.
  const lines = parts.join('\n').replaceAll(`${GLUE}\n`, '').split('\n');
  const wanted = session.all.filter((text) => text.trim() !== '');
  const got = lines.filter((text) => text.trim() !== '');
  const at = wanted.findIndex((text, index) => got[index] !== text);
  if (at >= 0 || got.length !== wanted.length) {
    const where = at >= 0 ? at : wanted.length;
    return `line ${where} of ${wanted.length} (${got.length} shown): ${clip(got[where])} for ${clip(wanted[where])}`;
  }
  for (const mark of session.marks) {
    if (mark.what.kind !== 'mode' || mark.what.mode !== 'log') continue;
    const last = mark.what.frame.rows[0]?.text ?? '';
    if (!frames.includes(last)) return `last frame "${last}" is missing`;
  }
  const expected = Array.from({ length: noticeCount }, (_, i) => `notice ${i + 1}`);
  if (notices.join() !== expected.join()) return `notices ${notices.join()} of ${noticeCount}`;
  return undefined;
}

function collect(lines: string[], content: SimMessage['content']): void {
  lines.push(...(content.lines ?? []).map((line) => line.text));
  if (content.foot === '(this line goes on below)') lines.push(`${lines.pop()}${GLUE}`);
}

const HOLE = '\u0001';
const GLUE = '\u0000';

function clip(text: string | undefined): string {
  return text === undefined ? 'nothing' : JSON.stringify(text.slice(0, 30));
}

export async function runSeeds(
  variant: Variant,
  seeds: number,
  first = 1,
): Promise<{ kills: number; posts: number; wrong: { seed: number; what: string }[] }> {
  let kills = 0;
  let posts = 0;
  const wrong: { seed: number; what: string }[] = [];
  for (let seed = first; seed < first + seeds; seed += 1) {
    const result = await runDelivery(variant, seed);
    kills += result.kills;
    posts += result.posts;
    if (result.wrong !== undefined) wrong.push({ seed, what: result.wrong });
  }
  return { kills, posts, wrong };
}
