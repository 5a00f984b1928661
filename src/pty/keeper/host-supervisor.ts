// One host at a time: starts it, gives it the inventory when its predecessor certainly reads no
// more, pings it, replaces it when it died or is wedged, swaps it on request and rolls back.
// Decides; processes, links and time are handed in.

import type { Clock, Timer } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { KeeperAnswer, KeeperStatus, ToHost, ToKeeper } from '../keeper-protocol.ts';
import { RestartBudget } from './restart-budget.ts';

/** What a host is started from. */
export interface HostEntry {
  readonly interpreter: string;
  readonly entry: string;
}

/** A host process, however it came to be ours. */
export interface HostProcess {
  readonly pid: number;
  send(message: ToHost, fds?: readonly number[]): void;
  /** SIGKILL to exactly this process. */
  kill(): void;
  /** The last lines it wrote to stderr. */
  stderrTail(): string;
  /** Lets go of the link after its end. */
  dispose(): void;
}

export interface HostEvents {
  message(message: ToKeeper): void;
  /** The link broke or spoke nonsense; the process may still run. */
  linkLost(because: string): void;
  /** The process is reaped, or its pidfd says it ended. */
  exited(code: number | undefined): void;
}

export interface SupervisorPorts {
  readonly clock: Clock;
  readonly log: Log;
  /** @throws when the process cannot be started */
  start(entry: HostEntry, events: HostEvents): HostProcess;
  /** @throws {ChatdError} when the file is not to be trusted */
  checkEntry(entry: HostEntry): void;
  /** Sends the whole inventory, in batches, the last one marked. */
  sendInventory(to: HostProcess): void;
  /** Anything but lifecycle. */
  handle(from: HostProcess, message: ToKeeper): void;
  sessions(): number;
  /** No host is wanted and no session is left. */
  finished(): void;
}

/** DETAILS.md: wedged after 30 s of time in which the keeper itself was scheduled. */
const PING_MS = 1_000;
const SILENT_MS = 11_000;
const WEDGED_MS = 30_000;
/** Inventory adopted and accepting (DETAILS.md), three times over for a busy machine. */
const READY_MS = 30_000;
/** What a host may take to stop reading and leave when it is being replaced. */
const LEAVE_MS = 10_000;
/** Exit code of a host that found another one in its place. */
const EXIT_OCCUPIED = 20;

type Phase = 'waiting-for-hello' | 'waiting-for-ready' | 'serving' | 'leaving';

interface Current {
  readonly process: HostProcess;
  readonly entry: HostEntry;
  phase: Phase;
  deadline: Timer | undefined;
  silentMs: number;
  lastTickMs: number;
  pingSeq: number;
}

interface Swap {
  readonly process: HostProcess;
  readonly entry: HostEntry;
  readonly requestId: number;
  deadline: Timer | undefined;
}

type Waiter = (answer: KeeperAnswer) => void;

export class HostSupervisor {
  readonly #ports: SupervisorPorts;
  readonly #budget = new RestartBudget();
  #entry: HostEntry;
  /** The entry that last became ready: what a failed swap goes back to. */
  #provenEntry: HostEntry | undefined;
  #current: Current | undefined;
  #swap: Swap | undefined;
  #waiters: Waiter[] = [];
  #restart: Timer | undefined;
  #reason: string | undefined;
  #ending = false;

  constructor(ports: SupervisorPorts, entry: HostEntry) {
    this.#ports = ports;
    this.#entry = entry;
  }

