// The Discord daemon's entry: its secret, its platform, the threads.

import { classifyRejection } from './bots/discord/errors.ts';
import { DiscordPlatform } from './bots/discord/platform.ts';
import { policyOf, ThreadService } from './chat-threads.ts';
import { resolveSecret } from './config-secrets.ts';
import { tokenHash } from './daemon/token-exclusivity.ts';
import { healRejections, runDaemonMain } from './daemon-main.ts';

await runDaemonMain('discord', async (environment) => {
  const { config, env, clock, random, log } = environment;
  if (config.discord.state !== 'on') throw new Error('the section was on when the daemon started');
  const discord = config.discord.config;
  const token = await resolveSecret(discord.token, env);
  const platform = new DiscordPlatform({
    config: {
      token: token.reveal(),
      applicationId: discord.applicationId,
      guildId: discord.guildId,
      apiUrl: discord.apiUrl,
    },
    clock,
    random,
    log,
  });
  healRejections(classifyRejection, platform, log);
  return {
    service: new ThreadService(environment, {
      platform,
      secrets: [token.reveal()],
      policy: policyOf(discord.guildId, discord.channels, discord.access),
    }),
    tokenHashes: [tokenHash(discord.apiUrl, token)],
  };
});
