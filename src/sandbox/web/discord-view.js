// The Discord half of the page: channels with their threads, messages, components, slash commands.

import { useState } from 'preact/hooks';
import { control, useLive } from './api.js';
import { discordBlocks, html } from './markup.js';
import {
  Composer,
  Dialog,
  Files,
  follows,
  MessageFrame,
  PlaceHead,
  Reactions,
  Scroller,
} from './parts.js';

const touches =
  (...types) =>
  (change) =>
    change.platform === 'discord' && types.includes(change.type);
const SPOKEN = [0, 19, 20];

export function DiscordSidebar({ channel, thread, person, go }) {
  const { value, error } = useLive('discord/channels', {}, touches('channel', 'gateway'));
  if (value === undefined) return html`<p class="empty">${error ?? 'Loading…'}</p>`;
  const tops = value.filter((entry) => entry.kind === 'text' || entry.kind === 'forum');
  const direct = value.filter((entry) => entry.kind === 'dm' && entry.name === person);
  const threadsOf = (parent) => value.filter((entry) => entry.parentId === parent.id);
  return html`
    <h2>Sandbox</h2>
    <ul class="channels">
      ${tops.map(
        (entry) => html`<li>
          <button aria-current=${channel === entry.id && thread === undefined ? 'page' : undefined} onClick=${() => go(entry.id)}><span class="sigil">${entry.kind === 'forum' ? '▤' : '#'}</span>${entry.name}</button>
          <ul>
            ${threadsOf(entry).map(
              (one) =>
                html`<li><button class=${one.archived ? 'archived' : ''} aria-current=${thread === one.id ? 'page' : undefined} onClick=${() => go(entry.id, one.id)}><span class="name">${one.name}</span>${one.locked ? ' 🔒' : ''}${one.archived ? html`<small>archived</small>` : ''}</button></li>`,
            )}
          </ul>
        </li>`,
      )}
      ${direct.map((entry) => html`<li><button aria-current=${channel === entry.id ? 'page' : undefined} onClick=${() => go(entry.id)}><span class="sigil">@</span>chatd</button></li>`)}
    </ul>
  `;
}

export function DiscordPlace(props) {
  const { channel, thread, go } = props;
  const channels = useLive('discord/channels', {}, touches('channel')).value ?? [];
  if (channel === undefined) return html`<p class="empty welcome">Choose a channel.</p>`;
  const parent = channels.find((entry) => entry.id === channel);
  return html`
    <section class="pane channel" aria-label="Channel">
      <${PlaceHead} title=${channelTitle(parent)} sub=${parent?.topic} back=${() => go(undefined)} />
      <${Conversation} ...${props} id=${channel} placeholder=${`Message #${parent?.name ?? ''}`} key=${channel} />
    </section>
    ${thread !== undefined && html`<${ThreadPane} ...${props} open=${channels.find((entry) => entry.id === thread)} key=${thread} />`}
  `;
}

function channelTitle(channel) {
  if (channel === undefined) return '';
  return channel.kind === 'dm' ? 'chatd' : `# ${channel.name}`;
}

function threadState(open) {
  if (open === undefined) return 'gone';
  if (open.locked) return 'locked';
  return open.archived
    ? 'archived'
    : open.members.length === 1
      ? '1 member'
      : `${open.members.length} members`;
}

function ThreadPane({ open, ...props }) {
  const { channel, thread, person, go } = props;
  return html`<section class="pane thread" aria-label="Thread">
    <${PlaceHead} title=${open?.name ?? 'Thread'} sub=${threadState(open)} back=${() => go(channel)}>
      ${open !== undefined && html`<${ThreadTools} open=${open} person=${person} />`}
      <button class="close" aria-label="Close thread" onClick=${() => go(channel)}>✕</button>
    <//>
    <${Conversation} ...${props} id=${thread} placeholder=${`Message ${open?.name ?? 'thread'}`} key=${thread} />
  </section>`;
}

