// Publication of an endpoint as a model: bind privately, link or prove the incumbent dead and
// rename, verify, serve, end; with crashes at every step.

import { after, type Model, type Step } from '../../support/model-checker.ts';

export type EndpointVariant =
  /** As built: everything while a kept flock is held. */
  | 'locked'
  /** rename over the name, whoever is there. */
  | 'rename-only'
  /** link, else one look at the incumbent, then rename. */
  | 'probe-once'
  /** link, else two looks and an unchanged inode, then rename, then verify: no lock. */
  | 'probe-twice-unlocked'
  /** Locked, but whoever ends unlinks the canonical name after it let go of the lock. */
  | 'close-unlinks';

interface Process {
  pc: string;
  /** The socket inode it listens on; 0 none. */
  inode: number;
  /** The incumbent it has been looking at. */
  seen: number;
}

interface World {
  name: number;
  /** inodes somebody listens on. */
  live: number[];
  nextInode: number;
  /** Process + 1 that holds the lock; 0 nobody. */
  lock: number;
  processes: Process[];
  crashes: number;
  fault: string;
}

const fresh = (): Process => ({ pc: 'start', inode: 0, seen: 0 });

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

function hangUp(world: World, process: Process): void {
  world.live = world.live.filter((inode) => inode !== process.inode);
  process.inode = 0;
}

function unlock(world: World, index: number): void {
  if (world.lock === index + 1) world.lock = 0;
}

const usesLock = (variant: EndpointVariant): boolean =>
  variant === 'locked' || variant === 'close-unlinks';

function stepsOf(variant: EndpointVariant, world: World, index: number): Step<World>[] {
  const process = world.processes[index] ?? fresh();
  switch (process.pc) {
    case 'start':
      return [
        move(world, index, usesLock(variant) ? 'lock.flocked' : 'begin', (to, me) => {
          if (!usesLock(variant)) me.pc = 'bind';
          else if (to.lock !== 0) me.pc = 'done';
          else {
            to.lock = index + 1;
            me.pc = 'bind';
          }
        }),
      ];
    case 'bind':
      return [
        move(world, index, 'endpoint.bound', (to, me) => {
          me.inode = to.nextInode++;
          to.live.push(me.inode);
          me.pc = variant === 'rename-only' ? 'rename' : 'link';
        }),
      ];
    case 'link':
      return [
        move(world, index, 'endpoint.before-link', (to, me) => {
          if (to.name === 0) {
            to.name = me.inode;
            me.pc = 'verify';
          } else {
            me.seen = to.name;
            me.pc = 'probe1';
          }
        }),
      ];
    case 'probe1':
    case 'probe2':
      return [probe(variant, world, index, process.pc)];
    case 'rename':
      return [
        move(world, index, 'endpoint.renamed', (to, me) => {
          to.name = me.inode;
          me.pc = 'verify';
        }),
      ];
    case 'verify':
      return [
        move(world, index, 'endpoint.verified', (to, me) => {
          if (to.name === me.inode) {
            me.pc = 'serving';
            return;
          }
          hangUp(to, me);
          unlock(to, index);
          me.pc = 'done';
        }),
      ];
    case 'serving':
      return [
        move(world, index, 'end: release', (to, me) => {
          hangUp(to, me);
          unlock(to, index);
          me.pc = variant === 'close-unlinks' ? 'closing' : 'done';
        }),
      ];
    case 'closing':
      return [
        move(world, index, 'end: unlink the name', (to, me) => {
          to.name = 0;
          me.pc = 'done';
        }),
      ];
    default:
      return [];
  }
}

function probe(
  variant: EndpointVariant,
  world: World,
  index: number,
  pc: 'probe1' | 'probe2',
): Step<World> {
  const label = pc === 'probe1' ? 'endpoint.probed-once' : 'endpoint.probed-twice';
  return move(world, index, label, (to, me) => {
    if (to.live.includes(to.name)) {
      // Occupied: stand down.
      hangUp(to, me);
      unlock(to, index);
      me.pc = 'done';
    } else if (to.name !== me.seen) me.pc = 'link';
    else if (pc === 'probe1' && variant !== 'probe-once') me.pc = 'probe2';
    else me.pc = 'rename';
  });
}

function crash(world: World, process: Process, index: number): void {
  hangUp(world, process);
  unlock(world, index);
  process.pc = 'crashed';
}

/** The model of `variant` with `count` publishers and `crashes` crashes. */
export function endpointModel(
  variant: EndpointVariant,
  count: number,
  crashes: number,
): Model<World> {
  return {
    initial: {
      name: 0,
      live: [],
      nextInode: 1,
      lock: 0,
      processes: Array.from({ length: count }, fresh),
      crashes,
      fault: '',
    },
    steps: (world) => [
      ...world.processes.flatMap((_process, index) => stepsOf(variant, world, index)),
      ...(world.crashes === 0
        ? []
        : world.processes.flatMap((process, index) =>
            ['start', 'done', 'crashed'].includes(process.pc)
              ? []
              : [
                  move(world, index, 'crash', (to, me) => {
                    to.crashes--;
                    crash(to, me, index);
                  }),
                ],
          )),
    ],
    broken: (world) => {
      const serving = world.processes.filter((process) => process.pc === 'serving');
      if (serving.length > 1) return 'I6: two processes serve';
      const lost = serving.some((process) => world.name !== process.inode);
      return lost ? 'I6: the name does not lead to the one that serves' : undefined;
    },
    alone: {
      start: (world) =>
        after(world, (copy) => {
          for (const [index, process] of copy.processes.entries()) {
            if (process.pc !== 'done') crash(copy, process, index);
          }
          copy.crashes = 0;
          copy.processes.push(fresh());
        }),
      reached: (world) => world.processes.at(-1)?.pc === 'serving',
    },
  };
}
