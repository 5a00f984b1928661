// The drawers: every request the sandbox got, what a real platform would have refused, and the
// panel that makes things go wrong.

import { useState } from 'preact/hooks';
import { control, useLive } from './api.js';
import { clock, html } from './markup.js';

export function Drawer({ name, platform, violations, close }) {
  const titles = { requests: 'Requests', violations: 'Violations', faults: 'Faults' };
  return html`<aside class="drawer" aria-label=${titles[name]}>
    <div class="place-head"><h1>${titles[name]}</h1><button class="close" aria-label="Close" onClick=${close}>✕</button></div>
    <div class="drawer-body">
      ${name === 'requests' && html`<${Requests} platform=${platform} />`}
      ${name === 'violations' && html`<${Violations} list=${violations} />`}
      ${name === 'faults' && html`<${Faults} platform=${platform} />`}
    </div>
  </aside>`;
}

function Requests({ platform }) {
  const all = useLive('requests', {}, (change) => change.type === 'request').value ?? [];
  const shown = all
    .filter((entry) => entry.platform === platform)
    .slice(-200)
    .reverse();
  if (shown.length === 0) return html`<p class="empty">No request yet.</p>`;
  return html`<ol class="requests">${shown.map(
    (entry) => html`<li key=${entry.seq}><details>
      <summary><time>${clock(entry.atMs)}</time><code>${entry.target}</code><span class=${`status ${entry.status >= 400 || entry.status === 0 || entry.error ? 'bad' : ''}`}>${entry.fault ?? entry.error ?? entry.status}</span></summary>
      <pre>${JSON.stringify(entry.args, null, 2)}</pre>
    </details></li>`,
  )}</ol>`;
}

function Violations({ list }) {
  if (list.length === 0)
    return html`<p class="empty">Nothing a real platform would have refused, warned about or mangled.</p>`;
  return html`<div><button onClick=${() => control('violations/clear')}>Clear</button>
    <ol class="requests">${[...list]
      .reverse()
      .slice(0, 200)
      .map(
        (entry) =>
          html`<li><div class="violation"><b>${entry.rule}</b> <span class=${`status ${entry.severity === 'refused' ? 'bad' : ''}`}>${entry.severity}</span><div><code>${entry.target}</code></div><small>${entry.detail}</small></div></li>`,
      )}</ol></div>`;
}

const TARGETS = {
  slack: ['slack:chat.postMessage', 'slack:chat.update', 'slack:*', 'slack:socket', 'slack:event'],
  discord: [
    'discord:POST /channels/:id/messages',
    'discord:PATCH /channels/:id/messages/:id',
    'discord:*',
    'discord:gateway',
    'discord:event *',
    'discord:heartbeat',
  ],
};

const KINDS = {
  'rate limit (retry after 2 s)': { kind: 'rate-limit', retryAfterSec: 2 },
  'rate limit, no Retry-After': { kind: 'rate-limit' },
  'rate limit, HTML': { kind: 'rate-limit', html: true },
  'server error 500': { kind: 'reply', status: 500, body: '{}' },
  '502 after it took effect': {
    kind: 'reply',
    status: 502,
    body: '<html>Bad gateway</html>',
    processed: true,
  },
  'reset before': { kind: 'reset' },
  'reset after it took effect': { kind: 'reset', processed: true },
  hang: { kind: 'hang' },
  'land 8 s late': { kind: 'delay', ms: 8000 },
  'answer 8 s late': { kind: 'delay', ms: 8000, processedFirst: true },
  'truncated answer': { kind: 'truncate' },
  'event twice': { kind: 'duplicate' },
  'events swapped': { kind: 'reorder' },
  'event lost': { kind: 'lose' },
  'acks ignored': { kind: 'ignore-ack' },
  'no hello': { kind: 'no-hello' },
  'upgrade refused': { kind: 'refuse-upgrade', status: 503 },
};

const LINKS = {
  slack: [
    ['Refresh sockets', 'slack/sockets/disconnect', { reason: 'refresh_requested' }],
    ['Drop sockets', 'slack/sockets/drop', {}],
    ['Half-open', 'slack/sockets/half-open', {}],
  ],
  discord: [
    ['Ask to reconnect', 'discord/gateway', { action: 'reconnect' }],
    ['Drop', 'discord/gateway', { action: 'reset' }],
    ['Invalid session', 'discord/gateway', { action: 'invalid-session' }],
    ['Zombie', 'discord/gateway', { action: 'zombie' }],
    ['Close 4000', 'discord/gateway', { action: 'close', code: 4000 }],
  ],
};

function Faults({ platform }) {
  const [target, setTarget] = useState(TARGETS[platform][0]);
  const [kind, setKind] = useState(Object.keys(KINDS)[0]);
  const [count, setCount] = useState('1');
  const [said, setSaid] = useState('');
  const [version, setVersion] = useState(0);
  const rules =
    useLive('faults/list', { version }, (change) => change.type === 'request').value ?? [];
  const run = (name, body) =>
    control(name, body).then(
      () => {
        setSaid('Done.');
        setVersion((now) => now + 1);
      },
      (error) => setSaid(error.message),
    );
  return html`<div class="faults">
    <h2>Make requests or events fail</h2>
    <form onSubmit=${(event) => {
      event.preventDefault();
      run('faults/add', { on: target, fault: KINDS[kind], count: Number(count) });
    }}>
      <label>Where <input list="targets" value=${target} onInput=${(event) => setTarget(event.currentTarget.value)} /></label>
      <datalist id="targets">${TARGETS[platform].map((name) => html`<option value=${name} />`)}</datalist>
      <label>What <select value=${kind} onChange=${(event) => setKind(event.currentTarget.value)}>${Object.keys(KINDS).map((name) => html`<option>${name}</option>`)}</select></label>
      <label>How often <input type="number" min="0" value=${count} onInput=${(event) => setCount(event.currentTarget.value)} /></label>
      <button class="primary">Add fault</button>
    </form>
    <ul class="rules">${rules.map(
      (rule) =>
        html`<li><code>${rule.on}</code> <b>${rule.fault.kind}</b> <small>struck ${rule.struck} of ${rule.count === 0 ? '∞' : (rule.count ?? 1)}</small> <button onClick=${() => run('faults/clear', { id: rule.id })} aria-label="Remove fault">✕</button></li>`,
    )}</ul>
    <h2>Connections</h2>
    <div class="buttons">${LINKS[platform].map(([label, name, body]) => html`<button class="chip" onClick=${() => run(name, body)}>${label}</button>`)}</div>
    <h2>Time</h2>
    <div class="buttons">
      ${[1, 10, 60].map((scale) => html`<button class="chip" onClick=${() => run('time/scale', { scale })}>× ${scale}</button>`)}
      ${[
        ['+ 1 min', 60_000],
        ['+ 1 h', 3_600_000],
        ['+ 1 day', 86_400_000],
      ].map(
        ([label, ms]) =>
          html`<button class="chip" onClick=${() => run('time/advance', { ms })}>${label}</button>`,
      )}
    </div>
    <p role="status">${said}</p>
  </div>`;
}