function ThreadTools({ open, person }) {
  const [problem, setProblem] = useState(undefined);
  const change = (name, body) =>
    control(`discord/${name}`, { user: person, thread: open.id, ...body }).then(
      () => setProblem(undefined),
      (error) => setProblem(error.message),
    );
  return html`<details class="menu"><summary aria-label="Thread menu">⋯</summary><div>
    <button onClick=${() => change('archive', { archived: !open.archived })}>${open.archived ? 'Unarchive' : 'Archive'}</button>
    <button onClick=${() => change('lock', { locked: !open.locked })}>${open.locked ? 'Unlock' : 'Lock'}</button>
    <button onClick=${() => {
      const name = prompt('New name', open.name);
      if (name) change('rename', { name });
    }}>Rename</button>
    <button onClick=${() => change('deleteThread', {})}>Delete</button>
    ${problem && html`<p class="problem">${problem}</p>`}
  </div></details>`;
}

function Conversation({ id, person, mobile, placeholder, channel, go }) {
  const body = { id, viewer: person, limit: 300, system: true };
  const { value, error } = useLive(
    'discord/thread',
    body,
    touches('message', 'message-updated', 'message-deleted', 'channel'),
  );
  const dialogs = useLive('discord/dialogs', {}, touches('note')).value;
  const people = useLive('discord/people', {}, touches('people')).value ?? [];
  const commands = useLive('discord/commands', {}, touches('commands')).value ?? [];
  const [editing, setEditing] = useState(undefined);
  const [replying, setReplying] = useState(undefined);
  if (value === undefined) return html`<p class="empty">${error ?? 'Loading…'}</p>`;
  const names = (wanted) => people.find((entry) => entry.id === wanted)?.name;
  const notes = (dialogs?.notes ?? []).filter(
    (note) => note.channel === id && note.user === person,
  );
  const messages = value.messages.map((message) => ({
    ...message,
    bot: message.author.bot,
    author: message.author.name,
  }));
  const mark = `${messages.length} ${messages.at(-1)?.id} ${messages.at(-1)?.content.length} ${notes.length}`;
  const send = async (text) => {
    if (text.startsWith('/')) return runCommand(text.trim(), id, person, commands);
    await control(replying === undefined ? 'discord/type' : 'discord/reply', {
      user: person,
      channel: id,
      text,
      ...(replying === undefined ? {} : { messageId: replying.id }),
    });
    setReplying(undefined);
    return undefined;
  };
  const shared = { person, names, mobile, setEditing, setReplying, go, channel };
  return html`
    <${Scroller} mark=${mark} label="Messages">
      ${messages.length === 0 && html`<p class="empty">Nothing here yet. Say something.</p>`}
      ${messages.map((message, index) =>
        editing === message.id
          ? html`<div class="editing" key=${message.id}><${Composer} placeholder="Edit message" initial=${message.content} cancel=${() => setEditing(undefined)} send=${async (
              text,
            ) => {
              await control('discord/edit', { user: person, messageId: message.id, text });
              setEditing(undefined);
            }} /></div>`
          : html`<${DiscordMessage} key=${message.id} message=${message} before=${messages[index - 1]} ...${shared} />`,
      )}
      ${notes.map((note) => html`<p class="note" key=${note.atMs}>⚠ ${note.text} <small>Only visible to you</small></p>`)}
    <//>
    ${replying !== undefined && html`<div class="replying">Replying to <b>${replying.author}</b> <button onClick=${() => setReplying(undefined)} aria-label="Stop replying">✕</button></div>`}
    <${Composer} placeholder=${placeholder} upload=${(file) => control('discord/type', { user: person, channel: id, text: '', files: [file] })} send=${send} hint=${(text) => commandHint(text, commands)} />
  `;
}

