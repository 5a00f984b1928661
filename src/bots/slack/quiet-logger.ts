// Keeps the SDKs quiet. They log request bodies, payloads and ticketed addresses, which are people's
// text and secrets; what an operator needs to know is logged by the adapter itself.

import { type Logger, LogLevel } from '@slack/bolt';

export const quietLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  setLevel: () => undefined,
  getLevel: () => LogLevel.ERROR,
  setName: () => undefined,
};
