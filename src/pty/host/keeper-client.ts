// The host's side of the keeper pair: asks for spawns and signals, hears of exits and pings, and
// when the keeper dies starts another one and hands every terminal back to it.

import { spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { ChatdError, errorText, invariant } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import { closeFd } from '../../sys/fd.ts';
import { openSocketPair } from '../../sys/fd-passing.ts';
import {
  HOST_CONTROL_FD,
  HOST_MASTERS_FD,
  KEEPER_PROTOCOL,
  KeeperLink,
  type KeeperOptions,
  type KeptSession,
  parseToHost,
  SESSIONS_PER_MESSAGE,
  type SignalTarget,
  type SpawnRequest,
  type ToHost,
  type ToKeeper,
  type WaitStatus,
} from '../keeper-protocol.ts';

export type SessionFds = readonly [master: number, pipeRead: number, pipeWrite: number];

export interface KeptTerminal {
  readonly session: KeptSession;
  readonly fds: SessionFds;
}

export interface Spawned {
  readonly pid: number;
  readonly process: unknown;
  readonly fds: SessionFds;
}

/** The keeper could not start it: errno name. */
export class SpawnFailed extends Error {
  readonly errno: string;

  constructor(errno: string, message: string) {
    super(message);
    this.errno = errno;
  }
}

export interface KeeperEvents {
  /** Once, at the start: everything that runs. */
  inventory(terminals: readonly KeptTerminal[]): void;
  exited(sessionId: string, incarnation: string, status: WaitStatus): void;
  stopReading(): void;
  /** Sessions to hand to a new keeper, with descriptors of ours. */
  handBack(): readonly KeptTerminal[];
}

interface Pending {
  readonly resolve: (message: ToHost, takeFds: () => readonly number[]) => void;
  readonly reject: (error: Error) => void;
}

export interface KeeperClientOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly pid: number;
  readonly events: KeeperEvents;
  /** What a new keeper is started with. */
  readonly keeper: { readonly entry: string; readonly options: KeeperOptions };
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export class KeeperClient {
  readonly #options: KeeperClientOptions;
  readonly #pending = new Map<number, Pending>();
  readonly #inventory: KeptTerminal[] = [];
  readonly #backoff: Backoff;
  #link: KeeperLink | undefined;
  #mastersFd = HOST_MASTERS_FD;
  #nextId = 1;
  #closed = false;
  /** The keeper's process incarnation. */
  #process: unknown;

  constructor(options: KeeperClientOptions) {
    this.#options = options;
    this.#backoff = new Backoff({ initialMs: 100, maxMs: 10_000, factor: 2 }, options.random);
  }

  get process(): unknown {
    return this.#process;
  }

  /** Over the descriptors the keeper started us with. */
  connect(): void {
    const stream = new Socket({ fd: HOST_CONTROL_FD, readable: true, writable: true });
    this.#open(stream, HOST_MASTERS_FD);
    this.#send({ t: 'hello', version: KEEPER_PROTOCOL, pid: this.#options.pid });
  }

  ready(): void {
    this.#send({ t: 'ready' });
  }

  /** @throws {SpawnFailed} nothing was started. @throws {ChatdError} host-unreachable: not known */
  spawn(request: Omit<SpawnRequest, 't' | 'id'>): Promise<Spawned> {
    return new Promise((resolve, reject) => {
      const settle = (message: ToHost, takeFds: () => readonly number[]): void => {
        if (message.t === 'failed') {
          reject(new SpawnFailed(message.errno, message.message));
          return;
        }
        const [master, pipeRead, pipeWrite] = takeFds();
        invariant(message.t === 'spawned', 'a spawn is answered by spawned or failed');
        if (master === undefined || pipeRead === undefined || pipeWrite === undefined) {
          reject(new ChatdError('protocol-violation', 'Cannot take terminal: descriptors missing'));
          return;
        }
        const { pid, process } = message;
        resolve({ pid, process, fds: [master, pipeRead, pipeWrite] });
      };
      this.#ask((id) => ({ ...request, t: 'spawn', id }), { resolve: settle, reject });
    });
  }

  /** @throws {SpawnFailed} with the errno. @throws {ChatdError} host-unreachable */
  signal(sessionId: string, incarnation: string, signal: string, to: SignalTarget): Promise<void> {
    return this.#simple((id) => ({ t: 'signal', id, sessionId, incarnation, signal, to }));
  }

  /** Resolves when the new host's code has loaded and answered: we are about to be replaced. */
  reload(interpreter: string, entry: string): Promise<void> {
    return this.#simple((id) => ({ t: 'reload', id, interpreter, entry }));
  }

  forget(sessionId: string, incarnation: string): void {
    this.#send({ t: 'forget', sessionId, incarnation });
  }

  stoppedReading(): void {
    this.#closed = true;
    this.#send({ t: 'stopped-reading' });
  }

  shutdown(reason: string): void {
    this.#closed = true;
    this.#send({ t: 'shutdown', reason });
  }

  #simple(make: (id: number) => ToKeeper): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (message: ToHost): void => {
        if (message.t === 'failed') reject(new SpawnFailed(message.errno, message.message));
        else resolve();
      };
      this.#ask(make, { resolve: settle, reject });
    });
  }

  #ask(make: (id: number) => ToKeeper, pending: Pending): void {
    if (this.#link === undefined) {
      pending.reject(new ChatdError('host-unreachable', 'Cannot ask keeper: it is being replaced'));
      return;
    }
    const id = this.#nextId;
    this.#nextId += 1;
    this.#pending.set(id, pending);
    this.#send(make(id));
  }

  #send(message: ToKeeper, fds: readonly number[] = []): void {
    this.#link?.send(message, fds);
  }

  #open(stream: Socket, mastersFd: number): void {
    this.#mastersFd = mastersFd;
    const link: KeeperLink = new KeeperLink({
      stream,
      mastersFd,
      clock: this.#options.clock,
      onMessage: (payload) => this.#message(parseToHost(payload), link),
      onClose: (because) => this.#lost(because),
    });
    this.#link = link;
  }

  #message(message: ToHost, link: KeeperLink): void {
    const { events } = this.#options;
    switch (message.t) {
      case 'hello':
        this.#process = message.process;
        return;
      case 'inventory':
        this.#takeInventory(message, link);
        return;
      case 'ping':
        this.#send({ t: 'pong', seq: message.seq });
        return;
      case 'exited':
        events.exited(message.sessionId, message.incarnation, message.status);
        return;
      case 'stop-reading':
        events.stopReading();
        return;
      case 'adopted':
        this.#backoff.reset();
        this.#options.log.info('keeper.replaced');
        return;
      case 'spawned':
      case 'failed':
      case 'done': {
        const pending = this.#pending.get(message.id);
        this.#pending.delete(message.id);
        pending?.resolve(message, () => link.takeFds());
      }
    }
  }

  #takeInventory(message: Extract<ToHost, { t: 'inventory' }>, link: KeeperLink): void {
    const fds = message.sessions.length === 0 ? [] : link.takeFds();
    for (const [index, session] of message.sessions.entries()) {
      const [master, pipeRead, pipeWrite] = fds.slice(index * 3);
      invariant(
        master !== undefined && pipeRead !== undefined && pipeWrite !== undefined,
        'each session of an inventory has three descriptors',
      );
      this.#inventory.push({ session, fds: [master, pipeRead, pipeWrite] });
    }
    if (message.last) this.#options.events.inventory(this.#inventory);
  }

  // ── The keeper died ─────────────────────────────────────────────────────────────────────────

  #lost(because: string): void {
    closeFd(this.#mastersFd);
    this.#link = undefined;
    for (const pending of this.#pending.values()) {
      pending.reject(new ChatdError('host-unreachable', `Cannot ask keeper: ${because}`));
    }
    this.#pending.clear();
    if (this.#closed) return;
    this.#options.log.error('keeper.lost', { because });
    this.#startKeeper();
  }

  #startKeeper(): void {
    const { keeper, environment, clock, pid, log } = this.#options;
    const again = (because: string): void => {
      log.error('keeper.start-failed', { because });
      clock.timer(this.#backoff.nextMs(), () => {
        if (this.#link === undefined && !this.#closed) this.#startKeeper();
      });
    };
    let ours: number | undefined;
    try {
      const pair = openSocketPair();
      ours = pair[0];
      const options: KeeperOptions = { ...keeper.options, inheritHostPid: pid };
      const child = spawn(keeper.options.interpreter, [keeper.entry, JSON.stringify(options)], {
        cwd: '/',
        detached: true,
        env: { ...environment },
        stdio: ['ignore', 'ignore', 'ignore', 'pipe', pair[1]],
      });
      closeFd(pair[1]);
      child.unref();
      child.once('error', (error) => log.error('keeper.start-failed', { because: error.message }));
      const stream = child.stdio[HOST_CONTROL_FD];
      invariant(stream instanceof Socket, 'the control pipe of a child is a socket');
      this.#openRestarted(stream, ours, again);
      this.#handBack();
    } catch (error) {
      if (ours !== undefined && this.#link === undefined) closeFd(ours);
      again(errorText(error));
    }
  }

  /** As `#open`, but a keeper that ends before it adopted is tried again, ever more slowly. */
  #openRestarted(stream: Socket, mastersFd: number, again: (because: string) => void): void {
    this.#mastersFd = mastersFd;
    let adopted = false;
    const link: KeeperLink = new KeeperLink({
      stream,
      mastersFd,
      clock: this.#options.clock,
      onMessage: (payload) => {
        const message = parseToHost(payload);
        if (message.t === 'adopted') adopted = true;
        this.#message(message, link);
      },
      onClose: (because) => {
        if (adopted) {
          this.#lost(because);
          return;
        }
        closeFd(mastersFd);
        this.#link = undefined;
        again(because);
      },
    });
    this.#link = link;
  }

  #handBack(): void {
    const terminals = this.#options.events.handBack();
    this.#send({ t: 'hello', version: KEEPER_PROTOCOL, pid: this.#options.pid });
    for (let at = 0; at === 0 || at < terminals.length; at += SESSIONS_PER_MESSAGE) {
      const batch = terminals.slice(at, at + SESSIONS_PER_MESSAGE);
      const last = at + SESSIONS_PER_MESSAGE >= terminals.length;
      this.#send(
        { t: 'adopt', sessions: batch.map((item) => item.session), last },
        batch.flatMap((item) => item.fds),
      );
    }
  }
}
