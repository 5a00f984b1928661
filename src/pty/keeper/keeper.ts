// The keeper: parent of every shell and of the host. Puts inventory, supervisor and socket together.
// Reads no master, parses no output, and outlives whatever its host says or does.

import type { Clock } from '../../base/clock.ts';
import { errnoCode, errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import {
  FDS_PER_SESSION,
  type KeeperAnswer,
  type KeeperOptions,
  type KeeperRequest,
  SESSIONS_PER_MESSAGE,
  type ToKeeper,
} from '../keeper-protocol.ts';
import {
  checkHostEntry,
  inheritHost,
  type LinkedHost,
  sendBatches,
  startHost,
} from './host-process.ts';
import { type HostProcess, HostSupervisor } from './host-supervisor.ts';
import { Inventory } from './inventory.ts';

export interface KeeperPorts {
  readonly options: KeeperOptions;
  readonly clock: Clock;
  readonly log: Log;
  readonly pid: number;
  readonly uid: number;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Our own process incarnation, as records carry it. */
  readonly process: unknown;
  describe(pid: number): unknown;
  /** False when the record certainly names no living process. */
  mayLive(process: unknown): boolean;
  /** Nothing is left to keep. */
  finished(): void;
}

export class Keeper {
  readonly #ports: KeeperPorts;
  readonly #inventory: Inventory;
  readonly #supervisor: HostSupervisor;

  constructor(ports: KeeperPorts) {
    this.#ports = ports;
    const { options, clock, log } = ports;
    this.#inventory = new Inventory({
      describe: ports.describe,
      openFiles: options.openFiles,
      onExit: (session, status) => {
        const { sessionId, incarnation } = session;
        log.info('session.exited', { sessionId, kind: status.kind });
        this.#supervisor.tellHost({ t: 'exited', sessionId, incarnation, status });
      },
    });
    this.#supervisor = new HostSupervisor(
      {
        clock,
        log,
        start: (entry, events) =>
          startHost(entry, options.hostOptions, ports.environment, clock, {
            ...events,
            message: (message) => this.#guard(() => events.message(message)),
          }),
        checkEntry: (entry) => checkHostEntry(entry, ports.uid),
        sendInventory: (host) => this.#sendInventory(host),
        handle: (host, message) => this.#handle(host as LinkedHost, message),
        sessions: () => this.#inventory.size,
        finished: ports.finished,
      },
      { interpreter: options.interpreter, entry: options.hostEntry },
    );
  }

  /** Takes the host that started us, its predecessor having died. */
  inherit(hostPid: number): void {
    this.#supervisor.inherit((events) => inheritHost(hostPid, this.#ports.clock, events));
  }

  answer(request: KeeperRequest, reply: (answer: KeeperAnswer) => void): void {
    if (request.t === 'status') {
      reply({ t: 'status', pid: this.#ports.pid, ...this.#supervisor.status() });
    } else {
      this.#supervisor.requestStart(reply);
    }
  }

  /** On SIGCHLD, and once a second in case one was missed. */
  reap(): void {
    this.#inventory.reapAll();
  }

  /** Once a second. */
  tick(): void {
    this.reap();
    this.#supervisor.tick();
  }

  get sessions(): number {
    return this.#inventory.size;
  }

  /** Whatever a host sends ends at most that message. */
  #guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#ports.log.error('host.message-failed', { error: errorText(error) });
    }
  }

  #sendInventory(host: HostProcess): void {
    const { pid, process } = this.#ports;
    host.send({ t: 'hello', version: 1, pid, process });
    sendBatches(this.#inventory.list(), SESSIONS_PER_MESSAGE, (batch, last) => {
      host.send(
        { t: 'inventory', sessions: batch.map((item) => item.session), last },
        batch.flatMap((item) => item.fds),
      );
    });
  }

  #handle(host: LinkedHost, message: ToKeeper): void {
    switch (message.t) {
      case 'spawn':
        this.#spawn(host, message);
        return;
      case 'signal':
        this.#signal(host, message);
        return;
      case 'forget':
        this.#inventory.forget(message.sessionId, message.incarnation);
        return;
      case 'adopt':
        this.#adopt(host, message);
        return;
      default:
        this.#ports.log.warn('host.sent-unexpected', { kind: message.t });
    }
  }

  #spawn(host: LinkedHost, request: Extract<ToKeeper, { t: 'spawn' }>): void {
    const outcome = this.#inventory.spawn(request);
    if (outcome.kind === 'failed') {
      const { errno, message } = outcome;
      host.send({ t: 'failed', id: request.id, errno, message });
      return;
    }
    const { pid, process } = outcome.session;
    this.#ports.log.info('session.started', { sessionId: request.sessionId, pid });
    host.send({ t: 'spawned', id: request.id, pid, process }, outcome.fds);
    // A program that ended at once: its SIGCHLD may have come before it was in the inventory.
    this.reap();
  }

  #signal(host: LinkedHost, request: Extract<ToKeeper, { t: 'signal' }>): void {
    const { id, sessionId, incarnation, signal, to } = request;
    try {
      this.#inventory.signal(sessionId, incarnation, signal as NodeJS.Signals, to);
      host.send({ t: 'done', id });
    } catch (error) {
      const errno = errnoCode(error) ?? 'EIO';
      host.send({ t: 'failed', id, errno, message: errorText(error) });
    }
  }

  #adopt(host: LinkedHost, message: Extract<ToKeeper, { t: 'adopt' }>): void {
    const fds = message.sessions.length === 0 ? [] : host.takeFds();
    for (const [index, session] of message.sessions.entries()) {
      const [master, pipeRead, pipeWrite] = fds.slice(index * FDS_PER_SESSION);
      if (master === undefined || pipeRead === undefined || pipeWrite === undefined) continue;
      const alive = this.#ports.mayLive(session.process);
      this.#inventory.adopt(session, [master, pipeRead, pipeWrite], alive);
    }
    if (!message.last) return;
    const { pid, process } = this.#ports;
    host.send({ t: 'hello', version: 1, pid, process });
    host.send({ t: 'adopted' });
  }
}
