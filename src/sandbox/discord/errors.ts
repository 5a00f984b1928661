// What Discord answers instead of a result: status, JSON code, and the 50035 tree of form errors.

import { isRecord, type Json } from './json.ts';

export class ApiError extends Error {
  readonly status: number;
  readonly code: number;
  readonly tree: Json | undefined;

  constructor(status: number, code: number, message: string, tree?: Json) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.tree = tree;
  }

  body(): Json {
    const base = { message: this.message, code: this.code };
    return this.tree === undefined ? base : { ...base, errors: this.tree };
  }
}

/** Collects form errors by path and throws them as one 50035. */
export class FormErrors {
  readonly #tree: Json = {};
  #count = 0;

  add(path: string, code: string, message: string): void {
    let node = this.#tree;
    for (const key of path.split('.').filter((part) => part !== '')) {
      const next = node[key];
      if (isRecord(next)) node = next;
      else {
        const made: Json = {};
        node[key] = made;
        node = made;
      }
    }
    const list = Array.isArray(node['_errors']) ? (node['_errors'] as unknown[]) : [];
    node['_errors'] = [...list, { code, message }];
    this.#count += 1;
  }

  tooLong(path: string, max: number): void {
    this.add(path, 'BASE_TYPE_MAX_LENGTH', `Must be ${max} or fewer in length.`);
  }

  badLength(path: string, min: number, max: number): void {
    this.add(path, 'BASE_TYPE_BAD_LENGTH', `Must be between ${min} and ${max} in length.`);
  }

  required(path: string): void {
    this.add(path, 'BASE_TYPE_REQUIRED', 'This field is required');
  }

  choices(path: string, value: unknown): void {
    this.add(
      path,
      'BASE_TYPE_CHOICES',
      `Value ${JSON.stringify(value)} is not one of the allowed choices.`,
    );
  }

  get count(): number {
    return this.#count;
  }

  /** @throws {ApiError} 50035 with the tree when anything was added. */
  throwIfAny(): void {
    if (this.#count > 0) throw new ApiError(400, 50035, 'Invalid Form Body', this.#tree);
  }
}

export const unauthorized = (): ApiError => new ApiError(401, 0, '401: Unauthorized');
export const notFound = (): ApiError => new ApiError(404, 0, '404: Not Found');
export const unknownChannel = (): ApiError => new ApiError(404, 10003, 'Unknown Channel');
export const unknownGuild = (): ApiError => new ApiError(404, 10004, 'Unknown Guild');
export const unknownMessage = (): ApiError => new ApiError(404, 10008, 'Unknown Message');
export const unknownUser = (): ApiError => new ApiError(404, 10013, 'Unknown User');
export const unknownEmoji = (): ApiError => new ApiError(400, 10014, 'Unknown Emoji');
export const unknownWebhook = (): ApiError => new ApiError(404, 10015, 'Unknown Webhook');
export const unknownInteraction = (): ApiError => new ApiError(404, 10062, 'Unknown interaction');
export const unknownCommand = (): ApiError =>
  new ApiError(404, 10063, 'Unknown application command');
export const missingAccess = (): ApiError => new ApiError(403, 50001, 'Missing Access');
export const missingPermissions = (): ApiError => new ApiError(403, 50013, 'Missing Permissions');
export const emptyMessage = (): ApiError =>
  new ApiError(400, 50006, 'Cannot send an empty message');
export const notOwnMessage = (): ApiError =>
  new ApiError(403, 50005, 'Cannot edit a message authored by another user');
export const threadArchived = (): ApiError => new ApiError(400, 50083, 'Thread is archived');
export const threadLocked = (): ApiError => new ApiError(400, 160005, 'Thread is locked');
export const threadExists = (): ApiError =>
  new ApiError(400, 160004, 'A thread has already been created for this message');
export const tooManyThreads = (): ApiError =>
  new ApiError(400, 160006, 'Maximum number of active threads reached');
export const alreadyAcknowledged = (): ApiError =>
  new ApiError(400, 40060, 'Interaction has already been acknowledged.');
export const tooManyAttachments = (): ApiError =>
  new ApiError(400, 30015, 'Maximum number of attachments in a message reached (10)');
export const fileTooLarge = (): ApiError =>
  new ApiError(413, 50045, 'File uploaded exceeds the maximum size');
export const requestTooLarge = (): ApiError => new ApiError(413, 40005, 'Request entity too large');
