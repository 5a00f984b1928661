// The schema of chatd.toml: every key, its default, what it expects and where to get it. Parsed once
// at start. Secrets are only named here (config-secrets.ts resolves them, late); identity and hash
// come from the configuration alone, without network.

import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import * as z from 'zod/mini';
import { readBoundedSync } from './base/bounded-file.ts';
import { ChatdError } from './base/errors.ts';
import type { Kind } from './base/paths.ts';
import { lineOf } from './config-lines.ts';
import { parseSecretReference, type SecretReference } from './config-secrets.ts';

/** A configuration is a page or two; the bound only keeps a wrong path from filling memory. */
const CONFIG_BYTES_MAX = 256 * 1024;
/** More lines than this help nobody; the rest is counted. */
const PROBLEMS_SHOWN_MAX = 20;

const text = (max: number) => z.string().check(z.minLength(1), z.maxLength(max));
const id = (pattern: RegExp) => z.string().check(z.regex(pattern));
const ids = (pattern: RegExp) => z._default(z.array(id(pattern)).check(z.maxLength(500)), []);
const whole = (min: number, max: number) => z.int().check(z.gte(min), z.lte(max));
const url = z.string().check(z.regex(/^https?:\/\/[^\s]+$/));

const SLACK_PERSON = /^[UW][A-Z0-9]{2,}$/;
const SLACK_GROUP = /^S[A-Z0-9]{2,}$/;
const SNOWFLAKE = /^[0-9]{1,20}$/;

const slackSchema = z.strictObject({
  enabled: z._default(z.boolean(), true),
  bot_token: text(4096),
  app_token: text(4096),
  team_id: id(/^[TE][A-Z0-9]{2,}$/),
  app_id: id(/^A[A-Z0-9]{2,}$/),
  api_url: z._default(url, 'https://slack.com/api/'),
  channels: ids(/^[CG][A-Z0-9]{2,}$/),
  drivers: ids(SLACK_PERSON),
  approvers: ids(SLACK_PERSON),
  viewers: ids(SLACK_PERSON),
  groups: z._default(
    z.strictObject({
      drivers: ids(SLACK_GROUP),
      approvers: ids(SLACK_GROUP),
      viewers: ids(SLACK_GROUP),
    }),
    { drivers: [], approvers: [], viewers: [] },
  ),
});

const discordSchema = z.strictObject({
  enabled: z._default(z.boolean(), true),
  token: text(4096),
  application_id: id(SNOWFLAKE),
  guild_id: id(SNOWFLAKE),
  api_url: z._default(url, 'https://discord.com/api'),
  channels: ids(SNOWFLAKE),
  drivers: ids(SNOWFLAKE),
  driver_roles: ids(SNOWFLAKE),
  approvers: ids(SNOWFLAKE),
  approver_roles: ids(SNOWFLAKE),
  viewers: ids(SNOWFLAKE),
  viewer_roles: ids(SNOWFLAKE),
});

/** What switches on-demand starting off, as in CHATD_AUTOSTART. */
const autostart = z.union([z.boolean(), z.literal(0), z.enum(['0', 'false', 'off', 'no'])]);

const hostSchema = z.strictObject({
  autostart: z._default(autostart, true),
  idle_exit_secs: z._default(z.union([whole(0, 31_536_000), z.literal('never')]), 600),
  journal_mb_per_session: z._default(whole(1, 65_536), 64),
  journal_mb_total: z._default(whole(1, 1_048_576), 2048),
  sessions_max: z._default(whole(1, 5000), 200),
});

const attachSchema = z.strictObject({ reconnect_secs: z._default(whole(1, 86_400), 300) });

const COLS = whole(10, 500);
const ROWS = whole(4, 300);
const MENTIONS = ['prompt', 'failed', 'finished', 'bell'] as const;
const APPROVALS = ['never', 'start'] as const;

const defaultsSchema = z.strictObject({
  shell: z._default(id(/^(login|\/.+)$/), 'login'),
  cwd: z._default(id(/^[~/]/), '~'),
  cols: z._default(COLS, 100),
  rows: z._default(ROWS, 30),
  mention: z._default(z.array(z.enum(MENTIONS)), ['prompt', 'failed']),
});

const redactSchema = z.strictObject({
  patterns: z._default(z.array(text(500)).check(z.maxLength(100)), []),
});

