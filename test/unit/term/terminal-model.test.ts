import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/random.ts';
import { TerminalModel } from '../../../src/term/terminal-model.ts';
import type { Frame, Mark } from '../../../src/term/values.ts';
import { ModelRun } from '../../support/model-run.ts';
import { randomOutput } from '../../support/vt-stream.ts';

const ESC = '\u001b';
const ST = `${ESC}\\`;

function run(cols = 20, rows = 5): ModelRun {
  return ModelRun.of({ cols, rows });
}

function kinds(model: ModelRun): Mark['what'][] {
  return model.marks.map((mark) => mark.what);
}

function lastFrame(model: ModelRun): Frame {
  for (const what of kinds(model).toReversed()) {
    if (what.kind === 'mode' && what.mode === 'log') return what.frame;
  }
  throw new Error('no frame');
}

describe('lines', () => {
  it('are final when they leave the screen, and not before', () => {
    const model = run().write('1\r\n2\r\n3\r\n4\r\n5');
    expect(model.texts).toEqual([]);
    model.write('\r\n6');
    expect(model.texts).toEqual(['1']);
    expect(model.transcript).toEqual(['1', '2', '3', '4', '5', '6']);
  });

  it('show the last state of a progress bar and of a block redrawn by moving up', () => {
    const model = run().write('10%\r50%\r100% done\r\na 1\r\nb 1\r\n');
    model.write(`${ESC}[2Aa 2${ESC}[K\r\nb 2${ESC}[K\r\n`).exit();
    expect(model.texts).toEqual(['100% done', 'a 2', 'b 2']);
  });

  it('are whole again when they wrap, also across the top of the screen', () => {
    const long = 'abcdefghij'.repeat(15);
    const model = run().write(`${long}\r\nnext\r\n`);
    expect(model.transcript.slice(0, 2)).toEqual([long, 'next']);
    model.write('\n'.repeat(6));
    expect(model.texts.slice(0, 2)).toEqual([long, 'next']);
  });

  it('lose no cell of a wide character that did not fit into the last column', () => {
    const model = run(5).write('abcd世界\r\n').exit();
    expect(model.texts).toEqual(['abcd世界']);
  });

  it('keep words apart that are placed by columns', () => {
    expect(run().write(`Welcome${ESC}[9Gto${ESC}[12GCode`).transcript).toEqual(['Welcome to Code']);
  });

  it('carry styles, colours and safe links as spans', () => {
    const model = run(40).write(
      `a${ESC}[1;31mb${ESC}[0;48;2;1;2;3mc${ESC}[0m${ESC}]8;;https://x.org/${ST}d${ESC}]8;;${ST}` +
        `${ESC}]8;;javascript:alert(1)${ST}e${ESC}]8;;${ST}`,
    );
    expect(model.model.view().tail[0]).toEqual({
      text: 'abcde',
      spans: [
        { start: 1, end: 2, fg: 1, flags: 1 },
        { start: 2, end: 3, bg: 0x1010203 },
        { start: 3, end: 4, link: 'https://x.org/' },
      ],
    });
  });

  it('hide concealed text', () => {
    expect(run().write(`pin ${ESC}[8m1234${ESC}[0m.`).transcript).toEqual(['pin     .']);
  });

  it('that never end are split, so that they cannot fill memory', () => {
    const model = run(80, 24);
    for (let count = 0; count < 40; count += 1) model.write('x'.repeat(10_000));
    expect(model.lines.length).toBeGreaterThanOrEqual(5);
    expect(Math.max(...model.texts.map((text) => text.length))).toBeLessThan(66_000);
    expect(model.transcript.join('').length).toBe(400_000);
  });

  it('scrolled out by a region or by SU are kept', () => {
    const model = run().write(`1\r\n2\r\n3\r\n4\r\nbar${ESC}[1;4r${ESC}[4;1H\n5${ESC}[2S`);
    expect(model.texts).toEqual(['1', '2', '3']);
    model.exit();
    expect(model.texts.filter((text) => text !== '')).toEqual(['1', '2', '3', '4', '5', 'bar']);
  });
});

