// chatd status: one line a kind, or with --explain each fact that was seen and what could not be told.

import { ChatdError, errorText } from '../base/errors.ts';
import { type DaemonPaths, daemonPaths, hostPaths, type Kind } from '../base/paths.ts';
import type { Config } from '../config.ts';
import {
  type Classification,
  classify,
  type HealthWord,
  healthWord,
  type Observation,
  ownerOf,
} from '../control/classify.ts';
import { CHAT_DAEMON_GENERATION } from '../control/generation.ts';
import { type MachineTime, systemMachineTime } from '../control/machine-time.ts';
import { observe } from '../control/observe.ts';
import { type OwnerSummary, summarize } from '../control/outcomes.ts';
import type { StateRecord } from '../control/records.ts';
import { viewLock } from '../ownership/kept-lock.ts';
import { judgeIncarnation } from '../ownership/process-incarnation.ts';
import { systemObserver } from '../ownership/process-observer.ts';
import { type CliContext, kindsOf } from './context.ts';
import { optionalConfig } from './lifecycle.ts';
import { programVersionOf } from './version.ts';

interface KindStatus {
  readonly kind: Kind;
  readonly health: HealthWord;
  readonly class: Classification['class'];
  readonly owner: OwnerSummary | null;
  readonly configDiffers: boolean | null;
  readonly versionOnDisk: string;
  readonly interpreter: string | null;
  readonly startedAtWallMs: number | null;
  readonly lastEventAtWallMs: number | null;
  readonly warnings: readonly string[];
  readonly facts: readonly string[];
  /** What to do next; null when nothing. */
  readonly next: string | null;
}

export async function runStatus(
  context: CliContext,
  word: string | undefined,
  options: { readonly explain: boolean },
): Promise<number> {
  const { kinds } = kindsOf(word);
  const machine = systemMachineTime();
  const { config, problem } = configOrProblem(context);
  const found = kinds.map((kind) => statusOf(context, kind, config, machine, options.explain));
  const host = hostLine(context);
  if (context.json) {
    context.out(JSON.stringify({ kinds: found, host, configProblem: problem ?? null }, null, 2));
    return 0;
  }
  for (const status of found) printStatus(context, status, options.explain);
  context.out(`host     ${host.state}${host.pid === null ? '' : ` (pid ${host.pid})`}`);
  if (problem !== undefined) context.err(problem);
  return 0;
}

/** Status must also work while the configuration is broken: then it says so and goes on. */
function configOrProblem(context: CliContext): {
  readonly config: Config | undefined;
  readonly problem: string | undefined;
} {
  try {
    return { config: optionalConfig(context), problem: undefined };
  } catch (error) {
    if (error instanceof ChatdError) return { config: undefined, problem: errorText(error) };
    throw error;
  }
}

function statusOf(
  context: CliContext,
  kind: Kind,
  config: Config | undefined,
  machine: MachineTime,
  explain: boolean,
): KindStatus {
  const paths = daemonPaths(context.paths.state, kind);
  const identity = config?.identityOf(kind);
  const seen = observe(paths);
  const classification = classify(seen, { identity, generation: CHAT_DAEMON_GENERATION });
  const owner = ownerOf(classification);
  const last = classification.class === 'stopped' ? classification.last : undefined;
  const state = owner?.state;
  const hash = identity === undefined ? undefined : config?.hashOf(kind);
  return {
    kind,
    health: healthWord(classification, identity !== undefined, machine),
    class: classification.class,
    owner: summarize(owner, machine),
    configDiffers: state === undefined || hash === undefined ? null : state.configHash !== hash,
    versionOnDisk: programVersionOf(context.bundles),
    interpreter: state?.interpreter ?? null,
    startedAtWallMs: state?.startedAtWallMs ?? null,
    lastEventAtWallMs: state?.lastEventAtWallMs ?? null,
    warnings: warningsOf(state),
    facts: explain ? factsOf(seen, paths, classification) : [],
    next: nextStep(kind, classification, identity !== undefined, last?.stopCause?.reason),
  };
}

