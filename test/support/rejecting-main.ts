// A process that rejects where nobody waits, as the argument says, and prints what came of it.

import { silentLog } from '../../src/base/log.ts';
import { classifyRejection } from '../../src/bots/slack/errors.ts';
import { healRejections } from '../../src/daemon-main.ts';

const rejections: Readonly<Record<string, unknown>> = {
  nothing: undefined,
  sdk: Object.assign(new Error('x'), { code: 'slack_webapi_request_error' }),
  bug: new TypeError('x is not a function'),
};

healRejections(classifyRejection, { rebuild: () => process.stdout.write('rebuilt\n') }, silentLog);
// eslint-disable-next-line @typescript-eslint/no-floating-promises, @typescript-eslint/prefer-promise-reject-errors -- what nobody awaits is the point
Promise.reject(rejections[process.argv[2] ?? '']).finally(() => undefined);
setTimeout(() => process.stdout.write('alive\n'), 200);