describe('clearing', () => {
  it.each([
    ['2J', `${ESC}[H${ESC}[2J`],
    ['0J after a move home', `${ESC}[H${ESC}[J`],
    ['clear with its scrollback', `${ESC}[H${ESC}[2J${ESC}[3J`],
    ['a reset', `${ESC}c`],
  ])('by %s keeps what was said', (_name, sequence) => {
    const model = run().write(`one\r\ntwo\r\n${sequence}three`);
    expect(model.texts).toEqual(['one', 'two']);
    expect(model.transcript).toEqual(['one', 'two', 'three']);
  });

  it('by 0J at home without a move there is a redraw: fzf --height does it', () => {
    const model = run().write(`> \r\n  a\r\n  b${ESC}[2A\r${ESC}[J> x`).exit();
    expect(model.texts).toEqual(['> x']);
  });

  it('by 3J alone changes nothing', () => {
    expect(run().write(`one\r\n${ESC}[3Jtwo`).transcript).toEqual(['one', 'two']);
  });
});

describe('screen mode', () => {
  it('is entered and left with the alternate buffer; no line is lost or repeated', () => {
    const model = run().write(`before\r\n${ESC}[?1049h${ESC}[Hscreen${ESC}[?1049lafter\r\n`);
    expect(model.markKinds).toEqual(['screen', 'log']);
    expect(model.marks.map((mark) => mark.line)).toEqual([1, 1]);
    expect(lastFrame(model).rows[0]?.text).toBe('screen');
    model.write(`${ESC}[H${ESC}[2J`).exit();
    expect(model.texts).toEqual(['before', 'after']);
  });

  it('has a tail of the unfinished line only, and a frame', () => {
    const view = run().write(`before\r\n$ vi${ESC}[?1049hx`).model.view();
    expect(view.mode).toBe('screen');
    expect(view.tail.map((line) => line.text)).toEqual(['$ vi']);
    expect(view.frame?.rows).toHaveLength(5);
  });

  it('keeps the last frame of a program that erases its screen before it leaves', () => {
    const model = run().write(`${ESC}[?1049h${ESC}[Hwork${ESC}[H${ESC}[2J${ESC}[?1049l`);
    expect(lastFrame(model).rows[0]?.text).toBe('work');
  });

  it('keeps the last frame of a program that was killed', () => {
    const model = run().write(`a\r\n${ESC}[?1049h${ESC}[Hwork`).exit();
    expect(lastFrame(model).rows[0]?.text).toBe('work');
    expect(model.texts).toEqual(['a']);
    expect(model.model.mode).toBe('log');
  });

  it.each([
    ['the cursor hidden', `${ESC}[?25l`],
    ['synchronized output open', `${ESC}[?2026h`],
  ])('is entered by an erase with %s', (_name, state) => {
    const model = run().write(`log\r\n${state}${ESC}[H${ESC}[2Jframe 1`);
    expect(model.markKinds).toEqual(['screen']);
    expect(model.texts).toEqual(['log']);
    model.write(`${ESC}[H${ESC}[2Jframe 2`);
    expect(model.texts).toEqual(['log']);
    expect(model.model.view().tail).toEqual([]);
  });

  it('is entered by moves up with a hidden cursor and application keys, at the first', () => {
    const model = run().write(`a\r\nb\r\n${ESC}[?25l${ESC}[?1h${ESC}[1;1H`);
    expect(model.markKinds).toEqual(['screen']);
  });

  it('is entered by three moves up within 10 s, not by three in more', () => {
    const move = `\r\n\r\n${ESC}[1;1Hx`;
    const fast = run();
    for (const nowMs of [0, 4_000, 9_000]) fast.write(move, nowMs);
    expect(fast.markKinds).toEqual(['screen']);
    const slow = run();
    for (const nowMs of [0, 6_000, 12_000, 18_000]) slow.write(move, nowMs);
    expect(slow.markKinds).toEqual([]);
  });

  it('is entered by three erases within 5 s, not when a prompt came between', () => {
    const loop = run();
    for (const nowMs of [0, 1_000, 2_000]) loop.write(`x\r\n${ESC}[2J`, nowMs);
    expect(loop.markKinds).toEqual(['screen']);
    const person = run();
    for (const nowMs of [0, 1_000, 2_000]) person.write(`${ESC}[?2004h$ clear${ESC}[2J`, nowMs);
    expect(person.markKinds).toEqual([]);
  });

  it.each([
    ['a shell prompt', `${ESC}]133;A${ST}`],
    ['the end of application keys', `${ESC}[?1l`],
    ['a line editor', `${ESC}[?25h${ESC}[?2004h`],
  ])('of a repainting program ends with %s; its left-overs are no lines', (_name, sequence) => {
    const model = run().write(`${ESC}[?1h${ESC}[?25l${ESC}[2J${ESC}[Hcpu 1%\r\nmem 2%\r\n`);
    model.write(`${sequence}${ESC}[?25h$ ls\r\n`).exit();
    const modes = model.markKinds.filter((kind) => kind === 'screen' || kind === 'log');
    expect(modes).toEqual(['screen', 'log']);
    expect(lastFrame(model).rows[0]?.text).toBe('cpu 1%');
    expect(model.texts).toEqual(['$ ls']);
  });

  it('of a repainting program ends when another program has the terminal', () => {
    const model = run().write(`${ESC}[?25l${ESC}[2J${ESC}[Hcpu 1%\r\n`);
    model.model.programChanged();
    model.collect().write('$ ls\r\n').exit();
    expect(model.texts).toEqual(['$ ls']);
  });

  it('says a row twice rather than lose it when text is printed above what was finished', () => {
    const model = run().write(`one\r\ntwo\r\n${ESC}[?1049h${ESC}[?1049l${ESC}[1;1HONE\r\n`).exit();
    expect(model.texts).toEqual(['one', 'two', 'ONE', 'two']);
  });

  it('is not entered by a progress bar at the bottom', () => {
    const model = run().write(`${ESC}[1;4r`);
    for (let step = 0; step < 20; step += 1) {
      model.write(`${ESC}7${ESC}[5;1H${step}%${ESC}8line ${step}\r\n`, step);
    }
    expect(model.markKinds).toEqual([]);
  });
});