const profileSchema = z.strictObject({
  command: z.array(text(4096)).check(z.minLength(1), z.maxLength(256)),
  cwd: z.optional(id(/^[~/]/)),
  env: z._default(
    z.record(id(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().check(z.maxLength(8192))),
    {},
  ),
  cols: z.optional(COLS),
  rows: z.optional(ROWS),
  approve: z._default(z.enum(APPROVALS), 'never'),
});

const HOST = hostSchema.parse({});
const DEFAULTS = defaultsSchema.parse({});

const schema = z.strictObject({
  slack: z.optional(slackSchema),
  discord: z.optional(discordSchema),
  host: z._default(hostSchema, HOST),
  attach: z._default(attachSchema, attachSchema.parse({})),
  defaults: z._default(defaultsSchema, DEFAULTS),
  redact: z._default(redactSchema, { patterns: [] }),
  profiles: z._default(z.record(id(/^[a-z0-9][a-z0-9_-]{0,31}$/), profileSchema), {}),
});

type Parsed = z.infer<typeof schema>;

export interface SlackConfig {
  readonly botToken: SecretReference;
  readonly appToken: SecretReference;
  readonly teamId: string;
  readonly appId: string;
  readonly apiUrl: string;
  readonly channels: readonly string[];
  readonly access: Access;
}

export interface DiscordConfig {
  readonly token: SecretReference;
  readonly applicationId: string;
  readonly guildId: string;
  readonly apiUrl: string;
  readonly channels: readonly string[];
  readonly access: Access;
}

/** Who may do what: people by id, and groups (Slack user groups, Discord roles) by id. */
export interface Access {
  readonly drivers: Circle;
  readonly approvers: Circle;
  readonly viewers: Circle;
}

export interface Circle {
  readonly people: readonly string[];
  readonly groups: readonly string[];
}

export interface Profile {
  readonly name: string;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cols: number;
  readonly rows: number;
  /** `start`: an approver confirms before a driver's program is started. */
  readonly approve: (typeof APPROVALS)[number];
}

export interface HostConfig {
  readonly autostart: boolean;
  /** `never` is also written 0. */
  readonly idleExitSecs: number | 'never';
  readonly journalMbPerSession: number;
  readonly journalMbTotal: number;
  readonly sessionsMax: number;
}

export interface Defaults {
  readonly shell: string;
  readonly cwd: string;
  readonly cols: number;
  readonly rows: number;
  readonly mention: readonly (typeof MENTIONS)[number][];
}

/** A section that is absent or says `enabled = false` serves nothing; it is still validated. */
export type Section<T> =
  | { readonly state: 'absent' }
  | { readonly state: 'off' }
  | { readonly state: 'on'; readonly config: T };

export interface Config {
  readonly file: string;
  readonly slack: Section<SlackConfig>;
  readonly discord: Section<DiscordConfig>;
  readonly host: HostConfig;
  readonly attachReconnectSecs: number;
  readonly defaults: Defaults;
  readonly redactPatterns: readonly string[];
  readonly profiles: readonly Profile[];
  /** Names the account served, or undefined where the kind is off. */
  identityOf(kind: Kind): string | undefined;
  /** Changes with anything that a daemon of this kind reads. */
  hashOf(kind: Kind): string;
}

/** One thing wrong with a configuration, in one line. */
export interface ConfigProblem {
  readonly file: string;
  readonly line: number;
  readonly key: string;
  readonly problem: string;
}

export type ConfigResult =
  | { readonly kind: 'ok'; readonly config: Config }
  | { readonly kind: 'absent'; readonly file: string }
  | { readonly kind: 'invalid'; readonly problems: readonly ConfigProblem[] };

interface Hint {
  readonly expected: string;
  readonly where?: string;
}

const SLACK_APP_PAGE = 'https://api.slack.com/apps';
const DISCORD_APP_PAGE = 'https://discord.com/developers/applications';
const COPY_ID = 'Discord: Settings, Advanced, Developer Mode on; then right-click, Copy ID';
const PEOPLE: Hint = {
  expected: 'a list of Slack member ids such as "U0123"',
  where: 'Slack: the person’s profile, "Copy member ID"',
};
const GROUPS: Hint = {
  expected: 'a list of Slack user group ids such as "S0123"',
  where: 'Slack: People, User groups, "Copy group ID"',
};
const SNOWFLAKES: Hint = { expected: 'a list of Discord ids in quotes', where: COPY_ID };
const TOKEN_FORMS = '"env:NAME", "file:PATH" or "cmd:COMMAND"';

/** What each key expects; `*` stands for a name the user chose. */
const HINTS: Readonly<Record<string, Hint>> = {
  'slack.enabled': { expected: 'true or false' },
  'slack.bot_token': {
    expected: `${TOKEN_FORMS} of a bot token (xoxb-…)`,
    where: `${SLACK_APP_PAGE}, OAuth & Permissions`,
  },
  'slack.app_token': {
    expected: `${TOKEN_FORMS} of an app-level token (xapp-…)`,
    where: `${SLACK_APP_PAGE}, Basic Information, App-Level Tokens, scope connections:write`,
  },
  'slack.team_id': {
    expected: 'a workspace id such as "T0123"',
    where: 'Slack in a browser: the part of the address after /client/',
  },
  'slack.app_id': { expected: 'an app id such as "A0123"', where: `${SLACK_APP_PAGE}, App ID` },
  'slack.api_url': { expected: 'an http or https address' },
  'slack.channels': {
    expected: 'a list of channel ids such as "C0123"',
    where: 'Slack: the channel’s details, at the bottom',
  },
  'slack.drivers': PEOPLE,
  'slack.approvers': PEOPLE,
  'slack.viewers': PEOPLE,
  'slack.groups.drivers': GROUPS,
  'slack.groups.approvers': GROUPS,
  'slack.groups.viewers': GROUPS,
  'discord.enabled': { expected: 'true or false' },
  'discord.token': {
    expected: `${TOKEN_FORMS} of a bot token`,
    where: `${DISCORD_APP_PAGE}, Bot, Reset Token`,
  },
  'discord.application_id': {
    expected: 'the application’s id, digits in quotes',
    where: `${DISCORD_APP_PAGE}, General Information, Application ID`,
  },
  'discord.guild_id': { expected: 'the server’s id, digits in quotes', where: COPY_ID },
  'discord.api_url': { expected: 'an http or https address' },
  'discord.channels': SNOWFLAKES,
  'discord.drivers': SNOWFLAKES,
  'discord.driver_roles': SNOWFLAKES,
  'discord.approvers': SNOWFLAKES,
  'discord.approver_roles': SNOWFLAKES,
  'discord.viewers': SNOWFLAKES,
  'discord.viewer_roles': SNOWFLAKES,
  'host.autostart': { expected: 'true or false (also 0, "off", "no")' },
  'host.idle_exit_secs': { expected: 'seconds, 0 or "never"' },
  'host.journal_mb_per_session': { expected: 'megabytes, 1 to 65536' },
  'host.journal_mb_total': { expected: 'megabytes, 1 to 1048576' },
  'host.sessions_max': { expected: 'a count, 1 to 5000' },
  'attach.reconnect_secs': { expected: 'seconds, 1 to 86400' },
  'defaults.shell': { expected: '"login" or an absolute path' },
  'defaults.cwd': { expected: 'an absolute path or one that starts with ~' },
  'defaults.cols': { expected: 'columns, 10 to 500' },
  'defaults.rows': { expected: 'rows, 4 to 300' },
  'defaults.mention': { expected: `a list of ${MENTIONS.map((m) => `"${m}"`).join(', ')}` },
  'redact.patterns': { expected: 'a list of at most 100 regular expressions' },
  'profiles.*.command': { expected: 'a list: the program and its arguments' },
  'profiles.*.cwd': { expected: 'an absolute path or one that starts with ~' },
  'profiles.*.env': { expected: 'a table of NAME = "value"' },
  'profiles.*.cols': { expected: 'columns, 10 to 500' },
  'profiles.*.rows': { expected: 'rows, 4 to 300' },
  'profiles.*.approve': { expected: `one of ${APPROVALS.map((a) => `"${a}"`).join(', ')}` },
};

/** Reads and checks a configuration file. Every problem comes as one line, never as a throw. */
export function readConfig(file: string): ConfigResult {
  const read = readBoundedSync(file, CONFIG_BYTES_MAX);
  if (read.kind === 'absent') return { kind: 'absent', file };
  if (read.kind === 'unusable') {
    const problem = `cannot be read: ${read.because}; expected a regular file of at most 256 KiB`;
    return { kind: 'invalid', problems: [{ file, line: 1, key: '', problem }] };
  }
  return parseConfig(file, read.bytes.toString('utf8'), read.stat.mode);
}

/**
 * Reads a configuration that must be there.
 * @throws {ChatdError} config-invalid, with one line for each problem.
 */
export function loadConfig(file: string): Config {
  const result = readConfig(file);
  if (result.kind === 'ok') return result.config;
  if (result.kind === 'absent') {
    throw new ChatdError(
      'config-invalid',
      `Cannot find ${file}: copy config/chatd.example.toml there and fill it in`,
    );
  }
  throw new ChatdError('config-invalid', result.problems.map(problemLine).join('\n'));
}

/** `file:line: key: problem`, as compilers do, so that editors can jump there. */
export function problemLine(problem: ConfigProblem): string {
  const key = problem.key === '' ? '' : `${problem.key}: `;
  return `${problem.file}:${problem.line}: ${key}${problem.problem}`;
}

/** Checks a configuration text. `mode` decides whether secrets may stand in the file itself. */
export function parseConfig(file: string, source: string, mode: number): ConfigResult {
  let document: unknown;
  try {
    document = parse(source);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const problem = `not TOML: ${error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '') ?? ''}`;
    return { kind: 'invalid', problems: [{ file, line: error.line, key: '', problem }] };
  }
  const parsed = schema.safeParse(document);
  if (!parsed.success) {
    const found = parsed.error.issues.flatMap((issue) => explain(issue, document));
    return invalid(file, source, found);
  }
  const builder = new Builder(file, mode);
  const config = builder.build(parsed.data);
  return builder.found.length === 0 ? { kind: 'ok', config } : invalid(file, source, builder.found);
}

interface Finding {
  readonly path: readonly (string | number)[];
  readonly problem: string;
}

function invalid(file: string, source: string, found: readonly Finding[]): ConfigResult {
  const problems = found.slice(0, PROBLEMS_SHOWN_MAX).map(({ path, problem }) => ({
    file,
    line: lineOf(source, path),
    key: path.join('.'),
    problem,
  }));
  const rest = found.length - problems.length;
  const more = { file, line: 1, key: '', problem: `and ${rest} more problems` };
  return { kind: 'invalid', problems: rest > 0 ? [...problems, more] : problems };
}

function explain(issue: z.core.$ZodIssue, document: unknown): readonly Finding[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], problem: unknownKey(path, key) }));
  }
  if (issue.code === 'invalid_key') {
    const expected =
      path[0] === 'profiles' && path.length <= 2
        ? 'a profile name of lower-case letters, digits, - and _'
        : 'a name of letters, digits and _';
    return [{ path, problem: `not a valid name; expected ${expected}` }];
  }
  const got = valueAt(document, path);
  const hint = hintOf(path);
  const what = got === undefined ? 'missing' : `wrong value ${describe(got, path)}`;
  const where = hint?.where === undefined ? '' : ` (${hint.where})`;
  return [{ path, problem: `${what}; expected ${hint?.expected ?? 'a table'}${where}` }];
}

