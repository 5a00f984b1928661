// Owns resources: acquired and registered on adjacent lines, released once, in reverse order, even
// when a release fails. Node 20 has no AsyncDisposableStack.

export class Scope {
  readonly #releases: { readonly name: string; readonly release: () => unknown }[] = [];
  #closed = false;

  /** Registers `release` for `value` and returns `value`. */
  own<T>(name: string, value: T, release: (value: T) => unknown): T {
    this.#releases.push({ name, release: () => release(value) });
    return value;
  }

  /**
   * Releases everything in reverse order. Idempotent.
   * @throws {AggregateError} when releases failed, after all have run.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const failures: unknown[] = [];
    for (const entry of this.#releases.reverse()) {
      try {
        await entry.release();
      } catch (error) {
        failures.push(new Error(`Cannot release ${entry.name}`, { cause: error }));
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'Cannot release all resources');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