describe('marks', () => {
  it('say what shells and programs announce, with the offset behind it', () => {
    const model = run(60).write(
      [
        `${ESC}]7;file://host/tmp/a%20b${ST}`,
        `${ESC}]2;title${ST}`,
        `${ESC}]0;title${ST}`,
        `${ESC}]9;done${ST}`,
        `${ESC}]9;4;1;50${ST}`,
        `${ESC}]99;i=1:p=title;kitty${ST}`,
        `${ESC}]777;notify;build;ok${ST}`,
        `${ESC}]52;c;c2VjcmV0${ST}`,
        '\u0007',
      ].join(''),
    );
    expect(kinds(model)).toEqual([
      { kind: 'cwd', path: '/tmp/a b' },
      { kind: 'title', text: 'title' },
      { kind: 'notification', text: 'done' },
      { kind: 'notification', text: 'kitty' },
      { kind: 'notification', text: 'build: ok' },
      { kind: 'bell' },
    ]);
    expect(model.marks.map((mark) => mark.seq)).toEqual([0, 1, 2, 3, 4, 5]);
    // The introducer's and the terminator's escape: that is where the command took effect.
    expect(model.marks[0]?.offset).toBe(`${ESC}]7;file://host/tmp/a%20b${ESC}`.length);
    expect(model.transcript).toEqual(['']);
  });

  it('of prompts and commands carry the line of the cursor', () => {
    const osc = (data: string): string => `${ESC}]133;${data}${ST}`;
    const model = run().write(
      `a\r\nb\r\n${osc('A')}$ ${osc('B')}ls\r\n${osc('C')}x\r\n${osc('D;2')}`,
    );
    expect(model.marks.map(({ line, what }) => [what.kind, line])).toEqual([
      ['prompt-start', 2],
      ['prompt-end', 2],
      ['command-start', 3],
      ['command-done', 4],
    ]);
    expect(model.marks[3]?.what).toEqual({ kind: 'command-done', exitCode: 2 });
  });

  it('carry the line the view has the cursor on, wherever it is', () => {
    const random = seededRandom(5);
    for (let round = 0; round < 200; round += 1) {
      const model = run(10, 6).write(randomOutput(random, 40).toString('latin1'));
      if (model.model.mode === 'screen') continue;
      model.write(`\u0018${ESC}]133;A${ST}`);
      expect(model.marks.at(-1)?.line).toBe(model.model.view().cursor.line);
    }
  });

  it('bound a flood of bells by its bytes', () => {
    expect(run().write('\u0007'.repeat(50_000)).marks.length).toBeLessThan(60);
  });

  it.each([
    ['sixel', `${ESC}P0;1q"1;1;10;10#0~~~${ESC}\\`],
    ['iterm2', `${ESC}]1337;File=inline=1;size=4:QUJDRA==\u0007`],
    ['kitty', `${ESC}_Gf=100,a=T,m=1;AAAA${ESC}\\${ESC}_Gm=0;BBBB${ESC}\\`],
  ])('name a %s picture and where its bytes are; no line holds them', (protocol, picture) => {
    const model = run(60).write(`see ${picture}.`);
    const mark = model.marks[0];
    if (mark?.what.kind !== 'image') throw new Error('no picture');
    expect(mark.what.protocol).toBe(protocol);
    const output = `see ${picture}.`;
    const bytes = output.slice(mark.offset - mark.what.sizeBytes, mark.offset);
    expect(bytes).toBe(picture.endsWith('\\') ? picture.slice(0, -1) : picture);
    expect(model.transcript).toEqual(['see .']);
  });

  it('ignore what is malformed', () => {
    const model = run(60).write(
      ['7;nothing', '7;file://x', '9;', '99;', '777;x', '133;Z', '8', '1337;x', '52;']
        .map((data) => `${ESC}]${data}${ST}`)
        .join(''),
    );
    expect(model.marks).toEqual([]);
  });
});

