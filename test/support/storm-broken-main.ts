// The storm's control: flock on a file that is unlinked on release, without comparing the inode.
// Two processes then hold two inodes of one name; the storm must notice.

import { appendFileSync, closeSync, openSync, unlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../../src/base/system-clock.ts';
import { tryFlock } from '../../src/sys/locks.ts';

const [, , directory = '.'] = process.argv;

for (;;) {
  const path = join(directory, 'owner.lock');
  const fd = openSync(path, 'a', 0o600);
  if (tryFlock(fd) === 'locked') {
    appendFileSync(join(directory, 'history'), `A ${process.pid} -\n`);
    const witness = createServer();
    const held = await new Promise<boolean>((resolve) => {
      witness.once('error', () => resolve(false));
      witness.listen(`\0chatd-storm:${directory}`, () => resolve(true));
    });
    if (!held) appendFileSync(join(directory, 'violations'), `two owners: ${process.pid}\n`);
    await systemClock.sleep(2);
    witness.close();
    appendFileSync(join(directory, 'history'), `R ${process.pid} -\n`);
    try {
      unlinkSync(path);
    } catch {
      // Another one of the many owners did.
    }
  }
  closeSync(fd);
  await systemClock.sleep(1);
}
