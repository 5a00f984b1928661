// Talks to the sandbox: control calls, and the change feed that says when to look again.

import { useEffect, useRef, useState } from 'preact/hooks';

/** Calls a control function. Rejects with the sandbox's own words. */
export async function control(name, body = {}) {
  const response = await fetch(`/control/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!answer.ok) throw new Error(answer.error);
  return answer.result;
}

const listeners = new Set();
let source;

/** Starts the feed once; every change reaches every listener. */
function listen(listener) {
  if (source === undefined) {
    source = new EventSource('/control/events');
    source.onmessage = (event) => tell(JSON.parse(event.data));
    // Some changes were dropped while we were away: everything may have changed.
    source.addEventListener('reset', () => tell({ platform: 'sandbox', type: 'reset' }));
  }
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(change) {
  for (const listener of listeners) listener(change);
}

/** Calls `onChange` for every change while mounted. */
export function useChanges(onChange) {
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => listen((change) => latest.current(change)), []);
}

// Redrawing more often than this shows nobody anything.
const REFRESH_MS = 120;

/**
 * The result of a control call, fetched again when `concerns` says a change touches it. A name of
 * undefined asks nothing.
 */
export function useLive(name, body, concerns) {
  const key = JSON.stringify([name, body]);
  const [result, setResult] = useState({ key: '', value: undefined, error: undefined });
  const state = useRef({ key, busy: false, again: false, timer: undefined });
  state.current.key = key;

  const look = () => {
    const now = state.current;
    now.timer = undefined;
    if (name === undefined) return;
    if (now.busy) {
      now.again = true;
      return;
    }
    now.busy = true;
    const asked = now.key;
    control(name, body)
      .then(
        (value) => setResult({ key: asked, value, error: undefined }),
        (error) => setResult({ key: asked, value: undefined, error: error.message }),
      )
      .finally(() => {
        now.busy = false;
        if (now.again || asked !== now.key) {
          now.again = false;
          latestLook.current();
        }
      });
  };
  const latestLook = useRef(look);
  latestLook.current = look;

  useEffect(() => latestLook.current(), [key]);
  useEffect(() => () => clearTimeout(state.current.timer), []);
  useChanges((change) => {
    if (change.type !== 'reset' && !concerns(change)) return;
    state.current.timer ??= setTimeout(() => latestLook.current(), REFRESH_MS);
  });
  return result.key === key ? result : { value: undefined, error: undefined };
}
