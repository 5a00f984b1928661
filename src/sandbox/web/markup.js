// Text as the two clients draw it: Discord's markdown and ansi fences, Slack's mrkdwn and blocks.

import htm from 'htm';
import { h } from 'preact';

export const html = htm.bind(h);

const SAFE_URL = /^https?:\/\//;

function link(url, label) {
  if (!SAFE_URL.test(url)) return label;
  return html`<a href=${url} target="_blank" rel="noreferrer noopener">${label}</a>`;
}

/** Lines with their breaks. */
export function lines(text) {
  return text.split('\n').flatMap((line, index) => (index === 0 ? [line] : [html`<br />`, line]));
}

/** Applies the first rule that matches earliest, recursively. */
function inline(text, rules) {
  const nodes = [];
  let rest = text;
  while (rest !== '') {
    const hit = earliest(rest, rules);
    if (hit === undefined) {
      nodes.push(...lines(rest));
      break;
    }
    if (hit.match.index > 0) nodes.push(...lines(rest.slice(0, hit.match.index)));
    nodes.push(hit.rule.draw(hit.match, (inner) => inline(inner, rules)));
    rest = rest.slice(hit.match.index + hit.match[0].length);
  }
  return nodes;
}

function earliest(text, rules) {
  let best;
  for (const rule of rules) {
    const match = rule.pattern.exec(text);
    if (match !== null && (best === undefined || match.index < best.match.index))
      best = { rule, match };
  }
  return best;
}

// Discord.

function discordRules(names) {
  return [
    { pattern: /\\([^\sA-Za-z0-9])/, draw: (m) => m[1] },
    { pattern: /(`{1,2})([^`]+)\1/, draw: (m) => html`<code>${m[2]}</code>` },
    {
      pattern: /<(@!?|@&|#)(\d{17,20})>/,
      draw: (m) =>
        html`<span class="mention">${m[1].startsWith('#') ? '#' : '@'}${names(m[2]) ?? m[2]}</span>`,
    },
    {
      pattern: /<t:(\d+)(?::[a-zA-Z])?>/,
      draw: (m) => html`<span class="stamp">${clock(Number(m[1]) * 1000)}</span>`,
    },
    { pattern: /\[([^\]\n]+)\]\((https?:\/\/[^)\s]+)\)/, draw: (m) => link(m[2], m[1]) },
    { pattern: /<(https?:\/\/[^>\s]+)>/, draw: (m) => link(m[1], m[1]) },
    { pattern: /https?:\/\/[^\s<>]+[^\s<>.,:;"')\]]/, draw: (m) => link(m[0], m[0]) },
    { pattern: /\*\*([\s\S]+?)\*\*/, draw: (m, more) => html`<strong>${more(m[1])}</strong>` },
    { pattern: /__([\s\S]+?)__/, draw: (m, more) => html`<u>${more(m[1])}</u>` },
    { pattern: /~~([\s\S]+?)~~/, draw: (m, more) => html`<s>${more(m[1])}</s>` },
    {
      pattern: /\|\|([\s\S]+?)\|\|/,
      draw: (m, more) => html`<span class="spoiler" tabindex="0">${more(m[1])}</span>`,
    },
    { pattern: /\*(?=\S)([^*]+?)\*/, draw: (m, more) => html`<em>${more(m[1])}</em>` },
    { pattern: /\b_([^_]+?)_\b/, draw: (m, more) => html`<em>${more(m[1])}</em>` },
  ];
}

function discordProse(text, names) {
  const rules = discordRules(names);
  return text.split('\n').map((line) => {
    const subtext = /^-# (.*)$/.exec(line);
    if (subtext !== null) return html`<div class="subtext">${inline(subtext[1], rules)}</div>`;
    const header = /^(#{1,3}) (.*)$/.exec(line);
    if (header !== null)
      return html`<div class=${`header h${header[1].length}`}>${inline(header[2], rules)}</div>`;
    const quote = /^> (.*)$/.exec(line);
    if (quote !== null) return html`<blockquote>${inline(quote[1], rules)}</blockquote>`;
    return html`<div class="line">${line === '' ? ' ' : inline(line, rules)}</div>`;
  });
}

const FOREGROUND = { 30: 'k', 31: 'r', 32: 'g', 33: 'y', 34: 'b', 35: 'm', 36: 'c', 37: 'w' };
const BACKGROUND = { 40: 'k', 41: 'r', 42: 'g', 43: 'y', 44: 'b', 45: 'm', 46: 'c', 47: 'w' };

function nextStyle(style, codes) {
  let next = { ...style };
  for (const code of codes) {
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 4) next.underline = true;
    else if (FOREGROUND[code] !== undefined) next.fg = FOREGROUND[code];
    else if (BACKGROUND[code] !== undefined) next.bg = BACKGROUND[code];
  }
  return next;
}

