// Composition root of the host's reader thread.

import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from 'node:worker_threads';
import { errorText } from '../../base/errors.ts';
import { systemClock } from '../../base/system-clock.ts';
import { Reader } from './reader.ts';
import type { FromReader, ToReader } from './reader-messages.ts';
import { SharedState } from './shared-state.ts';

export interface ReaderWorkerData {
  readonly shared: SharedArrayBuffer;
  readonly wakeFd: number;
  readonly commands: MessagePort;
  readonly model: MessagePort;
}

const data = workerData as ReaderWorkerData;
const tellMain = (message: FromReader): void => parentPort?.postMessage(message);

try {
  new Reader({
    clock: systemClock,
    shared: new SharedState(data.shared),
    wakeFd: data.wakeFd,
    receive: () => receiveMessageOnPort(data.commands)?.message as ToReader | undefined,
    toMain: tellMain,
    toModel: (message) => data.model.postMessage(message),
  }).run();
} catch (error) {
  tellMain({ t: 'failed', message: errorText(error) });
}
data.commands.close();
data.model.close();
