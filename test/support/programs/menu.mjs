// A full-screen menu on the alternate screen: arrows move, Enter chooses, q leaves.
const items = ['espresso', 'cappuccino', 'tea'];
let at = 0;
const draw = () => {
  const rows = items.map((item, index) => `${index === at ? '>' : ' '} ${item}`);
  process.stdout.write(`\x1b[H\x1b[2J  What will it be?\r\n\r\n${rows.join('\r\n')}\r\n`);
};
const leave = (word) => {
  process.stdout.write(`\x1b[?25h\x1b[?1049l${word}\r\n`);
  process.stdin.setRawMode(false);
  process.exit(0);
};
process.stdin.setRawMode(true);
process.stdin.resume();
process.stdout.write('\x1b[?1049h\x1b[?25l');
draw();
process.stdin.on('data', (data) => {
  const key = data.toString();
  if (key === '\x1b[A' || key === '\x1bOA') at = Math.max(0, at - 1);
  else if (key === '\x1b[B' || key === '\x1bOB') at = Math.min(items.length - 1, at + 1);
  else if (key === '\r') leave(`You chose ${items[at]}.`);
  else if (key === 'q') leave('Nothing, then.');
  draw();
});