function styleClass(style) {
  return [
    style.bold && 'bold',
    style.underline && 'underline',
    style.fg && `fg-${style.fg}`,
    style.bg && `bg-${style.bg}`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** An ansi fence: on a desktop with its few colours, on a phone without any. */
function ansi(text, mobile) {
  const nodes = [];
  let style = {};
  let from = 0;
  for (const match of text.matchAll(/\u001b\[([0-9;]*)m/g)) {
    nodes.push(span(text.slice(from, match.index), style, mobile));
    style = nextStyle(style, match[1].split(';').map(Number));
    from = match.index + match[0].length;
  }
  nodes.push(span(text.slice(from), style, mobile));
  return nodes;
}

function span(text, style, mobile) {
  if (text === '') return null;
  return mobile ? text : html`<span class=${styleClass(style)}>${text}</span>`;
}

/** Clients hide empty lines at either end of a fence. */
function fence(block, mobile) {
  const text = block.text.replaceAll(/^\n+|\n+$/g, '');
  return html`<pre class="fence"><code>${block.language === 'ansi' ? ansi(text, mobile) : text}</code></pre>`;
}

export function discordBlocks(blocks, names, mobile) {
  return blocks.map((block) =>
    block.kind === 'fence'
      ? fence(block, mobile)
      : html`<div class="prose">${discordProse(block.text, names)}</div>`,
  );
}

// Slack.

const ENTITIES = { '&amp;': '&', '&lt;': '<', '&gt;': '>' };
const plain = (text) => text.replaceAll(/&(?:amp|lt|gt);/g, (entity) => ENTITIES[entity]);

const EMOJI = {
  eyes: '👀',
  white_check_mark: '✅',
  heavy_check_mark: '✔️',
  x: '❌',
  warning: '⚠️',
  hourglass: '⌛',
  hourglass_flowing_sand: '⏳',
  thumbsup: '👍',
  '+1': '👍',
  '-1': '👎',
  tada: '🎉',
  rocket: '🚀',
  keyboard: '⌨️',
  no_entry: '⛔',
  lock: '🔒',
  computer: '💻',
  smile: '😄',
  heart: '❤️',
  fire: '🔥',
  large_green_circle: '🟢',
  red_circle: '🔴',
  white_circle: '⚪',
};
/** Slack's name of an emoji as its character, where we know it. */
export const emojiOf = (name) => EMOJI[name] ?? `:${name}:`;

function slackRules(names) {
  return [
    { pattern: /`([^`\n]+)`/, draw: (m) => html`<code>${plain(m[1])}</code>` },
    {
      pattern: /<@([UW][A-Z0-9]+)(?:\|[^>]*)?>/,
      draw: (m) => html`<span class="mention">@${names(m[1])}</span>`,
    },
    {
      pattern: /<#([CG][A-Z0-9]+)(?:\|([^>]*))?>/,
      draw: (m) => html`<span class="mention">#${m[2] || names(m[1])}</span>`,
    },
    {
      pattern: /<!(here|channel|everyone)(?:\|[^>]*)?>/,
      draw: (m) => html`<span class="mention loud">@${m[1]}</span>`,
    },
    {
      pattern: /<!date\^(\d+)\^[^>|]*(?:\|([^>]*))?>/,
      draw: (m) => html`<span class="stamp">${clock(Number(m[1]) * 1000)}</span>`,
    },
    {
      pattern: /<(https?:[^>|]+)(?:\|([^>]*))?>/,
      draw: (m) => link(plain(m[1]), plain(m[2] ?? m[1])),
    },
    { pattern: /<(mailto:[^>|]+)(?:\|([^>]*))?>/, draw: (m) => plain(m[2] ?? m[1]) },
    { pattern: /:([a-z0-9_+-]+):/, draw: (m) => emojiOf(m[1]) },
    {
      pattern: /(?<![\w*])\*(?=\S)([^*\n]+)\*(?!\w)/,
      draw: (m, more) => html`<strong>${more(m[1])}</strong>`,
    },
    { pattern: /(?<!\w)_(?=\S)([^_\n]+)_(?!\w)/, draw: (m, more) => html`<em>${more(m[1])}</em>` },
    { pattern: /(?<!\w)~(?=\S)([^~\n]+)~(?!\w)/, draw: (m, more) => html`<s>${more(m[1])}</s>` },
    { pattern: /&(?:amp|lt|gt);/, draw: (m) => ENTITIES[m[0]] },
  ];
}

export function mrkdwn(text, names) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(/```\n?([\s\S]*?)\n?```/g)) {
    nodes.push(slackProse(text.slice(from, match.index), names));
    nodes.push(html`<pre class="fence"><code>${plain(match[1])}</code></pre>`);
    from = match.index + match[0].length;
  }
  nodes.push(slackProse(text.slice(from), names));
  return nodes;
}

