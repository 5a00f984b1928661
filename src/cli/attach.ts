// chatd attach <session>: this terminal as a client of a session. Raw mode, the size lease, a detach
// key; re-attached by itself after a host is replaced.

import { ChatdError } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import { systemClock } from '../base/system-clock.ts';
import { systemRandom } from '../base/system-random.ts';
import type {
  ByteFeedListener,
  FeedStatus,
  HostControl,
  SessionInfo,
  SessionState,
  Snapshot,
} from '../pty/client.ts';
import type { CliContext } from './context.ts';
import { stateText } from './host.ts';
import { openHost } from './host-access.ts';
import { ReplyFilter } from './reply-filter.ts';

/** Ctrl-]: no program of note uses it, and every keyboard has it. */
const DETACH = 0x1d;
/** A lone Escape is sent on when nothing followed it for this long. */
const ESCAPE_MS = 30;
const LOST = 23;

/** Leaves whatever a program may have switched on: screen, mouse, paste, keys, colours, cursor. */
const RESTORE =
  '\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?1l\x1b>\x1b[r\x1b[0m\x1b[?25h\x1b[?7h';

/** The end of an attachment, as an exit code and a line to print. */
interface Ending {
  readonly code: number;
  readonly line: string;
}

export async function runAttach(context: CliContext, session: string): Promise<number> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw new ChatdError('config-invalid', 'Cannot attach: this is not a terminal');
  }
  const { client, reconnectMs } = await openHost(context, 'attach', false);
  try {
    const info = (await client.list()).find((item) => item.sessionId === session);
    if (info === undefined) {
      throw new ChatdError('session-not-found', `Cannot attach to ${session}: not known here`);
    }
    const ending = await new LocalTerminal(client, info, reconnectMs).run();
    context.out(ending.line);
    return ending.code;
  } finally {
    client.close();
  }
}

/** chatd run [-- command]: start a session here and attach to it. */
export async function runRun(context: CliContext, command: readonly string[]): Promise<number> {
  const { client } = await openHost(context, 'cli', true);
  let info: SessionInfo;
  try {
    info = await client.create({
      token: mintId(systemRandom, 20),
      command,
      cwd: process.cwd(),
      env: {},
      cols: process.stdout.columns || 80,
      rows: process.stdout.rows || 24,
      actor: 'operator',
    });
  } catch (error) {
    const off = error instanceof ChatdError && error.details['autostart'] === false;
    if (!off) throw error;
    throw new ChatdError('refused', error.message, { cause: error });
  } finally {
    client.close();
  }
  if (process.stdin.isTTY && process.stdout.isTTY) return await runAttach(context, info.sessionId);
  context.out(info.sessionId);
  return 0;
}

class LocalTerminal implements ByteFeedListener {
  readonly #client: HostControl;
  readonly #info: SessionInfo;
  readonly #reconnectMs: number;
  readonly #filter = new ReplyFilter();
  readonly #ended: Promise<Ending>;
  #end: (ending: Ending) => void = () => undefined;
  #pending: Buffer[] = [];
  #sending = false;
  #reachable = true;
  #escape: NodeJS.Timeout | undefined;
  #giveUp: NodeJS.Timeout | undefined;