  /** A person or client wants a host: tried at once, whatever the budget says. */
  requestStart(waiter: Waiter): void {
    if (this.#current?.phase === 'serving') {
      waiter({ t: 'started', hostPid: this.#current.process.pid });
      return;
    }
    this.#waiters.push(waiter);
    this.#ending = false;
    if (this.#current === undefined) this.#startNow();
  }

  /** A host that outlived another keeper: it goes on, and is watched like one of ours. */
  inherit(start: (events: HostEvents) => HostProcess): void {
    const entry = this.#entry;
    const process = start(this.#eventsOf(() => process));
    this.#current = this.#track(process, entry, 'serving');
    this.#provenEntry = entry;
  }

  /** To whoever serves now; sessions' exits reach a later host with the inventory. */
  tellHost(message: ToHost): void {
    const phase = this.#current?.phase;
    if (phase === 'serving' || phase === 'waiting-for-ready') this.#current?.process.send(message);
  }

  status(): Omit<KeeperStatus, 't' | 'pid'> {
    const current = this.#current;
    return {
      host: this.#hostState(),
      ...(current === undefined ? {} : { hostPid: current.process.pid }),
      ...(this.#reason === undefined ? {} : { reason: this.#reason }),
      sessions: this.#ports.sessions(),
      hostStarts: this.#budget.total,
      silentMs: Math.round(current?.silentMs ?? 0),
    };
  }

  /** Once a second: pings, and counts silence only while we ourselves are scheduled. */
  tick(): void {
    const current = this.#current;
    if (current === undefined || current.phase !== 'serving') return;
    const nowMs = this.#ports.clock.monotonicMs();
    // A keeper that slept for a minute has not watched for a minute.
    const watchedMs = Math.min(nowMs - current.lastTickMs, 2 * PING_MS);
    current.lastTickMs = nowMs;
    if (current.pingSeq > 0) current.silentMs += watchedMs;
    current.pingSeq += 1;
    current.process.send({ t: 'ping', seq: current.pingSeq });
    if (current.silentMs >= WEDGED_MS) {
      this.#ports.log.error('host.wedged', { pid: current.process.pid });
      this.#reason = 'the host did not answer for 30 s and was replaced';
      current.process.kill();
      current.silentMs = 0;
    }
  }

  static readonly tickMs = PING_MS;

  #hostState(): KeeperStatus['host'] {
    const current = this.#current;
    if (current === undefined) return this.#restart === undefined ? 'none' : 'waiting';
    if (current.phase !== 'serving') return 'starting';
    return current.silentMs >= SILENT_MS ? 'not-answering' : 'running';
  }

  #startNow(): void {
    this.#restart?.cancel();
    this.#restart = undefined;
    const { clock, log } = this.#ports;
    this.#budget.recordStart(clock.monotonicMs());
    const entry = this.#entry;
    try {
      const process: HostProcess = this.#ports.start(
        entry,
        this.#eventsOf(() => process),
      );
      this.#current = this.#track(process, entry, 'waiting-for-hello');
      log.info('host.started', { pid: process.pid });
    } catch (error) {
      this.#failed(errorText(error), undefined);
    }
  }

  #track(process: HostProcess, entry: HostEntry, phase: Phase): Current {
    const current: Current = {
      process,
      entry,
      phase,
      deadline: undefined,
      silentMs: 0,
      lastTickMs: this.#ports.clock.monotonicMs(),
      pingSeq: 0,
    };
    if (phase !== 'serving') this.#setDeadline(current, READY_MS);
    return current;
  }

  #setDeadline(current: Current, afterMs: number): void {
    current.deadline?.cancel();
    current.deadline = this.#ports.clock.timer(afterMs, () => {
      this.#reason = `the host did not get past ${current.phase} in time`;
      this.#ports.log.error('host.late', { pid: current.process.pid, phase: current.phase });
      current.process.kill();
    });
  }

  #eventsOf(process: () => HostProcess): HostEvents {
    return {
      message: (message) => this.#message(process(), message),
      linkLost: (because) => this.#linkLost(process(), because),
      exited: (code) => this.#exited(process(), code),
    };
  }

  #message(from: HostProcess, message: ToKeeper): void {
    if (from === this.#swap?.process) {
      if (message.t === 'hello') this.#preflightPassed(this.#swap);
      return;
    }
    const current = this.#current;
    if (current === undefined || from !== current.process) return;
    switch (message.t) {
      case 'hello':
        if (current.phase === 'waiting-for-hello') this.#give(current);
        return;
      case 'ready':
        this.#ready(current);
        return;
      case 'pong':
        current.silentMs = 0;
        current.pingSeq = 0;
        return;
      case 'reload':
        this.#reload(current, message);
        return;
      case 'stopped-reading':
        this.#letGo(current);
        return;
      case 'shutdown':
        this.#ending = true;
        this.#reason = message.reason;
        current.phase = 'leaving';
        this.#setDeadline(current, LEAVE_MS);
        return;
      default:
        this.#ports.handle(from, message);
    }
  }

  #give(current: Current): void {
    current.phase = 'waiting-for-ready';
    this.#ports.sendInventory(current.process);
  }

  #ready(current: Current): void {
    current.deadline?.cancel();
    current.phase = 'serving';
    current.lastTickMs = this.#ports.clock.monotonicMs();
    this.#provenEntry = current.entry;
    this.#reason = undefined;
    this.#ports.log.info('host.became-ready', { pid: current.process.pid });
    this.#answer({ t: 'started', hostPid: current.process.pid });
  }

  #linkLost(process: HostProcess, because: string): void {
    // A host we cannot talk to cannot be told to stop reading: only its end is proof.
    this.#ports.log.warn('host.link-lost', { pid: process.pid, because });
    process.kill();
  }

  #exited(process: HostProcess, code: number | undefined): void {
    process.dispose();
    if (process === this.#swap?.process) {
      this.#swapFailed(this.#swap, `it ended in preflight: ${process.stderrTail()}`);
      return;
    }
    const current = this.#current;
    if (current === undefined || process !== current.process) return;
    current.deadline?.cancel();
    this.#current = undefined;
    this.#ports.log.info('host.exited', { pid: process.pid, code: code ?? -1 });
    const swap = this.#swap;
    if (swap !== undefined && current.phase === 'leaving') {
      this.#promote(swap);
      return;
    }
    this.#abandonSwap();
    if (this.#ending) {
      this.#answer({ t: 'failed', message: this.#reason ?? 'the host was stopped' });
      if (this.#ports.sessions() === 0) {
        this.#ports.finished();
        return;
      }
      this.#ending = false;
    }
    const wasReady = current.phase === 'serving';
    if (!wasReady && this.#provenEntry !== undefined) this.#entry = this.#provenEntry;
    this.#failed(this.#exitReason(process, code), code);
  }

  #exitReason(process: HostProcess, code: number | undefined): string {
    if (code === EXIT_OCCUPIED) return 'another host serves this directory';
    const tail = process.stderrTail();
    return `the host ended with ${code ?? 'a signal'}${tail === '' ? '' : `: ${tail}`}`;
  }

  #failed(message: string, exitCode: number | undefined): void {
    this.#reason ??= message;
    this.#answer({ t: 'failed', message, ...(exitCode === undefined ? {} : { exitCode }) });
    const delayMs = this.#budget.delayMs(this.#ports.clock.monotonicMs());
    if (delayMs > 0) this.#ports.log.error('host.keeps-dying', { message });
    this.#restart = this.#ports.clock.timer(delayMs, () => this.#startNow());
  }

  #answer(answer: KeeperAnswer): void {
    for (const waiter of this.#waiters.splice(0)) waiter(answer);
  }

  // ── Replacing a healthy host ────────────────────────────────────────────────────────────────

  #reload(current: Current, request: Extract<ToKeeper, { t: 'reload' }>): void {
    const entry = { interpreter: request.interpreter, entry: request.entry };
    const refuse = (message: string): void =>
      current.process.send({ t: 'failed', id: request.id, errno: 'EINVAL', message });
    if (this.#swap !== undefined) {
      refuse('another reload is under way');
      return;
    }
    try {
      this.#ports.checkEntry(entry);
      const process: HostProcess = this.#ports.start(
        entry,
        this.#eventsOf(() => process),
      );
      const swap: Swap = { process, entry, requestId: request.id, deadline: undefined };
      swap.deadline = this.#ports.clock.timer(READY_MS, () => {
        process.kill();
        this.#swapFailed(swap, 'it did not answer in preflight');
      });
      this.#swap = swap;
    } catch (error) {
      refuse(errorText(error));
    }
  }

  /** The new code loads and answers: only now is the old host asked to let go. */
  #preflightPassed(swap: Swap): void {
    const current = this.#current;
    swap.deadline?.cancel();
    if (current === undefined) return;
    current.process.send({ t: 'done', id: swap.requestId });
    current.phase = 'leaving';
    this.#setDeadline(current, LEAVE_MS);
    current.process.send({ t: 'stop-reading' });
  }

  #swapFailed(swap: Swap, message: string): void {
    if (this.#swap !== swap) return;
    swap.deadline?.cancel();
    this.#swap = undefined;
    this.#ports.log.warn('host.reload-failed', { message });
    this.#current?.process.send({ t: 'failed', id: swap.requestId, errno: 'ENOEXEC', message });
  }

  /** The host that asked for it is gone: whatever starts next starts from proven code. */
  #abandonSwap(): void {
    this.#swap?.deadline?.cancel();
    this.#swap?.process.kill();
    this.#swap = undefined;
  }

  /** It reads no more and owns nothing: its successor need not wait for its end. */
  #letGo(current: Current): void {
    if (this.#swap === undefined || current.phase !== 'leaving') return;
    current.deadline?.cancel();
    this.#ports.clock.timer(LEAVE_MS, () => current.process.kill());
    this.#promote(this.#swap);
  }

  #promote(swap: Swap): void {
    this.#swap = undefined;
    this.#entry = swap.entry;
    this.#budget.recordStart(this.#ports.clock.monotonicMs());
    this.#current = this.#track(swap.process, swap.entry, 'waiting-for-hello');
    this.#give(this.#current);
  }
}