describe('answers', () => {
  it('are given once to the queries programs wait for', () => {
    const model = run().write(`ab${ESC}[6n${ESC}[c${ESC}[5n${ESC}[?2026$p`);
    expect(model.answers).toBe(`${ESC}[1;3R${ESC}[?1;2c${ESC}[0n${ESC}[?2026;2$y`);
    expect(model.model.takeAnswers()).toHaveLength(0);
  });

  it('are not given in a replay', () => {
    const model = new TerminalModel({ cols: 20, rows: 5 });
    model.replay(Buffer.from(`${ESC}[6n`), 0, []);
    expect(model.takeAnswers()).toHaveLength(0);
  });

  it('are bounded', () => {
    expect(run().write(`${ESC}[c`.repeat(100_000)).answers.length).toBeLessThanOrEqual(4_096);
  });
});

describe('resize', () => {
  it('keeps lines whole, in the alternate buffer too', () => {
    const long = 'abcdefghij'.repeat(6);
    const model = run().write(`${long}\r\n${ESC}[?1049h`);
    for (const [cols, rows] of [
      [7, 3],
      [90, 40],
      [2, 2],
      [33, 9],
    ] as const) {
      model.model.resize(cols, rows);
      model.collect();
    }
    expect(model.write(`${ESC}[?1049l`).exit().texts).toEqual([long]);
  });

  it('keeps a line whose beginning has left the screen', () => {
    const long = 'abcdefghij'.repeat(30);
    const model = run().write(long);
    expect(model.texts).toEqual([]);
    model.model.resize(11, 5);
    model.collect();
    model.model.resize(50, 3);
    model.collect();
    expect(model.write('!\r\n').exit().texts).toEqual([`${long}!`]);
  });

  it('does not say again what was final before', () => {
    const model = run().write(`one\r\ntwo\r\n${ESC}[?1049h${ESC}[?1049l`);
    model.model.resize(3, 2);
    model.collect();
    model.model.resize(40, 10);
    model.collect();
    expect(model.write('three\r\n').exit().texts).toEqual(['one', 'two', 'three']);
  });

  it('is clamped to what a screen can be', () => {
    const model = run();
    model.model.resize(0, -5);
    model.model.resize(100_000, 100_000);
    model.model.resize(10, 3);
    expect(model.model.view()).toMatchObject({ cols: 10, rowCount: 3 });
  });
});

