import { closeSync, openSync, readFileSync, readlinkSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isOpen, openPipe, setCloseOnExec } from '../../../src/sys/fd.ts';
import { openFilesLimit, openFilesLimitOf, setUmask } from '../../../src/sys/limits.ts';
import { readProcessFacts } from '../../../src/sys/process-facts.ts';
import { type SpawnRequest, spawnCapabilities, spawnProcess } from '../../../src/sys/spawn.ts';
import { decodeStatus, peekEnded, reap } from '../../../src/sys/wait.ts';
import { privateDir } from '../../support/private-dir.ts';
import { eventually, killAfterTest } from '../../support/processes.ts';

const environment = { PATH: '/usr/bin:/bin' };

function start(request: Partial<SpawnRequest> & { script: string }): number {
  const { script, ...rest } = request;
  const result = spawnProcess({
    file: '/bin/sh',
    argv: ['sh', '-c', script],
    environment,
    ...rest,
  });
  if (result.kind !== 'started') throw new Error(result.code);
  return killAfterTest(result.pid);
}

/** Runs a script and returns what it wrote to its stdout. */
async function output(request: Partial<SpawnRequest> & { script: string }): Promise<string> {
  const path = join(privateDir(), 'out');
  const out = openSync(path, 'w');
  const pid = start({ ...request, fds: new Map([...(request.fds ?? []), [1, out]]) });
  closeSync(out);
  await eventually(() => reap(pid).kind === 'ended', 'end of the script');
  return readFileSync(path, 'utf8');
}

describe('spawnProcess', () => {
  it('starts a session leader in the directory, with exactly the environment given', async () => {
    const text = await output({
      script:
        'pwd; tr "\\0" "\\n" < /proc/$$/environ | sort | tr "\\n" " "; echo; ps -o sid= -p $$; echo $$',
      cwd: '/usr',
      environment: { ...environment, ONE: '1', GONE: undefined },
    });
    const [directory, variables, session, pid] = text.trim().split('\n');
    expect(variables).toBe('ONE=1 PATH=/usr/bin:/bin ');
    expect(directory).toBe('/usr');
    expect(session?.trim()).toBe(pid);
  });

  it('gives the child only the descriptors named, whatever is inheritable here', async () => {
    const leaky = openPipe();
    setCloseOnExec(leaky.read, false);
    setCloseOnExec(leaky.write, false);
    const given = openPipe();
    const text = await output({
      script: 'ls /proc/$$/fd | tr "\\n" " "',
      fds: new Map([[5, given.write]]),
    });
    const expected: unknown = spawnCapabilities().closeFrom ? '0 1 2 5 ' : expect.any(String);
    expect(text).toEqual(expected);
    for (const fd of [leaky.read, leaky.write, given.read, given.write]) closeSync(fd);
  });

  it('maps descriptors that cross each other', async () => {
    const dir = privateDir();
    const paths = [join(dir, 'three'), join(dir, 'four')] as const;
    const [a, b] = [openSync(paths[0], 'w'), openSync(paths[1], 'w')];
    // Child b ← our a and child a ← our b: a plain dup2 sequence would lose one of them.
    const pid = start({
      file: '/bin/bash', // dash knows only one-digit descriptors.
      script: `readlink /proc/$$/fd/${b} >&${b}; readlink /proc/$$/fd/${a} >&${a}`,
      fds: new Map([
        [b, a],
        [a, b],
      ]),
    });
    await eventually(() => reap(pid).kind === 'ended', 'end');
    expect(readFileSync(paths[0], 'utf8').trim()).toBe(paths[0]);
    expect(readFileSync(paths[1], 'utf8').trim()).toBe(paths[1]);
    closeSync(a);
    closeSync(b);
  });

  it('starts it with default signals and an empty mask', async () => {
    const text = await output({ script: 'grep -E "Sig(Blk|Ign)" /proc/self/status' });
    expect(text).toMatch(/SigBlk:\s+0{16}/);
    // 32 and 33 are the C library's own: SIGPIPE, which Node ignores, must not be among them.
    const ignored = BigInt(`0x${/SigIgn:\s+([0-9a-f]+)/.exec(text)?.[1] ?? 'ff'}`);
    expect(ignored & 0x7fff_ffffn).toBe(0n);
  });

  it('puts limit and umask around the start and back', async () => {
    const before = openFilesLimit();
    const mask = setUmask(0o022);
    setUmask(mask);
    const text = await output({ script: 'ulimit -Sn; umask', openFiles: 1024, umask: 0o027 });
    expect(text.trim().split('\n')).toEqual(['1024', '0027']);
    expect(openFilesLimit()).toEqual(before);
    const after = setUmask(mask);
    expect(after).toBe(mask);
    expect(openFilesLimitOf(process.pid)?.soft).toBe(before.soft);
  });

  it.each([
    ['ENOENT', { file: '/nonexistent/program' }],
    ['EACCES', { file: '/etc/passwd' }],
    ['ENOENT', { cwd: '/nonexistent' }],
  ])('answers %s at once and starts nothing', (code, change) => {
    const result = spawnProcess({ file: '/bin/sh', argv: ['sh'], environment, ...change });
    expect(result).toEqual({ kind: 'failed', code });
  });

  it('answers ENOEXEC for a script without an interpreter line', () => {
    const file = join(privateDir(), 'script');
    writeFileSync(file, 'echo hi\n', { mode: 0o755 });
    expect(spawnProcess({ file, argv: [file], environment })).toEqual({
      kind: 'failed',
      code: 'ENOEXEC',
    });
  });

  it('leaves no scratch descriptor behind', () => {
    const pipe = openPipe();
    const open = (): number[] => Array.from({ length: 200 }, (_, fd) => fd).filter(isOpen);
    const before = open();
    const pid = start({ script: 'exit 0', fds: new Map([[4, pipe.read]]) });
    spawnProcess({ file: '/none', argv: [], environment, fds: new Map([[4, pipe.read]]) });
    expect(open()).toEqual(before);
    closeSync(pipe.read);
    closeSync(pipe.write);
    return eventually(() => reap(pid).kind === 'ended', 'end');
  });

  it('refuses a descriptor number beyond its mapping range', () => {
    const request = { file: '/bin/true', argv: ['true'], environment };
    expect(() => spawnProcess({ ...request, fds: new Map([[64, 0]]) })).toThrow(/EINVAL/);
    expect(() => spawnProcess({ ...request, fds: new Map([[3, 987_654]]) })).toThrow(/EBADF/);
  });
});

