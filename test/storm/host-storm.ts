// Floods, pastes and exits while hosts are killed, handed over and keepers killed; afterwards every
// byte must be where it belongs. `npx tsx test/storm/host-storm.ts [kills] [seed]` is the long form.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { seededRandom } from '../../src/base/random.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import type { HostControl, InputOutcome, SessionInfo } from '../../src/pty/client.ts';
import { ByteSink, TestHost, targetOf, until } from '../support/test-host.ts';

export interface StormPlan {
  readonly seed: number;
  readonly floods: number;
  /** Bursts of `seq 1 burstLines` per flood. */
  readonly bursts: number;
  readonly burstLines: number;
  readonly hostKills: number;
  readonly handOvers: number;
  readonly keeperKills: number;
  readonly pasters: number;
  /** Longest pause between two blows. */
  readonly pauseMs: number;
}

export interface StormReport {
  readonly hostKills: number;
  readonly handOvers: number;
  readonly keeperKills: number;
  readonly bytes: number;
  readonly inputs: Record<InputOutcome['kind'], number>;
  readonly hostReadyMs: number[];
}

const sha = (bytes: Uint8Array | string): string =>
  createHash('sha256').update(bytes).digest('hex');

function floodText(plan: StormPlan): string {
  let burst = '';
  for (let line = 1; line <= plan.burstLines; line += 1) burst += `${line}\r\n`;
  return burst.repeat(plan.bursts);
}

/** The bytes of a session as they are on disk. */
export function journalBytes(host: TestHost, sessionId: string): Buffer {
  const directory = join(host.paths.sessions, sessionId);
  const names = readdirSync(directory).filter(
    (name) => name.endsWith('.bin') && name.startsWith('out-'),
  );
  return Buffer.concat(names.sort().map((name) => readFileSync(join(directory, name))));
}

interface Paster {
  readonly info: SessionInfo;
  readonly sink: ByteSink;
  readonly outcomes: Map<string, InputOutcome>;
}

/** Types numbered messages into `cat`, one after another, until told to stop. */
async function paste(client: HostControl, paster: Paster, stopped: () => boolean): Promise<void> {
  for (let number = 0; !stopped(); number += 1) {
    const messageId = `p${String(number).padStart(6, '0')}`;
    const bytes = Buffer.from(`<${messageId}:${'x'.repeat(2_000)}>`);
    const request = { ...targetOf(paster.info), messageId, actor: 'storm', bytes };
    paster.outcomes.set(messageId, await client.input(request));
  }
}

function checkPaster(paster: Paster): void {
  const seen = [...paster.sink.text().matchAll(/<(p\d+):x{2000}>/g)].map((match) => match[1] ?? '');
  if (new Set(seen).size !== seen.length) throw new Error('a paste was typed twice');
  if (seen.join() !== [...seen].sort().join()) throw new Error('pastes out of order');
  for (const [messageId, outcome] of paster.outcomes) {
    const arrived = seen.includes(messageId);
    const told = outcome.kind === 'written' || outcome.kind === 'already';
    if (told && !arrived)
      throw new Error(`paste ${messageId} was ${outcome.kind} and never arrived`);
    if (outcome.kind === 'refused')
      throw new Error(`paste ${messageId} refused: ${outcome.because}`);
  }
}

async function handOver(host: TestHost, client: HostControl): Promise<void> {
  await client.list();
  const before = client.instance;
  await client.reload(process.execPath, join(host.start.dist, 'host.js'), 'storm');
  await until('the next host', async () => {
    await client.list();
    return client.instance !== before;
  });
}

