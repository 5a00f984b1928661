// Listens to a platform and waits for facts with a deadline, never for time.

import type { Inbound, PlatformEvents, TransportHealth } from '../../src/bots/chat-platform.ts';

const DEADLINE_MS = 30_000;

/** Polls until `probe` gives something else than undefined or false. */
export async function until<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const endAt = Date.now() + DEADLINE_MS;
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > endAt) throw new Error(`never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export class PlatformRecorder implements PlatformEvents {
  readonly acts: Inbound[] = [];
  readonly healths: TransportHealth[] = [];
  connectedCount = 0;
  fatalReason: string | undefined;
  /** Replaces what happens on an act: by default it is claimed at once. */
  claim: (act: Inbound) => Promise<void> = async () => undefined;

  async inbound(event: Inbound): Promise<void> {
    this.acts.push(event);
    await this.claim(event);
  }

  health(health: TransportHealth): void {
    this.healths.push(health);
  }

  connected(): void {
    this.connectedCount += 1;
  }

  fatal(reason: string): void {
    this.fatalReason = reason;
  }

  get healthy(): boolean {
    return this.healths.at(-1)?.healthy === true;
  }

  /** The first act of `kind` that `matches`, as soon as it is there. */
  async act<K extends Inbound['kind']>(
    kind: K,
    matches: (act: Extract<Inbound, { kind: K }>) => boolean = () => true,
  ): Promise<Extract<Inbound, { kind: K }>> {
    return await until(`an act of kind ${kind}`, () =>
      this.acts
        .filter((act): act is Extract<Inbound, { kind: K }> => act.kind === kind)
        .find(matches),
    );
  }
}
