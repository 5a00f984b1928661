// A chat daemon whose service is trivial: the whole life, no platform. What it does is told by
// CHATD_FIXTURE (JSON), so that tests can make it slow, sick or deaf.

import { Secret } from '../../src/base/secret.ts';
import type { ChatService, ServiceContext } from '../../src/daemon/chat-service.ts';
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
  /** Handlers of bind-thread: how the storm commits. */
  readonly commitFile?: string;
}

function behaviourOf(env: Readonly<Record<string, string | undefined>>): Behaviour {
  return JSON.parse(env['CHATD_FIXTURE'] ?? '{}') as Behaviour;
}

function fixtureService(behaviour: Behaviour): ChatService {
  let context: ServiceContext | undefined;
  const healthy = behaviour.healthy !== false;
  return {
    commands: {},
    start: (given) => {
      context = given;
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

await runDaemonMain(
  process.env['CHATD_FIXTURE_KIND'] === 'discord' ? 'discord' : 'slack',
  (given) => {
    const behaviour = behaviourOf(given.env);
    if (behaviour.prepareError !== undefined) throw new Error(behaviour.prepareError);
    return Promise.resolve({
      service: fixtureService(behaviour),
      tokenHashes:
        behaviour.token === undefined
          ? []
          : [tokenHash('http://localhost/', new Secret(behaviour.token))],
    });
  },
);
