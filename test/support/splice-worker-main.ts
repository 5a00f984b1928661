// A worker thread that waits for a pipe and splices it into a file.

import { parentPort, workerData } from 'node:worker_threads';
import { POLLIN, PollSet } from '../../src/sys/poll.ts';
import { SpliceIntoFile } from '../../src/sys/splice.ts';

const { read, file } = workerData as { read: number; file: number };
const set = new PollSet();
set.set(0, read, POLLIN);
set.wait(30_000);
const moved = new SpliceIntoFile().move(read, file, 0, 1000);
parentPort?.postMessage({ seen: set.seen(0), moved });
