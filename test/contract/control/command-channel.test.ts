// The command channel on real files: one winner, no answer taken from the wrong hand, nothing left
// for ever. Server and submitter are the real ones; time is a fake clock's where it must pass.

import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { mintUuid } from '../../../src/base/ids.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemRandom } from '../../../src/base/system-random.ts';
import { claimResponse } from '../../../src/control/command-claim.ts';
import { type SubmitOutcome, submitCommand } from '../../../src/control/command-client.ts';
import {
  type CommandRequest,
  encodePadded,
  RESPONSE_RETENTION_MS,
  requestLifeMs,
  requestPath,
  reservation,
  responsePath,
  responseTo,
} from '../../../src/control/command-documents.ts';
import type { StepHook } from '../../../src/control/command-run.ts';
import { CommandServer } from '../../../src/control/command-server.ts';
import type { CommitFence } from '../../../src/control/commands/command.ts';
import type { CommandHandlers } from '../../../src/control/commands/registry.ts';
import type { MachineTime } from '../../../src/control/machine-time.ts';
import type { OwnerTuple } from '../../../src/control/owner-tuple.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { fastClock } from '../../support/fast-clock.ts';
import { eventually } from '../../support/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';

const OWNER: OwnerTuple = { ownerId: 'o1', pid: 10, incarnation: 'i1', generation: 1 };
const ARGS = {
  session: 's1',
  incarnation: '',
  space: '',
  channel: 'C1',
  root: '1.1',
  move: false,
};

let directory: ReturnType<typeof tempDir>;
let commands: string;
let servers: CommandServer[];
let proven: boolean;
let commits: string[];
let machineMs: number;

const machine: MachineTime = {
  bootId: 'b',
  bootMs: () => machineMs,
  monotonicMs: () => machineMs,
};

beforeEach(() => {
  directory = tempDir();
  commands = join(directory.path, 'commands');
  mkdirSync(commands, { mode: 0o700 });
  servers = [];
  proven = true;
  commits = [];
  machineMs = 1_000_000;
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.close(0)));
  directory.remove();
});

async function commit(_args: unknown, fence: CommitFence): Promise<{ kind: 'ok'; result: object }> {
  const entered = await fence.enter();
  if (entered.granted) commits.push(fence.requestId);
  return { kind: 'ok', result: {} };
}

interface Serving {
  readonly owner?: OwnerTuple;
  readonly handlers?: CommandHandlers;
  readonly clock?: Clock;
}

function serve(options: Serving = {}): CommandServer {
  const server = new CommandServer({
    directory: commands,
    kind: 'slack',
    owner: options.owner ?? OWNER,
    proven: () => proven,
    handlers: options.handlers ?? { 'bind-thread': commit as never },
    clock: options.clock ?? fastClock(1),
    machine,
    random: systemRandom,
    log: silentLog,
  });
  servers.push(server);
  server.start();
  return server;
}

function submit(
  options: {
    readonly owner?: OwnerTuple;
    readonly command?: string;
    readonly args?: Record<string, string | boolean>;
    readonly requestId?: string;
    readonly timeoutMs?: number;
    readonly step?: StepHook;
  } = {},
): Promise<SubmitOutcome> {
  return submitCommand({
    directory: commands,
    kind: 'slack',
    owner: OWNER,
    command: 'bind-thread',
    args: ARGS,
    clock: fastClock(10),
    machine,
    random: systemRandom,
    ...options,
  });
}

/** Acts when the request is there and before the submitter looks for an answer. */
function onPublished(act: () => void | Promise<void>): StepHook {
  return async (step) => {
    if (step === 'published') await act();
  };
}

/** Another process wins the response. */
async function plantClaim(requestId: string, content: Buffer): Promise<void> {
  const attempt = await claimResponse(responsePath(commands, requestId), content, 'x');
  if (attempt.kind === 'won') await attempt.claim.close();
}

function requestOf(requestId: string, change: Partial<CommandRequest> = {}): CommandRequest {
  return {
    version: 1,
    requestId,
    kind: 'slack',
    command: 'bind-thread',
    owner: OWNER,
    args: ARGS,
    bootId: 'b',
    createdBootMs: machineMs,
    expiresBootMs: machineMs + 30_000,
    ...change,
  };
}

