// The owner's life as a model: acquire, write state, release, crash at any point, reclaim after a
// crash. One correct variant (as built) and the ones that other systems shipped.

import { after, type Model, type Step } from '../../support/model-checker.ts';

export type LockVariant =
  /** As built: a permanent inode under flock. */
  | 'kept'
  /** flock, and unlink when released; the winner does not look at the name again. */
  | 'unlink-on-release'
  /** The same, but the winner compares the name's inode: exclusion holds. */
  | 'unlink-on-release-recheck'
  /** A file made by link; a stale one is removed by name after its owner was found dead. */
  | 'reclaim-by-name'
  /** The same, and a lock whose inode has two links is not believed: crash before unlink(temp). */
  | 'exact-link-count'
  /** A lease by modification time: whoever is silent too long is taken for dead. */
  | 'lease-by-time'
  /** Liveness is asked by taking the lock. */
  | 'probe-by-taking';

interface Process {
  pc: string;
  /** Inode the process has open and locked or about to lock; 0 none. */
  inode: number;
  /** For reclaimers: the inode proven stale. */
  stale: number;
  /** Still linked under its private name. */
  temporary: boolean;
}

interface World {
  /** Inode that the lock's name leads to; 0 none. */
  name: number;
  /** inode → process + 1 that holds flock on it, or that wrote it as owner. */
  holders: Record<number, number>;
  /** inodes with a second link left by a crash. */
  doubled: number[];
  nextInode: number;
  processes: Process[];
  crashes: number;
  /** Process + 1 that wrote the state last. */
  writer: number;
  fault: string;
}

const fresh = (): Process => ({ pc: 'start', inode: 0, stale: 0, temporary: false });

/** Between having proved the lock and having begun to give it up. */
const isOwner = (process: Process): boolean => ['owner', 'checked', 'written'].includes(process.pc);

function move(
  world: World,
  index: number,
  label: string,
  change: (world: World, process: Process) => void,
): Step<World> {
  return [
    `${index}:${label}`,
    after(world, (copy) => {
      const process = copy.processes[index];
      if (process !== undefined) change(copy, process);
    }),
  ];
}

function isAlive(world: World, holder: number): boolean {
  const process = world.processes[holder - 1];
  return process !== undefined && process.pc !== 'crashed' && process.pc !== 'done';
}

/** flock: open, lock, compare, own, write, close (and perhaps unlink). */
function flockSteps(variant: LockVariant, world: World, index: number): Step<World>[] {
  const process = world.processes[index] ?? fresh();
  const unlinks = variant.startsWith('unlink-on-release');
  switch (process.pc) {
    case 'start':
      return [
        move(world, index, 'lock.opened', (to, me) => {
          if (to.name === 0) to.name = to.nextInode++;
          me.inode = to.name;
          me.pc = 'opened';
        }),
      ];
    case 'opened':
      return [
        move(world, index, 'lock.flocked', (to, me) => {
          const holder = to.holders[me.inode] ?? 0;
          if (holder !== 0) {
            me.pc = 'busy';
            me.inode = 0;
            return;
          }
          to.holders[me.inode] = index + 1;
          me.pc = variant === 'unlink-on-release' ? 'owner' : 'locked';
        }),
      ];
    case 'locked':
      return [
        move(world, index, 'lock.verified', (to, me) => {
          if (to.name === me.inode) {
            me.pc = 'owner';
            return;
          }
          delete to.holders[me.inode];
          me.pc = 'start';
          me.inode = 0;
        }),
      ];
    case 'owner':
      return [
        move(world, index, 'write.published', (to, me) => {
          to.writer = index + 1;
          me.pc = 'written';
        }),
      ];
    case 'written':
      return unlinks
        ? [
            move(world, index, 'unlink', (to, me) => {
              to.name = 0;
              me.pc = 'closing';
            }),
          ]
        : [move(world, index, 'close', close)];
    case 'closing':
      return [move(world, index, 'close', close)];
    default:
      return [];
  }
}

function close(world: World, process: Process): void {
  delete world.holders[process.inode];
  process.inode = 0;
  process.pc = 'done';
}

/** A probing process that takes and releases the lock, as often as there are steps. */
function proberSteps(world: World, index: number): Step<World>[] {
  const process = world.processes[index] ?? fresh();
  if (process.pc === 'start') {
    return [
      move(world, index, 'probe: take', (to, me) => {
        if (to.name === 0 || (to.holders[to.name] ?? 0) !== 0) {
          me.pc = 'done';
          return;
        }
        me.inode = to.name;
        to.holders[me.inode] = index + 1;
        me.pc = 'probing';
      }),
    ];
  }
  return process.pc === 'probing' ? [move(world, index, 'probe: release', close)] : [];
}

