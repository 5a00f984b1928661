// Replaces itself once by execve, handing a pipe through.

import { readSync, writeSync } from 'node:fs';
import { execve, isCloseOnExec, openPipe } from '../../src/sys/fd.ts';

const handed = process.env['HANDED_FD'];
if (handed === undefined) {
  try {
    execve('/nonexistent', ['x'], {}, [0, 1, 2]);
  } catch (error) {
    process.stdout.write(
      `failed ${String((error as { code?: string }).code)} ${isCloseOnExec(1)}\n`,
    );
  }
  const pipe = openPipe();
  writeSync(pipe.write, 'ok');
  const argv = [process.execPath, process.argv[1] ?? ''];
  execve(process.execPath, argv, { ...process.env, HANDED_FD: String(pipe.read) }, [
    0,
    1,
    2,
    pipe.read,
  ]);
}
const buffer = Buffer.alloc(2);
readSync(Number(handed), buffer);
process.stdout.write(`kept ${process.pid} ${buffer.toString()}\n`);