function DiscordMessage({
  message,
  before,
  person,
  names,
  mobile,
  setEditing,
  setReplying,
  go,
  channel,
}) {
  if (!SPOKEN.includes(message.type)) return html`<p class="system">${systemText(message)}</p>`;
  const own = message.author === person;
  const act = (name, body) =>
    control(`discord/${name}`, { user: person, messageId: message.id, ...body }).catch((error) =>
      alert(error.message),
    );
  const actions = [
    ['React with eyes', '👀', () => act('react', { emoji: '👀' })],
    ['React with a check mark', '✅', () => act('react', { emoji: '✅' })],
    ['Reply', '↩', () => setReplying(message)],
    ...(own
      ? [
          ['Edit', '✎', () => setEditing(message.id)],
          ['Delete', '🗑', () => act('delete', {})],
        ]
      : []),
    ...(message.threadId === null && message.channel === channel
      ? [
          [
            'Start a thread',
            '⌗',
            () => act('startThread', { name: message.shown.slice(0, 40) || 'thread' }),
          ],
        ]
      : []),
  ];
  return html`<${MessageFrame} id=${message.id} author=${message.author} bot=${message.bot} atMs=${message.atMs} edited=${message.edited}
    follows=${message.quote === null && before !== undefined && SPOKEN.includes(before.type) && follows(before, message)} onlyFor=${message.onlyFor ?? undefined} actions=${message.onlyFor === null ? actions : []}
    text=${[message.quote !== null && html`<div class="quoted">↱ <b>${message.quote.author}</b> ${message.quote.shown.slice(0, 80)}</div>`, contentOf(message, names, mobile)]}>
    ${message.embeds.map((embed) => html`<div class="embed"><b>${embed.title}</b><div>${embed.description}</div></div>`)}
    <${Files} files=${message.attachments.map((file) => ({ name: file.filename, size: file.size, url: file.url, type: file.content_type }))} />
    <${Components} list=${message.components} message=${message} act=${act} names=${names} mobile=${mobile} />
    <${Reactions} list=${message.reactions.map((one) => ({ emoji: one.emoji, key: one.emoji, users: one.users, mine: one.users.includes(person) }))} react=${(emoji) => act('react', { emoji })} />
    ${message.threadId !== null && html`<button class="open-thread" onClick=${() => go(message.channel, message.threadId)}>Open thread ›</button>`}
  <//>`;
}

function contentOf(message, names, mobile) {
  if (message.loading) return html`<p class="thinking">chatd is thinking…</p>`;
  // A v2 message has no content of its own: its components are the message.
  return message.flags & 32768 ? null : discordBlocks(message.blocks, names, mobile);
}

function systemText(message) {
  if (message.type === 18) return `${message.author} started a thread`;
  if (message.type === 21)
    return message.quote === null
      ? 'The first message was deleted'
      : `${message.quote.author}: ${message.quote.shown}`;
  return message.type === 4
    ? `${message.author} renamed the thread`
    : `System message ${message.type}`;
}

const BUTTON_STYLE = { 1: 'primary', 2: '', 3: 'success', 4: 'danger', 5: 'link' };

function Components({ list, message, act, names, mobile }) {
  return list.map((component) => {
    switch (component.type) {
      case 1:
        return html`<div class="buttons">${component.components.map((child) => html`<${Control} item=${child} act=${act} />`)}</div>`;
      case 10:
        return html`<div>${discordBlocks(splitFences(component.content), names, mobile)}</div>`;
      case 14:
        return html`<hr />`;
      case 17:
        return html`<div class="embed"><${Components} list=${component.components} message=${message} act=${act} names=${names} mobile=${mobile} /></div>`;
      case 9:
        return html`<div class="section"><div><${Components} list=${component.components} message=${message} act=${act} names=${names} mobile=${mobile} /></div><${Control} item=${component.accessory} act=${act} /></div>`;
      default:
        return null;
    }
  });
}

/** The server splits a message's own content; the text of a v2 display is split here. */
function splitFences(text) {
  const blocks = [];
  let from = 0;
  for (const match of text.matchAll(/```(?:([\w+.#-]+)\n)?([\s\S]+?)```/g)) {
    blocks.push({ kind: 'text', text: text.slice(from, match.index) });
    blocks.push({
      kind: 'fence',
      language: match[1] ?? '',
      text: match[2].replace(/^\n|\n$/g, ''),
    });
    from = match.index + match[0].length;
  }
  blocks.push({ kind: 'text', text: text.slice(from) });
  return blocks.filter((block) => block.text.trim() !== '');
}

function Control({ item, act }) {
  if (item === undefined) return null;
  if (item.type === 2) {
    const label = `${item.emoji?.name ?? ''} ${item.label ?? ''}`.trim();
    if (item.style === 5)
      return html`<a class="chip link" href=${item.url} target="_blank" rel="noreferrer noopener">${label} ↗</a>`;
    return html`<button class=${`chip ${BUTTON_STYLE[item.style] ?? ''}`} disabled=${item.disabled === true} onClick=${() => act('click', { customId: item.custom_id })}>${label}</button>`;
  }
  if (item.type === 3)
    return html`<select class="chip" aria-label=${item.placeholder ?? 'Choose'} onChange=${(event) => act('click', { customId: item.custom_id, values: [event.currentTarget.value] })}>
      <option value="">${item.placeholder ?? '…'}</option>
      ${item.options.map((option) => html`<option value=${option.value}>${option.label}</option>`)}
    </select>`;
  return null;
}

