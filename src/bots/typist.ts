// Types into one session for a person: looks at the terminal's state, refuses secrets and lines the
// terminal would cut, writes each part under its own message id, and says what became of it.

import type { Clock } from '../base/clock.ts';
import type { Host, InputOutcome, InputRefusal, SessionTarget, TtyState } from '../pty/client.ts';
import type { View } from '../term/values.ts';
import { detectWaiting } from './render/attention.ts';
import { CANONICAL_LINE_BYTES_MAX, longestLineBytes, typingWrites } from './typing.ts';

/** Programs take an Enter that arrives with the text for part of a paste (FIELD.md E 72, 76). */
const ENTER_DELAY_MS = 30;
/** The state may change between look and write (a program starts or ends); three looks, then refuse. */
const LOOKS_MAX = 3;

export type TypingOutcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'already' }
  /** Accepted earlier, not known to be written: nobody may repeat it blindly. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'secret-prompt' }
  | { readonly kind: 'line-too-long'; readonly bytesMax: number }
  | { readonly kind: 'refused'; readonly because: InputRefusal };

export interface TypingRequest {
  readonly target: SessionTarget;
  /** Claim of the act; each write adds its number. */
  readonly messageId: string;
  readonly actor: string;
  readonly text: string;
  readonly enter: boolean;
  /** Typed in the secret modal: goes to a password prompt, and only its length is recorded. */
  readonly secret: boolean;
  /** The person has seen that the prompt looks secret and wants the text typed all the same. */
  readonly evenIfSecret?: boolean;
}

export class Typist {
  readonly #host: Host;
  readonly #clock: Clock;

  constructor(host: Host, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
  }

  /** Types a text. @throws {ChatdError} host-unreachable: not known; the same id may be repeated. */
  async type(request: TypingRequest, view: View | undefined): Promise<TypingOutcome> {
    const writes = typingWrites(request.text, request.enter, {
      bracketedPaste: view?.bracketedPaste ?? false,
    });
    for (let look = 0; look < LOOKS_MAX; look += 1) {
      const tty = await this.#host.ttyState(request.target);
      const obstacle = obstacleTo(request, tty, view);
      if (obstacle !== undefined) return obstacle;
      const outcome = await this.#write(request, writes, tty);
      if (outcome.kind !== 'refused' || outcome.because !== 'terminal-state')
        return settle(outcome);
    }
    return { kind: 'refused', because: 'terminal-state' };
  }

  /** Presses keys: no Enter is added and no prompt is looked at. */
  async press(
    request: Pick<TypingRequest, 'target' | 'messageId' | 'actor'>,
    bytes: string,
  ): Promise<TypingOutcome> {
    return settle(
      await this.#host.input({
        ...request.target,
        messageId: `${request.messageId}.0`,
        actor: request.actor,
        bytes: Buffer.from(bytes),
      }),
    );
  }

  async #write(
    request: TypingRequest,
    writes: readonly Uint8Array[],
    tty: TtyState | 'unknown',
  ): Promise<InputOutcome> {
    let last: InputOutcome = { kind: 'written', sizeBytes: 0 };
    for (const [index, bytes] of writes.entries()) {
      if (index > 0) await this.#clock.sleep(ENTER_DELAY_MS);
      last = await this.#host.input({
        ...request.target,
        messageId: `${request.messageId}.${index}`,
        actor: request.actor,
        bytes,
        ...(request.secret ? { secret: true } : {}),
        // The Enter belongs to what was typed: it goes whatever the program did meanwhile.
        ...(index === 0 && tty !== 'unknown'
          ? { onlyIf: { echo: tty.echo, canonical: tty.canonical } }
          : {}),
      });
      if (last.kind === 'refused' || last.kind === 'unknown') return last;
    }
    return last;
  }
}

function looksSecret(tty: TtyState | 'unknown', view: View | undefined): boolean {
  if (view === undefined) return tty !== 'unknown' && tty.canonical && !tty.echo;
  return detectWaiting({ view, tty, shell: 'unknown', quietMs: 0 }).kind === 'password';
}

function obstacleTo(
  request: TypingRequest,
  tty: TtyState | 'unknown',
  view: View | undefined,
): TypingOutcome | undefined {
  if (!request.secret && request.evenIfSecret !== true && looksSecret(tty, view)) {
    return { kind: 'secret-prompt' };
  }
  const cooked = tty !== 'unknown' && tty.canonical;
  if (cooked && longestLineBytes(request.text) > CANONICAL_LINE_BYTES_MAX) {
    return { kind: 'line-too-long', bytesMax: CANONICAL_LINE_BYTES_MAX };
  }
  return undefined;
}

function settle(outcome: InputOutcome): TypingOutcome {
  switch (outcome.kind) {
    case 'written':
      return { kind: 'written' };
    case 'already':
      return { kind: 'already' };
    case 'unknown':
      return { kind: 'unknown' };
    case 'refused':
      return outcome.because === 'line-too-long'
        ? { kind: 'line-too-long', bytesMax: CANONICAL_LINE_BYTES_MAX }
        : { kind: 'refused', because: outcome.because };
  }
}
