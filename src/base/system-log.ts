// JSON lines through pino into one rotating file per process. The redaction here is the second
// lock; the first is not to pass secrets at all.

import { mkdirSync, renameSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type Logger, pino } from 'pino';
import { createStream, type RotatingFileStream } from 'rotating-file-stream';
import { errorText } from './errors.ts';
import type { Log, LogFields } from './log.ts';

/** Chosen against disk use: five files of 10 MB hold weeks of transitions. */
const ROTATE_SIZE = '10M';
const ROTATE_FILES = 5;

const SECRET_KEYS = [
  'token',
  'botToken',
  'appToken',
  'authorization',
  'secret',
  'password',
  'url',
  'env',
];

/**
 * Opens `<file>` for JSON lines, rotated at 10 MB, five files kept, mode 0600.
 * `close` flushes and resolves when the file is closed; `rotate` starts a new file now.
 */
export function openFileLog(
  file: string,
  fields: LogFields,
  level: 'debug' | 'info' = 'info',
): { readonly log: Log; close(): Promise<void>; rotate(): void } {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  let stream = openStream(file);
  const logger = pino(
    {
      level,
      base: { ...fields },
      redact: { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`]), censor: '[secret]' },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: serializeError },
    },
    { write: (line: string) => stream.write(line) },
  );
  return {
    log: wrap(logger),
    close: () => new Promise((resolve) => stream.end(() => resolve())),
    rotate: () => {
      const before = stream;
      // The old stream goes on writing what it holds into the renamed file.
      renameSync(file, `${file}.old`);
      stream = openStream(file);
      before.end();
    },
  };
}

function openStream(file: string): RotatingFileStream {
  const stream = createStream(basename(file), {
    path: dirname(file),
    size: ROTATE_SIZE,
    maxFiles: ROTATE_FILES,
    mode: 0o600,
  });
  // A full or unwritable disk must not end the process that logs.
  stream.on('error', () => undefined);
  stream.on('warning', () => undefined);
  return stream;
}

function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return errorText(error);
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    ...('code' in error ? { code: error.code } : {}),
    ...(error.cause === undefined ? {} : { cause: serializeError(error.cause) }),
  };
}

function wrap(logger: Logger): Log {
  return {
    error: (event, fields) => logger.error({ ...fields }, event),
    warn: (event, fields) => logger.warn({ ...fields }, event),
    info: (event, fields) => logger.info({ ...fields }, event),
    debug: (event, fields) => logger.debug({ ...fields }, event),
    with: (fields) => wrap(logger.child({ ...fields })),
  };
}
