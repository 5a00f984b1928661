// Slack's three entities, and what of a text is a control sequence, a bare link or neither.

/** `&` first, or the others would be escaped twice. */
export function escapeText(raw: string): string {
  return raw.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** `&amp;` last, for the same reason. */
export function unescapeText(escaped: string): string {
  return escaped.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

const CONTROL =
  /<(?:@[UW][A-Z0-9]+(?:\|[^<>]*)?|#[CG][A-Z0-9]+(?:\|[^<>]*)?|!(?:here|channel|everyone)(?:\|[^<>]*)?|!subteam\^S[A-Z0-9]+(?:\|[^<>]*)?|!date\^[^<>]+|(?:https?:\/\/|mailto:|tel:)[^<>|\s]+(?:\|[^<>]*)?)>/g;

/** Control sequences Slack would act on, in order; they are live inside code and fences too. */
export function controlSequences(escaped: string): readonly string[] {
  return escaped.match(CONTROL) ?? [];
}

/** Sequences that notify somebody. */
export function pingsOf(escaped: string): readonly string[] {
  return controlSequences(escaped).filter((sequence) =>
    /^<(?:@|!(?:here|channel|everyone|subteam))/.test(sequence),
  );
}

/** True when `&`, `<` or `>` stand in the text as no entity, no control sequence and no quote mark. */
export function hasUnescaped(escaped: string): boolean {
  const rest = escaped
    .replace(CONTROL, '')
    .replaceAll(/&(?:amp|lt|gt);/g, '')
    .replaceAll(/^>+ ?/gm, '');
  return /[&<>]/.test(rest);
}

/** The text outside of fences and inline code, where mrkdwn and auto-linking are at work. */
export function outsideCode(text: string): string {
  return text.replaceAll(/```[\s\S]*?```/g, ' ').replaceAll(/`[^`\n]+`/g, ' ');
}

/** Links Slack would make by itself: outside code, not written as a control sequence. */
export function bareLinks(escaped: string): readonly string[] {
  return (
    outsideCode(escaped)
      .replace(CONTROL, ' ')
      .match(/\bhttps?:\/\/[^\s<>]+/g) ?? []
  );
}
