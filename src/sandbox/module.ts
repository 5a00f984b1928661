// What a platform's half of the sandbox is to the server, and what the server gives it. The server
// knows no platform; the halves (slack/, discord/) know each other only through nothing at all.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Random } from '../base/random.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { Faults } from './faults.ts';
import type { SandboxPlatform } from './platform.ts';
import type { RequestLog } from './requests.ts';
import type { SandboxClock } from './sandbox-clock.ts';
import type { Violations } from './violations.ts';

/** What both halves share. */
export interface SandboxCore {
  readonly clock: SandboxClock;
  readonly random: Random;
  readonly faults: Faults;
  readonly requests: RequestLog;
  readonly violations: Violations;
  readonly changes: ChangeFeed;
  /** `http://127.0.0.1:PORT`, known once the server listens: ask when answering, not when built. */
  baseUrl(): string;
}

/** One control call: takes the parsed JSON body, returns what is sent back as `result`. */
export type ControlHandler = (body: unknown) => Promise<unknown>;

export interface SandboxModule {
  readonly platform: SandboxPlatform;
  /** Answers the request and says true, or leaves it untouched and says false. */
  http(request: IncomingMessage, response: ServerResponse, url: URL): Promise<boolean>;
  /** Takes over the socket and says true, or leaves it untouched and says false. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, url: URL): boolean;
  /** By full name (`slack/type`): POST /control/slack/type. */
  readonly control: Readonly<Record<string, ControlHandler>>;
  /** The workspace as the page and tests read it. */
  state(): unknown;
  close(): Promise<void>;
}

/** A control call that cannot be done: answered as 400 with this message. */
export class ControlError extends Error {}