  constructor(client: HostControl, info: SessionInfo, reconnectMs: number) {
    this.#client = client;
    this.#info = info;
    this.#reconnectMs = reconnectMs;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  async run(): Promise<Ending> {
    const { stdin, stdout } = process;
    const { sessionId, incarnation } = this.#info;
    const onData = (bytes: Buffer): void => this.#typed(bytes);
    const onResize = (): void => this.#resize();
    const onHangUp = (): void => this.#end({ code: 0, line: 'detached' });
    stdin.setRawMode(true);
    try {
      const feed = await this.#client.followBytes({ sessionId, incarnation }, this);
      stdin.on('data', onData);
      stdout.on('resize', onResize);
      process.on('SIGHUP', onHangUp);
      process.on('SIGTERM', onHangUp);
      await this.#takeSize();
      const ending = await this.#ended;
      feed.close();
      return ending;
    } finally {
      clearTimeout(this.#giveUp);
      clearTimeout(this.#escape);
      stdin.off('data', onData);
      stdout.off('resize', onResize);
      stdin.setRawMode(false);
      stdin.pause();
      stdout.write(`${RESTORE}\r\n`);
    }
  }

  // ── From the session ────────────────────────────────────────────────────────────────────────

  /** Consumed when the terminal has taken it: that is what credit follows. */
  bytes(_offset: number, bytes: Uint8Array): Promise<void> | void {
    this.#filter.sawOutput(bytes);
    if (process.stdout.write(bytes)) return;
    return new Promise((resolve) => {
      process.stdout.once('drain', resolve);
    });
  }

  snapshot(
    _to: number,
    snapshot: Snapshot,
    gap: { readonly from: number; readonly to: number } | undefined,
  ): void {
    process.stdout.write(`${RESTORE}\x1b[2J\x1b[H${snapshot.ansi}`);
    if (gap !== undefined) {
      process.stdout.write(`\x1b]2;${gap.to - gap.from} bytes skipped\x07`);
    }
  }

  exited(state: SessionState): void {
    this.#end({ code: 0, line: `${this.#info.sessionId} ${stateText(state)}` });
  }

  status(status: FeedStatus): void {
    clearTimeout(this.#giveUp);
    this.#giveUp = undefined;
    this.#reachable = status.kind === 'attached';
    if (status.kind === 'attached') {
      this.#resize();
      return;
    }
    if (status.kind !== 'unreachable') {
      this.#end({ code: 1, line: `${this.#info.sessionId}: ${status.kind}` });
      return;
    }
    process.stdout.write('\x1b]2;chatd: host not reachable, waiting\x07');
    this.#giveUp = setTimeout(() => {
      const line = `${this.#info.sessionId}: host not back in time; the session may still run`;
      this.#end({ code: LOST, line });
    }, this.#reconnectMs);
  }

  // ── From the person ─────────────────────────────────────────────────────────────────────────

  #typed(bytes: Buffer): void {
    clearTimeout(this.#escape);
    if (bytes.includes(DETACH)) {
      this.#end({
        code: 0,
        line: `detached; attach again with: chatd attach ${this.#info.sessionId}`,
      });
      return;
    }
    this.#send(this.#filter.typed(bytes));
    this.#escape = setTimeout(() => this.#send(this.#filter.flush()), ESCAPE_MS);
  }

  /** Nothing is kept for later: what is typed blindly would run when nobody looks. */
  #send(bytes: Buffer): void {
    if (bytes.length === 0) return;
    if (!this.#reachable) {
      process.stdout.write('\x07');
      return;
    }
    this.#pending.push(bytes);
    if (!this.#sending) this.#pump().catch(() => process.stdout.write('\x07'));
  }

  /** One at a time, so that a repeat after a reconnect cannot overtake. */
  async #pump(): Promise<void> {
    this.#sending = true;
    try {
      while (this.#pending.length > 0) {
        const bytes = Buffer.concat(this.#pending.splice(0));
        const { sessionId, incarnation } = this.#info;
        const messageId = mintId(systemRandom, 16);
        const input = { sessionId, incarnation, messageId, actor: 'operator', bytes };
        const outcome = await this.#client.input(input);
        if (outcome.kind === 'refused') process.stdout.write('\x07');
      }
    } finally {
      this.#sending = false;
    }
  }

  #resize(): void {
    const { columns, rows } = process.stdout;
    this.#client.resize(this.#info, columns || 80, rows || 24).catch(() => undefined);
  }

  /** Our size; a full-screen program that already has it is made to draw again by one row. */
  async #takeSize(): Promise<void> {
    const cols = process.stdout.columns || 80;
    const rows = process.stdout.rows || 24;
    const same = this.#info.cols === cols && this.#info.rows === rows;
    if (same && rows > 1) {
      const frame = await this.#client.frame(this.#info).catch(() => undefined);
      if (frame?.alternate === true) {
        await this.#client.resize(this.#info, cols, rows - 1);
        await systemClock.sleep(50);
      }
    }
    await this.#client.resize(this.#info, cols, rows).catch(() => undefined);
  }
}
