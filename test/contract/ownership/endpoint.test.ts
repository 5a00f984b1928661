import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/system-clock.ts';
import { systemRandom } from '../../../src/base/system-random.ts';
import {
  type Endpoint,
  type EndpointOptions,
  publishEndpoint,
  sweepScratchNames,
} from '../../../src/ownership/endpoint.ts';
import { probeEndpoint, readName } from '../../../src/ownership/endpoint-probe.ts';
import { acquireKeptLock, type KeptLock } from '../../../src/ownership/kept-lock.ts';
import { failAt } from '../../support/failpoints.ts';
import { asMyself } from '../../support/lock-records.ts';
import { kill, settled, startOwner } from '../../support/owners.ts';
import { privateDir } from '../../support/private-dir.ts';
import { eventually, stateOf } from '../../support/processes.ts';

const servers: Server[] = [];
const locks: KeptLock[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  for (const lock of locks.splice(0)) lock.release();
});

function makeServer(greeting: string): Server {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(greeting);
  });
  servers.push(server);
  return server;
}

function options(directory: string, change: Partial<EndpointOptions> = {}): EndpointOptions {
  const acquired = acquireKeptLock(join(directory, `lock-${locks.length}`), asMyself());
  if (acquired.kind !== 'acquired') throw new Error(acquired.kind);
  locks.push(acquired.lock);
  return {
    path: join(directory, 'host.sock'),
    lock: acquired.lock,
    clock: systemClock,
    random: systemRandom,
    createServer: () => makeServer('mine'),
    ...change,
  };
}

async function published(request: EndpointOptions): Promise<Endpoint> {
  const outcome = await publishEndpoint(request);
  if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
  return outcome.endpoint;
}

function greeting(path: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    connect(path)
      .on('data', (bytes) => {
        text += bytes.toString();
      })
      .on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
      .on('end', () => resolve(text));
  });
}

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve) => server.listen(path, resolve));

