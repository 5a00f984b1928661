// The arguments and the token of a Web API request, from query, form, multipart or JSON.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import busboy from 'busboy';
import { type Fields, isFields } from '../fields.ts';

export type ParsedArgs =
  | {
      readonly kind: 'ok';
      readonly args: Fields;
      readonly warnings: readonly string[];
      readonly isJson: boolean;
    }
  | { readonly kind: 'error'; readonly error: string };

export async function parseArgs(
  request: IncomingMessage,
  url: URL,
  body: Buffer,
): Promise<ParsedArgs> {
  const query = Object.fromEntries(url.searchParams);
  const type = request.headers['content-type'] ?? '';
  if (request.method === 'GET' || body.length === 0)
    return { kind: 'ok', args: query, warnings: [], isJson: false };
  if (type === '') return { kind: 'error', error: 'missing_post_type' };
  if (type.startsWith('application/json')) return parseJsonArgs(type, query, body);
  if (type.startsWith('application/x-www-form-urlencoded')) {
    const form = Object.fromEntries(new URLSearchParams(body.toString('utf8')));
    return { kind: 'ok', args: { ...query, ...form }, warnings: [], isJson: false };
  }
  if (!type.startsWith('multipart/form-data')) return { kind: 'error', error: 'invalid_post_type' };
  const form = await parseMultipart(request.headers, body);
  if (form === undefined) return { kind: 'error', error: 'invalid_form_data' };
  return { kind: 'ok', args: { ...query, ...form.fields }, warnings: [], isJson: false };
}

function parseJsonArgs(type: string, query: Fields, body: Buffer): ParsedArgs {
  const warnings = /charset=/i.test(type) ? [] : ['missing_charset'];
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'));
    if (!isFields(parsed)) return { kind: 'error', error: 'json_not_object' };
    return { kind: 'ok', args: { ...query, ...parsed }, warnings, isJson: true };
  } catch {
    return { kind: 'error', error: 'invalid_json' };
  }
}

export interface Multipart {
  readonly fields: Readonly<Record<string, string>>;
  /** Field name and bytes of each part that is a file. */
  readonly files: readonly { readonly field: string; readonly bytes: Buffer }[];
}

/** Undefined when the body is not the multipart its header promises. */
export async function parseMultipart(
  headers: IncomingHttpHeaders,
  body: Buffer,
): Promise<Multipart | undefined> {
  const fields: Record<string, string> = {};
  const files: { field: string; bytes: Buffer }[] = [];
  return new Promise((resolve) => {
    let parser: busboy.Busboy;
    try {
      parser = busboy({ headers, limits: { fields: 100, files: 20 } });
    } catch {
      resolve(undefined);
      return;
    }
    parser.on('field', (name, value) => {
      fields[name] = value;
    });
    parser.on('file', (field, stream) => {
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => files.push({ field, bytes: Buffer.concat(parts) }));
    });
    parser.on('close', () => resolve({ fields, files }));
    parser.on('error', () => resolve(undefined));
    Readable.from([body]).pipe(parser);
  });
}

/** The token, and whether it came in the header (the only place app tokens may come in). */
export function tokenOf(
  request: IncomingMessage,
  args: Fields,
): { readonly token: string | undefined; readonly isInHeader: boolean } {
  const header = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (header !== undefined) return { token: header, isInHeader: true };
  const argument = args['token'];
  const token = typeof argument === 'string' && argument !== '' ? argument : undefined;
  return { token, isInHeader: false };
}
