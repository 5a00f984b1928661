// A secret that cannot be printed by accident: every way to text, JSON or an inspector shows
// "[secret]". Only `reveal` gives it out, at the call that needs it.

import { createHash } from 'node:crypto';
import { inspect } from 'node:util';

const SHOWN = '[secret]';

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself: for the call that sends it, never for a log, an error or a file. */
  reveal(): string {
    return this.#value;
  }

  /** Tells two secrets apart without showing either: sha256 in hex. */
  hash(): string {
    return createHash('sha256').update(this.#value).digest('hex');
  }

  toString(): string {
    return SHOWN;
  }

  toJSON(): string {
    return SHOWN;
  }

  [inspect.custom](): string {
    return SHOWN;
  }
}