describe('publishing an endpoint', () => {
  it('serves under the canonical name, 0600, and leaves no private name', async () => {
    const request = options(privateDir());
    const endpoint = await published(request);
    expect(await greeting(request.path)).toBe('mine');
    expect(lstatSync(request.path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(request.path, '..')).filter((name) => name.startsWith('.p'))).toEqual(
      [],
    );
    expect(endpoint.check()).toBe('published');
    expect(endpoint.identity.ino).toBe(lstatSync(request.path, { bigint: true }).ino);
  });

  it('race 6: closing the server removes no canonical name, ours or a successor’s', async () => {
    const request = options(privateDir());
    const endpoint = await published(request);
    endpoint.stopListening();
    endpoint.stopListening();
    expect(existsSync(request.path)).toBe(true);
    expect(await greeting(request.path)).toBe('ECONNREFUSED');
    const successor = await published({ ...request, createServer: () => makeServer('successor') });
    endpoint.server.close();
    await eventually(() => !endpoint.server.listening, 'closed');
    expect(await greeting(request.path)).toBe('successor');
    expect(successor.check()).toBe('published');
  });

  it('takes the place of a dead predecessor by rename', async () => {
    const directory = privateDir();
    const dead = await startOwner(directory);
    expect(await settled(dead)).toBe('serving');
    await kill(dead);
    const path = join(directory, 'owner.sock');
    const endpoint = await published(options(directory, { path }));
    expect(await greeting(path)).toBe('mine');
    expect(endpoint.check()).toBe('published');
  });

  it('does not touch a live incumbent, and names its process', async () => {
    const directory = privateDir();
    const live = await startOwner(directory);
    expect(await settled(live)).toBe('serving');
    const path = join(directory, 'owner.sock');
    const before = lstatSync(path).ino;
    expect(await publishEndpoint(options(directory, { path }))).toEqual({
      kind: 'occupied',
      pid: live.child.pid,
    });
    expect(lstatSync(path).ino).toBe(before);
    expect(await greeting(path)).toBe('hi');
  });

  it('race 7: a stopped incumbent with a full backlog is not dead', async () => {
    const directory = privateDir();
    const live = await startOwner(directory);
    await settled(live);
    live.child.kill('SIGSTOP');
    await eventually(() => stateOf(live.child.pid) === 'T', 'stop');
    const path = join(directory, 'owner.sock');
    const waiting: ReturnType<typeof connect>[] = [];
    let answer = await probeEndpoint(path, systemClock);
    while (answer.kind === 'serving' && waiting.length < 2000) {
      for (let count = 0; count < 64; count++) {
        waiting.push(connect(path).on('error', () => undefined));
      }
      answer = await probeEndpoint(path, systemClock);
    }
    expect(answer).toEqual({ kind: 'unknown', because: 'EAGAIN' });
    expect(await publishEndpoint(options(directory, { path }))).toEqual({
      kind: 'inconclusive',
      because: 'EAGAIN',
    });
    for (const socket of waiting) socket.destroy();
  });

  it.each([
    ['a regular file', (path: string) => writeFileSync(path, 'x')],
    ['a directory', (path: string) => mkdirSync(path)],
    ['a dangling link', (path: string) => symlinkSync(`${path}.nowhere`, path)],
    ['a FIFO', (path: string) => execFileSync('mkfifo', [path])],
  ])('refuses %s at the canonical path by name, and leaves it', async (_what, plant) => {
    const request = options(privateDir());
    plant(request.path);
    const before = lstatSync(request.path).ino;
    const outcome = await publishEndpoint(request);
    expect(outcome).toMatchObject({
      kind: 'foreign',
      because: expect.stringMatching(/move it away/) as unknown,
    });
    expect(lstatSync(request.path).ino).toBe(before);
    expect(readdirSync(join(request.path, '..')).filter((name) => name.startsWith('.p'))).toEqual(
      [],
    );
  });

  it('I4: a probe that cannot tell, at either look, changes nothing', async () => {
    for (const when of [1, 2]) {
      const request = options(privateDir());
      const stale = makeServer('stale');
      await listen(stale, `${request.path}.bound`);
      renameSync(`${request.path}.bound`, request.path);
      let asked = 0;
      const outcome = await publishEndpoint({
        ...request,
        probe: async () => {
          asked++;
          return asked === when
            ? { kind: 'unknown', because: 'timed out' }
            : { kind: 'not-serving', because: 'ECONNREFUSED' };
        },
      });
      expect(outcome).toEqual({ kind: 'inconclusive', because: 'timed out' });
      expect(asked).toBe(when);
      expect(await greeting(request.path)).toBe('stale');
    }
  });

  it('race 5: a rival that appears between the two looks is not renamed over', async () => {
    const request = options(privateDir());
    const dead = makeServer('dead');
    await listen(dead, `${request.path}.bound`);
    renameSync(`${request.path}.bound`, request.path);
    let asked = 0;
    const rival = makeServer('rival');
    const outcome = await publishEndpoint({
      ...request,
      probe: async (path) => {
        asked++;
        if (asked === 1) {
          await listen(rival, `${request.path}.rival`);
          renameSync(`${request.path}.rival`, path);
          return { kind: 'not-serving', because: 'ECONNREFUSED' };
        }
        return probeEndpoint(path, systemClock);
      },
    });
    expect(outcome).toEqual({ kind: 'occupied', pid: process.pid });
    expect(await greeting(request.path)).toBe('rival');
  });

  it('race 5: a rival that appears right after the second look is not renamed over', async () => {
    const request = options(privateDir());
    const dead = makeServer('dead');
    await listen(dead, `${request.path}.bound`);
    renameSync(`${request.path}.bound`, request.path);
    const rival = makeServer('rival');
    await listen(rival, `${request.path}.rival`);
    let asked = 0;
    const outcome = await publishEndpoint({
      ...request,
      probe: async (path) => {
        asked++;
        if (asked === 2) renameSync(`${request.path}.rival`, path);
        if (asked <= 2) return { kind: 'not-serving', because: 'ECONNREFUSED' };
        return probeEndpoint(path, systemClock);
      },
    });
    expect(outcome).toEqual({ kind: 'occupied', pid: process.pid });
    expect(await greeting(request.path)).toBe('rival');
  });

  it('is lost when the lock is lost on the way, and nothing is renamed', async () => {
    const request = options(privateDir());
    const stale = makeServer('stale');
    await listen(stale, `${request.path}.bound`);
    renameSync(`${request.path}.bound`, request.path);
    const outcome = await publishEndpoint({
      ...request,
      probe: async () => {
        if (existsSync(request.lock.path)) unlinkSync(request.lock.path);
        return { kind: 'not-serving', because: 'ECONNREFUSED' };
      },
    });
    expect(outcome.kind).toBe('lost');
    expect(await greeting(request.path)).toBe('stale');
  });

  it('is lost when the name leads elsewhere right after, and the thief is left alone', async () => {
    const request = options(privateDir());
    const thief = makeServer('thief');
    await listen(thief, `${request.path}.thief`);
    const failpoints = failAt('endpoint.linked', () => {
      renameSync(`${request.path}.thief`, request.path);
    });
    expect((await publishEndpoint({ ...request, failpoints })).kind).toBe('lost');
    expect(await greeting(request.path)).toBe('thief');
  });

  it('delta 6: publishes nothing once the lock is lost before the name is free', async () => {
    const request = options(privateDir());
    const failpoints = failAt('endpoint.bound', () => unlinkSync(request.lock.path));
    expect((await publishEndpoint({ ...request, failpoints })).kind).toBe('lost');
    expect(existsSync(request.path)).toBe(false);
  });

  it('refuses a path that the kernel would cut', async () => {
    const directory = join(privateDir(), 'd'.repeat(90));
    mkdirSync(directory);
    await expect(publishEndpoint(options(directory))).rejects.toMatchObject({
      code: 'endpoint-path-too-long',
    });
  });

  it('reports a directory it cannot bind in, and leaves nothing', async () => {
    const directory = privateDir();
    const request = options(directory, { path: join(directory, 'gone', 'host.sock') });
    await expect(publishEndpoint(request)).rejects.toMatchObject({
      code: 'state-directory-unusable',
    });
  });
});

