// The emoji people and bots of the sandbox use: Slack's short names and their code points. Not all of
// Unicode: an unknown name stays text, as custom emoji of another workspace would.

const TABLE = `
slightly_smiling_face 1f642
smile 1f604
grinning 1f600
laughing 1f606
joy 1f602
wink 1f609
heart 2764-fe0f
thumbsup 1f44d
+1 1f44d
-1 1f44e
thumbsdown 1f44e
tada 1f389
eyes 1f440
white_check_mark 2705
heavy_check_mark 2714-fe0f
ballot_box_with_check 2611-fe0f
x 274c
no_entry 26d4
no_entry_sign 1f6ab
warning 26a0-fe0f
question 2753
grey_question 2754
exclamation 2757
hourglass 231b
hourglass_flowing_sand 23f3
stopwatch 23f1-fe0f
lock 1f512
rocket 1f680
fire 1f525
wave 1f44b
pray 1f64f
clap 1f44f
thinking_face 1f914
keyboard 2328-fe0f
robot_face 1f916
skull 1f480
ghost 1f47b
bug 1f41b
package 1f4e6
wrench 1f527
hammer 1f528
gear 2699-fe0f
computer 1f4bb
arrow_up 2b06-fe0f
arrow_down 2b07-fe0f
arrow_left 2b05-fe0f
arrow_right 27a1-fe0f
red_circle 1f534
large_green_circle 1f7e2
octagonal_sign 1f6d1
speech_balloon 1f4ac
`;

const CODE_BY_NAME: ReadonlyMap<string, string> = new Map(
  TABLE.trim()
    .split('\n')
    .map((row) => {
      const [name = '', code = ''] = row.split(' ');
      return [name, code] as const;
    }),
);

const NAME_BY_TEXT: ReadonlyMap<string, string> = new Map(
  [...CODE_BY_NAME].reverse().map(([name, code]) => [textOf(code), name] as const),
);

/** Faces people type as signs. */
export const EMOTICONS: Readonly<Record<string, string>> = {
  ':)': 'slightly_smiling_face',
  ';)': 'wink',
  ':D': 'smile',
  '<3': 'heart',
};

function textOf(code: string): string {
  return String.fromCodePoint(...code.split('-').map((hex) => Number.parseInt(hex, 16)));
}

export function isEmojiName(name: string): boolean {
  return CODE_BY_NAME.has(name);
}

/** Hex code points joined by `-`, as in rich_text leaves. */
export function emojiCode(name: string): string | undefined {
  return CODE_BY_NAME.get(name);
}

/** Splits a text into plain pieces and emoji characters. */
export function emojiPieces(text: string): readonly { text: string; name?: string }[] {
  const known = [...NAME_BY_TEXT.keys()].sort((a, b) => b.length - a.length);
  return text
    .split(new RegExp(`(${known.join('|')})`, 'u'))
    .filter((piece) => piece !== '')
    .map((piece) => {
      const name = NAME_BY_TEXT.get(piece);
      return name === undefined ? { text: piece } : { text: piece, name };
    });
}
