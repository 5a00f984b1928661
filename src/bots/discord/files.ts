// Attachments of Discord. Their addresses are signed and expire, so the message is asked for again;
// the token is never sent to where the bytes are.

import { boundedBody } from '../bounded-body.ts';
import type { InboundFile, Outcome } from '../chat-platform.ts';
import { numberField, textField } from '../fields.ts';
import { classifyError, type Failure } from './errors.ts';
import { attachmentOf } from './messages.ts';
import type { DiscordRest } from './rest.ts';

const TRANSFER_TIMEOUT_MS = 120_000;
const HOSTS = new Set(['cdn.discordapp.com', 'media.discordapp.net']);

export async function downloadAttachment(
  file: InboundFile,
  maxBytes: number,
  options: { readonly rest: DiscordRest; readonly fetch: typeof fetch; readonly apiUrl: string },
): Promise<Outcome<Uint8Array>> {
  const [channel, message, id] = file.id.split('/');
  if (channel === undefined || message === undefined || id === undefined) {
    return { kind: 'refused', because: 'invalid', detail: 'not an attachment' };
  }
  const answer = await options.rest.call('GET', `/channels/${channel}/messages/${message}`);
  if (answer.kind !== 'ok') return answer;
  const attachment = attachmentOf(answer.value, id);
  if (attachment === undefined) return { kind: 'gone', detail: 'attachment not found' };
  if ((numberField(attachment, 'size') ?? 0) > maxBytes) return tooLarge(maxBytes);
  const url = textField(attachment, 'url') ?? '';
  if (!isTheirs(url, options.apiUrl)) {
    return { kind: 'refused', because: 'invalid', detail: 'attachment at a foreign address' };
  }
  try {
    const response = await options.fetch(url, {
      redirect: 'error',
      signal: AbortSignal.timeout(TRANSFER_TIMEOUT_MS),
    });
    return await bodyOf(response, maxBytes);
  } catch (error) {
    return classifyError(error);
  }
}

function isTheirs(url: string, apiUrl: string): boolean {
  if (!URL.canParse(url)) return false;
  const { host, hostname, protocol } = new URL(url);
  return (protocol === 'https:' && HOSTS.has(hostname)) || host === new URL(apiUrl).host;
}

async function bodyOf(response: Response, maxBytes: number): Promise<Outcome<Uint8Array>> {
  if (response.status !== 200) {
    await response.body?.cancel();
    return { kind: 'refused', because: 'invalid', detail: `download: HTTP ${response.status}` };
  }
  const bytes = await boundedBody(response, maxBytes);
  return bytes === undefined ? tooLarge(maxBytes) : { kind: 'ok', value: bytes };
}

function tooLarge(maxBytes: number): Failure {
  return { kind: 'refused', because: 'invalid', detail: `larger than ${maxBytes} bytes` };
}
