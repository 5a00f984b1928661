// The code that processes of different versions must agree on, hashed without comments, types and
// layout. Its hash is committed beside the generation it belongs to.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { transform } from 'esbuild';
import { CHAT_DAEMON_GENERATION } from '../../src/control/generation.ts';
import { HOST_GENERATION } from '../../src/pty/host/host-record.ts';

export const PINNED_PATH = resolve('test/fixtures/generations.json');

export interface Contract {
  readonly name: 'chat-daemon' | 'host';
  readonly generation: number;
  readonly constant: string;
  /** Files, and folders of which every file counts. */
  readonly paths: readonly string[];
}

export const CONTRACTS: readonly Contract[] = [
  {
    name: 'chat-daemon',
    generation: CHAT_DAEMON_GENERATION,
    constant: 'CHAT_DAEMON_GENERATION in src/control/generation.ts',
    paths: [
      'src/ownership',
      'src/control',
      'src/daemon/chat-daemon.ts',
      'src/daemon/control-inbox.ts',
      'src/daemon/owner-state.ts',
      'src/daemon/token-exclusivity.ts',
    ],
  },
  {
    name: 'host',
    generation: HOST_GENERATION,
    constant: 'HOST_GENERATION in src/pty/host/host-record.ts',
    paths: [
      'src/ownership',
      'src/pty/protocol.ts',
      'src/pty/keeper-protocol.ts',
      'src/pty/start-host.ts',
      'src/pty/host/host-record.ts',
    ],
  },
];

export interface Pinned {
  readonly generation: number;
  readonly hash: string;
  /** Why this hash belongs to this generation: a bump, or a change that alters no meaning. */
  readonly because: string;
}

export type PinnedFile = Readonly<Record<Contract['name'], Pinned>>;

/** The files of a contract, in a fixed order. */
export function contractFiles(contract: Contract): string[] {
  return contract.paths
    .flatMap((path) =>
      path.endsWith('.ts')
        ? [path]
        : readdirSync(path, { recursive: true, encoding: 'utf8' })
            .filter((name) => name.endsWith('.ts'))
            .map((name) => join(path, name)),
    )
    .sort();
}

/** What of a source counts: neither comments nor types nor layout. */
export async function essence(source: string): Promise<string> {
  const { code } = await transform(source, {
    loader: 'ts',
    minifyWhitespace: true,
    legalComments: 'none',
    target: 'es2023',
  });
  return code;
}

export async function hashContract(contract: Contract): Promise<string> {
  const hash = createHash('sha256');
  for (const file of contractFiles(contract)) {
    hash.update(`${file}\n${await essence(readFileSync(file, 'utf8'))}\n`);
  }
  return hash.digest('hex').slice(0, 32);
}

export function readPinned(): PinnedFile {
  return JSON.parse(readFileSync(PINNED_PATH, 'utf8')) as PinnedFile;
}

/** What is wrong with `current` beside what is pinned; undefined when nothing is. */
export function judgePin(
  current: { readonly generation: number; readonly hash: string },
  pinned: Pinned,
  constant: string,
): string | undefined {
  if (current.generation < pinned.generation) return `${constant} went back`;
  if (current.hash === pinned.hash && current.generation === pinned.generation) return undefined;
  const pin = 'npm run pin:generation -- --because "…"';
  if (current.generation > pinned.generation) return `Generation bumped: record it with ${pin}`;
  return (
    `The contract's code changed under the same generation. If old and new processes could ` +
    `misunderstand each other, bump ${constant}. Then record it with ${pin}`
  );
}