// Slash commands: `/term run command:top -b` with the last option taking the rest.

function subcommands(command, path = []) {
  const nested = (command.options ?? []).filter((option) => option.type === 1 || option.type === 2);
  if (nested.length === 0)
    return [{ path, options: command.options ?? [], description: command.description }];
  return nested.flatMap((option) => subcommands(option, [...path, option.name]));
}

function allCommands(commands) {
  return commands
    .filter((command) => (command.type ?? 1) === 1)
    .flatMap((command) => subcommands(command, [command.name]));
}

function commandHint(text, commands) {
  if (!text.startsWith('/')) return undefined;
  const typed = text.slice(1).toLowerCase();
  const found = allCommands(commands).filter((entry) => {
    const name = entry.path.join(' ');
    return name.startsWith(typed) || typed.startsWith(`${name} `) || typed === name;
  });
  if (found.length === 0) return undefined;
  return found
    .slice(0, 6)
    .map(
      (entry) =>
        html`<div><b>/${entry.path.join(' ')}</b> ${entry.options.map((option) => html`<code>${option.name}:${option.required ? '' : '?'}</code> `)}<small>${entry.description}</small></div>`,
    );
}

async function runCommand(text, channel, person, commands) {
  const words = text.slice(1);
  const found = allCommands(commands)
    .filter(
      (entry) => words === entry.path.join(' ') || words.startsWith(`${entry.path.join(' ')} `),
    )
    .sort((a, b) => b.path.length - a.path.length)[0];
  if (found === undefined) throw new Error(`There is no command ${words.split(' ')[0]}`);
  const rest = words.slice(found.path.join(' ').length).trim();
  await control('discord/command', {
    user: person,
    channel,
    name: found.path.join(' '),
    options: readOptions(rest, found.options),
  });
  return undefined;
}

function readOptions(text, options) {
  if (text === '') return {};
  const names = options.map((option) => option.name);
  const pattern = new RegExp(`(?:^|\\s)(${names.join('|')}):`, 'g');
  const marks = names.length === 0 ? [] : [...text.matchAll(pattern)];
  // Without a name the text goes to the first option, as the client fills it while typing.
  if (marks.length === 0)
    return names.length === 0 ? {} : { [names[0]]: optionValue(options[0], text) };
  return Object.fromEntries(
    marks.map((mark, index) => {
      const value = text.slice(mark.index + mark[0].length, marks[index + 1]?.index).trim();
      return [
        mark[1],
        optionValue(
          options.find((option) => option.name === mark[1]),
          value,
        ),
      ];
    }),
  );
}

function optionValue(option, text) {
  if (option.type === 5) return text === 'true';
  return option.type === 4 || option.type === 10 ? Number(text) : text;
}

export function DiscordDialogs({ person }) {
  const dialogs = useLive('discord/dialogs', {}, touches('modal', 'interaction')).value;
  const modal = (dialogs?.modals ?? []).findLast((entry) => entry.user === person);
  if (modal === undefined) return null;
  return html`<${Dialog} key=${modal.id} title=${modal.form.title} submitLabel="Submit" fields=${modal.form.components.flatMap(modalFields)}
    submit=${(values) => control('discord/submit', { user: person, modal: modal.id, values })}
    dismiss=${() => control('discord/dismiss', { user: person, modal: modal.id })} />`;
}

function modalFields(part) {
  const field = (input, label, note) => ({
    name: input.custom_id,
    label: label ?? input.label,
    note: note && html`<small>${note}</small>`,
    long: input.style === 2,
    placeholder: input.placeholder,
    max: input.max_length,
    required: input.required !== false,
    value: input.value,
  });
  if (part.type === 18) return [field(part.component, part.label, part.description)];
  if (part.type === 1) return part.components.map((input) => field(input));
  return [{ label: part.content }];
}