function hintOf(path: readonly (string | number)[]): Hint | undefined {
  const names = path.map((part, index) => (path[0] === 'profiles' && index === 1 ? '*' : part));
  for (let length = names.length; length > 0; length -= 1) {
    const hint = HINTS[names.slice(0, length).join('.')];
    if (hint !== undefined) return hint;
  }
  return undefined;
}

function valueAt(document: unknown, path: readonly (string | number)[]): unknown {
  let value = document;
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Object.entries(value).find(([key]) => key === String(part))?.[1];
  }
  return value;
}

/** A short text of a wrong value; a token's value is never shown. */
function describe(value: unknown, path: readonly (string | number)[]): string {
  if (path.some((part) => String(part).endsWith('token') || part === 'env')) return '[not shown]';
  const shown = JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'bigint' ? String(inner) : inner,
  );
  return shown.length > 60 ? `${shown.slice(0, 57)}...` : shown;
}

function unknownKey(path: readonly (string | number)[], key: string): string {
  const known = knownKeys(path);
  const near = known.find((name) => distance(name, key) <= 2);
  const guess = near === undefined ? '' : ` (did you mean ${near}?)`;
  return `unknown key${guess}; expected ${known.length === 0 ? 'none here' : `one of ${known.join(', ')}`}`;
}

