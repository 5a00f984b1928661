// Which process a pid meant: the record of one process incarnation, and the tri-state answer to
// "is it still there?". Only `dead` ever permits a destructive act, so everything that cannot be
// told is `unknown`. Facts are injected: this file judges, process-observer.ts looks.

import * as z from 'zod/mini';

const id = z.string().check(z.minLength(1), z.maxLength(128));
const count = z.int().check(z.minimum(0));

/** Version 1. Written by the process itself, about itself. */
export const ProcessIncarnationSchema = z.object({
  v: z.literal(1),
  pid: z.int().check(z.minimum(1)),
  /** Start time in clock ticks since boot (10 ms): two incarnations of a pid can share one. */
  startTicks: count,
  bootId: id,
  pidNs: id,
  timeNs: id,
  /** Inode of its pidfd: unique for the boot, where the kernel has pidfs. */
  pidfsIno: z.optional(id),
  uid: count,
  hostId: id,
  nonce: id,
});

export type ProcessIncarnation = z.infer<typeof ProcessIncarnationSchema>;

export type Verdict = 'alive' | 'dead' | 'unknown';

export interface Judgement {
  readonly verdict: Verdict;
  /** For status and logs; never parsed. */
  readonly because: string;
}

/** Where the observer itself stands. */
export interface Standpoint {
  readonly hostId: string;
  readonly bootId: string;
  readonly pidNs: string;
  readonly timeNs: string;
}

/** A pin keeps one process nameable while it is looked at. */
export interface Pin {
  /** Undefined where inodes of pidfds say nothing or cannot be read. */
  inode(): string | undefined;
  /** Ended; a zombie has ended, a stopped process has not. @throws when it cannot be told */
  hasEnded(): boolean;
  close(): void;
}

export type PinAttempt =
  | { readonly kind: 'pinned'; readonly pin: Pin }
  /** The errno name of the attempt. */
  | { readonly kind: 'failed'; readonly code: string }
  /** This platform has no pins: facts alone must do, and states count. */
  | { readonly kind: 'unavailable'; readonly present: 'there' | 'ESRCH' | 'EPERM' };

export interface ObservedFacts {
  readonly startTicks: number;
  readonly state: string;
}

export interface ProcessObserver {
  /** @throws when it cannot be had: then nothing can be judged. */
  standpoint(): Standpoint;
  pin(pid: number): PinAttempt;
  /** Undefined when unreadable, for whatever reason. */
  facts(pid: number): ObservedFacts | undefined;
  /** The process that a thread id belongs to; undefined when unreadable. */
  threadGroup(pid: number): number | undefined;
}

const alive = (because: string): Judgement => ({ verdict: 'alive', because });
const dead = (because: string): Judgement => ({ verdict: 'dead', because });
const unknown = (because: string): Judgement => ({ verdict: 'unknown', because });

/** Whether the process that wrote `record` about itself still exists. Never throws. */
export function judgeIncarnation(record: ProcessIncarnation, observer: ProcessObserver): Judgement {
  const { judgement, pin } = judgeKeepingPin(record, observer);
  pin?.close();
  return judgement;
}

export interface JudgedPin {
  readonly judgement: Judgement;
  /** Only with `alive`, and only where the platform has pins. The caller closes it. */
  readonly pin: Pin | undefined;
}

/** As `judgeIncarnation`, handing out the pin so that a signal reaches the process judged. */
export function judgeKeepingPin(record: ProcessIncarnation, observer: ProcessObserver): JudgedPin {
  let standpoint: Standpoint;
  try {
    standpoint = observer.standpoint();
  } catch {
    return { judgement: unknown('cannot tell where we are ourselves'), pin: undefined };
  }
  const elsewhere = judgeStandpoint(record, standpoint);
  if (elsewhere !== undefined) return { judgement: elsewhere, pin: undefined };
  const attempt = observer.pin(record.pid);
  if (attempt.kind === 'failed') {
    return { judgement: judgeUnpinned(record, attempt.code, observer), pin: undefined };
  }
  const sameTime = standpoint.timeNs === record.timeNs;
  if (attempt.kind === 'unavailable') {
    const judgement = judgeByNumber(record, attempt.present, observer, sameTime);
    return { judgement, pin: undefined };
  }
  const judgement = judgePinned(record, attempt.pin, observer, sameTime);
  if (judgement.verdict === 'alive') return { judgement, pin: attempt.pin };
  attempt.pin.close();
  return { judgement, pin: undefined };
}

function judgeStandpoint(record: ProcessIncarnation, here: Standpoint): Judgement | undefined {
  if (record.hostId !== here.hostId) return unknown('another machine');
  if (record.bootId !== here.bootId) return dead('another boot of this machine');
  if (record.pidNs !== here.pidNs) return unknown('another pid namespace');
  return undefined;
}

function judgeUnpinned(
  record: ProcessIncarnation,
  code: string,
  observer: ProcessObserver,
): Judgement {
  if (code === 'ESRCH') return dead('no process has this pid');
  // ENOENT (Linux 6.x) or EINVAL (before): the number is a thread's now, or the call is refused.
  if (code === 'ENOENT' || code === 'EINVAL') {
    const group = observer.threadGroup(record.pid);
    if (group !== undefined && group !== record.pid) return dead('the pid is a thread id now');
  }
  return unknown(`cannot pin the process: ${code}`);
}

/** The pin was opened first; what is read now is checked against it by asking it last. */
function judgePinned(
  record: ProcessIncarnation,
  pin: Pin,
  observer: ProcessObserver,
  sameTime: boolean,
): Judgement {
  try {
    const facts = observer.facts(record.pid);
    const inode = pin.inode();
    if (pin.hasEnded()) return dead('it has ended');
    if (record.pidfsIno !== undefined && inode !== undefined && inode !== record.pidfsIno) {
      return dead('the pid was given to another process');
    }
    if (!sameTime) return unknown('another time namespace');
    if (facts === undefined) return unknown('its start time cannot be read');
    if (facts.startTicks !== record.startTicks) return dead('the pid was given to another process');
    if (record.pidfsIno !== undefined && inode === undefined) {
      return unknown('its pidfd inode cannot be read');
    }
    return alive('same pid, start time and boot');
  } catch {
    return unknown('cannot ask about the process');
  }
}

/** Without pins (macOS): the start time has microseconds there, and a zombie shows by its state. */
function judgeByNumber(
  record: ProcessIncarnation,
  present: 'there' | 'ESRCH' | 'EPERM',
  observer: ProcessObserver,
  sameTime: boolean,
): Judgement {
  if (present === 'ESRCH') return dead('no process has this pid');
  const facts = observer.facts(record.pid);
  if (facts === undefined || !sameTime) return unknown('its start time cannot be compared');
  if (facts.startTicks !== record.startTicks) return dead('the pid was given to another process');
  if (facts.state === 'Z' || facts.state === 'X') return dead('it has ended');
  return alive('same pid and start time');
}

/** Whether two records name the same process incarnation. */
export function sameIncarnation(left: ProcessIncarnation, right: ProcessIncarnation): boolean {
  return (
    left.pid === right.pid &&
    left.startTicks === right.startTicks &&
    left.bootId === right.bootId &&
    left.pidNs === right.pidNs &&
    left.hostId === right.hostId &&
    left.nonce === right.nonce
  );
}
