// What an operator command is: a name, the shape of its arguments, and the contract of its handler.
// Only ids, codes and numbers travel; lists are read from the store, texts go through the outbox.

import * as z from 'zod/mini';

/** Fields of a command document are ids and codes (OWNERSHIP.md §1.1). */
const FIELD_CHARS_MAX = 256;

/** A bounded text field without control characters. */
export const field = z.string().check(z.maxLength(FIELD_CHARS_MAX), z.regex(/^[^\x00-\x1f\x7f]*$/));
export const requiredField = field.check(z.minLength(1));

export type Scalar = string | number | boolean;

/** Names one command and parses its arguments. */
export interface CommandSpec<Args> {
  readonly name: string;
  /** Codes for a handler that threw: `<subject>_failed` before authority, `…_outcome_unknown` after. */
  readonly subject: string;
  parse(args: unknown): Args | undefined;
}

export function commandSpec<S extends z.ZodMiniType>(
  name: string,
  subject: string,
  schema: S,
): CommandSpec<z.infer<S>> {
  return {
    name,
    subject,
    parse: (args) => {
      const parsed = schema.safeParse(args);
      return parsed.success ? parsed.data : undefined;
    },
  };
}

/** Why authority was not given. Nothing may be committed then. */
export type FenceRefusal =
  | 'owner_changed'
  | 'expired'
  /** The submitter gave up, or the request is gone: nobody waits for an answer. */
  | 'cancelled'
  | 'request_changed';

/**
 * The single gate to a commit. `enter` proves ownership, wins the response, and re-reads the
 * request, in this order; only then may the handler change anything durable.
 */
export interface CommitFence {
  enter(): Promise<
    { readonly granted: true } | { readonly granted: false; readonly because: FenceRefusal }
  >;
  /** Ownership once more, for the closing proof inside the store's transaction. */
  proven(): boolean;
  /** Written with the commit, so that a replay of the request finds it done. */
  readonly requestId: string;
}

export type HandlerAnswer =
  | { readonly kind: 'ok'; readonly result: Readonly<Record<string, Scalar>> }
  /** Definite: nothing was changed. `code` is lower_snake_case, `detail` holds ids and numbers. */
  | {
      readonly kind: 'rejected';
      readonly code: string;
      readonly detail?: Readonly<Record<string, Scalar>>;
    };

/**
 * Runs one command inside the owner. May prove things with the platform before `fence.enter()`,
 * commits only after it was granted. Throwing before that is a rejection, after it "unknown".
 */
export type CommandHandler<Args> = (args: Args, fence: CommitFence) => Promise<HandlerAnswer>;
