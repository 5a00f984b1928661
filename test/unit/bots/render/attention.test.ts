import { describe, expect, it } from 'vitest';
import { type AttentionFacts, detectWaiting } from '../../../../src/bots/render/attention.ts';
import type { TtyState } from '../../../../src/pty/client.ts';
import type { Waiting } from '../../../../src/term/values.ts';
import { readCast } from '../../../support/casts.ts';
import { ModelRun } from '../../../support/model-run.ts';

const tty = (echo: boolean, canonical: boolean, blockedRead = false): TtyState => ({
  echo,
  canonical,
  blockedRead,
  foregroundGroup: 1,
});
const COOKED_READING = tty(true, true, true);
const COOKED_BUSY = tty(true, true);
const RAW = tty(false, false);
const ONE_KEY = tty(true, false);
const SECRET = tty(false, true, true);

function waiting(output: string, facts: Partial<AttentionFacts> = {}): Waiting {
  const run = ModelRun.of({ cols: 80, rows: 24 }).write(output);
  return detectWaiting({
    view: run.model.view(),
    tty: 'unknown',
    shell: 'unknown',
    quietMs: 5_000,
    ...facts,
  });
}

function choices(output: string, facts: Partial<AttentionFacts> = {}): [string, string][] {
  const found = waiting(output, facts);
  return found.kind === 'menu' ? found.choices.map(({ label, keys }) => [label, keys]) : [];
}