function warningsOf(state: StateRecord | undefined): string[] {
  if (state === undefined) return [];
  const warnings = state.degraded === undefined ? [] : [state.degraded];
  const { connectionsSeen: seen, connectionsOwn: own } = state;
  if (seen !== undefined && own !== undefined && seen > own) {
    warnings.push(
      `the platform counts ${seen} connections, ours are ${own}: another program uses this app`,
    );
  }
  return warnings;
}

function nextStep(
  kind: Kind,
  classification: Classification,
  configured: boolean,
  stopReason: string | undefined,
): string | null {
  switch (classification.class) {
    case 'absent':
    case 'stopped': {
      const why = stopReason === undefined ? '' : ` (it stopped: ${stopReason})`;
      return configured ? `chatd ensure ${kind}${why}` : null;
    }
    case 'unauthorized':
      return 'it serves another account: use the configuration it was started with, or another CHATD_STATE';
    case 'newer':
      return 'upgrade this chatd';
    case 'replaceable':
      return `chatd reload ${kind}`;
    case 'malformed':
      return `end the process that holds owner.lock (its pid is among the facts), then: chatd ensure ${kind}`;
    case 'unknown':
      return classification.starting
        ? 'wait a moment and look again'
        : `make the facts readable (see what could not be told), then: chatd status ${kind} --explain`;
    case 'compatible':
      return null;
  }
}

function factsOf(seen: Observation, paths: DaemonPaths, classification: Classification): string[] {
  const { lock, holder, state } = seen;
  const facts = [`${paths.lock}: ${lock.state} (${lock.because})`];
  if (lock.record.kind === 'record') {
    const { incarnation, ownerId, generation } = lock.record.record;
    facts.push(
      `its record names pid ${incarnation.pid}, owner ${ownerId}, generation ${generation}`,
      `that process: ${holder?.verdict ?? 'unknown'} (${holder?.because ?? 'not looked at'})`,
    );
  } else {
    facts.push(`its record: ${lock.record.kind}`);
  }
  const because = 'because' in state ? ` (${state.because})` : '';
  facts.push(`${paths.state}: ${state.kind}${because}`);
  if (state.kind === 'record') {
    const { phase, heartbeat, generation } = state.record;
    facts.push(
      `it says ${phase}, heartbeat ${heartbeat.seq} at ${new Date(heartbeat.wallMs).toISOString()}, generation ${generation ?? 'none'}`,
    );
  }
  const why = 'because' in classification ? `: ${classification.because}` : '';
  facts.push(`so: ${classification.class}${why}`);
  return facts;
}

function hostLine(context: CliContext): {
  readonly state: 'running' | 'stopped' | 'unknown';
  readonly pid: number | null;
} {
  const view = viewLock(hostPaths(context.paths, context.self.uid).hostLock);
  if (view.state === 'free') return { state: 'stopped', pid: null };
  if (view.state === 'unknown' || view.record.kind !== 'record') {
    return { state: 'unknown', pid: null };
  }
  const { incarnation } = view.record.record;
  const alive = judgeIncarnation(incarnation, systemObserver).verdict === 'alive';
  return { state: alive ? 'running' : 'unknown', pid: incarnation.pid };
}

function printStatus(context: CliContext, status: KindStatus, explain: boolean): void {
  const { owner } = status;
  const parts = [
    owner === null ? undefined : `pid ${owner.pid}`,
    owner === null ? undefined : owner.identity,
    owner === null ? undefined : versionText(owner.version, status.versionOnDisk),
    owner === null ? undefined : owner.transportReason,
    status.configDiffers === true ? 'config differs from the file' : undefined,
  ].filter((part) => part !== undefined && part !== '');
  context.out(
    `${status.kind.padEnd(8)} ${status.health}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`,
  );
  for (const warning of status.warnings) context.out(`  note: ${warning}`);
  if (explain) {
    for (const fact of status.facts) context.out(`  ${fact}`);
    if (status.interpreter !== null) context.out(`  interpreter ${status.interpreter}`);
  }
  if (status.next !== null && (explain || status.health !== 'stopped')) {
    context.out(`  next: ${status.next}`);
  }
}

function versionText(running: string, onDisk: string): string {
  return running === onDisk ? `version ${running}` : `version ${running}, on disk ${onDisk}`;
}
