import { describe, expect, it } from 'vitest';
import { castNames, expectedTranscript, readCast } from '../../support/casts.ts';
import { ModelRun } from '../../support/model-run.ts';

/** Programs that own the screen, and where the log goes on after them. */
const SCREENS: Record<string, readonly string[]> = {
  'vim-session': ['screen', 'log'],
  htop: ['screen', 'log'],
  top: ['screen', 'log'],
  watch: ['screen', 'log'],
  whiptail: ['screen', 'log'],
  fzf: ['screen', 'log'],
  'ink-overflow': ['screen', 'log'],
  'bash-osc133': ['screen', 'log'],
};

describe('recordings', () => {
  const names = castNames();

  it.each(names.filter((name) => expectedTranscript(name) !== undefined))(
    'the transcript of %s is the expected one',
    (name) => {
      const cast = readCast(name);
      const run = ModelRun.of(cast).play(cast.events).exit();
      expect(run.texts.join('\n').trimEnd()).toBe(expectedTranscript(name)?.trimEnd());
    },
  );

  it.each(names)('the modes of %s are those of its program', (name) => {
    const cast = readCast(name);
    const run = ModelRun.of(cast).play(cast.events).exit();
    const modes = run.markKinds.filter((kind) => kind === 'screen' || kind === 'log');
    expect(modes).toEqual(SCREENS[name] ?? []);
  });

  it('a flood of 100,000 lines is 100,000 lines', () => {
    const cast = readCast('yes-100k');
    const run = ModelRun.of(cast).play(cast.events).exit();
    expect(run.lines).toHaveLength(100_000);
    expect(new Set(run.texts)).toEqual(new Set(['y']));
  });

  it('lines keep their text when the terminal becomes narrower and wider', () => {
    const cast = readCast('resize-reflow');
    const run = ModelRun.of(cast).play(cast.events).exit();
    const number = (digits: number, value: number): string => String(value).padStart(digits, '0');
    expect(run.texts).toEqual([
      'demo:~$ for i in 1 2 3; do printf "%0150d\\n" $i; done',
      number(150, 1),
      number(150, 2),
      number(150, 3),
      'demo:~$ echo narrow; printf "%0100d\\n" 7',
      'narrow',
      number(100, 7),
      'demo:~$ echo wide',
      'wide',
      'demo:~$ exit',
      'exit',
    ]);
  });
});
