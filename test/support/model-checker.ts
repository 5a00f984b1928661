// An exhaustive checker for small protocols: breadth first over every interleaving, so that the
// first violation found has a shortest trace. States are plain JSON values.

export type Step<S> = readonly [label: string, next: S];

export interface Model<S> {
  readonly initial: S;
  /** Every step any process, crash or accident may take now. */
  steps(state: S): readonly Step<S>[];
  /** A sentence when the state breaks an invariant. */
  broken(state: S): string | undefined;
  /**
   * The state in which everybody else has crashed and one fresh contender starts, and whether it
   * got what it wants. Left out: no check against wedges.
   */
  readonly alone?: {
    start(state: S): S;
    reached(state: S): boolean;
  };
}

export interface Exploration {
  readonly states: number;
  readonly violation?: { readonly reason: string; readonly trace: readonly string[] };
}

/** Explores everything. @throws when there are more than `maxStates` states */
export function explore<S>(model: Model<S>, maxStates = 400_000): Exploration {
  const seen = new Map<string, { readonly from: string | undefined; readonly label: string }>();
  const queue: { key: string; state: S }[] = [];
  const visit = (state: S, from: string | undefined, label: string): void => {
    const key = JSON.stringify(state);
    if (seen.has(key)) return;
    if (seen.size >= maxStates) throw new Error(`More than ${maxStates} states`);
    seen.set(key, { from, label });
    queue.push({ key, state });
  };
  const traceTo = (key: string): string[] => {
    const labels: string[] = [];
    let entry = seen.get(key);
    while (entry?.from !== undefined) {
      labels.push(entry.label);
      entry = seen.get(entry.from);
    }
    return labels.reverse();
  };
  visit(model.initial, undefined, 'start');
  for (let head = 0; head < queue.length; head++) {
    const entry = queue[head];
    if (entry === undefined) break;
    const { key, state } = entry;
    const reason = model.broken(state) ?? wedge(model, state);
    if (reason !== undefined) {
      return { states: seen.size, violation: { reason, trace: traceTo(key) } };
    }
    for (const [label, next] of model.steps(state)) visit(next, key, label);
  }
  return { states: seen.size };
}

/** Whether a lone fresh contender can no longer get there from `state`. */
function wedge<S>(model: Model<S>, state: S): string | undefined {
  if (model.alone === undefined) return undefined;
  const start = model.alone.start(state);
  const seen = new Set([JSON.stringify(start)]);
  const queue = [start];
  for (let head = 0; head < queue.length; head++) {
    const at = queue[head] as S;
    if (model.alone.reached(at)) return undefined;
    for (const [, next] of model.steps(at)) {
      const key = JSON.stringify(next);
      if (!seen.has(key)) {
        seen.add(key);
        queue.push(next);
      }
    }
  }
  return 'wedge: a lone fresh contender never gets ownership';
}

/** A deep copy of `state` with `change` applied. */
export function after<S>(state: S, change: (copy: S) => void): S {
  const copy = structuredClone(state);
  change(copy);
  return copy;
}
