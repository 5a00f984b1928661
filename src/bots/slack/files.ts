// Files of Slack: three steps up, and the share that appears some time after the last of them.
// A file's identity is its id, known before it becomes visible (DELIVERY FILES).

import type { Clock } from '../../base/clock.ts';
import { boundedBody } from '../bounded-body.ts';
import type {
  Found,
  InboundFile,
  Outcome,
  Posted,
  ThreadRoot,
  UploadRequest,
} from '../chat-platform.ts';
import { type Fields, fieldsOf, textField } from '../fields.ts';
import { slackPlain } from '../render/slack-format.ts';
import { classifyError, type Failure } from './errors.ts';
import type { Call } from './people.ts';
import { HTTP_TIMEOUT_MS, MISSHAPEN } from './web.ts';

export interface FilesOptions {
  readonly call: Call;
  readonly clock: Clock;
  readonly fetch: typeof fetch;
  readonly botToken: string;
  /** The token goes to this host and Slack's own, nowhere else. */
  readonly apiUrl: string;
  /** Ends waiting for a share: the adapter is stopping. */
  readonly signal: AbortSignal;
}

/** The share is looked for this often, for this long; after that it is in doubt. */
const SHARE_LOOKS = 10;
const SHARE_LOOK_GAP_MS = 1_000;
/** Bytes travel slower than calls: enough for 25 MB on a poor line. */
const TRANSFER_TIMEOUT_MS = 120_000;

export class SlackFiles {
  readonly #options: FilesOptions;

  constructor(options: FilesOptions) {
    this.#options = options;
  }

  async upload(
    request: UploadRequest,
    known: (fileId: string) => Promise<void>,
  ): Promise<Outcome<Posted>> {
    // Slack answers `missing_argument` to a length of 0.
    if (request.bytes.length === 0) {
      return { kind: 'refused', because: 'invalid', detail: 'empty file' };
    }
    const address = await this.#options.call('files.getUploadURLExternal', {
      filename: request.fileName,
      length: request.bytes.length,
    });
    if (address.kind !== 'ok') return invisible(address);
    const fileId = textField(address.value, 'file_id');
    const url = textField(address.value, 'upload_url');
    if (fileId === undefined || url === undefined) return invisible(MISSHAPEN);
    await known(fileId);
    const sent = await this.#send(url, request.bytes);
    if (sent !== undefined) return invisible(sent);
    const completed = await this.#options.call('files.completeUploadExternal', {
      files: [{ id: fileId, title: request.fileName }],
      channel_id: request.place.channel,
      ...(request.place.root === '' ? {} : { thread_ts: request.place.root }),
      ...(request.caption === undefined ? {} : { initial_comment: slackPlain(request.caption) }),
    });
    if (completed.kind !== 'ok') return completed;
    return await this.#awaitShare(request.place, fileId);
  }

  /** The message of the file, its absence, or neither. */
  async find(place: ThreadRoot, fileId: string): Promise<Found> {
    const info = await this.#options.call('files.info', { file: fileId });
    if (info.kind === 'gone') return { kind: 'none' };
    if (info.kind !== 'ok') return { kind: 'unknown', detail: info.detail };
    const messageId = shareOf(fieldsOf(info.value['file']), place);
    return messageId === undefined ? { kind: 'none' } : { kind: 'found', messageId };
  }

  async discard(fileId: string): Promise<Outcome<void>> {
    const deleted = await this.#options.call('files.delete', { file: fileId });
    // Not there is what was wanted.
    return deleted.kind === 'ok' || deleted.kind === 'gone'
      ? { kind: 'ok', value: undefined }
      : deleted;
  }

  async download(file: InboundFile, maxBytes: number): Promise<Outcome<Uint8Array>> {
    const info = await this.#options.call('files.info', { file: file.id });
    if (info.kind !== 'ok') return info;
    const described = fieldsOf(info.value['file']);
    const size = described['size'];
    if (typeof size === 'number' && size > maxBytes) return tooLarge(maxBytes);
    const url = textField(described, 'url_private_download') ?? textField(described, 'url_private');
    if (url === undefined || !this.#mayHaveToken(url)) {
      return { kind: 'refused', because: 'not-permitted', detail: 'file is not kept by Slack' };
    }
    try {
      const response = await this.#options.fetch(url, {
        headers: { authorization: `Bearer ${this.#options.botToken}` },
        // A redirect would take the token along, or end at a login page.
        redirect: 'manual',
        signal: AbortSignal.timeout(TRANSFER_TIMEOUT_MS),
      });
      return await downloaded(response, file, maxBytes);
    } catch (error) {
      return classifyError(error, 'download');
    }
  }

  #mayHaveToken(url: string): boolean {
    if (!URL.canParse(url)) return false;
    const { hostname, protocol, host } = new URL(url);
    if (host === new URL(this.#options.apiUrl).host) return true;
    return protocol === 'https:' && (hostname === 'slack.com' || hostname.endsWith('.slack.com'));
  }

  async #send(url: string, bytes: Uint8Array): Promise<Failure | undefined> {
    try {
      const response = await this.#options.fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/octet-stream' },
        body: new Uint8Array(bytes),
        signal: AbortSignal.timeout(Math.max(TRANSFER_TIMEOUT_MS, HTTP_TIMEOUT_MS)),
      });
      await response.text();
      if (response.status === 200) return undefined;
      return { kind: 'refused', because: 'invalid', detail: `upload: HTTP ${response.status}` };
    } catch (error) {
      return classifyError(error, 'upload');
    }
  }

  /** The share message appears after the call returned, sometimes seconds after. */
  async #awaitShare(place: ThreadRoot, fileId: string): Promise<Outcome<Posted>> {
    for (let looks = 0; looks < SHARE_LOOKS; looks += 1) {
      const found = await this.find(place, fileId);
      if (found.kind === 'found') return { kind: 'ok', value: { messageId: found.messageId } };
      try {
        await this.#options.clock.sleep(SHARE_LOOK_GAP_MS, this.#options.signal);
      } catch {
        break;
      }
    }
    return { kind: 'in-doubt', detail: 'the file was not shared yet' };
  }
}

/** Nothing is visible before the last step: whatever failed, nothing was processed. */
function invisible(failure: Failure): Failure {
  if (failure.kind === 'refused') return failure;
  return { kind: 'refused', because: 'not-sent', detail: failure.detail };
}

function shareOf(file: Fields, place: ThreadRoot): string | undefined {
  for (const scope of Object.values(fieldsOf(file['shares']))) {
    const shares = fieldsOf(scope)[place.channel];
    if (!Array.isArray(shares)) continue;
    const share = shares
      .map(fieldsOf)
      .find((one) => place.root === '' || one['thread_ts'] === place.root);
    if (share !== undefined) return textField(share, 'ts');
  }
  return undefined;
}

async function downloaded(
  response: Response,
  file: InboundFile,
  maxBytes: number,
): Promise<Outcome<Uint8Array>> {
  const type = response.headers.get('content-type') ?? '';
  // Without files:read Slack answers 200 with its login page.
  const isLogin = type.startsWith('text/html') && !file.mediaType.startsWith('text/html');
  if (isLogin || (response.status >= 300 && response.status < 400)) {
    await response.body?.cancel();
    return {
      kind: 'refused',
      because: 'not-permitted',
      detail: 'Slack answered with its login page: is the scope files:read missing?',
    };
  }
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
