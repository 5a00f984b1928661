// Targets of OSC 8 links by a small id kept in the cells. The emulator's own table keeps a marker
// for every link a repainting program prints, for ever; this one holds each target once.

import type { Emulator, Row } from './emulator.ts';
import { isSafeLink } from './osc.ts';

/** Above this, ids that no cell on a screen carries are forgotten. */
const LINKS_MAX = 4_096;

export class LinkTable {
  readonly #emulator: Emulator;
  readonly #targets = new Map<number, string>();
  readonly #ids = new Map<string, number>();
  #nextId = 1;

  constructor(emulator: Emulator) {
    this.#emulator = emulator;
  }

  target(id: number): string | undefined {
    return this.#targets.get(id);
  }

  /** The pen carries this link from now on. An empty or unsafe target ends a link. */
  open(target: string): void {
    const pen = this.#emulator.core._inputHandler._curAttrData;
    pen.extended = pen.extended.clone();
    pen.extended.urlId = isSafeLink(target) ? this.#idOf(target) : 0;
    pen.updateExtended();
  }

  get entries(): readonly (readonly [number, string])[] {
    return [...this.#targets];
  }

  restore(entries: readonly (readonly [number, string])[]): void {
    for (const [id, target] of entries) {
      this.#targets.set(id, target);
      this.#ids.set(target, id);
      this.#nextId = Math.max(this.#nextId, id + 1);
    }
  }

  #idOf(target: string): number {
    const known = this.#ids.get(target);
    if (known !== undefined) return known;
    if (this.#targets.size >= LINKS_MAX) this.#forgetUnused();
    // Every cell of a large screen may be another link: then the newest have none.
    if (this.#targets.size >= LINKS_MAX) return 0;
    const id = this.#nextId;
    this.#nextId += 1;
    this.#targets.set(id, target);
    this.#ids.set(target, id);
    return id;
  }

  #forgetUnused(): void {
    const used = new Set<number>();
    const { normal, alt } = this.#emulator.core._bufferService.buffers;
    for (const { lines } of [normal, alt]) {
      for (let y = 0; y < lines.length; y += 1) collectLinks(lines.get(y), used);
    }
    for (const [id, target] of this.#targets) {
      if (used.has(id)) continue;
      this.#targets.delete(id);
      this.#ids.delete(target);
    }
  }
}

function collectLinks(row: Row | undefined, used: Set<number>): void {
  for (const attributes of Object.values(row?._extendedAttrs ?? {})) {
    if (attributes !== undefined && attributes.urlId !== 0) used.add(attributes.urlId);
  }
}
