// Both kinds, several sessions, and a platform that fails at random: every line still stands in its
// thread once and in order, nothing was sent that a platform would refuse, nothing leaks. Arguments:
// seconds (default 1,800), sessions of each kind (default 5), seed. Prints its seed and the counts.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Kind } from '../../src/base/paths.ts';
import { seededRandom } from '../../src/base/random.ts';
import { builtDist } from '../support/built-dist.ts';
import { programLines } from '../support/chat-world.ts';
import { Stack, waitFor } from '../support/stack.ts';

const SECONDS = Number(process.argv[2] ?? 1_800);
const SESSIONS = Number(process.argv[3] ?? 5);
const SEED = Number(process.argv[4] ?? Date.now() % 100_000);
const LINES_PER_SECOND = 2;
const KINDS = ['slack', 'discord'] as const;

const random = seededRandom(SEED);
const pick = <T>(from: readonly T[]): T => from[Math.floor(random.next() * from.length)] as T;
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const CALLS: Readonly<Record<Kind, readonly string[]>> = {
  slack: ['slack:chat.postMessage', 'slack:chat.update'],
  discord: [
    'discord:POST /channels/:id/messages',
    'discord:PATCH /channels/:id/messages/:id',
    'discord:GET /channels/:id/messages',
  ],
};
const EVENTS: Readonly<Record<Kind, string>> = {
  slack: 'slack:event',
  discord: 'discord:event *',
};
const CALL_FAULTS = [
  { kind: 'rate-limit', retryAfterSec: 1 },
  { kind: 'rate-limit' },
  { kind: 'rate-limit', retryAfterSec: 1, html: true },
  { kind: 'reply', status: 500, body: '' },
  { kind: 'reply', status: 502, body: '<html></html>', processed: true },
  { kind: 'reset' },
  { kind: 'reset', processed: true },
  { kind: 'truncate' },
  { kind: 'delay', ms: 3_000 },
  { kind: 'delay', ms: 8_000 },
  { kind: 'delay', ms: 3_000, processedFirst: true },
];
const EVENT_FAULTS = [
  { kind: 'duplicate' },
  { kind: 'reorder' },
  { kind: 'lose' },
  { kind: 'late', ms: 2_000 },
];
const BREAKS: Readonly<Record<Kind, readonly (readonly [string, object])[]>> = {
  slack: [
    ['slack/sockets/disconnect', { reason: 'refresh_requested' }],
    ['slack/sockets/drop', {}],
    ['slack/sockets/half-open', {}],
  ],
  discord: [
    ['discord/gateway', { action: 'reset' }],
    ['discord/gateway', { action: 'reconnect' }],
    ['discord/gateway', { action: 'invalid-session' }],
    ['discord/gateway', { action: 'close', code: 4_000 }],
  ],
};

interface Running {
  readonly kind: Kind;
  readonly root: string;
}

/** One fault, somewhere. */
async function hurt(stack: Stack): Promise<string> {
  const kind = pick(KINDS);
  const dice = random.next();
  if (dice < 0.15) {
    const [name, body] = pick(BREAKS[kind]);
    await stack.control.call(name, body);
    return `${name} ${JSON.stringify(body)}`;
  }
  const isEvent = dice < 0.3;
  const rule = {
    on: isEvent ? EVENTS[kind] : pick(CALLS[kind]),
    fault: pick(isEvent ? EVENT_FAULTS : CALL_FAULTS),
    count: 1 + Math.floor(random.next() * 3),
    seed: Math.floor(random.next() * 2 ** 31),
  };
  await stack.control.call('faults/add', rule);
  return `${rule.on} ${JSON.stringify(rule.fault)} × ${rule.count}`;
}

function memoryMb(pid: number): number {
  const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Math.round(Number(kb) / 1_024);
}

async function start(stack: Stack, kind: Kind, count: number): Promise<Running> {
  const world = stack.worlds[kind];
  const before = (await world.roots()).length;
  await world.run('alice', `run -- bash lines.sh ${count} ${1 / LINES_PER_SECOND}`);
  const root = await waitFor(`a thread in ${kind}`, async () => (await world.roots()).at(before));
  return { kind, root: root.id };
}

async function shownBy(stack: Stack, { kind, root }: Running): Promise<readonly string[]> {
  const lines = programLines(await stack.worlds[kind].thread(root));
  return lines.filter((line) => /^line \d+$/.test(line));
}

async function verdict(stack: Stack, running: Running, want: string): Promise<boolean> {
  const right = await waitFor(
    `all lines in ${running.kind} ${running.root}`,
    async () => ((await shownBy(stack, running)).join(' ') === want ? true : undefined),
    180_000,
  ).catch(() => false);
  if (right) return true;
  const shown = await shownBy(stack, running);
  const seen = new Set(shown);
  const missing = want
    .replaceAll('line ', '')
    .split(' ')
    .filter((n) => !seen.has(`line ${n}`));
  say(
    `WRONG ${running.kind} ${running.root}: ${shown.length} shown, ${shown.length - seen.size} twice, missing ${missing.slice(0, 20).join(' ')}`,
  );
  return false;
}

const stack = await Stack.start({ dist: builtDist() });
try {
  say(`chaos: seed ${SEED}, ${SECONDS} s, ${SESSIONS} sessions of each kind`);
  writeFileSync(
    join(stack.home, 'work', 'lines.sh'),
    'for n in $(seq 1 "$1"); do echo "line $n"; sleep "$2"; done\n',
  );
  await stack.mustCli('ensure');
  const count = Math.ceil(SECONDS * LINES_PER_SECOND);
  const running: Running[] = [];
  for (let n = 0; n < SESSIONS; n += 1)
    for (const kind of KINDS) running.push(await start(stack, kind, count));
  const memoryBefore = KINDS.map((kind) => memoryMb(stack.daemonPid(kind)));
  const endMs = Date.now() + SECONDS * 1_000;
  let hurts = 0;
  while (Date.now() < endMs) {
    const what = await hurt(stack);
    hurts += 1;
    if (process.env['CHAOS_VERBOSE'] !== undefined) say(what);
    await new Promise((resolve) => setTimeout(resolve, 500 + random.next() * 3_000));
  }
  await stack.control.call('faults/clear');
  const want = Array.from({ length: count }, (_, n) => `line ${n + 1}`).join(' ');
  const verdicts = await Promise.all(running.map((one) => verdict(stack, one, want)));
  const wrong = verdicts.filter((right) => !right).length;
  const violations = await stack.control.violations();
  for (const violation of violations.slice(0, 20)) say(JSON.stringify(violation));
  const memoryAfter = KINDS.map((kind) => memoryMb(stack.daemonPid(kind)));
  say(`memory of the daemons in MB: ${memoryBefore.join(', ')} → ${memoryAfter.join(', ')}`);
  say(`${hurts} faults, ${wrong} wrong threads, ${violations.length} violations`);
  if (wrong > 0 || violations.length > 0) process.exitCode = 1;
} finally {
  await stack.close();
}
