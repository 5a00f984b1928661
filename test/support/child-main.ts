// A child that does what its first argument says: for tests of starting with readiness.

import { spawn } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { takeAnnouncer } from '../../src/ownership/spawn-ready.ts';

const [, , what = '', path = ''] = process.argv;
const announcer = takeAnnouncer(process.env);
// Longer than any test, so that an interrupted run leaves nothing for long.
const wait = (): void => {
  setTimeout(() => process.exit(0), 120_000);
};

const deeds: Record<string, () => void> = {
  ready: () => {
    announcer.announce('owned 42');
    announcer.announce('twice');
    wait();
  },
  occupied: () => process.exit(20),
  fails: () => {
    process.stderr.write(`${'x'.repeat(10_000)}\nthe reason\n`);
    process.exit(3);
  },
  killed: () => process.kill(process.pid, 'SIGKILL'),
  silent: () => {
    process.stderr.write('still thinking\n');
    wait();
  },
  'gives-up': () => {
    announcer.announce('');
    wait();
  },
  // A grandchild that outlives its parent must not keep the pipe open.
  grandchild: () => {
    const grandchild = spawn('sleep', ['60'], { stdio: 'ignore', detached: true });
    writeFileSync(path, String(grandchild.pid));
    grandchild.once('spawn', () => process.exit(4));
  },
  // What the child sees of its starter.
  look: () => {
    writeFileSync(
      path,
      JSON.stringify({
        fds: readdirSync('/proc/self/fd').map(Number),
        ready: process.env['CHATD_READY_FD'],
        kept: process.env['KEPT'],
        cwd: process.cwd(),
      }),
    );
    announcer.announce('looked');
    wait();
  },
};

(deeds[what] ?? (() => process.exit(9)))();
