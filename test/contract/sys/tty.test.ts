import { closeSync, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterEach, describe, expect, it } from 'vitest';
import { setCloseOnExec, setNonBlocking } from '../../../src/sys/fd.ts';
import { POLLIN, pollOne } from '../../../src/sys/poll.ts';
import { spawnProcess } from '../../../src/sys/spawn.ts';
import {
  isTerminal,
  readableBytes,
  readForegroundGroup,
  readSome,
  readTerminalFlags,
  readTerminalSize,
  setTerminalSize,
  writeSome,
} from '../../../src/sys/tty.ts';
import { reap } from '../../../src/sys/wait.ts';
import { eventually, killAfterTest } from '../../support/processes.ts';

interface NativePty {
  open(cols: number, rows: number): { master: number; slave: number; pty: string };
}
const { requireBinary } = createRequire(import.meta.url)('node-pty/requireBinary.js') as {
  requireBinary(name: string): NativePty;
};
const native = requireBinary('pty.node');

const masters: number[] = [];
afterEach(() => {
  for (const fd of masters.splice(0)) closeSync(fd);
});

/** A program on a terminal of its own, as the keeper starts one. */
function onTerminal(script: string): { pid: number; master: number } {
  const { master, slave, pty } = native.open(80, 24);
  setCloseOnExec(master, true);
  setNonBlocking(master, true);
  masters.push(master);
  const result = spawnProcess({
    file: '/bin/sh',
    argv: ['sh', '-c', script],
    environment: { PATH: '/usr/bin:/bin' },
    terminal: pty,
  });
  closeSync(slave);
  if (result.kind !== 'started') throw new Error(result.code);
  return { pid: killAfterTest(result.pid), master };
}

function readUntil(master: number, text: string): Promise<string> {
  let seen = '';
  const buffer = Buffer.alloc(4096);
  return eventually(
    () => {
      const count = readSome(master, buffer);
      if (typeof count === 'number') seen += buffer.toString('utf8', 0, count);
      return seen.includes(text) && seen;
    },
    `"${text}" in ${JSON.stringify(seen)}`,
  );
}

describe('a terminal through its master', () => {
  it('is the controlling terminal of what spawnProcess started on it', async () => {
    const { master } = onTerminal('echo yes > /dev/tty; ps -o tty= -p $$; tty; sleep 60');
    const text = await readUntil(master, '/dev/pts/');
    expect(text).toContain('yes');
    expect(text).toMatch(/^pts\/\d+/m);
  });

  it('shows the flags its program set', async () => {
    const { master } = onTerminal('stty -echo; echo one; read x; stty raw; echo two; sleep 60');
    await readUntil(master, 'one');
    expect(readTerminalFlags(master)).toEqual({ echo: false, canonical: true, signals: true });
    writeSome(master, Buffer.from('\n'));
    await readUntil(master, 'two');
    expect(readTerminalFlags(master)).toEqual({ echo: false, canonical: false, signals: false });
  });

  it('names the foreground group', async () => {
    const { pid, master } = onTerminal('echo up; exec sleep 60');
    await readUntil(master, 'up');
    expect(readForegroundGroup(master)).toBe(pid);
  });

  it('is resized, and the program hears of it', async () => {
    const { master } = onTerminal('trap "stty size" WINCH; echo up; while :; do sleep 0.05; done');
    await readUntil(master, 'up');
    expect(readTerminalSize(master)).toEqual({ cols: 80, rows: 24 });
    setTerminalSize(master, { cols: 133, rows: 41 });
    expect(readTerminalSize(master)).toEqual({ cols: 133, rows: 41 });
    await readUntil(master, '41 133');
  });

  it('takes what fits of a write to a program that does not read, and never waits', async () => {
    const { master } = onTerminal('stty raw -echo; echo up; sleep 60');
    await readUntil(master, 'up');
    let taken = 0;
    const bytes = Buffer.alloc(65_536, 'x');
    const last = await eventually(() => {
      const count = writeSome(master, bytes);
      if (typeof count === 'string') return count;
      taken += count;
      return undefined;
    }, 'a full queue');
    expect(last).toBe('EAGAIN');
    expect(taken).toBeGreaterThan(1000);
    expect(taken).toBeLessThan(1_000_000);
  });

  it('answers EIO only after the last byte of an ended program', async () => {
    const { pid, master } = onTerminal('seq 1 200');
    await eventually(() => reap(pid).kind === 'ended', 'end');
    expect(pollOne(master, POLLIN, 1000) & POLLIN).toBe(POLLIN);
    expect(readableBytes(master)).toBeGreaterThan(0);
    let text = '';
    const buffer = Buffer.alloc(4096);
    const end = await eventually(() => {
      const count = readSome(master, buffer);
      if (typeof count === 'string') return count !== 'EAGAIN' && count;
      text += buffer.toString('utf8', 0, count);
      return undefined;
    }, 'the end');
    expect(end).toBe('EIO');
    expect(text.trim().split('\r\n')).toHaveLength(200);
  });

  it('is told from a file', () => {
    const file = openSync('/dev/null', 'r');
    const { master } = onTerminal('sleep 60');
    expect(isTerminal(master)).toBe(true);
    expect(isTerminal(file)).toBe(false);
    expect(() => readTerminalFlags(file)).toThrow(expect.objectContaining({ code: 'ENOTTY' }));
    expect(readSync(file, Buffer.alloc(1))).toBe(0);
    closeSync(file);
  });
});