describe('a command', () => {
  it('is executed by its owner, answered ok, and its request retired', async () => {
    serve();
    const outcome = await submit();
    expect(outcome).toMatchObject({ kind: 'answered', answer: { outcome: 'ok' } });
    expect(commits).toHaveLength(1);
    await eventually(() => readdirSync(commands).length === 1, 'the request is gone');
    expect(readdirSync(commands)[0]).toMatch(/\.response\.json$/);
  });

  it.each([
    ['an unknown command', { command: 'frob' }, 'command_unknown'],
    ['bad arguments', { args: { session: '' } }, 'arguments_invalid'],
    [
      'a command nobody handles',
      { command: 'unbind-thread', args: { session: 's' } },
      'command_not_supported',
    ],
  ])('is rejected for %s', async (_name, change, code) => {
    serve();
    expect(await submit(change)).toMatchObject({
      kind: 'answered',
      answer: { outcome: 'rejected', code },
    });
    expect(commits).toEqual([]);
  });

  it('I10: is served only by the exact owner it names', async () => {
    serve();
    for (const part of [{ ownerId: 'x' }, { pid: 11 }, { incarnation: 'x' }, { generation: 2 }]) {
      expect(await submit({ owner: { ...OWNER, ...part } })).toMatchObject({
        kind: 'answered',
        answer: { outcome: 'owner_changed' },
      });
    }
    expect(commits).toEqual([]);
  });

  it('I7: is not committed by an owner that cannot prove that it is one', async () => {
    proven = false;
    serve();
    expect(await submit()).toMatchObject({ answer: { outcome: 'owner_changed' } });
    expect(commits).toEqual([]);
  });

  it('is not committed when ownership ends between the claim and the grant', async () => {
    let asked = 0;
    const server = new CommandServer({
      directory: commands,
      kind: 'slack',
      owner: OWNER,
      // The first question is the opening proof, the second the closing one.
      proven: () => {
        asked += 1;
        return asked < 2;
      },
      handlers: { 'bind-thread': commit as never },
      clock: fastClock(1),
      machine,
      random: systemRandom,
      log: silentLog,
    });
    servers.push(server);
    server.start();
    expect(await submit()).toMatchObject({ answer: { outcome: 'owner_changed' } });
    expect(commits).toEqual([]);
  });

  it('I8: is cancelled for good when nobody serves it', async () => {
    const outcome = await submit({ timeoutMs: 200 });
    expect(outcome.kind).toBe('cancelled');
    serve();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(commits).toEqual([]);
    expect(readdirSync(commands)).toEqual([]);
  });

  it('stays cancelled when the request could not be removed', async () => {
    const requestId = mintUuid(systemRandom);
    const request = requestOf(requestId);
    writeFileSync(requestPath(commands, requestId), JSON.stringify(request));
    const body = { outcome: 'cancelled', code: 'cancelled', result: {} } as const;
    await plantClaim(requestId, encodePadded(responseTo(request, body)));
    serve();
    // The owner finds it decided and retires the request; the response stays.
    await eventually(() => !existsSync(requestPath(commands, requestId)), 'retired');
    expect(existsSync(responsePath(commands, requestId))).toBe(true);
    expect(commits).toEqual([]);
  });

  it('is unknown, never cancelled, once an owner that died had claimed it', async () => {
    const requestId = mintUuid(systemRandom);
    const outcome = await submit({
      requestId,
      timeoutMs: 300,
      step: onPublished(() => plantClaim(requestId, reservation())),
    });
    expect(outcome.kind).toBe('unknown');
    serve();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(commits).toEqual([]);
  });

  it('expires by the boot clock, whatever its author’s wall clock says', async () => {
    const requestId = mintUuid(systemRandom);
    writeFileSync(requestPath(commands, requestId), JSON.stringify(requestOf(requestId)));
    machineMs += 30_001;
    serve();
    await eventually(() => existsSync(responsePath(commands, requestId)), 'answered');
    await eventually(() => !existsSync(requestPath(commands, requestId)), 'retired');
    expect(readFileSync(responsePath(commands, requestId), 'utf8')).toContain('"expired"');
    expect(commits).toEqual([]);
  });

  it('of another boot is expired', async () => {
    const requestId = mintUuid(systemRandom);
    const request = requestOf(requestId, { bootId: 'before' });
    writeFileSync(requestPath(commands, requestId), JSON.stringify(request));
    serve();
    await eventually(() => existsSync(responsePath(commands, requestId)), 'answered');
    expect(commits).toEqual([]);
  });

  it('is refused when it was changed while it was being served', async () => {
    const requestId = mintUuid(systemRandom);
    const changing: CommandHandlers = {
      'bind-thread': async (_args, fence) => {
        const path = requestPath(commands, requestId);
        const other = requestOf(requestId, { args: { ...ARGS, session: 'other' } });
        writeFileSync(path, JSON.stringify(other));
        const entered = await fence.enter();
        if (entered.granted) commits.push(requestId);
        return { kind: 'ok', result: {} };
      },
    };
    serve({ handlers: changing });
    expect(await submit({ requestId })).toMatchObject({
      answer: { outcome: 'rejected', code: 'request_changed' },
    });
    expect(commits).toEqual([]);
  });

  it('gives its claim back without an answer when its submitter has gone', async () => {
    const requestId = mintUuid(systemRandom);
    let entered: unknown;
    serve({
      handlers: {
        'bind-thread': async (_args, fence) => {
          rmSync(requestPath(commands, requestId));
          entered = await fence.enter();
          return { kind: 'ok', result: {} };
        },
      },
    });
    writeFileSync(requestPath(commands, requestId), JSON.stringify(requestOf(requestId)));
    await eventually(() => entered !== undefined, 'handled');
    expect(entered).toEqual({ granted: false, because: 'cancelled' });
    await eventually(() => readdirSync(commands).length === 0, 'nothing is left');
  });

  it('answers ok only to a handler that asked for authority', async () => {
    serve({ handlers: { 'bind-thread': () => Promise.resolve({ kind: 'ok', result: {} }) } });
    expect(await submit()).toMatchObject({
      answer: { outcome: 'rejected', code: 'commit_authority_missing' },
    });
  });

  it.each([
    ['before authority', false, { outcome: 'rejected', code: 'binding_failed' }],
    ['after authority', true, { outcome: 'outcome_unknown', code: 'binding_outcome_unknown' }],
  ])('whose handler throws %s is told so', async (_name, enters, answer) => {
    serve({
      handlers: {
        'bind-thread': async (_args, fence) => {
          if (enters) await fence.enter();
          throw new Error('boom');
        },
      },
    });
    expect(await submit()).toMatchObject({ kind: 'answered', answer });
  });

  it('§4.5: is served while another one hangs', async () => {
    let first = true;
    serve({
      handlers: {
        'bind-thread': async (args, fence) => {
          if (first) {
            first = false;
            await new Promise(() => undefined);
          }
          return (await commit(args, fence)) as never;
        },
      },
    });
    const hung = submit({ timeoutMs: 3000 });
    await eventually(() => !first, 'the first hangs');
    expect(await submit()).toMatchObject({ answer: { outcome: 'ok' } });
    expect((await hung).kind).toBe('cancelled');
  });

  it('does not have its turn taken by requests that others decide', async () => {
    for (let index = 0; index < 30; index += 1) {
      const requestId = mintUuid(systemRandom);
      writeFileSync(requestPath(commands, requestId), JSON.stringify(requestOf(requestId)));
      writeFileSync(responsePath(commands, requestId), '');
    }
    serve();
    expect(await submit()).toMatchObject({ answer: { outcome: 'ok' } });
  });
});

