// What a chat daemon serves, put together: store, host client, platform, outbox and threads behind the
// daemon's ChatService port. The two kinds differ only in the platform they bring.

import { userInfo } from 'node:os';
import { mintId } from './base/ids.ts';
import type { AccessPolicy } from './bots/access.ts';
import type { ChatPlatform, TransportHealth } from './bots/chat-platform.ts';
import { backoffsInStore } from './bots/outbox/backoff-memory.ts';
import { Scheduler } from './bots/outbox/scheduler.ts';
import { ThreadOutbox } from './bots/outbox/thread-outbox.ts';
import { createRedactor } from './bots/render/redact.ts';
import type { StartDefaults } from './bots/session-starter.ts';
import { ThreadRegistry } from './bots/thread-registry.ts';
import type { Access } from './config.ts';
import type { CommandHandlers } from './control/commands/registry.ts';
import type { ChatService, ServiceContext, ServiceHealth } from './daemon/chat-service.ts';
import type { ServiceEnvironment } from './daemon-main.ts';
import { connectHostFrom, type HostControl } from './pty/client.ts';
import { remintNames } from './store/outbox-rows.ts';
import { openStore, type Store } from './store/store.ts';
import { threadCommands } from './thread-commands.ts';

export interface ThreadParts {
  readonly platform: ChatPlatform;
  readonly policy: AccessPolicy;
  /** Our own tokens: masked wherever a program prints them. */
  readonly secrets: readonly string[];
}

export function policyOf(space: string, channels: readonly string[], access: Access): AccessPolicy {
  return {
    space,
    channels: new Set(channels),
    drivers: new Set(access.drivers.people),
    approvers: new Set(access.approvers.people),
    viewers: new Set(access.viewers.people),
    driverRoles: new Set(access.drivers.groups),
    approverRoles: new Set(access.approvers.groups),
    viewerRoles: new Set(access.viewers.groups),
  };
}

/** Builds nothing before `start`: ownership comes first. */
export class ThreadService implements ChatService {
  readonly #environment: ServiceEnvironment;
  readonly #parts: ThreadParts;
  #running: Running | undefined;
  #health: TransportHealth = {
    healthy: false,
    reason: 'not connected yet',
    lastEventAtMonotonicMs: 0,
  };
  #connectedOnce = false;

  constructor(environment: ServiceEnvironment, parts: ThreadParts) {
    this.#environment = environment;
    this.#parts = parts;
  }

  get commands(): CommandHandlers {
    return this.#running?.commands ?? {};
  }

  async start(context: ServiceContext): Promise<void> {
    const { clock, random, log } = context;
    const store = openStore(context.paths.store, {
      clock,
      random,
      known: this.#environment.knownStore,
    });
    await context.rememberStore(store.marker);
    // A restored copy must not answer for messages that were posted after it was made.
    if (store.restored)
      log.warn('store.restored', { renamed: remintNames(store, () => mintId(random)) });
    const host = this.#connectHost();
    const registry = this.#openRegistry(context, store, host);
    const { platform, policy } = this.#parts;
    const commands = threadCommands({ registry, platform, host, store, random, policy });
    this.#running = { store, host, registry, commands };
    await registry.start();
  }

  health(): ServiceHealth {
    const { healthy, reason, lastEventAtMonotonicMs, connectionsSeen } = this.#health;
    const { clock } = this.#environment;
    const ageMs = clock.monotonicMs() - lastEventAtMonotonicMs;
    return {
      transportHealthy: healthy,
      transportReason: reason,
      lastEventAtWallMs: lastEventAtMonotonicMs === 0 ? undefined : clock.wallMs() - ageMs,
      ...(connectionsSeen === undefined ? {} : { connectionsSeen }),
    };
  }

  async stop(graceMs: number): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    await running.registry.stop(graceMs);
    running.host.close();
    running.store.close();
  }

  #connectHost(): HostControl {
    const { paths, env, self, config, bundles, programVersion } = this.#environment;
    const { clock, random, log } = this.#environment;
    return connectHostFrom({
      paths,
      environment: env,
      self: { ...self, parentPid: self.pid },
      role: 'bot',
      host: config.host,
      dist: bundles,
      interpreter: this.#environment.interpreter,
      version: programVersion,
      clock,
      random,
      log,
    });
  }

  #openRegistry(context: ServiceContext, store: Store, host: HostControl): ThreadRegistry {
    const { config } = this.#environment;
    const { platform, policy } = this.#parts;
    const { clock, random, log } = context;
    const scheduler = new Scheduler({ kind: platform.kind, clock, memory: backoffsInStore(store) });
    const redact = createRedactor({
      secrets: this.#parts.secrets,
      patterns: config.redactPatterns,
      shapes: true,
    });
    return new ThreadRegistry({
      platform,
      host,
      store,
      clock,
      random,
      log,
      policy,
      profiles: config.profiles,
      defaults: startDefaults(this.#environment),
      redacts: true,
      mention: config.defaults.mention,
      proven: () => context.proven(),
      openOutbox: ({ feed, ...wish }) =>
        new ThreadOutbox({ ...wish, source: feed, store, platform, clock, scheduler, log, redact }),
      health: (health) => this.#healthChanged(context, health),
      fatal: (reason) => context.fatal({ code: 'platform-credentials', reason }),
    });
  }

  #healthChanged(context: ServiceContext, health: TransportHealth): void {
    this.#health = health;
    const identity = this.#environment.config.identityOf(context.kind);
    if (health.healthy && !this.#connectedOnce && identity !== undefined) {
      this.#connectedOnce = true;
      context.signedIn(identity);
    }
    context.healthChanged();
  }
}

interface Running {
  readonly store: Store;
  readonly host: HostControl;
  readonly registry: ThreadRegistry;
  readonly commands: CommandHandlers;
}

function startDefaults({ config, machineName }: ServiceEnvironment): StartDefaults {
  const { shell, cwd, cols, rows } = config.defaults;
  return {
    shell: shell === 'login' ? loginShell() : shell,
    cwd,
    cols,
    rows,
    machine: machineName,
  };
}

/** The user's shell as the system knows it; a service's environment may lack $SHELL. */
function loginShell(): string {
  const { shell } = userInfo();
  return shell === null || shell === '' ? '/bin/sh' : shell;
}
