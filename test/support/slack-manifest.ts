// The scopes and events of config/slack-manifest.yaml, so that tests run with what users install.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Items of the list under `key:` of the manifest. Its YAML is plain enough for that. */
function listUnder(key: string): readonly string[] {
  const path = fileURLToPath(new URL('../../config/slack-manifest.yaml', import.meta.url));
  const lines = readFileSync(path, 'utf8').split('\n');
  const start = lines.findIndex((line) => line.trim() === `${key}:`);
  const items: string[] = [];
  for (const line of lines.slice(start + 1)) {
    const item = /^ {6}- (\S+)$/.exec(line)?.[1];
    if (item === undefined) break;
    items.push(item);
  }
  return items;
}

export function manifestScopes(): readonly string[] {
  return listUnder('bot');
}

export function manifestEvents(): readonly string[] {
  return listUnder('bot_events');
}
