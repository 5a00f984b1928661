import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readCast } from '../../support/casts.ts';
import { ModelRun } from '../../support/model-run.ts';
import { captureInTmux, tmuxIsInstalled } from '../../support/tmux.ts';

// Not here: bash-session (tmux drops what `clear` clears), unicode-torture (tmux drops a part of a
// joined emoji), resize-reflow (tmux is given one size), programs that only draw screens.
const RECORDINGS = [
  'apt-get-install',
  'bash-editing',
  'bash-osc133',
  'cargo-build',
  'claude-like-ink',
  'curl',
  'git-clone',
  'git-log-pager',
  'ls-color',
  'npm-install',
  'pytest',
  'python-repl',
  'redraws',
  'ssh-like',
  'sudo-like-getpass',
  'table-cjk',
];

const CAPTURES = new URL('../../fixtures/traces/tmux/', import.meta.url);
const installed = tmuxIsInstalled();

function trimmed(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replace(/ +$/, ''))
    .join('\n')
    .trimEnd();
}

describe(`tmux${installed ? '' : ', as captured before'}`, () => {
  it.each(RECORDINGS)('has the same transcript of %s', (name) => {
    const cast = readCast(name);
    const output = Buffer.concat(
      cast.events.flatMap((event) => (event.kind === 'output' ? [event.bytes] : [])),
    );
    const theirs = installed
      ? captureInTmux(output, cast.cols, cast.rows)
      : readFileSync(new URL(`${name}.txt`, CAPTURES), 'utf8');
    const ours = ModelRun.of(cast).play(cast.events).transcript.join('\n');
    expect(trimmed(ours)).toBe(trimmed(theirs));
  });
});
