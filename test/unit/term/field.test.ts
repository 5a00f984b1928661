// Reports from the field (shared notes, sections C, F and G) that are decided in the terminal model
// and in what reads it. The number is the report's row.

import { describe, expect, it } from 'vitest';
import { detectWaiting } from '../../../src/bots/render/attention.ts';
import { readCast } from '../../support/casts.ts';
import { ModelRun } from '../../support/model-run.ts';

const ESC = '\u001b';

function run(cols = 40, rows = 8): ModelRun {
  return ModelRun.of({ cols, rows });
}

describe('reports from the field', () => {
  it('39, 40: colour codes never reach a line', () => {
    const model = run().write(
      `${ESC}[90mgrey${ESC}[39m ${ESC}[32mgreen${ESC}[0;1;4:3mx${ESC}[>4;2m`,
    );
    expect(model.transcript.join('\n')).toBe('grey greenx');
  });

  it('88: a spinner that redraws itself a thousand times is one line', () => {
    const model = run();
    for (let step = 0; step < 1_000; step += 1) {
      model.write(`\r${ESC}[2K${'⠋⠙⠹'.charAt(step % 3)} Thinking… (${step}s)\r\n${ESC}[1A`, step);
    }
    expect(model.exit().texts).toEqual(['⠋ Thinking… (999s)']);
  });

  it('88, 89: an agent that repaints all of itself shows frames, not its history again and again', () => {
    const model = run();
    const screen = Array.from({ length: 30 }, (_, index) => `line ${index}`).join('\r\n');
    for (let step = 0; step < 50; step += 1) {
      model.write(`${ESC}[?2026h${ESC}[2J${ESC}[3J${ESC}[H${screen}${ESC}[?2026l`, step * 50);
      if (step === 20) model.model.resize(60, 10);
      model.collect();
    }
    expect(model.markKinds).toEqual(['screen']);
    expect(model.lines.length).toBeLessThan(10);
    expect(model.model.view().frame?.rows.at(-1)?.text).toBe('line 29');
  });

  it('91, 92: emoji take two columns, so what follows stays in its column', () => {
    const model = run().write('✨⏳✅|\r\nabcdef|');
    expect(model.model.frame().rows[0]).toMatchObject({ text: '✨⏳✅|', wide: [0, 1, 2] });
    const moved = run().write(`✨⏳✅${ESC}[7GX`);
    expect(moved.transcript).toEqual(['✨⏳✅X']);
  });

  it('93, 94, 96, 97: the queries programs wait for are answered', () => {
    expect(run().write(`${ESC}[6n`).answers).toBe(`${ESC}[1;1R`);
    expect(run().write(`${ESC}[5n`).answers).toBe(`${ESC}[0n`);
    expect(run().write(`${ESC}[c`).answers).toMatch(/^\u001b\[\?[\d;]+c$/);
    expect(run().write(`${ESC}[>c`).answers).toMatch(/^\u001b\[>[\d;]+c$/);
    expect(run().write(`${ESC}[?25$p`).answers).toBe(`${ESC}[?25;1$y`);
    expect(run().write(`${ESC}[18t`).answers).toBe(`${ESC}[8;8;40t`);
  });

  it('96: the modes that decide how keys are sent are known', () => {
    const model = run().write(`${ESC}[?1h${ESC}[?2004h`);
    expect(model.model.view()).toMatchObject({ applicationCursor: true, bracketedPaste: true });
    model.write(`${ESC}[?1l${ESC}[?2004l`);
    expect(model.model.view()).toMatchObject({ applicationCursor: false, bracketedPaste: false });
  });

  it('98: a replay answers nothing, and a snapshot redraws screen and modes', () => {
    const cast = readCast('vim-session');
    const model = ModelRun.of(cast);
    for (const event of cast.events.slice(0, 40)) {
      if (event.kind === 'output') model.model.replay(event.bytes, 0, undefined);
    }
    expect(model.collect().answers).toBe('');
    const copy = ModelRun.of(cast).write(model.model.snapshot().ansi);
    expect(copy.model.frame().rows).toEqual(model.model.frame().rows);
    expect(copy.model.frame().cursor).toEqual(model.model.frame().cursor);
  });

  it('100: a program that clears its screen on exit leaves the screen before', () => {
    const model = run().write(`${ESC}[?1049h${ESC}[Hresult: ok${ESC}[H${ESC}[J${ESC}[?1049l`);
    const left = model.marks.findLast((mark) => mark.what.kind === 'mode');
    if (left?.what.kind !== 'mode' || left.what.mode === 'screen') throw new Error('not left');
    expect(left.what.frame.rows[0]?.text).toBe('result: ok');
  });

  it('101, 104, 109: a permission prompt on the screen is a menu with its answers', () => {
    const cast = readCast('claude-like-ink');
    const model = ModelRun.of(cast);
    const menus = new Set<string>();
    for (const event of cast.events) {
      model.play([event]);
      const waiting = detectWaiting({
        view: model.model.view(),
        tty: { canonical: false, echo: false, blockedRead: false, foregroundGroup: 1 },
        shell: 'unknown',
        quietMs: 1_000,
      });
      if (waiting.kind === 'menu') menus.add(waiting.choices.map(({ label }) => label).join('|'));
    }
    expect([...menus]).toContain(
      "1. Yes|2. Yes, and don't ask again this session|3. No, and tell me what to do differently",
    );
  });

  it('108: text that looks like a prompt further up is none', () => {
    const view = run().write('Continue? [y/N]\r\nbuilding 1 of 900\r\n').model.view();
    const tty = { canonical: true, echo: true, blockedRead: false, foregroundGroup: 1 };
    expect(detectWaiting({ view, tty, shell: 'unknown', quietMs: 60_000 }).kind).toBe('nothing');
  });
});