describe('documents from other hands', () => {
  it('I9: refuses a request id that was used before', async () => {
    serve();
    const requestId = mintUuid(systemRandom);
    await submit({ requestId });
    expect(await submit({ requestId })).toMatchObject({
      kind: 'unavailable',
      code: 'request_id_unavailable',
    });
    expect(commits).toHaveLength(1);
  });

  it('never waits on a whole response with another envelope', async () => {
    const requestId = mintUuid(systemRandom);
    const foreign = requestOf(requestId, { owner: { ...OWNER, ownerId: 'liar' } });
    const body = { outcome: 'ok', code: 'ok', result: {} } as const;
    const document = JSON.stringify(responseTo(foreign, body));
    const step = onPublished(() => writeFileSync(responsePath(commands, requestId), document));
    expect(await submit({ requestId, step })).toEqual({
      kind: 'untrusted',
      requestId,
      code: 'response_envelope_mismatch',
    });
  });

  it('says that the channel is unavailable without its directory', async () => {
    rmSync(commands, { recursive: true });
    expect(await submit()).toMatchObject({ code: 'command_channel_unavailable' });
  });

  const HOSTILE: readonly (readonly [string, (path: string) => void])[] = [
    ['empty', (path) => writeFileSync(path, '')],
    ['torn', (path) => writeFileSync(path, '{"version":1,')],
    ['larger than 8 KiB', (path) => writeFileSync(path, ' '.repeat(9000))],
    [
      'a gigabyte of nothing',
      (path) => {
        writeFileSync(path, '');
        truncateSync(path, 2 ** 30);
      },
    ],
    ['a link to an endless device', (path) => symlinkSync('/dev/zero', path)],
    [
      'a pipe nobody writes',
      (path) => {
        execFileSync('mkfifo', [path]);
      },
    ],
  ];

  it.each(HOSTILE)(
    'I17: removes a request that is %s, and serves the others',
    async (_name, plant) => {
      const planted = requestPath(commands, mintUuid(systemRandom));
      plant(planted);
      const server = serve();
      await eventually(() => !existsSync(planted), 'removed');
      expect(server.counts().removedMalformed).toBe(1);
      expect(await submit()).toMatchObject({ answer: { outcome: 'ok' } });
    },
  );

  it.each([
    ['of another kind', { kind: 'discord' as const }],
    ['misnamed', { requestId: '00000000-0000-4000-8000-000000000000' }],
    ['that would live for hours', { expiresBootMs: 1e9 }],
  ])('removes a request %s', async (_name, change) => {
    const requestId = mintUuid(systemRandom);
    const planted = requestPath(commands, requestId);
    writeFileSync(planted, JSON.stringify(requestOf(requestId, change)));
    serve();
    await eventually(() => !existsSync(planted), 'removed');
    expect(commits).toEqual([]);
  });

  it('leaves a directory and foreign names alone', async () => {
    const planted = requestPath(commands, mintUuid(systemRandom));
    mkdirSync(planted);
    writeFileSync(join(commands, 'README'), 'x');
    serve();
    expect(await submit()).toMatchObject({ answer: { outcome: 'ok' } });
    expect(existsSync(planted)).toBe(true);
    expect(existsSync(join(commands, 'README'))).toBe(true);
  });

  it.each(HOSTILE)('takes a response that is %s for a claim in progress', async (_name, plant) => {
    const requestId = mintUuid(systemRandom);
    const outcome = await submit({
      requestId,
      timeoutMs: 200,
      step: onPublished(() => plant(responsePath(commands, requestId))),
    });
    expect(outcome.kind).toBe('unknown');
  });
});