export async function runStorm(host: TestHost, plan: StormPlan): Promise<StormReport> {
  const random = seededRandom(plan.seed);
  const client = host.client();
  const script = `i=0; while [ $i -lt ${plan.bursts} ]; do seq 1 ${plan.burstLines}; sleep 0.1; i=$((i+1)); done; exit `;
  const floods = await Promise.all(
    Array.from({ length: plan.floods }, async (_, index) => {
      const info = await client.create(host.request(['sh', '-c', `${script}${index + 3}`]));
      const sink = new ByteSink();
      const target = { ...targetOf(info), sinceOffset: 0, lossless: true };
      await client.followBytes(target, sink.listener());
      const feed = await client.followLines(targetOf(info));
      return { info, sink, feed, code: index + 3 };
    }),
  );
  const pasters = await Promise.all(
    Array.from({ length: plan.pasters }, async (): Promise<Paster> => {
      const info = await client.create(
        host.request(['sh', '-c', 'stty raw -echo; echo ok; exec cat']),
      );
      const sink = new ByteSink();
      const target = { ...targetOf(info), sinceOffset: 0, lossless: true };
      await client.followBytes(target, sink.listener());
      await until('raw mode', () => sink.text().includes('ok'));
      return { info, sink, outcomes: new Map() };
    }),
  );
  let over = false;
  const pasting = pasters.map((paster) => paste(client, paster, () => over));
  const hostReadyMs: number[] = [];
  const blows = [
    ...Array.from({ length: plan.hostKills }, () => 'kill' as const),
    ...Array.from({ length: plan.handOvers }, () => 'hand-over' as const),
    ...Array.from({ length: plan.keeperKills }, () => 'keeper' as const),
  ].sort(() => random.next() - 0.5);
  for (const blow of blows) {
    await systemClock.sleep(random.next() * plan.pauseMs);
    if (blow === 'hand-over') {
      await handOver(host, client);
    } else if (blow === 'kill') {
      const pid = host.hostPid();
      const startMs = systemClock.monotonicMs();
      process.kill(pid, 'SIGKILL');
      await until('another host', () => host.hostPid() !== pid);
      hostReadyMs.push(systemClock.monotonicMs() - startMs);
    } else {
      const { pid } = await host.keeperStatus();
      process.kill(pid, 'SIGKILL');
      await until('another keeper', async () => {
        const status = await host.keeperStatus().catch(() => undefined);
        return status !== undefined && status.pid !== pid && status.sessions > 0;
      });
    }
  }
  over = true;
  await Promise.all(pasting);
  const wanted = floodText(plan);
  for (const flood of floods) {
    const { sink, info, code, feed } = flood;
    await until(`exit of ${info.sessionId}`, () => sink.exited !== undefined).catch(
      async (error: unknown) => {
        const seen = (await client.list()).find((item) => item.sessionId === info.sessionId);
        const facts = { next: sink.next, problem: sink.problem, statuses: sink.statuses, seen };
        throw new Error(`${String(error)}: ${JSON.stringify(facts)}`);
      },
    );
    const onDisk = journalBytes(host, info.sessionId);
    if (sha(onDisk) !== sha(wanted)) {
      throw new Error(`journal of ${info.sessionId}: ${onDisk.length} of ${wanted.length} bytes`);
    }
    if (sha(Buffer.concat(sink.chunks)) !== sha(wanted)) throw new Error('the stream differs');
    const known = plan.keeperKills === 0;
    const state = sink.exited;
    if (state?.kind !== 'exited' || (known && state.code !== code)) {
      throw new Error(`exit ${JSON.stringify(state)}, expected ${code}`);
    }
    await until('exit among the lines', () => feed.state.kind === 'exited');
    const count = feed.view?.finalCount ?? 0;
    const last = await feed.readLines(count - 3, count);
    if (
      last.lines
        .map((line) => line.text)
        .filter((text) => text !== '')
        .at(-1) !== String(plan.burstLines)
    ) {
      throw new Error(`last lines: ${JSON.stringify(last)}`);
    }
  }
  const now = new Map((await client.list()).map((info) => [info.sessionId, info]));
  for (const { info } of [...floods, ...pasters]) {
    if (now.get(info.sessionId)?.pid !== info.pid) throw new Error('a pid changed');
  }
  const inputs = { written: 0, already: 0, unknown: 0, refused: 0 };
  for (const paster of pasters) {
    const last = [...paster.outcomes.keys()]
      .filter((id) => paster.outcomes.get(id)?.kind === 'written')
      .at(-1);
    if (last !== undefined) {
      const whole = `<${last}:${'x'.repeat(2_000)}>`;
      await until('the last paste', () => paster.sink.text().includes(whole));
    }
    checkPaster(paster);
    for (const outcome of paster.outcomes.values()) inputs[outcome.kind] += 1;
    const state = await client.kill(targetOf(paster.info), 'storm');
    if (state.kind !== 'exited') throw new Error('a killed session still runs');
  }
  const bytes = floods.reduce((sum, flood) => sum + flood.sink.next, 0);
  const { hostKills, handOvers, keeperKills } = plan;
  return { hostKills, handOvers, keeperKills, bytes, inputs, hostReadyMs };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const kills = Number(process.argv[2] ?? 100);
  const seed = Number(process.argv[3] ?? 1);
  const host = new TestHost();
  try {
    const report = await runStorm(host, {
      seed,
      floods: 20,
      bursts: Math.max(20, kills * 4),
      burstLines: 5_000,
      hostKills: kills,
      handOvers: 10,
      keeperKills: 0,
      pasters: 3,
      pauseMs: 300,
    });
    console.log(JSON.stringify(report));
  } finally {
    await host.stop();
  }
}
