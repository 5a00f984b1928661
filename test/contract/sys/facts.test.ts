import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bootClockMs, machineMonotonicMs } from '../../../src/sys/boot-clock.ts';
import { isOpen, setCloseOnExec } from '../../../src/sys/fd.ts';
import { judgeFilesystem, judgeType, renameNoReplace } from '../../../src/sys/filesystem.ts';
import { errnoName, libc, libcHas } from '../../../src/sys/libc.ts';
import { openPeerPidfd, readPeerCredentials, socketDescriptor } from '../../../src/sys/peer.ts';
import { hasEnded } from '../../../src/sys/pidfd.ts';
import {
  parseStat,
  readBootId,
  readChildren,
  readControlGroup,
  readNamespace,
  readProcessFacts,
  readThreadGroup,
} from '../../../src/sys/process-facts.ts';
import { selfTest } from '../../../src/sys/self-test.ts';
import { bundleForChild } from '../../support/bundle.ts';
import { privateDir } from '../../support/private-dir.ts';
import { eventually, outputOf, startProcess, stateOf } from '../../support/processes.ts';

describe('process facts', () => {
  it('read field 22 after the last parenthesis, whatever the command is called', async () => {
    const file = join(privateDir(), 'a) S 1 (b 9');
    copyFileSync('/bin/sleep', file);
    const child = startProcess(file, ['60']);
    await eventually(
      () => readFileSync(`/proc/${child.pid}/comm`, 'utf8').includes('a) S'),
      'exec',
    );
    const facts = readProcessFacts(child.pid);
    expect(facts).toMatchObject({ pid: child.pid, parentPid: process.pid });
    expect(Math.abs(facts.startTicks * 10 - bootClockMs())).toBeLessThan(60_000);
  });

  it('refuse a line that is no stat line', () => {
    expect(() => parseStat(1, '')).toThrow();
    expect(() => parseStat(1, '1 (x) S 1 1 1')).toThrow();
  });

  it('see a stopped process as T', async () => {
    const child = startProcess('sleep', ['60']);
    child.kill('SIGSTOP');
    await eventually(() => stateOf(child.pid) === 'T', 'stop');
    expect(readProcessFacts(child.pid).state).toBe('T');
  });

  it('name the process of a thread, our namespaces, our boot, our children', () => {
    const child = startProcess('sleep', ['60']);
    expect(readThreadGroup(process.pid)).toBe(process.pid);
    expect(readNamespace('pid')).toMatch(/^\d+$/);
    expect(readNamespace('time')).toMatch(/^\d+$/);
    expect(readNamespace('pid', child.pid)).toBe(readNamespace('pid'));
    expect(readBootId()).toMatch(/^[0-9a-f-]{36}$/);
    expect(readChildren(process.pid)).toContain(child.pid);
    expect(() => readControlGroup()).not.toThrow();
  });

  it('throw an errno for a process that is not there', () => {
    expect(() => readProcessFacts(2 ** 22 + 1)).toThrow(
      expect.objectContaining({ code: 'ENOENT' }),
    );
  });
});

describe('peer credentials', () => {
  it('name the listener at the connecting side and the connector at the other', async () => {
    const path = join(privateDir(), 's');
    const server = createServer().listen(path);
    const accepted = new Promise<Socket>((resolve) => {
      server.once('connection', resolve);
    });
    const socket = createConnection(path);
    const other = await accepted;
    for (const end of [socket, other]) {
      const fd = socketDescriptor(end) ?? -1;
      expect(readPeerCredentials(fd)).toEqual({ pid: process.pid, uid: process.getuid?.() });
      const pidfd = openPeerPidfd(fd);
      if (pidfd !== undefined) expect(hasEnded(pidfd)).toBe(false);
    }
    socket.destroy();
    other.destroy();
    await eventually(() => socketDescriptor(socket) === undefined, 'closed socket');
    server.close();
  });
});

describe('file systems', () => {
  it('are judged by their type', () => {
    const none = (): undefined => undefined;
    expect(judgeType(0xef53, none)).toEqual({ kind: 'local' });
    expect(judgeType(0x01021994, none)).toEqual({ kind: 'local' });
    expect(judgeType(0x6969, none)).toEqual({ kind: 'network', type: 'nfs' });
    expect(judgeType(0xff534d42, none)).toEqual({ kind: 'network', type: 'cifs' });
    expect(judgeType(0x65735546, () => 'fuse.sshfs').kind).toBe('network');
    expect(judgeType(0x65735546, () => 'fuse.gocryptfs').kind).toBe('unknown');
    expect(judgeFilesystem(privateDir()).kind).toBe('local');
    expect(judgeFilesystem('/nonexistent').kind).toBe('unknown');
  });

  it('rename without replacing', () => {
    const directory = privateDir();
    const [one, two] = [join(directory, 'one'), join(directory, 'two')];
    writeFileSync(one, '1');
    renameNoReplace(one, two);
    writeFileSync(one, 'again');
    expect(() => renameNoReplace(one, two)).toThrow(expect.objectContaining({ code: 'EEXIST' }));
    expect(readFileSync(two, 'utf8')).toBe('1');
  });
});

describe('clocks', () => {
  it('count since boot, with suspend never behind without', () => {
    const [with1, without] = [bootClockMs(), machineMonotonicMs()];
    expect(bootClockMs()).toBeGreaterThanOrEqual(with1);
    expect(without).toBeLessThanOrEqual(bootClockMs());
    expect(
      Math.abs(bootClockMs() / 1000 - Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0])),
    ).toBeLessThan(5);
  });
});

describe('execve', () => {
  it('keeps pid and marked descriptors, and returns by throwing when it fails', async () => {
    const main = await bundleForChild('test/support/exec-main.ts');
    const child = startProcess(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] });
    const { stdout, code } = await outputOf(child);
    expect(code).toBe(0);
    expect(stdout.trim().split('\n')).toEqual(['failed ENOENT true', `kept ${child.pid} ok`]);
  });
});

describe('what libc lacks', () => {
  it('is ENOSYS, never a crash', () => {
    const missing = libc('int chatd_no_such_function(int x)');
    expect(() => missing(1)).toThrow(expect.objectContaining({ code: 'ENOSYS' }));
    expect(libcHas('int chatd_no_such_function(int x)')).toBe(false);
    expect(errnoName(2)).toBe('ENOENT');
    expect(errnoName(99_999)).toBe('E99999');
    expect(isOpen(987_654)).toBe(false);
    expect(() => setCloseOnExec(987_654, true)).toThrow(expect.objectContaining({ code: 'EBADF' }));
  });
});

describe('the self-test', () => {
  it('finds every capability on the machines we support', () => {
    const capabilities = selfTest(process.pid, process.ppid);
    const absent = Object.entries(capabilities).filter(([, state]) => !state.present);
    // The two that older supported kernels lack.
    const allowed = new Set(['pidfd-inode', 'peer-pidfd']);
    expect(absent.filter(([name]) => !allowed.has(name))).toEqual([]);
    expect([platform(), ['x64', 'arm64'].includes(arch())]).toEqual(['linux', true]);
  });
});
