// The contract table of PLATFORM §2.4: which methods exist, their tier and the scopes they need.

import type { ChannelKind } from './model.ts';

export type Tier = 1 | 2 | 3 | 4 | 'post' | 'special';

export interface MethodContract {
  readonly tier: Tier;
  /** Any one of these is enough; `*:read` and the like stand for the scope of the channel's kind. */
  readonly scopes: readonly string[];
  readonly required: readonly string[];
  /** JSON bodies are refused; only forms and query parameters count. */
  readonly isFormOnly: boolean;
  readonly token: 'bot' | 'app';
}

/** Requests a minute. `special`: hundreds a minute. */
export const TIER_PER_MINUTE: Readonly<Record<Tier, number>> = {
  1: 1,
  2: 20,
  3: 50,
  4: 100,
  post: 300,
  special: 300,
};

// name, tier, scopes, required arguments, `f` = form only, `j` = JSON too.
const TABLE = `
auth.test                      special -                    -                        j
chat.postMessage               post    chat:write           channel                  j
chat.update                    3       chat:write           ts,channel               j
chat.delete                    3       chat:write           ts,channel               j
chat.postEphemeral             4       chat:write           user,channel             j
chat.getPermalink              special -                    channel,message_ts       f
chat.startStream               2       chat:write           channel                  j
chat.appendStream              4       chat:write           channel,ts               j
chat.stopStream                2       chat:write           channel,ts               j
conversations.info             3       *:read               channel                  f
conversations.list             2       *:read               -                        f
conversations.members          4       *:read               channel                  f
conversations.history          3       *:history            channel                  j
conversations.replies          3       *:history            channel,ts               f
conversations.join             3       channels:join        channel                  j
conversations.open             3       im:write             -                        j
users.conversations            3       *:read               -                        f
users.info                     4       users:read           user                     f
users.list                     2       users:read           -                        f
bots.info                      3       users:read           -                        f
team.info                      3       team:read            -                        j
emoji.list                     2       emoji:read           -                        f
files.getUploadURLExternal     4       files:write          filename                 f
files.completeUploadExternal   4       files:write          files                    j
files.info                     4       files:read           file                     f
files.delete                   3       files:write          file                     j
reactions.add                  3       reactions:write      name,timestamp,channel   j
reactions.remove               2       reactions:write      name                     j
reactions.get                  3       reactions:read       -                        f
views.open                     4       -                    view                     j
views.push                     4       -                    view                     j
views.update                   4       -                    view                     j
assistant.threads.setStatus    special chat:write           channel_id,thread_ts,status j
apps.connections.open          3       connections:write    -                        j
`;

export const METHODS: ReadonlyMap<string, MethodContract> = new Map(
  TABLE.trim()
    .split('\n')
    .map((row) => {
      const [name = '', tier = '', scopes = '', required = '', body = ''] = row.split(/\s+/);
      return [
        name,
        {
          tier: tierOf(tier),
          scopes: listOf(scopes),
          required: listOf(required),
          isFormOnly: body === 'f',
          token: name === 'apps.connections.open' ? 'app' : 'bot',
        },
      ] as const;
    }),
);

function listOf(cell: string): readonly string[] {
  return cell === '-' ? [] : cell.split(',');
}

function tierOf(cell: string): Tier {
  const tiers: readonly Tier[] = [1, 2, 3, 4, 'post', 'special'];
  return tiers.find((tier) => String(tier) === cell) ?? 'special';
}

const KIND_PREFIX: Readonly<Record<ChannelKind, string>> = {
  public: 'channels',
  private: 'groups',
  im: 'im',
  mpim: 'mpim',
};

/** The scopes of which one is needed, for a call about a channel of `kind` (undefined: any kind). */
export function neededScopes(
  contract: MethodContract,
  kind: ChannelKind | undefined,
): readonly string[] {
  return contract.scopes.flatMap((scope) => {
    if (!scope.startsWith('*:')) return [scope];
    const kinds: readonly ChannelKind[] =
      kind === undefined ? ['public', 'private', 'im', 'mpim'] : [kind];
    return kinds.map((one) => `${KIND_PREFIX[one]}${scope.slice(1)}`);
  });
}
