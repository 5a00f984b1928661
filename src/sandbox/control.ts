// Control calls that belong to no platform: faults, requests, violations, time, and the whole state.

import type { Fault, FaultRule } from './faults.ts';
import { fieldsOf, isFields, optionalNumber, optionalText, textField } from './fields.ts';
import {
  ControlError,
  type ControlHandler,
  type SandboxCore,
  type SandboxModule,
} from './module.ts';

const FAULT_KINDS: readonly Fault['kind'][] = [
  'reply',
  'rate-limit',
  'error',
  'reset',
  'hang',
  'delay',
  'truncate',
  'refuse-upgrade',
  'no-hello',
  'duplicate',
  'reorder',
  'late',
  'lose',
  'ignore-ack',
];

/** What each kind of fault cannot do without. */
const FAULT_NUMBERS: Partial<Record<Fault['kind'], string>> = {
  reply: 'status',
  delay: 'ms',
  late: 'ms',
  'refuse-upgrade': 'status',
};

function isFault(value: unknown): value is Fault {
  if (!isFields(value)) return false;
  const kind = FAULT_KINDS.find((known) => known === value['kind']);
  if (kind === undefined) return false;
  const number = FAULT_NUMBERS[kind];
  if (number !== undefined && typeof value[number] !== 'number') return false;
  return kind !== 'error' || typeof value['code'] === 'string';
}

function faultRule(body: unknown): FaultRule {
  const fields = fieldsOf(body);
  const fault = fields['fault'];
  if (!isFault(fault))
    throw new ControlError(`fault must have a kind (${FAULT_KINDS.join(', ')}) and its numbers`);
  const rule: Record<string, unknown> = { on: textField(fields, 'on'), fault };
  for (const name of ['count', 'skip', 'probability', 'seed']) {
    const value = optionalNumber(fields, name);
    if (value !== undefined) rule[name] = value;
  }
  return { ...rule, on: textField(fields, 'on'), fault };
}

function timeOf(core: SandboxCore): unknown {
  return { wallMs: core.clock.wallMs(), scale: core.clock.scale };
}

export function sandboxControl(
  core: SandboxCore,
  modules: readonly SandboxModule[],
): Record<string, ControlHandler> {
  return {
    state: async () => ({
      url: core.baseUrl(),
      lastChange: core.changes.lastSeq,
      time: timeOf(core),
      ...Object.fromEntries(modules.map((module) => [module.platform, module.state()])),
    }),
    'faults/add': async (body) => ({ id: core.faults.add(faultRule(body)) }),
    'faults/list': async () => core.faults.list(),
    'faults/clear': async (body) => core.faults.clear(optionalNumber(fieldsOf(body), 'id')),
    requests: async (body) => {
      const fields = fieldsOf(body);
      const after = optionalNumber(fields, 'after');
      const target = optionalText(fields, 'target');
      return core.requests.list({
        ...(after === undefined ? {} : { after }),
        ...(target === undefined ? {} : { target }),
      });
    },
    violations: async () => core.violations.list(),
    'violations/clear': async () => core.violations.clear(),
    time: async () => timeOf(core),
    'time/scale': async (body) => {
      const scale = optionalNumber(fieldsOf(body), 'scale');
      if (scale === undefined || scale <= 0)
        throw new ControlError('scale must be a number above 0');
      core.clock.setScale(scale);
      return timeOf(core);
    },
    'time/advance': async (body) => {
      const byMs = optionalNumber(fieldsOf(body), 'ms');
      if (byMs === undefined || byMs < 0) throw new ControlError('ms must be a number, 0 or more');
      core.clock.advance(byMs);
      return timeOf(core);
    },
  };
}