function slackProse(text, names) {
  const shown = text.replace(/^\n/, '').replace(/\n$/, '');
  if (shown === '') return null;
  const rules = slackRules(names);
  return html`<div class="prose">${shown.split('\n').map((line) => {
    const quote = /^&gt; ?(.*)$/.exec(line);
    if (quote !== null) return html`<blockquote>${inline(quote[1], rules)}</blockquote>`;
    return html`<div class="line">${line === '' ? ' ' : inline(line, rules)}</div>`;
  })}</div>`;
}

function textObject(object, names) {
  if (object === undefined || object === null) return null;
  return object.type === 'mrkdwn'
    ? mrkdwn(object.text, names)
    : html`<div class="prose">${lines(object.text)}</div>`;
}

function richLeaf(leaf, names) {
  const drawn = richText(leaf, names);
  const style = leaf.style ?? {};
  let node = style.code ? html`<code>${drawn}</code>` : drawn;
  if (style.bold) node = html`<strong>${node}</strong>`;
  if (style.italic) node = html`<em>${node}</em>`;
  if (style.strike) node = html`<s>${node}</s>`;
  return node;
}

function richText(leaf, names) {
  switch (leaf.type) {
    case 'text':
      return lines(leaf.text);
    case 'link':
      return link(leaf.url, leaf.text ?? leaf.url);
    case 'emoji':
      return emojiOf(leaf.name);
    case 'user':
      return html`<span class="mention">@${names(leaf.user_id)}</span>`;
    case 'channel':
      return html`<span class="mention">#${names(leaf.channel_id)}</span>`;
    case 'broadcast':
      return html`<span class="mention loud">@${leaf.range}</span>`;
    case 'date':
      return html`<span class="stamp">${leaf.fallback ?? clock(leaf.timestamp * 1000)}</span>`;
    default:
      return leaf.text ?? '';
  }
}

function richElement(element, names) {
  const drawn = (element.elements ?? []).map((leaf) => richLeaf(leaf, names));
  switch (element.type) {
    case 'rich_text_preformatted':
      return html`<pre class="fence"><code>${drawn}</code></pre>`;
    case 'rich_text_quote':
      return html`<blockquote>${drawn}</blockquote>`;
    case 'rich_text_list':
      return html`<ul>${(element.elements ?? []).map((item) => html`<li>${richElement(item, names)}</li>`)}</ul>`;
    default:
      return html`<div class="prose">${drawn}</div>`;
  }
}

/** Blocks of a message or modal; `act(element, block)` is called when a button is pressed. */
export function slackBlocks(blocks, names, act) {
  return blocks.map((block) => {
    switch (block.type) {
      case 'rich_text':
        return html`<div class="rich">${block.elements.map((element) => richElement(element, names))}</div>`;
      case 'section':
        return html`<div class="section">
          <div>${textObject(block.text, names)}${(block.fields ?? []).map((field) => textObject(field, names))}</div>
          ${block.accessory ? slackElement(block.accessory, block, act) : null}
        </div>`;
      case 'header':
        return html`<div class="header h1">${block.text.text}</div>`;
      case 'context':
        return html`<div class="context">${block.elements.map((element) => (element.type === 'image' ? null : textObject(element, names)))}</div>`;
      case 'markdown':
        return mrkdwn(block.text, names);
      case 'divider':
        return html`<hr />`;
      case 'actions':
        return html`<div class="buttons">${block.elements.map((element) => slackElement(element, block, act))}</div>`;
      case 'image':
        return block.image_url === undefined
          ? html`<div class="prose">🖼 ${block.alt_text}</div>`
          : html`<img class="shot" src=${block.image_url} alt=${block.alt_text} />`;
      default:
        return null;
    }
  });
}

function slackElement(element, block, act) {
  if (element.type === 'button')
    return html`<button class=${`chip ${element.style ?? ''}`} onClick=${() => act(element, block)}>${element.text.text}</button>`;
  if (element.type === 'static_select' || element.type === 'overflow')
    return html`<select class="chip" aria-label=${element.placeholder?.text ?? 'Choose'} onChange=${(event) => act(element, block, event.currentTarget.value)}>
      <option value="">${element.placeholder?.text ?? '…'}</option>
      ${(element.options ?? []).map((option) => html`<option value=${option.value}>${option.text.text}</option>`)}
    </select>`;
  return null;
}

/** Hours and minutes as a person's client shows them. */
export function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
}
