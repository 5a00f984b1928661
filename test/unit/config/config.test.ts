import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type Config, parseConfig, problemLine } from '../../../src/config.ts';

const FILE = '/etc/chatd.toml';
const SLACK = `[slack]
bot_token = "env:BOT"
app_token = "env:APP"
team_id = "T0123"
app_id = "A0123"
`;
const DISCORD = `[discord]
token = "file:discord.token"
application_id = "11"
guild_id = "22"
`;

function problems(source: string, mode = 0o600): readonly string[] {
  const result = parseConfig(FILE, source, mode);
  return result.kind === 'invalid' ? result.problems.map(problemLine) : [];
}

function good(source: string, mode = 0o600): Config {
  const result = parseConfig(FILE, source, mode);
  if (result.kind !== 'ok') throw new Error(JSON.stringify(result));
  return result.config;
}

/** Each is one mistake and the line a person gets for it. */
const MISTAKES: readonly (readonly [name: string, source: string, expected: string])[] = [
  ['a text that is not TOML', 'a = \n', `${FILE}:1: not TOML: invalid value`],
  [
    'an unknown section',
    '[slak]\n',
    `${FILE}:1: slak: unknown key (did you mean slack?); expected one of slack, discord, host, attach, defaults, redact, profiles`,
  ],
  [
    'an unknown key',
    `${SLACK}driver = ["U1"]\n`,
    `${FILE}:6: slack.driver: unknown key (did you mean drivers?); expected one of enabled, bot_token, app_token, team_id, app_id, api_url, channels, drivers, approvers, viewers, groups`,
  ],
  [
    'a missing token',
    SLACK.replace('bot_token = "env:BOT"\n', ''),
    `${FILE}:1: slack.bot_token: missing; expected "env:NAME", "file:PATH" or "cmd:COMMAND" of a bot token (xoxb-…) (https://api.slack.com/apps, OAuth & Permissions)`,
  ],
  [
    'a missing identity key of Slack',
    SLACK.replace('team_id = "T0123"\n', ''),
    `${FILE}:1: slack.team_id: missing; expected a workspace id such as "T0123" (Slack in a browser: the part of the address after /client/)`,
  ],
  [
    'a missing identity key of Discord',
    DISCORD.replace('guild_id = "22"\n', ''),
    `${FILE}:1: discord.guild_id: missing; expected the server’s id, digits in quotes (Discord: Settings, Advanced, Developer Mode on; then right-click, Copy ID)`,
  ],
  [
    'an id without quotes',
    DISCORD.replace('"22"', '22'),
    `${FILE}:4: discord.guild_id: wrong value 22; expected the server’s id, digits in quotes (Discord: Settings, Advanced, Developer Mode on; then right-click, Copy ID)`,
  ],
  [
    'a bad type deep in a list',
    `${SLACK}channels = ["C0123", "general"]\n`,
    `${FILE}:6: slack.channels.1: wrong value "general"; expected a list of channel ids such as "C0123" (Slack: the channel’s details, at the bottom)`,
  ],
  [
    'a group under a wrong name',
    `${SLACK}[slack.groups]\nowners = []\n`,
    `${FILE}:7: slack.groups.owners: unknown key; expected one of drivers, approvers, viewers`,
  ],
  [
    'a number out of range',
    '[defaults]\n\ncols = 3\n',
    `${FILE}:3: defaults.cols: wrong value 3; expected columns, 10 to 500`,
  ],
  [
    'a profile without a command',
    '[profiles.a]\ncwd = "~"\n',
    `${FILE}:1: profiles.a.command: missing; expected a list: the program and its arguments`,
  ],
  [
    'an unknown key of a profile',
    '[profiles.a]\ncommand = ["x"]\ncolums = 3\n',
    `${FILE}:3: profiles.a.colums: unknown key (did you mean cols?); expected one of command, cwd, env, cols, rows, approve`,
  ],
  [
    'a profile with a bad name',
    '[profiles."A b"]\ncommand = ["x"]\n',
    `${FILE}:1: profiles.A b: not a valid name; expected a profile name of lower-case letters, digits, - and _`,
  ],
  [
    'a pattern that is no regular expression',
    '[redact]\npatterns = ["ok", "("]\n',
    `${FILE}:2: redact.patterns.1: not a regular expression; expected one in JavaScript’s syntax`,
  ],
  [
    'an app token where the bot token belongs',
    SLACK.replace('"env:BOT"', '"xapp-1-A-2-x"'),
    `${FILE}:2: slack.bot_token: this is a Slack app-level token; a bot token (xoxb-…) is at https://api.slack.com/apps, OAuth & Permissions`,
  ],
  [
    'a bot token where the app token belongs',
    SLACK.replace('"env:APP"', '"xoxb-1-2"'),
    `${FILE}:3: slack.app_token: this is a Slack bot token; an app-level token (xapp-…) is at https://api.slack.com/apps, Basic Information, App-Level Tokens`,
  ],
  [
    'a Slack token where Discord’s belongs',
    DISCORD.replace('"file:discord.token"', '"xoxb-1-2"'),
    `${FILE}:2: discord.token: this is a Slack bot token; a bot token is at https://discord.com/developers/applications, Bot, Reset Token`,
  ],
  [
    'an env reference that names nothing',
    SLACK.replace('"env:BOT"', '"env:"'),
    `${FILE}:2: slack.bot_token: expected env:NAME_OF_A_VARIABLE`,
  ],
];

