// Composition root of the host's model thread.

import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/system-clock.ts';
import { writeSome } from '../../sys/tty.ts';
import { ModelLoop } from './model-loop.ts';
import type { FromModel, ToModel } from './model-messages.ts';
import type { ReaderToModel } from './reader-messages.ts';
import { SharedState } from './shared-state.ts';

export interface ModelWorkerData {
  readonly shared: SharedArrayBuffer;
  readonly wakeFd: number;
  readonly reader: MessagePort;
}

const MODEL_NICE = 2;

const data = workerData as ModelWorkerData;
// On Linux this is the calling thread's alone: keys and their echo come before the parsing of floods.
setPriority(MODEL_NICE);

const wakeByte = Buffer.from([1]);
const loop = new ModelLoop({
  clock: systemClock,
  shared: new SharedState(data.shared),
  toMain: (message: FromModel) => parentPort?.postMessage(message),
  later: (run) => setImmediate(run),
  wakeReader: () => {
    writeSome(data.wakeFd, wakeByte);
  },
});
data.reader.on('message', (message: ReaderToModel) => loop.handleReader(message));
parentPort?.on('message', (message: ToModel) => loop.handle(message));