describe('detectWaiting', () => {
  it('takes canonical input without echo for a secret, at once', () => {
    const prompts = ['Password: ', '[sudo] password for demo: ', 'Enter PIN: ', ''];
    for (const prompt of prompts) {
      expect(waiting(prompt, { tty: SECRET, quietMs: 0 }).kind, prompt).toBe('password');
    }
  });

  it('takes no line editor for a secret: bash, zsh, python and node echo themselves', () => {
    expect(waiting('demo:~$ ', { tty: RAW }).kind).toBe('prompt');
    expect(waiting('>>> ', { tty: RAW }).kind).toBe('prompt');
  });

  it.each([
    'Password: ',
    "demo@host's password: ",
    'Enter passphrase for key /home/demo/.ssh/id: ',
    'Verification code: ',
    'Enter one-time OTP: ',
    'GitHub token> ',
  ])('takes the raw or remote prompt "%s" for a secret', (prompt) => {
    expect(waiting(prompt, { tty: RAW }).kind).toBe('password');
    expect(waiting(prompt).kind).toBe('password');
  });

  it('takes words typed at a shell for no secret', () => {
    expect(waiting('demo:~$ echo token: ', { tty: RAW }).kind).toBe('prompt');
    expect(waiting('$ grep password: ', { tty: RAW, shell: 'prompt' }).kind).toBe('prompt');
  });

  it('knows a shell prompt from its marks, whatever is on the line', () => {
    expect(waiting('~ ', { tty: RAW, shell: 'prompt', quietMs: 0 })).toMatchObject({
      kind: 'prompt',
      shell: true,
    });
  });

  it('knows a program blocked in a read', () => {
    expect(waiting('name? ', { tty: COOKED_READING, quietMs: 0 })).toMatchObject({
      kind: 'prompt',
      text: 'name?',
      shell: false,
    });
  });

  it('leaves a compiler alone', () => {
    expect(waiting('   Compiling chatd v0.1.0', { tty: COOKED_BUSY }).kind).toBe('nothing');
    expect(waiting('fetching\r\n', { tty: COOKED_BUSY }).kind).toBe('nothing');
  });

  it('waits for quiet: 400 ms where keys are raw, 800 ms where nothing is known', () => {
    expect(waiting('>>> ', { tty: RAW, quietMs: 399 }).kind).toBe('nothing');
    expect(waiting('>>> ', { tty: RAW, quietMs: 400 }).kind).toBe('prompt');
    expect(waiting('Continue? ', { quietMs: 799 }).kind).toBe('nothing');
    expect(waiting('Continue? ', { quietMs: 800 }).kind).toBe('prompt');
  });

  it('sees nothing asked where the cursor is hidden or the line is an ordinary one', () => {
    expect(waiting('\u001b[?25lContinue? ').kind).toBe('nothing');
    expect(waiting('downloading 45 MB').kind).toBe('nothing');
  });

  it('takes no idle editor for a question', () => {
    const run = ModelRun.of(readCast('vim-session'));
    run.write('\u001b[?1049h\u001b[Hsome text\r\n~\r\n~\u001b[1;1H');
    const view = run.model.view();
    expect(detectWaiting({ view, tty: RAW, shell: 'running', quietMs: 9_000 }).kind).toBe(
      'nothing',
    );
  });

  it.each([
    [
      'Proceed? [Y/n] ',
      COOKED_READING,
      [
        ['Yes', 'y\r'],
        ['No', 'n\r'],
      ],
    ],
    [
      'Do you want to continue? (yes/no) ',
      COOKED_READING,
      [
        ['Yes', 'yes\r'],
        ['No', 'no\r'],
      ],
    ],
    [
      'Overwrite (y/n)? ',
      ONE_KEY,
      [
        ['Yes', 'y'],
        ['No', 'n'],
      ],
    ],
    [
      'Stage this hunk [y,n,q,?]? ',
      COOKED_READING,
      [
        ['Yes', 'y\r'],
        ['No', 'n\r'],
        ['q', 'q\r'],
      ],
    ],
  ] as const)('offers the answers of "%s"', (prompt, state, expected) => {
    expect(choices(prompt, { tty: state })).toEqual(expected);
  });

  it('offers the words of ssh, but not the one to be replaced', () => {
    const prompt = 'Are you sure you want to continue connecting (yes/no/[fingerprint])? ';
    expect(choices(prompt, { tty: COOKED_READING })).toEqual([
      ['Yes', 'yes\r'],
      ['No', 'no\r'],
    ]);
  });

  it('makes no choices of a path or a range in brackets', () => {
    expect(choices('Output file (src/main): ', { tty: COOKED_READING })).toEqual([]);
    expect(choices('Port [1-65535]: ', { tty: COOKED_READING })).toEqual([]);
  });

  it('offers the entries of a numbered list', () => {
    const menu = '1) apple\r\n2) banana\r\n3) cherry\r\n#? ';
    expect(choices(menu, { tty: COOKED_READING })).toEqual([
      ['1. apple', '1\r'],
      ['2. banana', '2\r'],
      ['3. cherry', '3\r'],
    ]);
  });

  it('makes no list of numbered output without a question', () => {
    expect(choices('1. one\r\n2. two\r\ndone\r\n', { tty: COOKED_READING })).toEqual([]);
  });

  it('moves a pointer by arrows, as the terminal mode wants them', () => {
    const menu = 'Pick:\r\n  small\r\n❯ medium\r\n  large\u001b[?25l';
    expect(choices(menu, { tty: RAW })).toEqual([
      ['small', '\u001b[A\r'],
      ['medium', '\r'],
      ['large', '\u001b[B\r'],
    ]);
    expect(choices(`\u001b[?1h${menu}`, { tty: RAW })[0]).toEqual(['small', '\u001bOA\r']);
  });

  it('reads the boxed permission menu of a coding agent', () => {
    const box = [
      '╭──────────────────────────────╮',
      '│ Do you want to run this?     │',
      '│ ❯ 1. Yes                     │',
      "│   2. Yes, don't ask again    │",
      '│   3. No, tell Claude         │',
      '╰──────────────────────────────╯',
    ].join('\r\n');
    expect(choices(`\u001b[?25l${box}\r\n`, { tty: RAW })).toEqual([
      ['1. Yes', '\r'],
      ["2. Yes, don't ask again", '\u001b[B\r'],
      ['3. No, tell Claude', '\u001b[B\u001b[B\r'],
    ]);
  });

  it('takes an input line with a pointer for no menu', () => {
    expect(waiting('> quoted\r\n  more\r\n> ', { tty: RAW }).kind).toBe('prompt');
  });

  it('takes the prompts of a shell, and what was printed between them, for no menu', () => {
    const shell = '❯ cat notes\r\n  one\r\n  two\r\n❯ ';
    expect(waiting(shell, { tty: RAW }).kind).toBe('prompt');
    const branches = '* main\r\n  next\r\n$ ';
    expect(waiting(branches, { tty: RAW }).kind).toBe('prompt');
  });

  it('finds the password prompts of the recordings, and nothing else before them', () => {
    const seen: string[] = [];
    const cast = readCast('ssh-like');
    const run = ModelRun.of(cast);
    for (const event of cast.events) {
      run.play([event]);
      const { kind } = detectWaiting({
        view: run.model.view(),
        tty: RAW,
        shell: 'unknown',
        quietMs: 0,
      });
      if (kind === 'password') seen.push(run.model.view().tail.at(-1)?.text ?? '');
    }
    expect(seen.length).toBeGreaterThan(0);
    for (const text of seen) expect(text).toMatch(/password/i);
  });
});
