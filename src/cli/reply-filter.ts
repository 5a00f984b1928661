// Drops what a terminal answers to queries from what it sends, because the host answers them: an
// answer typed twice is text at a prompt. Keys pass unchanged. Pure; survives any cut.

/** Longest reply kept back while it is incomplete; longer ones are no replies. */
const REPLY_BYTES_MAX = 256;

const ESC = 0x1b;

/** Replies to DA, DSR, DECRQM, kitty and XTVERSION, OSC colours, DECRQSS. Cursor reports apart. */
const REPLY =
  /^(?:\x1b\[[?>=][\d;]*c|\x1b\[\d*n|\x1b\[\?[\d;]*n|\x1b\[\??[\d;]*\$y|\x1b\[\?\d*u|\x1b\[[\d;]*t|\x1b\](?:4|1[0-9]|5);[^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\)/;
const CURSOR_REPORT = /^\x1b\[\??\d+;\d+R/;
/** The beginning of something that may yet become a reply. */
const INCOMPLETE =
  /^(?:\x1b|\x1b\[[?>=]?[\d;]*\$?|\x1b\](?:[^\x07\x1b]*\x1b?)|\x1bP[^\x1b]*\x1b?)$/;

export class ReplyFilter {
  #held = '';
  /** Cursor reports asked for and not seen yet: Shift-F3 looks the same. */
  #cursorQueries = 0;

  /** Looks at what the program sends for cursor queries. */
  sawOutput(bytes: Uint8Array): void {
    if (!bytes.includes(ESC)) return;
    const asked = Buffer.from(bytes)
      .toString('latin1')
      .match(/\x1b\[\??6n/g);
    this.#cursorQueries += asked?.length ?? 0;
  }

  /** What of `bytes` a person typed. Call `flush` when nothing followed for a moment. */
  typed(bytes: Uint8Array): Buffer {
    let text = this.#held + Buffer.from(bytes).toString('latin1');
    this.#held = '';
    let kept = '';
    while (text !== '') {
      const at = text.indexOf('\x1b');
      if (at < 0) return Buffer.from(kept + text, 'latin1');
      kept += text.slice(0, at);
      text = text.slice(at);
      const size = this.#replySize(text);
      if (size > 0) {
        text = text.slice(size);
      } else if (text.length < REPLY_BYTES_MAX && INCOMPLETE.test(text)) {
        this.#held = text;
        return Buffer.from(kept, 'latin1');
      } else {
        kept += '\x1b';
        text = text.slice(1);
      }
    }
    return Buffer.from(kept, 'latin1');
  }

  /** A held beginning that nothing followed was typed: a lone Escape. */
  flush(): Buffer {
    const held = Buffer.from(this.#held, 'latin1');
    this.#held = '';
    return held;
  }

  #replySize(text: string): number {
    const reply = REPLY.exec(text);
    if (reply !== null) return reply[0].length;
    const report = CURSOR_REPORT.exec(text);
    if (report === null || this.#cursorQueries === 0) return 0;
    this.#cursorQueries -= 1;
    return report[0].length;
  }
}
