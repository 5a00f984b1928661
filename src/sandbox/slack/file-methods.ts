// files.* and the two file routes: the three-step upload whose message appears later or never, and
// downloads that answer a login page to whoever brings no token.

import type { Fields } from '../fields.ts';
import { isFields } from '../fields.ts';
import {
  type ApiCall,
  ApiError,
  type ApiHandler,
  channelOf,
  jsonArg,
  numberArg,
  type SlackApp,
  textArg,
  violate,
} from './api-call.ts';
import type { SlackChannel, SlackFile } from './model.ts';
import { fileShape } from './shapes.ts';
import { BOT_USER } from './workspace.ts';

const SNIPPET_MAX_BYTES = 1_000_000;
const PENDING_MAX = 1_000;

interface PendingUpload {
  readonly fileId: string;
  readonly name: string;
  readonly length: number;
  bytes: Buffer | undefined;
}

/** Uploads between their first and their third step. */
export class Uploads {
  readonly #byToken = new Map<string, PendingUpload>();
  readonly #byFile = new Map<string, PendingUpload>();

  begin(token: string, pending: PendingUpload): void {
    this.#byToken.set(token, pending);
    this.#byFile.set(pending.fileId, pending);
    const oldest = this.#byToken.keys().next();
    if (this.#byToken.size > PENDING_MAX && oldest.done !== true)
      this.#byToken.delete(oldest.value);
  }

  /** Second step; false for an unknown or used address. */
  receive(token: string, bytes: Buffer): boolean {
    const pending = this.#byToken.get(token);
    if (pending === undefined) return false;
    this.#byToken.delete(token);
    pending.bytes = bytes;
    return true;
  }

  /** Third step: the upload of that file, once. */
  complete(fileId: string): PendingUpload | undefined {
    const pending = this.#byFile.get(fileId);
    if (pending?.bytes === undefined) return undefined;
    this.#byFile.delete(fileId);
    return pending;
  }
}

export function fileMethods(uploads: Uploads): Readonly<Record<string, ApiHandler>> {
  return {
    'files.getUploadURLExternal': (call) => beginUpload(call, uploads),
    'files.completeUploadExternal': (call) => completeUpload(call, uploads),
    'files.info': (call) => ({
      file: fileShape(call.app.shapes, fileOf(call), true),
      comments: [],
      response_metadata: { next_cursor: '' },
    }),
    'files.delete': (call) => {
      const file = fileOf(call);
      if (file.user !== BOT_USER) throw new ApiError('cant_delete_file');
      deleteFile(call.app, file);
      return {};
    },
  };
}

function beginUpload(call: ApiCall, uploads: Uploads): Fields {
  const length = numberArg(call.args, 'length') ?? 0;
  const name = textArg(call.args, 'filename') ?? '';
  // Empty files cannot be uploaded: a length of 0 counts as none.
  if (length <= 0) throw new ApiError('missing_argument');
  if (textArg(call.args, 'snippet_type') !== undefined && length > SNIPPET_MAX_BYTES)
    throw new ApiError('snippet_too_large');
  const fileId = call.app.workspace.mint('F');
  const token = call.app.workspace.mint('U');
  uploads.begin(token, { fileId, name, length, bytes: undefined });
  return { upload_url: `${call.app.core.baseUrl()}/upload/v1/${token}`, file_id: fileId };
}

function completeUpload(call: ApiCall, uploads: Uploads): Fields {
  const asked = jsonArg(call.args, 'files');
  if (!Array.isArray(asked) || asked.length === 0) throw new ApiError('invalid_arguments');
  const items: readonly unknown[] = asked;
  const channelId = textArg(call.args, 'channel_id') ?? textArg(call.args, 'channels');
  const channel = channelId === undefined ? undefined : uploadChannelOf(call, channelId);
  const files = items.map((item) => storeFile(call, uploads, item));
  if (channel !== undefined) shareLater(call, channel, files);
  return { files: files.map((file) => fileShape(call.app.shapes, file)) };
}

function uploadChannelOf(call: ApiCall, id: string): SlackChannel {
  // Ids only: names are refused here.
  if (!call.app.workspace.channels.has(id)) throw new ApiError('channel_not_found');
  const channel = channelOf({ ...call, args: { channel: id } });
  if (!channel.members.has(BOT_USER)) throw new ApiError('not_in_channel');
  if (channel.isArchived) throw new ApiError('is_archived');
  return channel;
}

function storeFile(call: ApiCall, uploads: Uploads, item: unknown): SlackFile {
  const id = isFields(item) ? textArg(item, 'id') : undefined;
  const pending = id === undefined ? undefined : uploads.complete(id);
  if (!isFields(item) || id === undefined || pending?.bytes === undefined)
    throw new ApiError('file_not_found');
  if (pending.bytes.length !== pending.length)
    violate(call, 'upload-length', 'warned', 'the bytes are not as many as announced');
  const file: SlackFile = {
    id,
    name: pending.name,
    title: textArg(item, 'title') ?? pending.name,
    user: BOT_USER,
    mimetype: mimetypeOf(pending.name),
    bytes: pending.bytes,
    createdMs: call.app.core.clock.wallMs(),
    shares: new Map(),
    isDeleted: false,
    needsInfo: call.app.knobs.filesNeedInfo,
  };
  call.app.workspace.files.set(id, file);
  return file;
}

/** The answer comes first; the message when Slack has processed the file, if it ever does. */
function shareLater(call: ApiCall, channel: SlackChannel, files: readonly SlackFile[]): void {
  const { app } = call;
  if (app.knobs.neverShareFiles) return;
  const threadTs = uploadRootOf(call, channel);
  const comment = textArg(call.args, 'initial_comment') ?? '';
  const [leastMs, mostMs] = app.settings.fileShareDelayMs;
  const delayMs = leastMs + app.core.random.next() * (mostMs - leastMs);
  app.core.clock.timer(delayMs, () => {
    const kept = files.filter((file) => !file.isDeleted);
    if (kept.length === 0) return;
    shareFiles(app, {
      channel,
      threadTs,
      user: BOT_USER,
      isFromApp: true,
      text: comment,
      files: kept,
    });
  });
}

function uploadRootOf(call: ApiCall, channel: SlackChannel): string | undefined {
  const threadTs = textArg(call.args, 'thread_ts');
  if (threadTs === undefined || threadTs === '') return undefined;
  const named = channel.messages.get(threadTs);
  if (named?.threadTs !== undefined && named.threadTs !== named.ts)
    violate(call, 'thread-ts-not-root', 'warned', 'thread_ts names a reply');
  // An unknown thread is not noticed at upload time; the file lands at the top.
  return named?.threadTs ?? named?.ts;
}

/** Posts the message of some files and marks them as shared; also for files people send. */
export function shareFiles(
  app: SlackApp,
  share: {
    readonly channel: SlackChannel;
    readonly threadTs: string | undefined;
    readonly user: string;
    readonly isFromApp: boolean;
    readonly text: string;
    readonly blocks?: readonly Fields[];
    readonly files: readonly SlackFile[];
    readonly clientMsgId?: string;
  },
): string {
  const { files, threadTs, ...rest } = share;
  // Marked before the event is made, so that the event shows the file as processed.
  const ids = files.map((file) => file.id);
  for (const file of files) file.shares.set(share.channel.id, { ts: '', threadTs });
  const message = app.workspace.post({
    ...rest,
    ...(threadTs === undefined ? {} : { threadTs }),
    subtype: 'file_share',
    files: ids,
  });
  for (const file of files) app.workspace.fileShared(file, message);
  return message.ts;
}

function fileOf(call: ApiCall): SlackFile {
  const file = call.app.workspace.files.get(textArg(call.args, 'file') ?? '');
  if (file === undefined) throw new ApiError('file_not_found');
  if (file.isDeleted) throw new ApiError('file_deleted');
  return file;
}

/** A message that holds nothing but this file goes with it. */
export function deleteFile(app: SlackApp, file: SlackFile): void {
  file.isDeleted = true;
  for (const [channelId, share] of file.shares) {
    const channel = app.workspace.channels.get(channelId);
    const message = channel?.messages.get(share.ts);
    if (message === undefined) continue;
    const isAlone = message.text === '' && message.files.length === 1;
    if (isAlone) app.workspace.remove(message, file.user);
    else app.workspace.change(message, () => undefined, 'touched');
  }
}

export function mimetypeOf(name: string): string {
  const known: Readonly<Record<string, string>> = {
    png: 'image/png',
    jpg: 'image/jpeg',
    gif: 'image/gif',
    txt: 'text/plain',
    log: 'text/plain',
    md: 'text/markdown',
    json: 'application/json',
    gz: 'application/gzip',
    zip: 'application/zip',
    pdf: 'application/pdf',
  };
  return known[name.split('.').at(-1)?.toLowerCase() ?? ''] ?? 'application/octet-stream';
}
