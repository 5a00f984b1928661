// The whole error taxonomy on one screen: a code says what happened, its remedy what to do about it.

type Remedy = 'retry' | 'reattach' | 'tell-user' | 'give-up';

const REMEDIES = {
  // Configuration and surroundings.
  'config-invalid': 'tell-user',
  'state-directory-unusable': 'tell-user',
  'endpoint-path-too-long': 'tell-user',
  'not-built': 'tell-user',
  'capability-missing': 'tell-user',
  // Ownership.
  occupied: 'give-up',
  'ownership-lost': 'give-up',
  'ownership-unknown': 'tell-user',
  // Host and sessions.
  'host-unreachable': 'retry',
  'host-starting': 'retry',
  'version-mismatch': 'tell-user',
  'protocol-violation': 'give-up',
  'session-not-found': 'tell-user',
  'session-exited': 'tell-user',
  'other-incarnation': 'tell-user',
  'session-limit': 'tell-user',
  'input-queue-full': 'retry',
  'terminal-state-changed': 'tell-user',
  'command-not-found': 'tell-user',
  'command-not-executable': 'tell-user',
  'directory-not-found': 'tell-user',
  'spawn-failed': 'tell-user',
  'peer-too-slow': 'reattach',
  'deadline-exceeded': 'retry',
  cancelled: 'give-up',
  // Store.
  'store-corrupt': 'tell-user',
  'store-version-unknown': 'tell-user',
  'store-unwritable': 'tell-user',
  'store-missing': 'tell-user',
  'store-conflict': 'tell-user',
  // Platforms.
  'platform-rate-limited': 'retry',
  'platform-rejected': 'tell-user',
  'platform-unavailable': 'retry',
  'platform-credentials': 'tell-user',
  'wrong-account': 'tell-user',
  refused: 'tell-user',
} as const satisfies Record<string, Remedy>;

export type ErrorCode = keyof typeof REMEDIES;

/**
 * An operational error. `message` follows "Cannot verb object: state", has no final period, and
 * never holds a secret or a terminal's text.
 */
export class ChatdError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, string | number | boolean>>;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      readonly details?: Readonly<Record<string, string | number | boolean>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'ChatdError';
    this.code = code;
    this.details = options.details ?? {};
  }

  /** What to do about it. */
  get remedy(): Remedy {
    return REMEDIES[this.code];
  }
}

/**
 * The code of a ChatdError, or undefined for anything else. Two bundles have two copies of the class,
 * so what counts is what the error says of itself.
 */
export function errorCode(error: unknown): ErrorCode | undefined {
  if (!(error instanceof Error) || error.name !== 'ChatdError' || !('code' in error)) {
    return undefined;
  }
  return isErrorCode(error.code) ? error.code : undefined;
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(REMEDIES, code);
}

/** The errno name (`ENOENT`, …) of a Node or sys error, or undefined. */
export function errnoCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** A one-line text for any thrown value. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Ends the smallest owner that can be rebuilt: a bug, not an operating condition.
 * @throws {Error} when `condition` is false.
 */
export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`Invariant broken: ${message}`);
}
