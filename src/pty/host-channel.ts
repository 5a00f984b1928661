// One connection of a client to a host: hello, requests and their answers, frames for handles. When
// it ends everything under way is rejected as not known; connecting again is somebody else's.

import { connect, type Socket } from 'node:net';
import type { Clock, Timer } from '../base/clock.ts';
import { ChatdError, type ErrorCode, errorText } from '../base/errors.ts';
import { FrameDecoder, type RawFrame } from '../base/frame-codec.ts';
import { readPeerCredentials, socketDescriptor } from '../sys/peer.ts';
import {
  CAPABILITIES,
  decodeBulk,
  encodeControl,
  FRAME_BYTES_MAX,
  FRAME_CONTROL,
  FRAME_OUTPUT,
  FRAME_VIEW,
  HELLO_DEADLINE_MS,
  type Hello,
  type HostEvent,
  PROTOCOL_MAX,
  PROTOCOL_MIN,
  parseHostMessage,
  type Request,
  type Welcome,
} from './protocol.ts';

export interface ChannelEvents {
  output(handle: number, offset: number, bytes: Buffer): void;
  view(handle: number, payload: Buffer): void;
  event(event: HostEvent): void;
  /** Once. */
  closed(because: string): void;
}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: ChatdError) => void;
}

// An interface's omit loses its union; this keeps one shape per operation.
type WithoutEnvelope<T> = T extends Request ? Omit<T, 't' | 'id'> : never;
export type Question = WithoutEnvelope<Request>;

export class HostChannel {
  readonly welcome: Welcome;
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #closed = false;

  constructor(socket: Socket, welcome: Welcome) {
    this.#socket = socket;
    this.welcome = welcome;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * `first` sees the result before any frame that follows it: the promise's own listeners run after
   * the rest of the chunk that the result came in.
   * @throws {ChatdError} with the host's code, or host-unreachable when the connection ends
   */
  ask(question: Question, first?: (result: unknown) => void): Promise<unknown> {
    if (this.#closed) return Promise.reject(gone('the connection has ended'));
    const id = this.#nextId;
    this.#nextId += 1;
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, {
        resolve: (result) => {
          first?.(result);
          resolve(result);
        },
        reject,
      });
    });
    this.#socket.write(encodeControl({ ...question, t: 'req', id }));
    return answer;
  }

  ack(handle: number, offset: number): void {
    if (!this.#closed) this.#socket.write(encodeControl({ t: 'ack', handle, offset }));
  }

  close(): void {
    this.#socket.destroy();
  }

  /** For `openChannel`: what came in. */
  receive(frame: RawFrame, events: ChannelEvents): void {
    if (frame.type === FRAME_OUTPUT || frame.type === FRAME_VIEW) {
      const { handle, offset, bytes } = decodeBulk(frame.payload);
      if (frame.type === FRAME_OUTPUT) events.output(handle, offset, bytes);
      else events.view(handle, bytes);
      return;
    }
    if (frame.type !== FRAME_CONTROL) return;
    const message = parseHostMessage(frame.payload);
    switch (message.t) {
      case 'ok':
        this.#take(message.id)?.resolve(message.result);
        return;
      case 'failed': {
        const code = message.code as ErrorCode;
        this.#take(message.id)?.reject(new ChatdError(code, message.message));
        return;
      }
      case 'welcome':
      case 'refused':
        return;
      default:
        events.event(message);
    }
  }

  /** For `openChannel`: the end. */
  end(because: string): void {
    this.#closed = true;
    for (const pending of this.#pending.values()) pending.reject(gone(because));
    this.#pending.clear();
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }
}

function gone(because: string): ChatdError {
  return new ChatdError('host-unreachable', `Cannot reach host: ${because}`);
}

/**
 * Connects and says hello.
 * @throws {ChatdError} host-unreachable (with the errno in `details.errno`), version-mismatch
 */
export function openChannel(options: {
  readonly path: string;
  readonly uid: number;
  readonly role: Hello['role'];
  readonly clock: Clock;
  readonly events: ChannelEvents;
}): Promise<HostChannel> {
  const { path, uid, role, clock, events } = options;
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const decoder = new FrameDecoder(FRAME_BYTES_MAX);
    let channel: HostChannel | undefined;
    let over = false;
    const timer: Timer = clock.timer(HELLO_DEADLINE_MS, () => end('no answer to hello'));
    const end = (because: string, code: ErrorCode = 'host-unreachable', errno = ''): void => {
      if (over) return;
      over = true;
      timer.cancel();
      socket.destroy();
      if (channel === undefined) {
        reject(new ChatdError(code, `Cannot reach host: ${because}`, { details: { errno } }));
      } else {
        channel.end(because);
        events.closed(because);
      }
    };
    const greet = (frame: RawFrame): void => {
      const message = parseHostMessage(frame.payload);
      if (message.t === 'refused') {
        const mismatch = message.code === 'version-mismatch';
        end(message.message, mismatch ? 'version-mismatch' : 'host-unreachable');
      } else if (message.t === 'welcome') {
        timer.cancel();
        channel = new HostChannel(socket, message);
        resolve(channel);
      }
    };
    socket.on('connect', () => {
      socket.setNoDelay(true);
      const fd = socketDescriptor(socket);
      // Whoever listens there is asked who it is before it is told anything.
      if (fd === undefined || readPeerCredentials(fd).uid !== uid) {
        end('another user listens there', 'refused');
        return;
      }
      const capabilities = [...CAPABILITIES];
      socket.write(
        encodeControl({ t: 'hello', min: PROTOCOL_MIN, max: PROTOCOL_MAX, role, capabilities }),
      );
    });
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const frame of decoder.push(chunk)) {
          if (over) return;
          if (channel === undefined) greet(frame);
          else channel.receive(frame, events);
        }
      } catch (error) {
        end(errorText(error), 'protocol-violation');
      }
    });
    socket.on('error', (error: NodeJS.ErrnoException) =>
      end(error.message, 'host-unreachable', error.code ?? ''),
    );
    socket.on('close', () => end('the connection ended'));
  });
}