function knownKeys(path: readonly (string | number)[]): readonly string[] {
  if (path.length === 0) return Object.keys(schema.shape);
  const prefix = path.map((part, i) => (path[0] === 'profiles' && i === 1 ? '*' : part)).join('.');
  const below = Object.keys(HINTS).filter((name) => name.startsWith(`${prefix}.`));
  return [...new Set(below.map((name) => name.slice(prefix.length + 1).split('.')[0] ?? ''))];
}

/** Levenshtein distance, for "did you mean"; both words are short. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...a.slice(0, 64)].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replace = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replace, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Turns the parsed document into a Config and collects what a schema cannot say. */
class Builder {
  readonly found: Finding[] = [];
  readonly #file: string;
  readonly #mode: number;

  constructor(file: string, mode: number) {
    this.#file = file;
    this.#mode = mode;
  }

  build(parsed: Parsed): Config {
    this.#checkPatterns(parsed.redact.patterns);
    const slack = this.#section(parsed.slack, (section) => this.#slack(section));
    const discord = this.#section(parsed.discord, (section) => this.#discord(section));
    const identities = {
      slack: slack.state === 'on' ? `${slack.config.teamId}/${slack.config.appId}` : undefined,
      discord:
        discord.state === 'on'
          ? `${discord.config.guildId}/${discord.config.applicationId}`
          : undefined,
    };
    return {
      file: this.#file,
      slack,
      discord,
      host: hostConfig(parsed.host),
      attachReconnectSecs: parsed.attach.reconnect_secs,
      defaults: parsed.defaults,
      redactPatterns: parsed.redact.patterns,
      profiles: Object.entries(parsed.profiles).map(([name, profile]) => ({
        name,
        command: profile.command,
        cwd: profile.cwd ?? parsed.defaults.cwd,
        env: profile.env,
        cols: profile.cols ?? parsed.defaults.cols,
        rows: profile.rows ?? parsed.defaults.rows,
        approve: profile.approve,
      })),
      identityOf: (kind) => identities[kind],
      hashOf: (kind) => hashConfig(parsed, kind),
    };
  }