describe('statuses', () => {
  it('can be looked at without reaping, and reaped once', async () => {
    const pid = start({ script: 'exit 7' });
    await eventually(() => peekEnded(pid) === 'ended', 'end');
    expect(peekEnded(pid)).toBe('ended');
    expect(readProcessFacts(pid).state).toBe('Z');
    expect(reap(pid)).toEqual({ kind: 'ended', pid, status: { kind: 'code', code: 7 } });
    expect(reap(pid)).toEqual({ kind: 'not-a-child' });
    expect(peekEnded(pid)).toBe('not-a-child');
  });

  it('names the signal that ended a child', async () => {
    const pid = start({ script: 'kill -SEGV $$' });
    const state = await eventually(() => {
      const now = reap(pid);
      return now.kind === 'ended' && now;
    }, 'end');
    expect(state.status).toEqual({ kind: 'signal', signal: 'SIGSEGV', number: 11 });
  });

  it('says running while it runs', () => {
    const pid = start({ script: 'sleep 60' });
    expect(peekEnded(pid)).toBe('running');
    expect(reap(pid)).toEqual({ kind: 'running' });
  });

  it('decodes what waitpid packs', () => {
    expect(decodeStatus(0)).toEqual({ kind: 'code', code: 0 });
    expect(decodeStatus(255 << 8)).toEqual({ kind: 'code', code: 255 });
    expect(decodeStatus(9 | 0x80)).toEqual({ kind: 'signal', signal: 'SIGKILL', number: 9 });
  });
});

describe('a pipe', () => {
  it('is close-on-exec and non-blocking when asked', () => {
    const pipe = openPipe({ nonBlocking: true });
    expect(() => readSync(pipe.read, Buffer.alloc(1))).toThrow(/EAGAIN/);
    expect(readlinkSync(`/proc/self/fd/${pipe.read}`)).toMatch(/^pipe:/);
    closeSync(pipe.read);
    closeSync(pipe.write);
  });
});
