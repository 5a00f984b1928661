// A request's body as Discord takes it: JSON, or multipart with `payload_json` and `files[n]` in
// either order.

import busboy from 'busboy';
import { ApiError } from './errors.ts';
import { isRecord, type Json, parseJson } from './json.ts';
import type { UploadedFile } from './message-form.ts';

export interface ParsedBody {
  /** The JSON, whatever it is: bulk routes take arrays. */
  readonly value: unknown;
  readonly form: Json;
  readonly files: readonly UploadedFile[];
}

const EMPTY: ParsedBody = { value: undefined, form: {}, files: [] };

/** @throws {ApiError} 50109 for broken JSON, 50035 for broken multipart. */
export async function parseBody(bytes: Buffer, contentType: string): Promise<ParsedBody> {
  if (contentType.startsWith('multipart/form-data')) return parseMultipart(bytes, contentType);
  if (bytes.length === 0) return EMPTY;
  const value = parseJson(bytes.toString('utf8'));
  if (value === undefined)
    throw new ApiError(400, 50109, 'The request body contains invalid JSON.');
  return { value, form: isRecord(value) ? value : {}, files: [] };
}

function parseMultipart(bytes: Buffer, contentType: string): Promise<ParsedBody> {
  return new Promise((resolve, reject) => {
    const broken = (): void => reject(new ApiError(400, 50035, 'Invalid Form Body'));
    let parser: busboy.Busboy;
    try {
      parser = busboy({ headers: { 'content-type': contentType }, preservePath: true });
    } catch {
      broken();
      return;
    }
    const fields: Record<string, string> = {};
    const files: UploadedFile[] = [];
    parser.on('field', (name, value) => {
      fields[name] = value;
    });
    parser.on('file', (name, stream, info) => {
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => {
        files.push({
          index: /^files\[(\d+)\]$/.exec(name)?.[1],
          // Typed as always there; a part may come without one.
          filename: (info.filename as string | undefined) ?? 'file',
          contentType: info.mimeType,
          bytes: Buffer.concat(parts),
        });
      });
    });
    parser.on('error', broken);
    parser.on('close', () => {
      try {
        resolve(withPayload(fields, files));
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    parser.end(bytes);
  });
}

function withPayload(
  fields: Readonly<Record<string, string>>,
  files: readonly UploadedFile[],
): ParsedBody {
  const payload = fields['payload_json'];
  if (payload === undefined) return { value: fields, form: { ...fields }, files };
  const value = parseJson(payload);
  if (value === undefined)
    throw new ApiError(400, 50109, 'The request body contains invalid JSON.');
  return { value, form: isRecord(value) ? value : {}, files };
}