describe('a configuration', () => {
  it.each(MISTAKES)('names file, line, key and what is expected for %s', (_name, source, line) => {
    expect(problems(source)).toEqual([line]);
  });

  it('fills in every default when only identity and secrets are given', () => {
    const config = good(SLACK + DISCORD);
    expect(config.slack).toMatchObject({
      state: 'on',
      config: { apiUrl: 'https://slack.com/api/', channels: [], teamId: 'T0123', appId: 'A0123' },
    });
    expect(config.discord).toMatchObject({
      state: 'on',
      config: {
        apiUrl: 'https://discord.com/api',
        token: { source: { from: 'file', path: '/etc/discord.token' } },
        access: { drivers: { people: [], groups: [] } },
      },
    });
    expect(config.host).toEqual({
      autostart: true,
      idleExitSecs: 600,
      journalMbPerSession: 64,
      journalMbTotal: 2048,
      sessionsMax: 200,
    });
    expect(config.defaults).toEqual({
      shell: 'login',
      cwd: '~',
      cols: 100,
      rows: 30,
      mention: ['prompt', 'failed'],
    });
    expect(config.attachReconnectSecs).toBe(300);
    expect(config.profiles).toEqual([]);
    expect(config.redactPatterns).toEqual([]);
  });

  it('gives a profile the defaults it does not set', () => {
    const config = good(
      '[defaults]\ncwd = "/srv"\nrows = 50\n[profiles.a]\ncommand = ["x"]\ncols = 90\n',
    );
    expect(config.profiles).toEqual([
      { name: 'a', command: ['x'], cwd: '/srv', env: {}, cols: 90, rows: 50, approve: 'never' },
    ]);
  });

  it('reads every key of the example file', async () => {
    const example = await readFile('config/chatd.example.toml', 'utf8');
    expect(problems(example, 0o644)).toEqual([]);
    const config = good(example);
    expect(config.slack).toMatchObject({
      state: 'on',
      config: { access: { drivers: { people: ['U0123'], groups: ['S0123'] } } },
    });
    expect(config.discord.state).toBe('off');
    expect(config.profiles[0]?.env).toEqual({ EDITOR: 'vi' });
  });

  it('tells a section that is off from one that is absent, and still checks it', () => {
    expect(good(SLACK.replace('[slack]', '[slack]\nenabled = false')).slack.state).toBe('off');
    expect(good('').slack.state).toBe('absent');
    expect(problems('[slack]\nenabled = false\n')).toHaveLength(4);
  });

  it.each([
    ['0', false],
    ['"off"', false],
    ['"no"', false],
    ['false', false],
    ['true', true],
  ])('understands autostart = %s', (written, expected) => {
    expect(good(`[host]\nautostart = ${written}\n`).host.autostart).toBe(expected);
  });

  it('takes idle_exit_secs 0 and "never" for the same', () => {
    expect(good('[host]\nidle_exit_secs = 0\n').host.idleExitSecs).toBe('never');
    expect(good('[host]\nidle_exit_secs = "never"\n').host.idleExitSecs).toBe('never');
  });

  it('accepts a token in the file only when nobody else can read the file', () => {
    const source = SLACK.replace('"env:BOT"', '"xoxb-1-2"');
    expect(problems(source, 0o600)).toEqual([]);
    expect(problems(source, 0o640)).toEqual([
      `${FILE}:2: slack.bot_token: a token stands in the file itself and others can read it; chmod 600 ${FILE}, or write "env:NAME", "file:PATH" or "cmd:COMMAND"`,
    ]);
  });

  it('never shows a token in a problem or in a printed configuration', () => {
    const secret = 'xoxb-123-SECRETSECRET';
    const wrongPlace = SLACK.replace('"env:APP"', `"${secret}"`);
    expect(problems(wrongPlace).join()).not.toContain('SECRETSECRET');
    const wrongType = SLACK.replace('"env:APP"', `["${secret}"]`);
    expect(problems(wrongType).join()).not.toContain('SECRETSECRET');
    const config = good(SLACK.replace('"env:BOT"', `"${secret}"`));
    expect(JSON.stringify(config)).not.toContain('SECRETSECRET');
  });

  it('shows at most twenty problems and counts the rest', () => {
    const many = Array.from({ length: 30 }, (_, i) => `unknown_key_${i} = 1`).join('\n');
    const lines = problems(`[slack]\n${many}\n`);
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe(`${FILE}:1: and 14 more problems`);
  });
});

describe('identity and hash', () => {
  it('come from the account keys alone', () => {
    const config = good(SLACK + DISCORD);
    expect(config.identityOf('slack')).toBe('T0123/A0123');
    expect(config.identityOf('discord')).toBe('22/11');
    expect(good('').identityOf('slack')).toBeUndefined();
  });

  it('are the same for the same keys in another order', () => {
    const [head, ...keys] = SLACK.trim().split('\n');
    const turned = [head, ...keys.reverse()].join('\n');
    expect(good(turned).hashOf('slack')).toBe(good(SLACK).hashOf('slack'));
  });

  it('change with what the daemon of that kind reads, and with nothing else', () => {
    const before = good(SLACK + DISCORD);
    const drivers = good(`${SLACK}drivers = ["U987"]\n${DISCORD}`);
    expect(drivers.hashOf('slack')).not.toBe(before.hashOf('slack'));
    expect(drivers.hashOf('discord')).toBe(before.hashOf('discord'));
    const common = good(`${SLACK}${DISCORD}[defaults]\ncols = 90\n`);
    expect(common.hashOf('slack')).not.toBe(before.hashOf('slack'));
    expect(common.hashOf('discord')).not.toBe(before.hashOf('discord'));
    const token = good(SLACK.replace('env:BOT', 'env:OTHER') + DISCORD);
    expect(token.hashOf('slack')).not.toBe(before.hashOf('slack'));
  });
});
