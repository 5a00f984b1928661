// What tmux makes of a stream of output: a second terminal emulator to agree with.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export function tmuxIsInstalled(): boolean {
  return spawnSync('tmux', ['-V']).status === 0;
}

/** History and screen after `output`, wrapped lines joined. */
export function captureInTmux(output: Buffer, cols: number, rows: number): string {
  const directory = mkdtempSync(join(tmpdir(), 'chatd-tmux-'));
  const tmux = (...args: string[]): string =>
    execFileSync('tmux', ['-S', join(directory, 'socket'), '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      timeout: 50_000,
      maxBuffer: 64 * 1024 * 1024,
      env: { ...process.env, TERM: 'xterm-256color', LC_ALL: 'C.UTF-8', TMUX: '' },
    });
  try {
    writeFileSync(join(directory, 'output'), output);
    // The output is a terminal's already: no translation of line ends on its way.
    const play = `stty raw -echo; cat '${directory}/output'; tmux -S '${directory}/socket' wait-for -S played; sleep 60`;
    const size = ['-x', String(cols), '-y', String(rows)];
    tmux('set-option', '-g', 'history-limit', '200000', ';', 'new-session', '-d', ...size, play);
    tmux('wait-for', 'played');
    return tmux('capture-pane', '-p', '-J', '-S', '-');
  } finally {
    spawnSync('tmux', ['-S', join(directory, 'socket'), 'kill-server']);
    rmSync(directory, { recursive: true, force: true });
  }
}
