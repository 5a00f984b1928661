// Where a secret comes from, and getting it when it is needed: env:NAME, file:PATH, cmd:COMMAND, or
// the value itself in a file nobody else can read. A token of the wrong kind is named, never shown.

import { resolve } from 'node:path';
import { readBounded } from './base/bounded-file.ts';
import { ChatdError } from './base/errors.ts';
import { Secret } from './base/secret.ts';

/** Tokens have at most a few hundred characters. */
const SECRET_BYTES_MAX = 4096;
/** A password manager may ask a helper; a person at a prompt is not expected here. */
const COMMAND_TIMEOUT_MS = 10_000;

type Shape = 'slack-bot' | 'slack-app' | 'discord';

type SecretSource =
  | { readonly from: 'env'; readonly name: string }
  | { readonly from: 'file'; readonly path: string }
  | { readonly from: 'command'; readonly command: string }
  | { readonly from: 'literal'; readonly value: Secret };

/** Names a secret without holding it. */
export interface SecretReference {
  readonly key: string;
  readonly shape: Shape;
  readonly source: SecretSource;
}

interface Written {
  readonly key: string;
  readonly written: string;
  readonly shape: Shape;
  /** Relative `file:` paths start here: the configuration's directory. */
  readonly directory: string;
  readonly configFile: string;
  readonly configMode: number;
}

/** Parses what the configuration says. The problem, if any, is a text for the user. */
export function parseSecretReference(from: Written): {
  readonly reference: SecretReference;
  readonly problem: string | undefined;
} {
  const { key, shape } = from;
  const [, scheme, rest = ''] = /^(env|file|cmd):(.*)$/s.exec(from.written) ?? [];
  if (scheme === 'env') {
    const problem = /^[A-Za-z_]\w*$/.test(rest) ? undefined : 'expected env:NAME_OF_A_VARIABLE';
    return { reference: { key, shape, source: { from: 'env', name: rest } }, problem };
  }
  if (scheme === 'file') {
    const problem = rest === '' ? 'expected file:PATH' : undefined;
    const path = resolve(from.directory, rest);
    return { reference: { key, shape, source: { from: 'file', path } }, problem };
  }
  if (scheme === 'cmd') {
    const problem = rest.trim() === '' ? 'expected cmd:COMMAND' : undefined;
    return { reference: { key, shape, source: { from: 'command', command: rest } }, problem };
  }
  const tooOpen = (from.configMode & 0o077) !== 0;
  const problem = tooOpen
    ? `a token stands in the file itself and others can read it; chmod 600 ${from.configFile}, or write "env:NAME", "file:PATH" or "cmd:COMMAND"`
    : shapeProblem(from.written, shape);
  const source = { from: 'literal', value: new Secret(from.written) } as const;
  return { reference: { key, shape, source }, problem };
}

/**
 * Gets the secret.
 * @throws {ChatdError} config-invalid: missing, unreadable, too open, or a token of another kind.
 */
export async function resolveSecret(
  reference: SecretReference,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Secret> {
  const { source } = reference;
  if (source.from === 'literal') return source.value;
  const value = (await read(reference, env)).trim();
  const from = describeSource(source);
  if (value === '') throw invalid(reference, `${from} is empty`);
  const problem = shapeProblem(value, reference.shape);
  if (problem !== undefined) throw invalid(reference, `${from}: ${problem}`);
  return new Secret(value);
}

async function read(
  reference: SecretReference,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const { source } = reference;
  switch (source.from) {
    case 'env': {
      const value = env[source.name];
      if (value !== undefined) return value;
      throw invalid(
        reference,
        `environment variable ${source.name} is not set; ${WHERE[reference.shape]}`,
      );
    }
    case 'file':
      return await readSecretFile(reference, source.path);
    case 'command':
      return await runSecretCommand(reference, source.command, env);
    case 'literal':
      return source.value.reveal();
  }
}

async function readSecretFile(reference: SecretReference, path: string): Promise<string> {
  const found = await readBounded(path, SECRET_BYTES_MAX);
  if (found.kind === 'absent')
    throw invalid(reference, `${path} does not exist; ${WHERE[reference.shape]}`);
  if (found.kind === 'unusable')
    throw invalid(reference, `${path} cannot be read: ${found.because}`);
  if ((found.stat.mode & 0o077) !== 0) {
    throw invalid(reference, `${path} can be read by others; chmod 600 ${path}`);
  }
  return found.bytes.toString('utf8');
}

async function runSecretCommand(
  reference: SecretReference,
  command: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  // Only who has such a reference pays for loading it.
  const { execFile } = await import('node:child_process');
  return await new Promise((resolve, reject) => {
    const options = {
      env: env as NodeJS.ProcessEnv,
      timeout: COMMAND_TIMEOUT_MS,
      maxBuffer: SECRET_BYTES_MAX,
    };
    // What the command printed is never part of the error: it may be the secret.
    execFile('/bin/sh', ['-c', command], options, (error, stdout) => {
      if (error === null) resolve(stdout);
      else if (error.killed === true) reject(invalid(reference, 'cmd: took longer than 10 s'));
      else
        reject(invalid(reference, `cmd: ended with ${error.code ?? error.signal ?? 'an error'}`));
    }).stdin?.end();
  });
}

function describeSource(source: SecretSource): string {
  if (source.from === 'env') return `environment variable ${source.name}`;
  return source.from === 'file' ? source.path : 'the output of cmd:';
}

function invalid(reference: SecretReference, problem: string): ChatdError {
  return new ChatdError('config-invalid', `${reference.key}: ${problem}`);
}

const WHERE: Readonly<Record<Shape, string>> = {
  'slack-bot': 'a bot token (xoxb-…) is at https://api.slack.com/apps, OAuth & Permissions',
  'slack-app':
    'an app-level token (xapp-…) is at https://api.slack.com/apps, Basic Information, App-Level Tokens',
  discord: 'a bot token is at https://discord.com/developers/applications, Bot, Reset Token',
};

const SLACK_KINDS: readonly (readonly [prefix: string, name: string])[] = [
  ['xoxb-', 'a Slack bot token'],
  ['xapp-', 'a Slack app-level token'],
  ['xoxp-', 'a Slack user token'],
  ['xoxe', 'a Slack configuration or refresh token'],
  ['xoxc-', 'a Slack browser token'],
  ['xoxs-', 'a Slack browser token'],
];

/** What is wrong with a token's form, naming the kind it seems to be, or undefined. */
export function shapeProblem(value: string, shape: Shape): string | undefined {
  if (/\s/.test(value)) return 'holds white space; expected one token';
  const slackKind = SLACK_KINDS.find(([prefix]) => value.startsWith(prefix));
  const wanted = shape === 'slack-bot' ? 'xoxb-' : shape === 'slack-app' ? 'xapp-' : undefined;
  if (wanted !== undefined) {
    if (slackKind?.[0] === wanted) return undefined;
    const seems = slackKind?.[1] ?? (looksDiscord(value) ? 'a Discord token' : 'not a Slack token');
    return `this is ${seems}; ${WHERE[shape]}`;
  }
  if (slackKind !== undefined) return `this is ${slackKind[1]}; ${WHERE[shape]}`;
  if (value.startsWith('Bot ')) return 'leave the word "Bot" out; expected the token alone';
  return looksDiscord(value) ? undefined : `this is not a Discord bot token; ${WHERE[shape]}`;
}

/** Three parts with dots between, as Discord's have; their lengths are Discord's to change. */
function looksDiscord(value: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(value);
}
