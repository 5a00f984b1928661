// The unmodified SDKs in a process of their own, so that what kills a process can be seen to kill it.
// argv: scenario, JSON of the sandbox's Slack facts, clientPingTimeout. Says each thing it saw as one JSON line.

import { App, SocketModeReceiver } from '@slack/bolt';
import { SocketModeClient } from '@slack/socket-mode';
import { WebClient } from '@slack/web-api';

const [scenario, factsText, pingTimeoutText = '1000'] = process.argv.slice(2);
const facts = JSON.parse(factsText);
const say = (what, more = {}) => process.stdout.write(`${JSON.stringify({ what, ...more })}\n`);
const quiet = { logLevel: 'error', logger: quietLogger() };

function quietLogger() {
  const nothing = () => undefined;
  return {
    debug: nothing,
    info: nothing,
    warn: nothing,
    error: nothing,
    setLevel: nothing,
    getLevel: () => 'error',
    setName: nothing,
  };
}

// The default of Node 20 ends the process; this only says why first.
process.on('unhandledRejection', (reason) => {
  say('unhandled', {
    reason: reason === undefined ? 'undefined' : String(reason?.message ?? reason),
  });
  process.exit(1);
});

function socketClient(more = {}) {
  return new SocketModeClient({
    appToken: facts.appToken,
    clientPingTimeout: Number(pingTimeoutText),
    clientOptions: {
      slackApiUrl: facts.apiUrl,
      retryConfig: { retries: 0 },
      ...quiet,
    },
    ...quiet,
    ...more,
  });
}

/** Commands of the test arrive as lines on stdin. */
function onCommand(handlers) {
  process.stdin.setEncoding('utf8');
  process.stdin.on('data', (text) => {
    for (const line of text.trim().split('\n')) handlers[line]?.();
  });
}

const scenarios = {
  socket: async () => {
    const client = socketClient();
    client.on('connected', () => say('connected'));
    client.on('reconnecting', () => say('reconnecting'));
    client.on('message', ({ event }) => say('message', { text: event.text }));
    client.on('slack_event', ({ ack }) => ack().catch(() => undefined));
    onCommand({ disconnect: () => client.disconnect() });
    client.start().then(
      () => say('started'),
      (error) => say('refused', { error: String(error) }),
    );
  },
  'bolt-auth': async () => {
    const app = new App({
      token: facts.botToken,
      receiver: new SocketModeReceiver({
        appToken: facts.appToken,
        installerOptions: { clientOptions: { slackApiUrl: facts.apiUrl, ...quiet } },
        ...quiet,
      }),
      clientOptions: { slackApiUrl: facts.apiUrl, retryConfig: { retries: 0 }, ...quiet },
      ...quiet,
    });
    // Without a handler for it the first failure would end the process before the rest shows.
    process.removeAllListeners('unhandledRejection');
    process.on('unhandledRejection', (reason) =>
      say('unhandled', { reason: String(reason?.message) }),
    );
    app.message(async ({ message }) => say('handled', { text: message.text }));
    app.error(async (error) => say('failed', { error: String(error.message) }));
    await app.start();
    say('started');
  },
  'shared-headers': async () => {
    const client = socketClient({
      clientOptions: {
        slackApiUrl: facts.apiUrl,
        headers: { Authorization: `Bearer ${facts.botToken}` },
        retryConfig: { retries: 0 },
        ...quiet,
      },
    });
    // Retries for ever: the sandbox's request log shows what it was told.
    await client.start();
  },
  'shared-options': async () => {
    const shared = { slackApiUrl: facts.apiUrl };
    new SocketModeClient({ appToken: facts.appToken, clientOptions: shared, ...quiet });
    say('options', { retries: shared.retryConfig?.retries });
  },
  'post-once': async () => {
    const client = new WebClient(facts.botToken, { slackApiUrl: facts.apiUrl, ...quiet });
    await client.chat.postMessage({ channel: facts.channel, text: 'once' });
    say('posted');
  },
  'post-and-test': async () => {
    const client = new WebClient(facts.botToken, { slackApiUrl: facts.apiUrl, ...quiet });
    const post = client.chat.postMessage({ channel: facts.channel, text: 'limited' });
    client.on('rate_limited', () => {
      // A moment later: the event comes before the pause.
      setTimeout(() => {
        client.auth.test().then(
          () => say('tested'),
          () => undefined,
        );
      }, 100);
    });
    await post;
    say('posted');
  },
};

await scenarios[scenario]();
