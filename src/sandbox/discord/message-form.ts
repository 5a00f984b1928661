// A message as a client sends it (create, edit, interaction answer), checked field by field and
// turned into a draft. Knows the form only: who may post where is decided elsewhere.

import { checkMessageComponents, exceedsHiddenByteLimit } from './components.ts';
import { ApiError, emptyMessage, FormErrors, fileTooLarge, tooManyAttachments } from './errors.ts';
import {
  isRecord,
  type Json,
  listOf,
  numberOf,
  recordOf,
  recordsOf,
  stringOf,
  stringsOf,
} from './json.ts';
import { FLAG } from './records.ts';
import { type AllowedMentions, CONTENT_MAX, cleanContent } from './text.ts';

export interface UploadedFile {
  /** The number in `files[n]`; undefined for other field names. */
  readonly index: string | undefined;
  readonly filename: string;
  readonly contentType: string | undefined;
  readonly bytes: Buffer;
}

/** Largest single file of an unboosted guild. */
export const FILE_MAX_BYTES = 10 * 1024 * 1024;
const FILES_MAX = 10;

export interface MessageDraft {
  /** Cleaned; undefined when the field was absent. */
  readonly content: string | undefined;
  readonly rawContent: string | undefined;
  readonly embeds: readonly Json[] | undefined;
  readonly components: readonly Json[] | undefined;
  readonly flags: number | undefined;
  readonly tts: boolean;
  readonly nonce: string | number | undefined;
  readonly enforceNonce: boolean;
  readonly allowedMentions: AllowedMentions;
  /** The client said whom it may ping. */
  readonly saysMentions: boolean;
  readonly replyTo: string | undefined;
  readonly replyMustExist: boolean;
  readonly files: readonly UploadedFile[];
  /** The `attachments` of the body; undefined keeps what is there. */
  readonly attachments: readonly Json[] | undefined;
}

const CREATE_FLAGS = FLAG.SUPPRESS_EMBEDS | FLAG.SUPPRESS_NOTIFICATIONS | FLAG.COMPONENTS_V2;

export interface FormRules {
  readonly action: 'create' | 'edit' | 'answer';
  /** Flags the message already has (edit). */
  readonly currentFlags?: number;
}

/** @throws {ApiError} for everything Discord refuses in the form itself. */
export function readMessageForm(
  body: Json,
  files: readonly UploadedFile[],
  rules: FormRules,
): MessageDraft {
  const errors = new FormErrors();
  const content = readContent(body, errors);
  const embeds = readList(body, 'embeds', errors);
  const components = readList(body, 'components', errors);
  const flags = readFlags(body, rules, errors);
  const v2 = (((flags ?? 0) | (rules.currentFlags ?? 0)) & FLAG.COMPONENTS_V2) !== 0;
  for (const [index, embed] of (embeds ?? []).entries())
    checkEmbed(embed, `embeds.${index}`, errors);
  checkEmbedTotals(embeds ?? [], errors);
  checkMessageComponents(components ?? [], v2, errors);
  checkNonce(body, errors);
  if (v2) checkV2Exclusive(body, errors);
  checkMentionsForm(body, errors);
  errors.throwIfAny();
  checkFiles(files);
  if (v2 && exceedsHiddenByteLimit(components ?? []))
    throw new ApiError(500, 0, '500: Internal Server Error');
  const reference = recordOf(body['message_reference']);
  return {
    content: content === undefined ? undefined : cleanContent(content),
    rawContent: content,
    embeds,
    components,
    flags,
    tts: body['tts'] === true,
    nonce: stringOf(body['nonce']) ?? numberOf(body['nonce']),
    enforceNonce: body['enforce_nonce'] === true,
    allowedMentions: readMentions(body['allowed_mentions'], rules),
    saysMentions: isRecord(body['allowed_mentions']),
    replyTo: stringOf(reference['message_id']),
    replyMustExist: reference['fail_if_not_exists'] !== false,
    files,
    attachments: Array.isArray(body['attachments']) ? recordsOf(body['attachments']) : undefined,
  };
}

/** @throws {ApiError} 50006 when nothing would be shown. */
export function refuseEmpty(shown: {
  readonly content: string;
  readonly embeds: number;
  readonly components: number;
  readonly attachments: number;
}): void {
  if (shown.content === '' && shown.embeds + shown.components + shown.attachments === 0)
    throw emptyMessage();
}

function readContent(body: Json, errors: FormErrors): string | undefined {
  const value = body['content'];
  if (value === undefined) return undefined;
  if (value === null) return '';
  if (typeof value === 'object') {
    errors.add('content', 'STRING_TYPE_CONVERT', 'Could not interpret value as string.');
    return undefined;
  }
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length > CONTENT_MAX) errors.tooLong('content', CONTENT_MAX);
  return text;
}

function readList(body: Json, key: string, errors: FormErrors): readonly Json[] | undefined {
  const value = body[key];
  if (value === undefined) return undefined;
  if (value === null) return [];
  if (!Array.isArray(value)) {
    errors.add(key, 'LIST_TYPE_CONVERT', 'Only iterables may be used in a ListType');
    return undefined;
  }
  for (const [index, entry] of (value as unknown[]).entries())
    if (!isRecord(entry))
      errors.add(
        `${key}.${index}`,
        'MODEL_TYPE_CONVERT',
        'Only dictionaries may be used in a ModelType',
      );
  return recordsOf(value);
}

