// Whose size a session has: the last interactive client's that asked; when it leaves, the one's
// before it; with nobody left, the one set from outside.

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

interface Sized {
  readonly size: Size;
}

interface Lease {
  readonly holder: object;
  size: Size;
}

export class SizeLeases {
  /** Per session, the latest last. The first is what it had before anyone came. */
  readonly #leases = new WeakMap<object, Lease[]>();

  /**
   * `holder` wants this size. A session itself as holder stands for nobody in particular: its size
   * counts when no client is left.
   * @returns the size that holds now
   */
  take(session: Sized, holder: object, size: Size): Size {
    const leases = this.#leases.get(session) ?? [{ holder: session, size: session.size }];
    const others = leases.filter((lease) => lease.holder !== holder);
    const next = { holder, size: { cols: size.cols, rows: size.rows } };
    const all = holder === session ? [next, ...others] : [...others, next];
    this.#leases.set(session, all);
    return all.at(-1)?.size ?? size;
  }

  /** The size to go back to, when the one that leaves decided it. */
  release(session: Sized, holder: object): Size | undefined {
    const leases = this.#leases.get(session);
    const last = leases?.at(-1);
    if (leases === undefined || last === undefined) return undefined;
    const others = leases.filter((lease) => lease.holder !== holder);
    this.#leases.set(session, others);
    return last.holder === holder ? others.at(-1)?.size : undefined;
  }
}