/** link(temp, lock); on EEXIST: owner dead (or silent)? remove the name; again. */
function linkSteps(variant: LockVariant, world: World, index: number): Step<World>[] {
  const process = world.processes[index] ?? fresh();
  switch (process.pc) {
    case 'start':
      return [
        move(world, index, 'link', (to, me) => {
          if (to.name === 0) {
            me.inode = to.nextInode++;
            to.name = me.inode;
            to.holders[me.inode] = index + 1;
            me.temporary = variant === 'exact-link-count';
            me.pc = me.temporary ? 'linked' : 'owner';
            return;
          }
          me.pc = 'exists';
        }),
      ];
    case 'linked':
      return [
        move(world, index, 'unlink(temp)', (_to, me) => {
          me.temporary = false;
          me.pc = 'owner';
        }),
      ];
    case 'exists':
      return [
        move(world, index, 'judge', (to, me) => {
          const stale =
            to.name !== 0 &&
            !to.doubled.includes(to.name) &&
            (variant === 'lease-by-time' || !isAlive(to, to.holders[to.name] ?? 0));
          me.stale = stale ? to.name : 0;
          me.pc = stale ? 'stale' : 'busy';
        }),
      ];
    case 'stale':
      return [
        move(world, index, 'unlink(lock)', (to, me) => {
          // By name: whatever is there now.
          to.name = 0;
          me.stale = 0;
          me.pc = 'start';
        }),
      ];
    case 'owner':
      return [
        move(world, index, 'write: read and check', (to, me) => {
          me.pc = to.name === me.inode ? 'checked' : 'done';
          if (me.pc === 'done') me.inode = 0;
        }),
      ];
    case 'checked':
      return [
        move(world, index, 'write: rename', (to, me) => {
          if (to.name !== me.inode) to.fault = 'I2: a predecessor overwrote its successor’s state';
          to.writer = index + 1;
          me.pc = 'written';
        }),
      ];
    case 'written':
      return [
        move(world, index, 'release', (to, me) => {
          if (to.name === me.inode) to.name = 0;
          me.inode = 0;
          me.pc = 'done';
        }),
      ];
    default:
      return [];
  }
}

function crashSteps(world: World): Step<World>[] {
  if (world.crashes === 0) return [];
  return world.processes.flatMap((process, index) => {
    if (['start', 'busy', 'done', 'crashed'].includes(process.pc)) return [];
    return [
      move(world, index, 'crash', (to, me) => {
        to.crashes--;
        crash(to, me, index);
      }),
    ];
  });
}

function crash(world: World, process: Process, index: number): void {
  if (process.temporary) world.doubled.push(process.inode);
  // flock dies with its process; what a link says about its owner stays.
  if (world.holders[process.inode] === index + 1 && process.pc !== 'linked') {
    if (!usesLinks(world)) delete world.holders[process.inode];
  }
  process.pc = 'crashed';
  process.inode = 0;
}

// The variant travels in the world so that a crash knows whether the kernel releases anything.
function usesLinks(world: World): boolean {
  return 'links' in world;
}

/** The model of `variant` with `count` contenders and `crashes` crashes. */
export function lockModel(variant: LockVariant, count: number, crashes: number): Model<World> {
  const links = ['reclaim-by-name', 'exact-link-count', 'lease-by-time'].includes(variant);
  const initial: World = {
    name: 0,
    holders: {},
    doubled: [],
    nextInode: 1,
    processes: Array.from({ length: count }, fresh),
    crashes,
    writer: 0,
    fault: '',
    ...(links ? { links: true } : {}),
  };
  const stepsOf = (world: World, index: number): Step<World>[] => {
    if (variant === 'probe-by-taking' && index === 1) return proberSteps(world, index);
    return links ? linkSteps(variant, world, index) : flockSteps(variant, world, index);
  };
  return {
    initial,
    steps: (world) => [
      ...world.processes.flatMap((_process, index) => stepsOf(world, index)),
      ...crashSteps(world),
    ],
    broken: (world) => {
      if (world.fault !== '') return world.fault;
      const owners = world.processes.filter(isOwner);
      if (owners.length > 1) return 'I1: two owners';
      if (
        variant === 'probe-by-taking' &&
        world.processes[0]?.pc === 'busy' &&
        world.processes.every((process) => process.pc !== 'owner')
      ) {
        return 'a probe made the only starter lose';
      }
      return undefined;
    },
    alone: {
      start: (world) =>
        after(world, (copy) => {
          for (const [index, process] of copy.processes.entries()) {
            if (process.pc !== 'done' && process.pc !== 'busy') crash(copy, process, index);
          }
          copy.crashes = 0;
          copy.fault = '';
          copy.processes.push(fresh());
        }),
      reached: (world) => world.processes.at(-1)?.pc === 'owner',
    },
  };
}
