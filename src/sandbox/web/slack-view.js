// The Slack half of the page: channels, threads as Slack has them, blocks, modals, ephemeral notes.

import { useState } from 'preact/hooks';
import { control, useLive } from './api.js';
import { emojiOf, html, mrkdwn, slackBlocks } from './markup.js';
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

const any = (change) =>
  change.platform === 'slack' && !['request', 'violation'].includes(change.type);

const sigil = (channel) =>
  channel.kind === 'public' ? '#' : channel.kind === 'private' ? '🔒' : '@';

export function SlackSidebar({ channel, thread, go }) {
  const { value, error } = useLive('slack/channels', {}, any);
  const open = useLive(channel === undefined ? undefined : 'slack/channel', { channel }, any).value;
  if (value === undefined) return html`<p class="empty">${error ?? 'Loading…'}</p>`;
  const threads = (open?.messages ?? []).filter((message) => message.reply_count > 0);
  return html`
    <h2>Sandbox</h2>
    <ul class="channels">
      ${value.map(
        (entry) => html`<li>
          <button aria-current=${channel === entry.id && thread === undefined ? 'page' : undefined} onClick=${() => go(entry.id)}><span class="sigil">${sigil(entry)}</span>${entry.name || 'direct message'}${entry.is_archived ? html`<small>archived</small>` : ''}</button>
          ${
            entry.id === channel &&
            html`<ul>${threads.map((root) => html`<li><button aria-current=${thread === root.ts ? 'page' : undefined} onClick=${() => go(entry.id, root.ts)}><span class="name">${title(root)}</span><small>${root.reply_count}</small></button></li>`)}</ul>`
          }
        </li>`,
      )}
    </ul>
  `;
}