describe('exit', () => {
  it('finishes the screen; what a background process prints later goes on from there', () => {
    const model = run().write('one\r\ntwo').exit();
    expect(model.texts).toEqual(['one', 'two']);
    expect(model.exit().texts).toEqual(['one', 'two']);
    model.write('\r\nlate\r\n').exit();
    expect(model.texts).toEqual(['one', 'two', 'late']);
  });
});

describe('hostile output', () => {
  it.each(['L', 'M', 'S', 'T', 'I', 'Z', 'b', '@', 'P', 'X', 'A', 'B', 'C', 'D', 'E', 'F', 'G'])(
    'CSI 2147483647 %s costs a screenful at most',
    (final) => {
      const model = run(200, 100).write('x');
      for (let count = 0; count < 50; count += 1) model.write(`${ESC}[2147483647${final}`);
      expect(model.write('\r\nend').model.view().tail.length).toBeGreaterThan(0);
    },
  );

  it('a title, a link and a device string of megabytes leave the screen as it was', () => {
    const big = 'x'.repeat(3_000_000);
    const model = run(60).write(
      `a${ESC}]2;${big}\u0007${ESC}]8;;http://${big}${ST}b${ESC}P${big}${ST}c`,
    );
    expect(model.transcript).toEqual(['abc']);
    expect(model.model.title.length).toBeLessThanOrEqual(512);
  });

  it('thousands of links are remembered up to a bound, the newest of them on the screen', () => {
    const model = run(60);
    for (let count = 0; count < 20_000; count += 1) {
      model.model.write(Buffer.from(`${ESC}]8;;http://x/${count}${ST}l${ESC}]8;;${ST}\r\n`), 0);
      model.model.takeFinals();
    }
    const tail = model.model.view().tail.map((line) => line.spans?.[0]?.link);
    expect(tail).toContain('http://x/19999');
  });

  it('random bytes never throw', () => {
    const random = seededRandom(7);
    const model = run();
    for (let count = 0; count < 300; count += 1) {
      model.model.write(random.bytes(1_000), count);
      model.collect();
      model.model.view();
      model.model.snapshot();
      model.model.checkpoint();
    }
    expect(model.model.offset).toBe(300_000);
  });
});

describe('checkpoint', () => {
  it('is taken at the last offset no sequence or character spans', () => {
    const model = new TerminalModel({ cols: 20, rows: 5 });
    model.write(Buffer.from(`ab${ESC}[3`), 0);
    expect(model.checkpoint()?.offset).toBe(2);
    expect(model.snapshot().offset).toBe(2);
    model.write(Buffer.from('1m'), 0);
    model.write(Buffer.from('世').subarray(0, 2), 0);
    expect(model.checkpoint()?.offset).toBe(7);
  });

  it('that is damaged is refused by name', () => {
    const checkpoint = new TerminalModel({ cols: 20, rows: 5 }).checkpoint();
    if (checkpoint === undefined) throw new Error('no checkpoint');
    const random = seededRandom(3);
    expect(() => TerminalModel.restore(new Uint8Array(0))).toThrow(/checkpoint/);
    for (let count = 0; count < 200; count += 1) {
      const bytes = Uint8Array.from(checkpoint.bytes);
      const at = Math.floor(random.next() * bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random.next() * 8));
      try {
        TerminalModel.restore(bytes);
      } catch (error) {
        expect(error).toMatchObject({ code: 'version-mismatch' });
      }
    }
  });
});

describe('a line editor', () => {
  it('that moves through its wrapped line leaves it one line', () => {
    // As readline does: up into the first row, and Enter from there.
    const model = run(10, 6).write(`$ abcdefghijkl${ESC}[A\r\n\r\nnext\r\n`).exit();
    expect(model.texts).toEqual(['$ abcdefghijkl', 'next']);
  });

  it('that shortened the row above has ended it', () => {
    const model = run(10, 6).write(`0123456789abc${ESC}[A\rshort${ESC}[K\r\nnew\r\n`).exit();
    expect(model.texts).toEqual(['short', 'new']);
  });
});
