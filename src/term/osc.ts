// Reads the payloads of operating system commands that say something to people. Pure; what is not
// understood is undefined, never an error. Payloads come from programs: hostile until cut down.

import type { MarkKind } from './values.ts';

/** A title, notification or path is shown on one line: longer ones are cut. */
const TEXT_UNITS_MAX = 512;
const PATH_UNITS_MAX = 4_096;

/** Text fit for one line: controls out, length bounded. */
export function oneLine(text: string, unitsMax = TEXT_UNITS_MAX): string {
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').trim();
  return clean.length <= unitsMax ? clean : cutUnits(clean, unitsMax);
}

function cutUnits(text: string, unitsMax: number): string {
  const last = text.charCodeAt(unitsMax - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, splitsPair ? unitsMax - 1 : unitsMax);
}

/** OSC 7: `file://host/path`, percent-encoded. */
export function parseWorkingDirectory(data: string): MarkKind | undefined {
  const match = /^file:\/\/[^/]*(\/.*)$/.exec(data);
  const encoded = match?.[1];
  if (encoded === undefined) return undefined;
  let path = encoded;
  try {
    path = decodeURIComponent(encoded);
  } catch {
    // A shell that does not encode: the path may hold a lone percent sign.
  }
  return cwd(path);
}

function cwd(path: string): MarkKind | undefined {
  const clean = oneLine(path, PATH_UNITS_MAX);
  return clean.startsWith('/') ? { kind: 'cwd', path: clean } : undefined;
}

/** OSC 9: a notification (iTerm2), or one of ConEmu's numbered commands. */
export function parseOsc9(data: string): MarkKind | undefined {
  const command = /^(\d+)(?:;|$)/.exec(data);
  if (command === null) return notification(data);
  return command[1] === '9' ? cwd(data.slice(2).replace(/^"|"$/g, '')) : undefined;
}

/** OSC 99 (kitty): `key=value:key=value ; payload`; only complete titles and bodies are shown. */
export function parseOsc99(data: string): MarkKind | undefined {
  const split = data.indexOf(';');
  if (split < 0) return undefined;
  const keys = new Map(
    data
      .slice(0, split)
      .split(':')
      .map((pair) => [pair.slice(0, 1), pair.slice(2)] as const),
  );
  const part = keys.get('p') ?? 'title';
  if (part !== 'title' && part !== 'body') return undefined;
  const payload = data.slice(split + 1);
  return notification(
    keys.get('e') === '1' ? Buffer.from(payload, 'base64').toString('utf8') : payload,
  );
}

/** OSC 777 (rxvt): `notify;title;body`. */
export function parseOsc777(data: string): MarkKind | undefined {
  const [command, title = '', ...body] = data.split(';');
  if (command !== 'notify') return undefined;
  const text = body.join(';');
  return notification(text === '' ? title : `${title}: ${text}`);
}

function notification(text: string): MarkKind | undefined {
  const clean = oneLine(text);
  return clean === '' ? undefined : { kind: 'notification', text: clean };
}

/** OSC 133: shell integration. */
export function parseOsc133(data: string): MarkKind | undefined {
  const [letter, first] = data.split(';');
  switch (letter) {
    case 'A':
    case 'N':
      return { kind: 'prompt-start' };
    case 'B':
      return { kind: 'prompt-end' };
    case 'C':
      return { kind: 'command-start' };
    case 'D': {
      const exitCode = first !== undefined && /^\d{1,9}$/.test(first) ? Number(first) : undefined;
      return { kind: 'command-done', exitCode };
    }
    default:
      return undefined;
  }
}

/** OSC 8: `params;target`. An empty target ends the link; undefined is malformed. */
export function parseLink(data: string): { readonly target: string } | undefined {
  const split = data.indexOf(';');
  return split < 0 ? undefined : { target: data.slice(split + 1) };
}

/** Links chatd may show: http and https only, bounded, without anything that breaks a line. */
export function isSafeLink(target: string): boolean {
  return target.length <= 2_048 && /^https?:\/\/[^\u0000-\u0020\u007f-\u00a0<>"`]+$/i.test(target);
}