describe('a published endpoint', () => {
  it('notices that its name is gone or foreign, and publishes again', async () => {
    const request = options(privateDir());
    const endpoint = await published(request);
    unlinkSync(request.path);
    expect(endpoint.check()).toBe('gone');
    expect(await endpoint.republish()).toBe('published');
    expect(endpoint.check()).toBe('published');
    expect(await greeting(request.path)).toBe('mine');
    renameSync(request.path, `${request.path}.away`);
    await listen(makeServer('thief'), `${request.path}.x`);
    renameSync(`${request.path}.x`, request.path);
    expect(endpoint.check()).toBe('foreign');
    expect(await endpoint.republish()).toBe('occupied');
    expect(await greeting(request.path)).toBe('thief');
  });

  it('delta 8: can stop listening for an idle proof, and listen again', async () => {
    const request = options(privateDir());
    const endpoint = await published(request);
    endpoint.stopListening();
    expect(endpoint.listening).toBe(false);
    expect(await endpoint.republish()).toBe('published');
    expect(endpoint.listening).toBe(true);
    expect(await greeting(request.path)).toBe('mine');
  });

  it('keeps the connections of before while it is published again', async () => {
    const request = options(privateDir(), {
      createServer: () => {
        const server = createServer((socket) => socket.on('error', () => undefined).pipe(socket));
        servers.push(server);
        return server;
      },
    });
    const endpoint = await published(request);
    const socket = connect(request.path);
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
    unlinkSync(request.path);
    expect(await endpoint.republish()).toBe('published');
    const echoed = new Promise<string>((resolve) => {
      socket.once('data', (bytes) => resolve(bytes.toString()));
    });
    socket.write('still here');
    expect(await echoed).toBe('still here');
    socket.destroy();
  });
});

describe('I18: scratch names', () => {
  it('of interrupted publications are swept by the lock holder, and nothing else is', async () => {
    const directory = privateDir();
    const crashed = await startOwner(directory, 'endpoint.bound=kill');
    expect(await settled(crashed)).toBe('ended SIGKILL');
    const names = (): string[] => readdirSync(directory).filter((name) => name.startsWith('.p'));
    expect(names()).toHaveLength(1);
    writeFileSync(join(directory, '.p0123456789'), 'not a socket');
    writeFileSync(join(directory, '.pother'), '');
    const request = options(directory);
    expect(sweepScratchNames(request.lock, request.path)).toBe(1);
    expect(names().sort()).toEqual(['.p0123456789', '.pother']);
    request.lock.release();
    expect(() => sweepScratchNames(request.lock, request.path)).not.toThrow();
  });

  it('are not swept by somebody who lost the lock', async () => {
    const directory = privateDir();
    await settled(await startOwner(directory, 'endpoint.bound=kill'));
    const request = options(directory);
    request.lock.release();
    expect(() => sweepScratchNames(request.lock, request.path)).toThrow(
      expect.objectContaining({ code: 'ownership-lost' }),
    );
  });
});

describe('reading a name', () => {
  it('tells a socket, nothing, and everything else', () => {
    const directory = privateDir();
    expect(readName(join(directory, 'none'))).toEqual({ kind: 'absent' });
    expect(readName(directory)).toEqual({ kind: 'other', type: 'a directory' });
    expect(readName('/dev/null')).toEqual({ kind: 'other', type: 'a device' });
    expect(readName(`${directory}/x\0y`)).toMatchObject({ kind: 'unknown' });
  });
});
