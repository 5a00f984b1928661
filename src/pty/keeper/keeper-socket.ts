// keeper.sock: two requests of a fixed, small size, from our own uid only. One request, one answer.

import { createServer, type Server, type Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { FrameDecoder } from '../../base/frame-codec.ts';
import { readPeerCredentials, socketDescriptor } from '../../sys/peer.ts';
import {
  encodeMessage,
  type KeeperAnswer,
  type KeeperRequest,
  parseKeeperRequest,
} from '../keeper-protocol.ts';

const REQUEST_BYTES_MAX = 4_096;
const REQUEST_DEADLINE_MS = 5_000;
/** Clients wait here while a host starts; more of them than this have something else wrong. */
const CONNECTIONS_MAX = 256;

export interface KeeperSocketPorts {
  readonly clock: Clock;
  readonly uid: number;
  answer(request: KeeperRequest, reply: (answer: KeeperAnswer) => void): void;
}

/** A server that does not listen yet. */
export function createKeeperServer(ports: KeeperSocketPorts): Server {
  const server = createServer((socket) => serve(socket, ports));
  server.maxConnections = CONNECTIONS_MAX;
  return server;
}

function serve(socket: Socket, ports: KeeperSocketPorts): void {
  // A probe connects and leaves: without a listener its reset would end the process.
  socket.on('error', () => socket.destroy());
  if (!isOurs(socket, ports.uid)) {
    socket.destroy();
    return;
  }
  const deadline = ports.clock.timer(REQUEST_DEADLINE_MS, () => socket.destroy());
  socket.on('close', () => deadline.cancel());
  const decoder = new FrameDecoder(REQUEST_BYTES_MAX);
  let asked = false;
  socket.on('data', (chunk: Buffer) => {
    if (asked) return;
    try {
      const [frame] = decoder.push(chunk);
      if (frame === undefined) return;
      asked = true;
      deadline.cancel();
      ports.answer(parseKeeperRequest(frame.payload), (answer) => {
        socket.end(encodeMessage(answer));
      });
    } catch {
      socket.destroy();
    }
  });
}

function isOurs(socket: Socket, uid: number): boolean {
  const fd = socketDescriptor(socket);
  if (fd === undefined) return false;
  try {
    return readPeerCredentials(fd).uid === uid;
  } catch {
    return false;
  }
}