  #section<S extends { readonly enabled: boolean }, T>(
    section: S | undefined,
    build: (section: S) => T,
  ): Section<T> {
    if (section === undefined) return { state: 'absent' };
    const config = build(section);
    return section.enabled ? { state: 'on', config } : { state: 'off' };
  }

  #slack(section: NonNullable<Parsed['slack']>): SlackConfig {
    const circle = (role: 'drivers' | 'approvers' | 'viewers'): Circle => ({
      people: section[role],
      groups: section.groups[role],
    });
    return {
      botToken: this.#secret(['slack', 'bot_token'], section.bot_token, 'slack-bot'),
      appToken: this.#secret(['slack', 'app_token'], section.app_token, 'slack-app'),
      teamId: section.team_id,
      appId: section.app_id,
      apiUrl: section.api_url,
      channels: section.channels,
      access: {
        drivers: circle('drivers'),
        approvers: circle('approvers'),
        viewers: circle('viewers'),
      },
    };
  }

  #discord(section: NonNullable<Parsed['discord']>): DiscordConfig {
    return {
      token: this.#secret(['discord', 'token'], section.token, 'discord'),
      applicationId: section.application_id,
      guildId: section.guild_id,
      apiUrl: section.api_url,
      channels: section.channels,
      access: {
        drivers: { people: section.drivers, groups: section.driver_roles },
        approvers: { people: section.approvers, groups: section.approver_roles },
        viewers: { people: section.viewers, groups: section.viewer_roles },
      },
    };
  }

  #secret(
    path: readonly [string, string],
    written: string,
    shape: SecretReference['shape'],
  ): SecretReference {
    const parsed = parseSecretReference({
      key: path.join('.'),
      written,
      shape,
      directory: dirname(this.#file),
      configFile: this.#file,
      configMode: this.#mode,
    });
    if (parsed.problem !== undefined) this.found.push({ path, problem: parsed.problem });
    return parsed.reference;
  }

  #checkPatterns(patterns: readonly string[]): void {
    for (const [index, pattern] of patterns.entries()) {
      try {
        new RegExp(pattern, 'u');
      } catch {
        const path = ['redact', 'patterns', index];
        this.found.push({
          path,
          problem: 'not a regular expression; expected one in JavaScript’s syntax',
        });
      }
    }
  }
}

function hostConfig(parsed: Parsed['host']): HostConfig {
  return {
    autostart: parsed.autostart === true,
    idleExitSecs: parsed.idle_exit_secs === 0 ? 'never' : parsed.idle_exit_secs,
    journalMbPerSession: parsed.journal_mb_per_session,
    journalMbTotal: parsed.journal_mb_total,
    sessionsMax: parsed.sessions_max,
  };
}

/**
 * sha256 of all that a daemon of `kind` reads: its own section and the common ones, not the other
 * kind's. Secrets enter as the hash of what the file says (the reference, or the literal), so that
 * no command runs and no secret is read just to compare.
 */
function hashConfig(parsed: Parsed, kind: Kind): string {
  const { slack, discord, ...common } = parsed;
  const hide = (secret: string): string => createHash('sha256').update(secret).digest('hex');
  const own =
    kind === 'slack'
      ? slack && { ...slack, bot_token: hide(slack.bot_token), app_token: hide(slack.app_token) }
      : discord && { ...discord, token: hide(discord.token) };
  return createHash('sha256').update(canonical({ kind, own, common })).digest('hex');
}

/** JSON with sorted keys: the same configuration in another order is the same. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
