// A chat daemon whose service is trivial: the whole life, no platform. What it does is told by
// CHATD_FIXTURE (JSON), so that tests can make it slow, sick or deaf.

import { appendFileSync } from 'node:fs';
import { ChatdError } from '../../src/base/errors.ts';
import { Secret } from '../../src/base/secret.ts';
import type { CommandHandlers } from '../../src/control/commands/registry.ts';
import type { ChatService } from '../../src/daemon/chat-service.ts';
import { tokenHash } from '../../src/daemon/token-exclusivity.ts';
import { runDaemonMain } from '../../src/daemon-main.ts';

interface Behaviour {
  /** Healthy from the start unless false. */
  readonly healthy?: boolean;
  readonly signedInAs?: string;
  readonly token?: string;
  /** `stop` takes this long. */
  readonly stopMs?: number;
  readonly prepareError?: string;
  /** bind-thread appends its request id here: the commit. */
  readonly commitFile?: string;
  /** bind-thread waits for ever before it asks for authority. */
  readonly hangCommand?: boolean;
}

function behaviourOf(env: Readonly<Record<string, string | undefined>>): Behaviour {
  return JSON.parse(env['CHATD_FIXTURE'] ?? '{}') as Behaviour;
}

function bindHandler(behaviour: Behaviour): NonNullable<CommandHandlers['bind-thread']> {
  return async (args, fence) => {
    if (behaviour.hangCommand === true) await new Promise(() => undefined);
    const entered = await fence.enter();
    if (!entered.granted) return { kind: 'rejected', code: entered.because };
    appendFileSync(behaviour.commitFile ?? '/dev/null', `${fence.requestId}\n`);
    return { kind: 'ok', result: { session: args.session, root: args.root } };
  };
}

function fixtureService(behaviour: Behaviour): ChatService {
  const healthy = behaviour.healthy !== false;
  return {
    commands: { 'bind-thread': bindHandler(behaviour) },
    start: (context) => {
      if (behaviour.signedInAs !== undefined) context.signedIn(behaviour.signedInAs);
      context.healthChanged();
      return Promise.resolve();
    },
    health: () => ({
      transportHealthy: healthy,
      transportReason: healthy ? 'connected' : 'told to be sick',
      lastEventAtWallMs: undefined,
    }),
    stop: () =>
      new Promise((resolve) => {
        setTimeout(resolve, behaviour.stopMs ?? 0);
      }),
  };
}

const kind = process.argv[1]?.endsWith('discord.js') === true ? 'discord' : 'slack';
await runDaemonMain(kind, (given) => {
  const behaviour = behaviourOf(given.env);
  if (behaviour.prepareError !== undefined) {
    throw new ChatdError('config-invalid', behaviour.prepareError);
  }
  return Promise.resolve({
    service: fixtureService(behaviour),
    tokenHashes:
      behaviour.token === undefined
        ? []
        : [tokenHash('http://localhost/', new Secret(behaviour.token))],
  });
});
