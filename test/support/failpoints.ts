// The test harness' failpoints: named by an environment variable of a child process, or by a list
// in the test's own process. Nothing in src reads them.

import { constants } from 'node:os';
import {
  type FailpointName,
  type Failpoints,
  noFailpoints,
} from '../../src/ownership/failpoints.ts';

export const FAILPOINT_VARIABLE = 'CHATD_TEST_FAILPOINT';

/** An error as the next system call would have thrown it. */
export function errnoError(code: string): Error {
  const number = constants.errno[code as keyof typeof constants.errno];
  return Object.assign(new Error(`${code}: injected`), { code, errno: -number });
}

export function perform(action: string): void {
  if (action === 'kill') process.kill(process.pid, 'SIGKILL');
  else if (action === 'stop') process.kill(process.pid, 'SIGSTOP');
  else if (action.startsWith('throw:')) throw errnoError(action.slice('throw:'.length));
  else if (action.startsWith('exit:')) process.exit(Number(action.slice('exit:'.length)));
  else throw new Error(`No such action: ${action}`);
}

/** `CHATD_TEST_FAILPOINT=<name>=<action>`; each fires once. */
export function failpointsFromEnvironment(environment: NodeJS.ProcessEnv): Failpoints {
  const text = environment[FAILPOINT_VARIABLE];
  if (text === undefined) return noFailpoints;
  const [name, action = 'kill'] = text.split('=');
  let fired = false;
  return {
    hit: (point) => {
      if (fired || point !== name) return;
      fired = true;
      perform(action);
    },
  };
}

/** Runs `action` at `name`, once, and records all points passed. */
export function failAt(
  name: FailpointName | undefined,
  action: () => void = () => undefined,
): Failpoints & { readonly passed: FailpointName[] } {
  const passed: FailpointName[] = [];
  return {
    passed,
    hit: (point) => {
      const first = !passed.includes(point);
      passed.push(point);
      if (point === name && first) action();
    },
  };
}
