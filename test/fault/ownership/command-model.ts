// The command channel as a model: one request, one submitter that may give up, a daemon that scans,
// expiry, sweeping, and a crash of either. The response file, created exclusively, is the arbiter.

import { after, type Model, type Step } from '../../support/model-checker.ts';

export type CommandVariant =
  /** As specified: claim, then read the request again, then commit; retire request first. */
  | 'as-specified'
  /** The request is read again before the claim. */
  | 'reread-before-claim'
  /** The response is removed before the request. */
  | 'retire-response-first'
  /** Responses are swept while their request may still be served. */
  | 'early-sweep'
  /** A submitter that gives up says "cancelled" without winning the response. */
  | 'cancel-without-claim'
  /**
   * A submitter that slept beyond the retention of answers (stopped, suspended) wins a response that
   * was swept, and believes it. As specified it asks its clock after winning, and says "unknown".
   */
  | 'late-submitter';

type Response = 'absent' | 'claimed' | 'ok' | 'cancelled';

interface World {
  request: 'unpublished' | 'present' | 'gone';
  expired: boolean;
  /** The retention of answers, which begins after the request's life, has passed. */
  retained: boolean;
  response: Response;
  submitter: string;
  reported: '' | 'ok' | 'cancelled' | 'unknown';
  daemon: string;
  commits: number;
  crashes: number;
  /** The unlink of the request may fail once. */
  unlinkFailures: number;
}

type Change = (world: World) => void;
const step = (world: World, label: string, change: Change): Step<World> => [
  label,
  after(world, change),
];

function submitterSteps(variant: CommandVariant, world: World): Step<World>[] {
  switch (world.submitter) {
    case 'start':
      return [
        step(world, 'submit: publish request', (to) => {
          to.request = 'present';
          to.submitter = 'waiting';
        }),
      ];
    case 'waiting':
      return waitingSteps(variant, world);
    case 'claimed':
      return [
        step(world, 'submit: write cancelled', (to) => {
          to.response = 'cancelled';
          const late = to.retained && variant !== 'late-submitter';
          to.reported = late ? 'unknown' : 'cancelled';
          to.submitter = 'retire';
        }),
      ];
    case 'settling':
      // The response is somebody else's: its answer, or not known.
      return [
        step(world, 'submit: settle', (to) => {
          to.reported = to.response === 'ok' ? 'ok' : 'unknown';
          to.submitter = to.reported === 'ok' ? 'retire' : 'done';
        }),
      ];
    case 'retire':
      return retireSteps(variant, world);
    case 'retire-second':
      return [
        step(world, 'submit: retire, second', (to) => {
          if (variant === 'retire-response-first') to.request = 'gone';
          else if (to.request === 'gone') to.response = 'absent';
          to.submitter = 'done';
        }),
      ];
    default:
      return [];
  }
}

function waitingSteps(variant: CommandVariant, world: World): Step<World>[] {
  if (world.response === 'ok') {
    return [
      step(world, 'submit: read the answer', (to) => {
        to.reported = 'ok';
        to.submitter = 'retire';
      }),
    ];
  }
  return [
    step(world, 'submit: time out', (to) => {
      if (variant === 'cancel-without-claim') {
        to.reported = 'cancelled';
        to.submitter = 'retire';
      } else if (to.response === 'absent') {
        to.response = 'claimed';
        to.submitter = 'claimed';
      } else to.submitter = 'settling';
    }),
  ];
}

function retireSteps(variant: CommandVariant, world: World): Step<World>[] {
  if (variant === 'retire-response-first') {
    return [
      step(world, 'submit: unlink response', (to) => {
        to.response = 'absent';
        to.submitter = 'retire-second';
      }),
    ];
  }
  const steps = [
    step(world, 'submit: unlink request', (to) => {
      to.request = 'gone';
      to.submitter = 'retire-second';
    }),
  ];
  if (world.unlinkFailures > 0) {
    steps.push(
      step(world, 'submit: unlink request fails', (to) => {
        to.unlinkFailures--;
        to.submitter = 'done';
      }),
    );
  }
  return steps;
}

function daemonSteps(variant: CommandVariant, world: World): Step<World>[] {
  const usable = world.request === 'present' && !world.expired;
  const first = variant === 'reread-before-claim' ? 'reread' : 'claim';
  switch (world.daemon) {
    case 'idle':
      return usable
        ? [
            step(world, 'serve: read request', (to) => {
              to.daemon = first;
            }),
          ]
        : [];
    case 'claim':
      return [
        step(world, 'serve: claim response', (to) => {
          if (to.response !== 'absent') to.daemon = 'idle';
          else {
            to.response = 'claimed';
            to.daemon = variant === 'reread-before-claim' ? 'commit' : 'reread';
          }
        }),
      ];
    case 'reread':
      return [
        step(world, 'serve: read request again', (to) => {
          if (variant === 'reread-before-claim') to.daemon = usable ? 'claim' : 'idle';
          else if (usable) to.daemon = 'commit';
          else {
            // Cancelled or expired meanwhile: the claim is given back, nobody is answered.
            to.response = 'absent';
            to.daemon = 'idle';
          }
        }),
      ];
    case 'commit':
      return [
        step(world, 'serve: commit', (to) => {
          to.commits++;
          to.daemon = 'answer';
        }),
      ];
    case 'answer':
      return [
        step(world, 'serve: answer', (to) => {
          to.response = 'ok';
          to.daemon = 'idle';
        }),
      ];
    default:
      return [];
  }
}

function otherSteps(variant: CommandVariant, world: World): Step<World>[] {
  const steps: Step<World>[] = [];
  if (world.request !== 'unpublished' && !world.expired) {
    steps.push(
      step(world, 'time: the request expires', (to) => {
        to.expired = true;
      }),
    );
  }
  if (world.expired && !world.retained) {
    steps.push(
      step(world, 'time: the retention of answers passes', (to) => {
        to.retained = true;
      }),
    );
  }
  const complete = world.response === 'ok' || world.response === 'cancelled';
  if (complete && (world.retained || variant === 'early-sweep')) {
    steps.push(
      step(world, 'sweep: remove response', (to) => {
        to.response = 'absent';
      }),
    );
  }
  if (world.crashes > 0 && !['start', 'done', 'crashed'].includes(world.submitter)) {
    steps.push(
      step(world, 'submit: crash', (to) => {
        to.crashes--;
        to.submitter = 'crashed';
      }),
    );
  }
  // Requests name the exact owner: whoever follows a crashed daemon does not serve them.
  if (world.crashes > 0 && world.daemon !== 'crashed') {
    steps.push(
      step(world, 'serve: crash', (to) => {
        to.crashes--;
        to.daemon = 'crashed';
      }),
    );
  }
  return steps;
}

/** The model of `variant`. */
export function commandModel(variant: CommandVariant): Model<World> {
  return {
    initial: {
      request: 'unpublished',
      expired: false,
      retained: false,
      response: 'absent',
      submitter: 'start',
      reported: '',
      daemon: 'idle',
      commits: 0,
      crashes: 2,
      unlinkFailures: 1,
    },
    steps: (world) => [
      ...submitterSteps(variant, world),
      ...daemonSteps(variant, world),
      ...otherSteps(variant, world),
    ],
    broken: (world) => {
      if (world.commits > 1) return 'I9: committed twice';
      if (world.reported === 'cancelled' && world.commits > 0)
        return 'I8: cancelled, yet committed';
      if (world.reported === 'ok' && world.commits === 0) return 'I8: ok, yet not committed';
      return undefined;
    },
  };
}
