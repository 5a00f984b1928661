// chatd end <session>: hang up, TERM, KILL, by the host's stated graces. Names session and incarnation;
// needs no binding.

import { ChatdError } from '../base/errors.ts';
import type { CliContext } from './context.ts';
import { stateText } from './host.ts';
import { openHost } from './host-access.ts';

export async function runEnd(context: CliContext, session: string): Promise<number> {
  const { client } = await openHost(context, 'cli', false);
  try {
    const info = (await client.list()).find((item) => item.sessionId === session);
    if (info === undefined) {
      throw new ChatdError('session-not-found', `Cannot end ${session}: not known here`);
    }
    const { sessionId, incarnation } = info;
    const state =
      info.state.kind === 'exited'
        ? info.state
        : await client.end({ sessionId, incarnation }, 'operator');
    if (context.json) context.out(JSON.stringify({ session, incarnation, state }, null, 2));
    else context.out(`${session}: ${stateText(state)}`);
    return 0;
  } finally {
    client.close();
  }
}