describe('what is left over', () => {
  it('I18: responses go after their retention, temporaries after a minute, by our own watch', async () => {
    const clock = new FakeClock();
    const old = mintUuid(systemRandom);
    const guarded = mintUuid(systemRandom);
    writeFileSync(responsePath(commands, old), '{}');
    writeFileSync(responsePath(commands, guarded), '');
    writeFileSync(join(commands, `${old}.request.json.abc.tmp`), '');
    // A request that nobody can tell the kind of counts as present.
    mkdirSync(requestPath(commands, guarded));
    const decoy = requestPath(commands, mintUuid(systemRandom));
    writeFileSync(decoy, 'junk');
    serve({ clock });
    // Once the decoy is gone, a scan has seen everything.
    await eventually(() => !existsSync(decoy), 'a first scan');
    const scanUntil = async (fact: () => boolean): Promise<void> => {
      for (let turn = 0; turn < 500 && !fact(); turn += 1) {
        await clock.advance(1000);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      expect(fact()).toBe(true);
    };
    machineMs += 61_000;
    await scanUntil(() => !readdirSync(commands).some((name) => name.endsWith('.tmp')));
    expect(existsSync(responsePath(commands, old))).toBe(true);
    machineMs += RESPONSE_RETENTION_MS;
    await scanUntil(() => !existsSync(responsePath(commands, old)));
    expect(existsSync(responsePath(commands, guarded))).toBe(true);
  });

  it('keeps responses longer than any request can live', () => {
    for (const timeoutMs of [0, 15_000, 60_000, 3_600_000]) {
      expect(requestLifeMs(timeoutMs)).toBeGreaterThanOrEqual(30_000);
      expect(requestLifeMs(timeoutMs)).toBeLessThan(RESPONSE_RETENTION_MS);
    }
  });
});
