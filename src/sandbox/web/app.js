// The page: who looks (person), where (workspace, channel, thread), and the drawers beside it. The
// address bar holds the place, so that back and reload do what people expect.

import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { control, useLive } from './api.js';
import { DiscordDialogs, DiscordPlace, DiscordSidebar } from './discord-view.js';
import { html } from './markup.js';
import { Drawer } from './panels.js';
import { SlackDialogs, SlackPlace, SlackSidebar } from './slack-view.js';

const VIEWS = {
  slack: { Sidebar: SlackSidebar, Place: SlackPlace, Dialogs: SlackDialogs, label: 'Slack' },
  discord: {
    Sidebar: DiscordSidebar,
    Place: DiscordPlace,
    Dialogs: DiscordDialogs,
    label: 'Discord',
  },
};

const TOOLS = {
  requests: [
    html`<span class="wide">Log</span>`,
    html`<span class="narrow" aria-label="Log">≡</span>`,
  ],
  faults: [
    html`<span class="wide">Faults</span>`,
    html`<span class="narrow" aria-label="Faults">⚡</span>`,
  ],
};

function readPlace() {
  const [platform, channel, thread] = location.hash
    .replace(/^#\/?/, '')
    .split('/')
    .map(decodeURIComponent);
  return {
    platform: platform === 'discord' ? 'discord' : 'slack',
    channel: channel || undefined,
    thread: thread || undefined,
  };
}

/** Goes to a place; `undefined` parts are left out. */
export function go(platform, channel, thread) {
  location.hash = `/${[platform, channel, thread]
    .filter((part) => part !== undefined)
    .map(encodeURIComponent)
    .join('/')}`;
}

function usePlace() {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const onChange = () => setPlace(readPlace());
    addEventListener('hashchange', onChange);
    return () => removeEventListener('hashchange', onChange);
  }, []);
  return place;
}

function useRemembered(key, initial) {
  const [value, setValue] = useState(() => sessionStorage.getItem(key) ?? initial);
  return [
    value,
    (next) => {
      sessionStorage.setItem(key, next);
      setValue(next);
    },
  ];
}

function App() {
  const place = usePlace();
  const [person, setPerson] = useRemembered('person', 'alice');
  const [client, setClient] = useRemembered('client', 'desktop');
  const [drawer, setDrawer] = useState(undefined);
  const violations = useLive('violations', {}, (change) => change.type === 'violation').value ?? [];
  const people = usePeople(place.platform);
  const view = VIEWS[place.platform];
  const context = {
    ...place,
    person,
    mobile: client === 'mobile',
    go: (channel, thread) => go(place.platform, channel, thread),
  };

  useEffect(() => {
    const onKey = (event) => {
      if (event.key === 'Escape' && drawer !== undefined) setDrawer(undefined);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [drawer]);
  useEffect(() => {
    if (people.length > 0 && !people.includes(person)) setPerson(people[0]);
  }, [people, person]);

  const depth =
    place.thread !== undefined ? 'thread' : place.channel !== undefined ? 'channel' : 'list';
  return html`
    <div class=${`app ${place.platform}`} data-depth=${depth}>
      <header class="bar">
        <nav class="workspaces" aria-label="Workspaces">
          ${Object.entries(VIEWS).map(
            ([name, { label }]) =>
              html`<a href=${`#/${name}`} aria-current=${name === place.platform ? 'page' : undefined}>${label}</a>`,
          )}
        </nav>
        <label class="person">
          <span>You are</span>
          <select value=${person} onChange=${(event) => setPerson(event.currentTarget.value)} aria-label="Person">
            ${people.map((name) => html`<option value=${name} selected=${name === person}>${name}</option>`)}
          </select>
        </label>
        <div class="tools">
          ${
            place.platform === 'discord' &&
            html`<button aria-pressed=${client === 'mobile'} title="Phones show no colours in ansi blocks" onClick=${() => setClient(client === 'mobile' ? 'desktop' : 'mobile')}><span class="wide">${client === 'mobile' ? 'Phone client' : 'Desktop client'}</span><span class="narrow">${client === 'mobile' ? '▯' : '▭'}</span></button>`
          }
          ${['requests', 'faults'].map(
            (name) =>
              html`<button aria-pressed=${drawer === name} onClick=${() => setDrawer(drawer === name ? undefined : name)}>${TOOLS[name]}</button>`,
          )}
          <button class=${violations.length > 0 ? 'alarm' : ''} aria-pressed=${drawer === 'violations'} onClick=${() => setDrawer(drawer === 'violations' ? undefined : 'violations')}>
            ${violations.length === 0 ? html`<span class="wide">No violations</span><span class="narrow">✓</span>` : html`${violations.length}<span class="wide"> violations</span><span class="narrow"> !</span>`}
          </button>
        </div>
      </header>
      <aside class="sidebar" aria-label="Channels"><${view.Sidebar} key=${place.platform} ...${context} /></aside>
      <main class="place"><${view.Place} key=${`${place.platform} ${place.channel}`} ...${context} /></main>
      <${view.Dialogs} key=${`${place.platform} ${person}`} ...${context} />
      ${drawer !== undefined && html`<${Drawer} name=${drawer} platform=${place.platform} violations=${violations} close=${() => setDrawer(undefined)} />`}
    </div>
  `;
}

function usePeople(platform) {
  const slack = useLive(
    platform === 'slack' ? 'slack/users' : undefined,
    {},
    (change) => change.platform === 'slack' && change.type === 'user',
  );
  const discord = useLive(
    platform === 'discord' ? 'discord/people' : undefined,
    {},
    (change) => change.platform === 'discord' && change.type === 'people',
  );
  const list = platform === 'slack' ? slack.value : discord.value;
  return (list ?? []).filter((user) => !(user.bot || user.is_bot)).map((user) => user.name);
}

async function start() {
  // Until somebody chooses, open the first channel of a workspace that exists.
  if (location.hash === '' && matchMedia('(min-width: 720px)').matches) {
    const channels = await control('slack/channels').catch(() => []);
    if (channels.length > 0) location.replace(`#/slack/${channels[0].id}`);
    else location.replace('#/discord');
  }
  // Chromium keeps boxes it drew for emoji before the font came: have it first, but do not wait long.
  await Promise.race([
    document.fonts.load('16px "Chat Emoji"', '🟢👀').catch(() => []),
    new Promise((resolve) => setTimeout(resolve, 1500)),
  ]);
  const root = document.getElementById('app');
  root.replaceChildren();
  render(html`<${App} />`, root);
}

start();
