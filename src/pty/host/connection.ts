// One client's connection: hello first, then requests, answered in any order. A frame that is not
// understood ends the connection with a reason, and nothing else.

import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../base/clock.ts';
import { ChatdError, errorCode, errorText } from '../../base/errors.ts';
import { FrameDecoder, type RawFrame } from '../../base/frame-codec.ts';
import type { Log } from '../../base/log.ts';
import {
  CAPABILITIES,
  type ClientMessage,
  encodeControl,
  FRAME_BYTES_MAX,
  FRAME_CONTROL,
  HELLO_BYTES_MAX,
  HELLO_DEADLINE_MS,
  type Hello,
  type HostMessage,
  PROTOCOL_MAX,
  PROTOCOL_MIN,
  parseClientMessage,
  type Request,
} from '../protocol.ts';
import type { BytesAttachment, LinesAttachment, Outlet } from './attachments.ts';

/** What a client that does not read may make us hold. */
const UNSENT_BYTES_MAX = 16 * 1024 * 1024;
/** Requests under way on one connection; more wait unread in the socket. */
const REQUESTS_MAX = 1_024;

export interface ConnectionPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly instance: string;
  readonly pid: number;
  readonly version: string;
  request(connection: Connection, request: Request): Promise<unknown>;
  closed(connection: Connection): void;
}

export type Attachment = LinesAttachment | BytesAttachment;

export class Connection implements Outlet {
  readonly attachments = new Map<number, Attachment>();
  readonly #socket: Socket;
  readonly #ports: ConnectionPorts;
  readonly #decoder = new FrameDecoder(HELLO_BYTES_MAX);
  #greeted = false;
  #closed = false;
  #underWay = 0;
  readonly #deadline: Timer;

  constructor(socket: Socket, ports: ConnectionPorts) {
    this.#socket = socket;
    this.#ports = ports;
    socket.setNoDelay(true);
    this.#deadline = ports.clock.timer(HELLO_DEADLINE_MS, () =>
      this.refuse('deadline-exceeded', 'no hello in time'),
    );
    // A probe connects and leaves; its reset is no event.
    socket.on('error', () => this.close());
    socket.on('close', () => this.close());
    socket.on('data', (chunk: Buffer) => this.#data(chunk));
  }

  get closed(): boolean {
    return this.#closed;
  }

  get greeted(): boolean {
    return this.#greeted;
  }

  send(frame: Buffer): void {
    if (this.#closed) return;
    this.#socket.write(frame);
    if (this.#socket.writableLength > UNSENT_BYTES_MAX) {
      this.#ports.log.warn('client.dropped', { because: 'too slow' });
      this.close();
    }
  }

  event(message: HostMessage): void {
    this.send(encodeControl(message));
  }

  /** Says why and closes. */
  refuse(code: string, message: string, older?: 'client' | 'host'): void {
    if (this.#closed) return;
    const refused = { t: 'refused', code, message } as const;
    this.#socket.end(encodeControl(older === undefined ? refused : { ...refused, older }));
    this.#end();
    // A peer that does not read its refusal is not waited for.
    const timer = this.#ports.clock.timer(1_000, () => this.#socket.destroy());
    timer.unref();
  }

  close(): void {
    this.#socket.destroy();
    this.#end();
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#deadline.cancel();
    this.#ports.closed(this);
  }

  #data(chunk: Buffer): void {
    if (this.#closed) return;
    try {
      for (const frame of this.#decoder.push(chunk)) {
        if (!this.closed) this.#frame(frame);
      }
    } catch (error) {
      this.#violated(error);
    }
  }

  #violated(error: unknown): void {
    this.#ports.log.warn('client.violated-protocol', { because: errorText(error) });
    this.refuse(errorCode(error) ?? 'protocol-violation', errorText(error));
  }

  #frame(frame: RawFrame): void {
    if (frame.type !== FRAME_CONTROL) {
      throw new ChatdError('protocol-violation', `Cannot read frame: unknown type ${frame.type}`);
    }
    const message = parseClientMessage(frame.payload);
    if (!this.#greeted) {
      this.#greet(message);
      return;
    }
    switch (message.t) {
      case 'hello':
        throw new ChatdError('protocol-violation', 'Cannot read message: hello came twice');
      case 'ack':
        this.attachments.get(message.handle)?.ack(message.offset);
        return;
      case 'req':
        this.#request(message);
    }
  }

  #greet(message: ClientMessage): void {
    if (message.t !== 'hello') {
      throw new ChatdError('protocol-violation', 'Cannot read message: hello must come first');
    }
    this.#deadline.cancel();
    if (!this.#agree(message)) return;
    this.#greeted = true;
    this.#decoder.widen(FRAME_BYTES_MAX);
    const { instance, pid, version } = this.#ports;
    this.event({
      t: 'welcome',
      version: PROTOCOL_MAX,
      instance,
      pid,
      capabilities: CAPABILITIES,
      chatdVersion: version,
    });
  }

  /** A mismatch says which side is older, and never stops anyone. */
  #agree(hello: Hello): boolean {
    if (hello.max >= PROTOCOL_MIN && hello.min <= PROTOCOL_MAX) return true;
    const older = hello.max < PROTOCOL_MIN ? 'client' : 'host';
    const range = `${PROTOCOL_MIN}..${PROTOCOL_MAX} here, ${hello.min}..${hello.max} there`;
    this.refuse('version-mismatch', `protocol versions ${range}: upgrade the ${older}`, older);
    return false;
  }

  #request(request: Request): void {
    const { instance } = this.#ports;
    this.#underWay += 1;
    if (this.#underWay >= REQUESTS_MAX) this.#socket.pause();
    const done = (message: HostMessage): void => {
      this.#underWay -= 1;
      if (this.#underWay < REQUESTS_MAX) this.#socket.resume();
      this.event(message);
    };
    this.#ports.request(this, request).then(
      (result) => done({ t: 'ok', id: request.id, instance, result }),
      (error: unknown) => {
        const code = errorCode(error);
        if (code === undefined) {
          this.#ports.log.error('request.failed', { op: request.op, error });
        }
        done({
          t: 'failed',
          id: request.id,
          instance,
          code: code ?? 'host-unreachable',
          message: errorText(error),
        });
      },
    );
  }
}