function readFlags(body: Json, rules: FormRules, errors: FormErrors): number | undefined {
  const value = body['flags'];
  if (value === undefined || value === null) return undefined;
  const flags = numberOf(value);
  if (flags === undefined) {
    errors.add('flags', 'NUMBER_TYPE_COERCE', `Value ${JSON.stringify(value)} is not int.`);
    return undefined;
  }
  const allowed = rules.action === 'answer' ? CREATE_FLAGS | FLAG.EPHEMERAL : CREATE_FLAGS;
  // What cannot be set is dropped, not refused: an ephemeral flag on a normal message is a no-op.
  return flags & allowed;
}

function checkNonce(body: Json, errors: FormErrors): void {
  const nonce = body['nonce'];
  if (nonce === undefined || nonce === null) return;
  if (typeof nonce === 'string') {
    if (nonce.length > 25)
      errors.add('nonce', 'NONCE_TYPE_INVALID', 'Nonce must be 25 or fewer in length.');
  } else if (typeof nonce !== 'number')
    errors.add('nonce', 'NONCE_TYPE_INVALID', 'Nonce must be a string or an integer.');
}

function checkV2Exclusive(body: Json, errors: FormErrors): void {
  const text = 'The MESSAGE_FLAGS_IS_COMPONENTS_V2 flag does not allow this field';
  if ((stringOf(body['content']) ?? '') !== '')
    errors.add('content', 'MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2', text);
  for (const key of ['embeds', 'sticker_ids', 'poll'])
    if (listOf(body[key]).length > 0 || isRecord(body[key]))
      errors.add(key, 'MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2', text);
}

function checkMentionsForm(body: Json, errors: FormErrors): void {
  const allowed = body['allowed_mentions'];
  if (!isRecord(allowed)) return;
  const parse = stringsOf(allowed['parse']);
  for (const key of ['users', 'roles']) {
    const ids = stringsOf(allowed[key]);
    if (ids.length > 100)
      errors.add(
        `allowed_mentions.${key}`,
        'BASE_TYPE_MAX_LENGTH',
        'Must be 100 or fewer in length.',
      );
    if (ids.length > 0 && parse.includes(key))
      errors.add(
        'allowed_mentions',
        'MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE',
        `parse:["${key}"] and ${key}: [ids...] are mutually exclusive.`,
      );
  }
}

function readMentions(value: unknown, rules: FormRules): AllowedMentions {
  if (!isRecord(value)) {
    // Absent means everything; interaction answers only ever ping users.
    const answers = rules.action === 'answer';
    return { everyone: !answers, users: 'all', roles: answers ? [] : 'all', repliedUser: true };
  }
  const parse = stringsOf(value['parse']);
  return {
    everyone: parse.includes('everyone'),
    users: parse.includes('users') ? 'all' : stringsOf(value['users']),
    roles: parse.includes('roles') ? 'all' : stringsOf(value['roles']),
    repliedUser: value['replied_user'] === true,
  };
}

/** @throws {ApiError} 30015 or 50045. */
function checkFiles(files: readonly UploadedFile[]): void {
  if (files.length > FILES_MAX) throw tooManyAttachments();
  if (files.some((file) => file.bytes.length > FILE_MAX_BYTES)) throw fileTooLarge();
}

const EMBED_LIMITS = [
  ['title', 256],
  ['description', 4_096],
] as const;

function checkEmbed(embed: Json, path: string, errors: FormErrors): void {
  const refuseOver = (value: unknown, at: string, max: number): void => {
    if ((stringOf(value) ?? '').length > max) errors.tooLong(`${path}.${at}`, max);
  };
  for (const [key, max] of EMBED_LIMITS) refuseOver(embed[key], key, max);
  refuseOver(recordOf(embed['footer'])['text'], 'footer.text', 2_048);
  refuseOver(recordOf(embed['author'])['name'], 'author.name', 256);
  const fields = recordsOf(embed['fields']);
  if (fields.length > 25) errors.tooLong(`${path}.fields`, 25);
  for (const [index, field] of fields.entries()) {
    refuseOver(field['name'], `fields.${index}.name`, 256);
    refuseOver(field['value'], `fields.${index}.value`, 1_024);
    if ((stringOf(field['value']) ?? '') === '') errors.required(`${path}.fields.${index}.value`);
  }
}

function checkEmbedTotals(embeds: readonly Json[], errors: FormErrors): void {
  if (embeds.length > 10) errors.tooLong('embeds', 10);
  const total = embeds.reduce((sum, embed) => sum + embedSize(embed), 0);
  if (total > 6_000)
    errors.add('embeds', 'MAX_EMBED_SIZE_EXCEEDED', 'Embed size exceeds maximum size of 6000');
}

function embedSize(embed: Json): number {
  const length = (value: unknown): number => (stringOf(value) ?? '').length;
  const fields = recordsOf(embed['fields']).reduce(
    (sum, field) => sum + length(field['name']) + length(field['value']),
    0,
  );
  return (
    length(embed['title']) +
    length(embed['description']) +
    length(recordOf(embed['footer'])['text']) +
    length(recordOf(embed['author'])['name']) +
    fields
  );
}
