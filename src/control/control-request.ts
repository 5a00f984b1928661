// Publishes a lifecycle request for one exact owner. There is one control.json, made by link; it is
// replaced only when it is expired or names an owner that no longer holds the lock, since then nobody
// will ever answer it.

import { link, rename, unlink, writeFile } from 'node:fs/promises';
import { errnoCode, errorText } from '../base/errors.ts';
import { mintId } from '../base/ids.ts';
import type { DaemonPaths, Kind } from '../base/paths.ts';
import type { Random } from '../base/random.ts';
import { type MachineTime, stamp } from './machine-time.ts';
import { type OwnerTuple, sameOwner } from './owner-tuple.ts';
import {
  type ControlRequest,
  isControlExpired,
  type LifecycleAction,
  readControl,
} from './records.ts';

export interface ControlSubmission {
  readonly paths: DaemonPaths;
  readonly kind: Kind;
  readonly action: LifecycleAction;
  /** Holds the lock, as just read. */
  readonly owner: OwnerTuple;
  readonly machine: MachineTime;
  readonly random: Random;
}

export type ControlSubmitted =
  | { readonly kind: 'published'; readonly id: string }
  /** Another controller asks the same owner to end; its request does for both. */
  | { readonly kind: 'joined'; readonly id: string }
  /** Not written. The signal alone must do. */
  | { readonly kind: 'failed'; readonly because: string };

export async function publishControl(submission: ControlSubmission): Promise<ControlSubmitted> {
  const { paths, kind, action, owner, machine, random } = submission;
  const id = mintId(random, 16);
  const request: ControlRequest = {
    version: 1,
    id,
    kind,
    action,
    owner,
    created: stamp(machine),
  };
  const temporary = `${paths.control}.${mintId(random)}.tmp`;
  try {
    await writeFile(temporary, `${JSON.stringify(request)}\n`, { mode: 0o600, flag: 'wx' });
    return await linkOrReplace(submission, temporary, id);
  } catch (error) {
    return { kind: 'failed', because: errnoCode(error) ?? errorText(error) };
  } finally {
    // After a rename it is gone already.
    await unlink(temporary).catch(() => undefined);
  }
}

async function linkOrReplace(
  submission: ControlSubmission,
  temporary: string,
  id: string,
): Promise<ControlSubmitted> {
  const { paths, owner, machine } = submission;
  // The owner takes what is there at any moment, so a second look may find the place free.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      await link(temporary, paths.control);
      return { kind: 'published', id };
    } catch (error) {
      if (errnoCode(error) !== 'EEXIST') throw error;
    }
    const there = await readControl(paths.control);
    if (there.kind === 'absent') continue;
    if (there.kind !== 'document')
      return { kind: 'failed', because: `control.json: ${there.kind}` };
    const dead =
      isControlExpired(machine, there.document) || !sameOwner(there.document.owner, owner);
    if (!dead) return { kind: 'joined', id: there.document.id };
    await rename(temporary, paths.control);
    return { kind: 'published', id };
  }
  return { kind: 'failed', because: 'control.json keeps changing' };
}
