// A chat as a person uses it, for both kinds alike: over the sandbox's control API. Knows what is on
// the screen of a person, nothing of chatd's insides.

import type { Kind } from '../../src/base/paths.ts';

/** A message as a person sees it. */
export interface SeenMessage {
  readonly id: string;
  readonly isBot: boolean;
  /** Lines inside preformatted blocks: a program's. */
  readonly lines: readonly string[];
  /** Everything outside of them: somebody's words. */
  readonly notes: string;
  readonly buttons: readonly string[];
  readonly files: readonly string[];
  readonly reactions: readonly string[];
  readonly edited: boolean;
}

export interface ChatFacts {
  readonly channel: string;
  readonly users: Readonly<Record<string, string>>;
  readonly config: string;
}

export interface ChatWorld {
  readonly kind: Kind;
  readonly facts: ChatFacts;
  /** Asks for a session as this kind's people do. */
  run(user: string, text: string): Promise<void>;
  /** Types into a thread, or into the channel without one. Answers the message's id. */
  type(user: string, root: string | undefined, text: string): Promise<string>;
  click(user: string, root: string, messageId: string, label: string): Promise<void>;
  submit(user: string, value: string): Promise<void>;
  /** Root messages of ours, oldest first. */
  roots(): Promise<readonly SeenMessage[]>;
  /** Messages of a thread, without its root. */
  thread(root: string): Promise<readonly SeenMessage[]>;
  /** What only one person sees, in the channel or in a thread. */
  whispers(user: string, root: string | undefined): Promise<readonly string[]>;
}

export class Control {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  /** @throws {Error} with the sandbox's own words */
  async call(name: string, body: object = {}): Promise<unknown> {
    const response = await fetch(`${this.url}/control/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${name}: ${response.status} ${text}`);
    const answer = JSON.parse(text) as { readonly ok: boolean; readonly result?: unknown };
    return answer.result;
  }

  /**
   * What a real platform would have refused, warned about or mangled. A request told to wait is left
   * out: a daemon started after a kill cannot know what its predecessor had spent, and waits then.
   */
  async violations(): Promise<readonly unknown[]> {
    const all = (await this.call('violations')) as readonly { readonly rule: string }[];
    return all.filter(({ rule }) => rule !== 'rate-limited');
  }
}

interface SlackView {
  readonly ts: string;
  readonly is_bot: boolean;
  readonly pre: readonly string[];
  readonly notes: readonly string[];
  readonly buttons: readonly { readonly label: string }[];
  readonly files: readonly { readonly name: string }[];
  readonly reactions: readonly { readonly name: string }[];
  readonly edited: boolean;
  readonly edit_count: number;
}

function seenInSlack(view: SlackView): SeenMessage {
  return {
    id: view.ts,
    isBot: view.is_bot,
    lines: view.pre,
    notes: view.notes.join('\n'),
    buttons: view.buttons.map(({ label }) => label),
    files: view.files.map(({ name }) => name),
    reactions: view.reactions.map(({ name }) => name),
    edited: view.edit_count > 0,
  };
}

interface SlackFacts {
  readonly apiUrl: string;
  readonly teamId: string;
  readonly appId: string;
  readonly channel: string;
  readonly users: Readonly<Record<string, string>>;
  readonly botToken: string;
  readonly appToken: string;
}

/** @param secrets directory where the tokens are written, mode 0600 */
export function slackWorld(
  control: Control,
  facts: SlackFacts,
  secret: (name: string, value: string) => string,
): ChatWorld {
  const { channel } = facts;
  const list = (values: readonly string[]): string => JSON.stringify(values);
  return {
    kind: 'slack',
    facts: {
      channel,
      users: facts.users,
      config: [
        '[slack]',
        'enabled = true',
        `bot_token = ${JSON.stringify(secret('slack-bot.token', facts.botToken))}`,
        `app_token = ${JSON.stringify(secret('slack-app.token', facts.appToken))}`,
        `team_id = "${facts.teamId}"`,
        `app_id = "${facts.appId}"`,
        `api_url = "${facts.apiUrl}"`,
        `channels = ${list([channel])}`,
        `drivers = ${list([facts.users['alice'] ?? ''])}`,
      ].join('\n'),
    },
    run: async (user, text) => {
      await control.call('slack/type', { user, channel, text: `@chatd ${text}` });
    },
    type: async (user, root, text) => {
      const typed = (await control.call('slack/type', {
        user,
        channel,
        text,
        ...(root === undefined ? {} : { thread_ts: root }),
      })) as { readonly ts?: string };
      if (typed.ts === undefined) throw new Error(`not sent: ${JSON.stringify(typed)}`);
      return typed.ts;
    },
    click: async (user, _root, ts, label) => {
      await control.call('slack/click', { user, channel, ts, label });
    },
    submit: async (user, value) => {
      await control.call('slack/submit', { user, values: { secret: value } });
    },
    roots: async () => {
      const view = (await control.call('slack/channel', { channel })) as {
        readonly messages: readonly SlackView[];
      };
      return view.messages.filter((message) => message.is_bot).map(seenInSlack);
    },
    thread: async (root) => {
      const view = (await control.call('slack/thread', { channel, ts: root })) as {
        readonly messages: readonly SlackView[];
      };
      return view.messages.filter((message) => message.ts !== root).map(seenInSlack);
    },
    whispers: async (user, root) => {
      const name = root === undefined ? 'slack/channel' : 'slack/thread';
      const view = (await control.call(name, {
        channel,
        ...(root === undefined ? {} : { ts: root }),
      })) as { readonly ephemeral: readonly { user_name: string; shown: string }[] };
      return view.ephemeral.filter((note) => note.user_name === user).map((note) => note.shown);
    },
  };
}

