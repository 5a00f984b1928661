// What both workspaces share: a message's frame, the box to type in, dialogs, lists that keep
// their end in sight.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { clock, html } from './markup.js';

const HUES = { chatd: 158, alice: 262, bob: 28, olga: 338, carol: 200, mallory: 0 };

function hueOf(name) {
  return HUES[name] ?? [...name].reduce((sum, letter) => sum + letter.charCodeAt(0) * 37, 0) % 360;
}

export function Avatar({ name, bot }) {
  const style = `--hue:${hueOf(name)}`;
  return html`<span class=${bot ? 'avatar bot' : 'avatar'} style=${style} aria-hidden="true">${bot ? '›_' : name.charAt(0).toUpperCase()}</span>`;
}

/** Stays at the end while the reader is there; lets them read older lines in peace otherwise. */
export function Scroller({ children, mark, label }) {
  const box = useRef(null);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    const element = box.current;
    if (element !== null && atEnd.current) element.scrollTop = element.scrollHeight;
  }, [mark]);
  const onScroll = (event) => {
    const element = event.currentTarget;
    atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 60;
  };
  return html`<div class="scroller" ref=${box} onScroll=${onScroll} role="log" aria-label=${label} tabindex="0">${children}</div>`;
}

/**
 * One message. `follows`: the same author just before, so the head is left out. `text` is what can
 * be edited, children are what hangs on it. Actions are [label, icon, run].
 */
export function MessageFrame({
  author,
  bot,
  atMs,
  edited,
  follows,
  onlyFor,
  badge,
  actions,
  text,
  children,
  id,
}) {
  return html`<article class=${`message ${follows ? 'follows' : ''} ${onlyFor ? 'ephemeral' : ''}`} data-id=${id}>
    ${follows ? html`<time class="gutter">${clock(atMs)}</time>` : html`<${Avatar} name=${author} bot=${bot} />`}
    <div class="body">
      ${!follows && html`<div class="head"><b>${author}</b>${bot && html`<span class="tag">APP</span>`}${badge && html`<span class="tag soft">${badge}</span>`}<time>${clock(atMs)}</time></div>`}
      ${text}
      ${edited && html`<span class="edited">(edited)</span>`}
      ${children}
      ${onlyFor && html`<div class="only">Only visible to ${onlyFor}</div>`}
    </div>
    ${
      actions.length > 0 &&
      html`<div class="actions">${actions.map(([label, icon, run]) => html`<button title=${label} aria-label=${label} onClick=${run}>${icon}</button>`)}</div>`
    }
  </article>`;
}

/** Same author within five minutes: one head is enough. */
export function follows(before, message) {
  return (
    before !== undefined &&
    before.author === message.author &&
    before.onlyFor === message.onlyFor &&
    message.atMs - before.atMs < 300_000
  );
}

export function Reactions({ list, react }) {
  if (list.length === 0) return null;
  return html`<div class="reactions">${list.map(
    ({ emoji, key, users, mine }) =>
      html`<button class=${mine ? 'mine' : ''} title=${users.join(', ')} onClick=${() => react(key)}>${emoji} ${users.length}</button>`,
  )}</div>`;
}

export function Files({ files }) {
  return files.map((file) =>
    file.type?.startsWith('image/')
      ? html`<a class="shot" href=${file.url} target="_blank" rel="noreferrer"><img src=${file.url} alt=${file.name} loading="lazy" /></a>`
      : html`<a class="file" href=${file.url} target="_blank" rel="noreferrer"><span class="icon" aria-hidden="true">📄</span><span><b>${file.name}</b><small>${sizeText(file.size)}</small></span></a>`,
  );
}

function sizeText(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1024 * 1024
    ? `${(bytes / 1024).toFixed(1)} KB`
    : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** The box to type in. Enter sends, Shift+Enter breaks the line; a refusal is said below. */
export function Composer({ placeholder, send, hint, initial, cancel, upload }) {
  const [text, setText] = useState(initial ?? '');
  const [problem, setProblem] = useState(undefined);
  const [busy, setBusy] = useState(false);
  const field = useRef(null);
  useLayoutEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = 'auto';
    element.style.height = `${Math.min(element.scrollHeight, 180)}px`;
  }, [text]);

  const submit = async () => {
    if (text.trim() === '' || busy) return;
    setBusy(true);
    try {
      const said = await send(text);
      setText('');
      setProblem(typeof said === 'string' ? said : undefined);
    } catch (error) {
      setProblem(error.message);
    } finally {
      setBusy(false);
      field.current?.focus();
    }
  };
  const onKey = (event) => {
    if (event.key === 'Escape' && cancel !== undefined) cancel();
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  const attach = async (event) => {
    const [file] = event.currentTarget.files;
    event.currentTarget.value = '';
    if (file === undefined) return;
    try {
      await upload({ name: file.name, base64: await base64Of(file) });
      setProblem(undefined);
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`<form class="composer" onSubmit=${(event) => {
    event.preventDefault();
    submit();
  }}>
    ${problem !== undefined && html`<p class="problem" role="alert">${problem}</p>`}
    ${hint !== undefined && hint(text) !== undefined && html`<div class="hint">${hint(text)}</div>`}
    <div class="row">
      ${upload !== undefined && html`<label class="attach" title="Attach a file"><input type="file" aria-label="Attach a file" onChange=${attach} />+</label>`}
      <textarea ref=${field} rows="1" value=${text} placeholder=${placeholder} aria-label=${placeholder} autocapitalize="off" autocomplete="off" spellcheck=${false}
        onInput=${(event) => {
          setText(event.currentTarget.value);
          setProblem(undefined);
        }} onKeyDown=${onKey}></textarea>
      <button type="submit" aria-label="Send" disabled=${text.trim() === ''}>➤</button>
    </div>
  </form>`;
}

function base64Of(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(',') + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** A modal. `submit(values)` may reject; what it says stands above the buttons. */
export function Dialog({ title, fields, submitLabel, submit, dismiss, errors }) {
  const box = useRef(null);
  const [problem, setProblem] = useState(undefined);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  const onSubmit = async (event) => {
    event.preventDefault();
    try {
      await submit(Object.fromEntries(new FormData(event.currentTarget)));
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`<dialog ref=${box} onCancel=${(event) => {
    event.preventDefault();
    dismiss();
  }}>
    <form onSubmit=${onSubmit}>
      <h2>${title}</h2>
      ${fields.map(
        (field) => html`<label><span>${field.label}</span>
          ${field.note}
          ${
            field.name === undefined
              ? null
              : field.long
                ? html`<textarea name=${field.name} rows="4" placeholder=${field.placeholder} maxlength=${field.max} required=${field.required}>${field.value ?? ''}</textarea>`
                : html`<input name=${field.name} value=${field.value ?? ''} placeholder=${field.placeholder} maxlength=${field.max} required=${field.required} autocomplete="off" />`
          }
          ${errors?.[field.name] && html`<small class="problem">${errors[field.name]}</small>`}
        </label>`,
      )}
      ${problem !== undefined && html`<p class="problem" role="alert">${problem}</p>`}
      <div class="end"><button type="button" onClick=${dismiss}>Cancel</button><button type="submit" class="primary">${submitLabel}</button></div>
    </form>
  </dialog>`;
}

/** The head of a channel or thread, with the way back on a phone. */
export function PlaceHead({ title, sub, back, children }) {
  return html`<div class="place-head">
    <button class="back" aria-label="Back" onClick=${back}>‹</button>
    <h1>${title}${sub && html`<small>${sub}</small>`}</h1>
    ${children}
  </div>`;
}