function title(message) {
  const first = message.shown.split('\n')[0].replaceAll(/[*_~`]/g, '');
  return (
    first.replaceAll(/:([a-z0-9_+-]+):/g, (_whole, name) => emojiOf(name)).slice(0, 40) || 'thread'
  );
}

export function SlackPlace(props) {
  const { channel, thread, go } = props;
  const channels = useLive('slack/channels', {}, any).value ?? [];
  if (channel === undefined) return html`<p class="empty welcome">Choose a channel.</p>`;
  const open = channels.find((entry) => entry.id === channel);
  const name = open === undefined ? '' : `${sigil(open)} ${open.name}`;
  return html`
    <section class="pane channel" aria-label="Channel">
      <${PlaceHead} title=${name} sub=${open === undefined ? undefined : `${open.members.length} members`} back=${() => go(undefined)} />
      <${Conversation} ...${props} thread=${undefined} key=${channel} placeholder=${`Message ${name}`} />
    </section>
    ${
      thread !== undefined &&
      html`<section class="pane thread" aria-label="Thread" key=${thread}>
        <${PlaceHead} title="Thread" sub=${name} back=${() => go(channel)}><button class="close" aria-label="Close thread" onClick=${() => go(channel)}>✕</button><//>
        <${Conversation} ...${props} placeholder="Reply…" key=${thread} />
      </section>`
    }
  `;
}

function Conversation({ channel, thread, person, placeholder, go }) {
  const name = thread === undefined ? 'slack/channel' : 'slack/thread';
  const { value, error } = useLive(
    name,
    thread === undefined ? { channel } : { channel, ts: thread },
    any,
  );
  const users = useLive('slack/users', {}, any).value ?? [];
  const channels = useLive('slack/channels', {}, any).value ?? [];
  const [editing, setEditing] = useState(undefined);
  if (value === undefined) return html`<p class="empty">${error ?? 'Loading…'}</p>`;
  const names = (id) =>
    users.find((user) => user.id === id)?.name ??
    channels.find((entry) => entry.id === id)?.name ??
    id;
  const notes = value.ephemeral.filter((note) => note.user_name === person);
  const list = [
    ...value.messages.map((message) => ({
      ...message,
      author: message.user_name,
      bot: message.is_bot,
    })),
    ...notes.map((note) => ({
      ...note,
      author: note.from === 'slackbot' ? 'Slackbot' : 'chatd',
      bot: true,
      onlyFor: person,
      files: [],
      reactions: [],
    })),
  ]
    .map((message) => ({ ...message, atMs: Number(message.ts) * 1000 }))
    .sort((a, b) => (a.ts < b.ts ? -1 : 1));
  const mark = `${list.length} ${list.at(-1)?.ts} ${list.at(-1)?.shown.length}`;
  const send = async (text) => {
    const said = await control('slack/type', {
      user: person,
      channel,
      text,
      ...(thread === undefined ? {} : { thread_ts: thread }),
    });
    // The client refuses some lines in its own words, for instance a slash command in a thread.
    return said?.says;
  };
  const shared = { person, channel, thread, names, users, setEditing, go };
  return html`
    <${Scroller} mark=${mark} label="Messages">
      ${list.length === 0 && html`<p class="empty">Nothing here yet. Say something.</p>`}
      ${list.map((message, index) =>
        editing === message.ts
          ? html`<div class="editing" key=${message.ts}><${Composer} placeholder="Edit message" initial=${message.shown} cancel=${() => setEditing(undefined)} send=${async (
              text,
            ) => {
              await control('slack/edit', { user: person, channel, ts: message.ts, text });
              setEditing(undefined);
            }} /></div>`
          : html`<${SlackMessage} key=${message.ts} message=${message} before=${list[index - 1]} ...${shared} />`,
      )}
    <//>
    <${Composer} placeholder=${placeholder} send=${send} upload=${(file) => control('slack/upload', { user: person, channel, ...file, ...(thread === undefined ? {} : { thread_ts: thread }) })} />
  `;
}

function SlackMessage({ message, before, person, channel, thread, names, users, setEditing, go }) {
  if (message.is_tombstone) return html`<p class="system">This message was deleted.</p>`;
  const own = message.author === person;
  const act = (name, body) =>
    control(`slack/${name}`, { user: person, channel, ts: message.ts, ...body }).catch((error) =>
      alert(error.message),
    );
  const me = users.find((user) => user.name === person)?.id;
  const react = (key) => {
    const mine = message.reactions.some((one) => one.name === key && one.users.includes(me));
    return act('react', { name: key, remove: mine });
  };
  const actions = [
    ['React with eyes', '👀', () => react('eyes')],
    ['React with a check mark', '✅', () => react('white_check_mark')],
    ...(thread === undefined ? [['Reply in thread', '↩', () => go(channel, message.ts)]] : []),
    ...(own
      ? [
          ['Edit', '✎', () => setEditing(message.ts)],
          ['Delete', '🗑', () => act('delete', {})],
        ]
      : []),
  ];
  const press = (element, _block, value) =>
    act('click', { action_id: element.action_id, ...(value === undefined ? {} : { value }) });
  const hasBlocks = (message.blocks ?? []).length > 0;
  return html`<${MessageFrame} id=${message.ts} author=${message.author} bot=${message.bot} atMs=${message.atMs} edited=${message.edited}
    badge=${message.is_stranger ? 'other workspace' : undefined} follows=${follows(before, message)} onlyFor=${message.onlyFor} actions=${message.onlyFor ? [] : actions}
    text=${hasBlocks ? slackBlocks(message.blocks, names, press) : mrkdwn(message.text, names)}>
        <${Files} files=${message.files.map((file) => ({ name: file.title || file.name, size: file.size, url: file.viewUrl, type: file.mimetype }))} />
    <${Reactions} list=${message.reactions.map((one) => ({ emoji: emojiOf(one.name), key: one.name, users: one.users.map(names), mine: one.users.includes(me) }))} react=${react} />
    ${thread === undefined && message.reply_count > 0 && html`<button class="open-thread" onClick=${() => go(channel, message.ts)}>${message.reply_count} ${message.reply_count === 1 ? 'reply' : 'replies'} ›</button>`}
  <//>`;
}

export function SlackDialogs({ person }) {
  const views = useLive('slack/views', { user: person }, any).value ?? [];
  const top = views.at(-1);
  if (top === undefined) return null;
  const { view } = top;
  return html`<${Dialog} key=${top.id} title=${view.title.text} submitLabel=${view.submit?.text ?? 'Close'} errors=${top.errors} fields=${(view.blocks ?? []).flatMap(viewField)}
    submit=${(values) => (view.submit === undefined ? control('slack/close-view', { user: person, view: top.id }) : control('slack/submit', { user: person, view: top.id, values }))}
    dismiss=${() => control('slack/close-view', { user: person, view: top.id })} />`;
}

function viewField(block) {
  if (block.type === 'input')
    return [
      {
        name: block.block_id,
        label: block.label.text,
        long: block.element.multiline === true,
        placeholder: block.element.placeholder?.text,
        max: block.element.max_length,
        value: block.element.initial_value,
        required: block.optional !== true,
        note: block.hint && html`<small>${block.hint.text}</small>`,
      },
    ];
  return block.text === undefined ? [] : [{ label: block.text.text }];
}