interface DiscordView {
  readonly id: string;
  readonly author: { readonly bot: boolean; readonly name: string };
  readonly blocks: readonly { readonly kind: 'text' | 'fence'; readonly text: string }[];
  readonly components: readonly { readonly components?: readonly { readonly label?: string }[] }[];
  readonly attachments: readonly { readonly filename: string }[];
  readonly reactions: readonly { readonly emoji: string }[];
  readonly edits: number;
  readonly type: number;
  readonly onlyFor: string | null;
  readonly threadId: string | null;
}

function seenInDiscord(view: DiscordView): SeenMessage {
  const text = (kind: 'text' | 'fence'): readonly string[] =>
    view.blocks.filter((block) => block.kind === kind).map((block) => block.text);
  return {
    id: view.id,
    isBot: view.author.bot,
    // Zero-width spaces keep backticks from ending a fence; nobody sees them.
    lines: text('fence').flatMap((block) => block.replaceAll('\u200b', '').split('\n')),
    notes: text('text').join('\n'),
    buttons: view.components.flatMap((row) => (row.components ?? []).map((one) => one.label ?? '')),
    files: view.attachments.map(({ filename }) => filename),
    reactions: view.reactions.map(({ emoji }) => emoji),
    edited: view.edits > 0,
  };
}

export interface DiscordFacts {
  readonly token: string;
  readonly applicationId: string;
  readonly guildId: string;
  readonly apiUrl: string;
  readonly channels: Readonly<Record<string, string>>;
  readonly users: Readonly<Record<string, string>>;
}

export function discordWorld(
  control: Control,
  facts: DiscordFacts,
  secret: (name: string, value: string) => string,
): ChatWorld {
  const channel = facts.channels['ops'] ?? Object.values(facts.channels)[0] ?? '';
  const messagesOf = async (id: string): Promise<readonly DiscordView[]> => {
    const view = (await control.call('discord/thread', { id })) as {
      readonly messages: readonly DiscordView[];
    };
    return view.messages;
  };
  return {
    kind: 'discord',
    facts: {
      channel,
      users: facts.users,
      config: [
        '[discord]',
        'enabled = true',
        `token = ${JSON.stringify(secret('discord.token', facts.token))}`,
        `application_id = "${facts.applicationId}"`,
        `guild_id = "${facts.guildId}"`,
        `api_url = "${facts.apiUrl}"`,
        `channels = ${JSON.stringify([channel])}`,
        `drivers = ${JSON.stringify([facts.users['alice'] ?? ''])}`,
      ].join('\n'),
    },
    run: async (user, text) => {
      const [, profile, command] =
        /^run(?:\s+(?!--)(\S+))?(?:\s+--\s+([\s\S]*))?$/.exec(text) ?? [];
      await control.call('discord/command', {
        user,
        channel,
        name: 'term run',
        options: {
          ...(profile === undefined ? {} : { profile }),
          ...(command === undefined ? {} : { command }),
        },
      });
    },
    type: async (user, root, text) => {
      const typed = (await control.call('discord/type', {
        user,
        channel: root ?? channel,
        text,
      })) as { readonly id: string };
      return typed.id;
    },
    click: async (user, root, messageId, label) => {
      await control.call('discord/click', { user, channel: root, messageId, label });
    },
    submit: async (user, value) => {
      await control.call('discord/submit', { user, values: { secret: value } });
    },
    roots: async () =>
      (await messagesOf(channel))
        // A person can write only once the thread is open below it.
        .filter((message) => message.author.bot && message.threadId !== null)
        .map(seenInDiscord),
    thread: async (root) =>
      (await messagesOf(root))
        .filter((message) => message.type !== 21 && message.id !== root && message.onlyFor === null)
        .map(seenInDiscord),
    whispers: async (user, root) =>
      (await messagesOf(root ?? channel))
        .filter((message) => message.onlyFor === user)
        .map((message) => seenInDiscord(message).notes),
  };
}

/** Lines of the program in a thread, in order, whatever messages they are in. */
export function programLines(messages: readonly SeenMessage[]): readonly string[] {
  return messages.filter((message) => message.isBot).flatMap((message) => message.lines);
}

/**
 * The newest message that shows `line` and has a button `label`: a live screen goes on in a new
 * message below whatever is written, and only the newest has buttons.
 */
export async function pressOn(
  world: ChatWorld,
  root: string,
  line: string,
  label: string,
): Promise<SeenMessage | undefined> {
  const found = (await world.thread(root)).findLast(
    ({ lines, buttons }) => lines.includes(line) && buttons.includes(label),
  );
  if (found !== undefined) await world.click('alice', root, found.id, label);
  return found;
}
