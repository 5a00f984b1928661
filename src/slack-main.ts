// The Slack daemon's entry: its secrets, its platform, the threads.

import { classifyRejection } from './bots/slack/errors.ts';
import { SlackPlatform } from './bots/slack/platform.ts';
import { policyOf, ThreadService } from './chat-threads.ts';
import { resolveSecret } from './config-secrets.ts';
import { tokenHash } from './daemon/token-exclusivity.ts';
import { healRejections, runDaemonMain } from './daemon-main.ts';

await runDaemonMain('slack', async (environment) => {
  const { config, env, clock, random, log } = environment;
  if (config.slack.state !== 'on') throw new Error('the section was on when the daemon started');
  const slack = config.slack.config;
  const botToken = await resolveSecret(slack.botToken, env);
  const appToken = await resolveSecret(slack.appToken, env);
  const { drivers, approvers, viewers } = slack.access;
  const platform = new SlackPlatform({
    config: {
      botToken: botToken.reveal(),
      appToken: appToken.reveal(),
      teamId: slack.teamId,
      appId: slack.appId,
      apiUrl: slack.apiUrl,
      groups: [...drivers.groups, ...approvers.groups, ...viewers.groups],
    },
    clock,
    random,
    log,
  });
  healRejections(classifyRejection, platform, log);
  return {
    service: new ThreadService(environment, {
      platform,
      secrets: [botToken.reveal(), appToken.reveal()],
      policy: policyOf(slack.teamId, slack.channels, slack.access),
    }),
    tokenHashes: [tokenHash(slack.apiUrl, botToken), tokenHash(slack.apiUrl, appToken)],
  };
});
