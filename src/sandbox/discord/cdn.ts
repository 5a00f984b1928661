// Signed attachment addresses: `ex` (hex seconds) says when they expire, `hm` proves the rest.

import { createHmac } from 'node:crypto';
import type { SandboxCore } from '../module.ts';
import type { AttachmentRecord } from './records.ts';

/** 24 hours: the newer of the two lives in the documentation's examples. */
const LIFE_SECS = 86_400;
// Signing only has to tell our own addresses from made-up ones.
const KEY = 'sandbox-cdn';
const PREFIX = '/discord-cdn/attachments/';

/** A fresh address of an attachment. */
export function signedUrl(core: SandboxCore, attachment: AttachmentRecord): string {
  const issued = Math.floor(core.clock.wallMs() / 1000);
  const path = `${PREFIX}${attachment.channelId}/${attachment.id}/${encodeURIComponent(attachment.filename)}`;
  const expires = (issued + LIFE_SECS).toString(16);
  const from = issued.toString(16);
  return `${core.baseUrl()}${path}?ex=${expires}&is=${from}&hm=${sign(path, expires, from)}&`;
}

export function isCdnPath(pathname: string): boolean {
  return pathname.startsWith(PREFIX);
}

/** The attachment an address names, or undefined when it is forged or has expired. */
export function readSignedUrl(
  core: SandboxCore,
  url: URL,
): { readonly channelId: string; readonly attachmentId: string } | undefined {
  const [channelId, attachmentId] = url.pathname.slice(PREFIX.length).split('/');
  const expires = url.searchParams.get('ex') ?? '';
  const issued = url.searchParams.get('is') ?? '';
  const intact = url.searchParams.get('hm') === sign(url.pathname, expires, issued);
  const fresh = Number.parseInt(expires, 16) * 1000 > core.clock.wallMs();
  if (!intact || !fresh || channelId === undefined || attachmentId === undefined) return undefined;
  return { channelId, attachmentId };
}

function sign(path: string, expires: string, issued: string): string {
  return createHmac('sha256', KEY).update(`${path} ${expires} ${issued}`).digest('hex');
}
