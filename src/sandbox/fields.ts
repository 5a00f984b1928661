// Reads fields of parsed JSON from control calls, with one-line complaints that name the field.

import { ControlError } from './module.ts';

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @throws {ControlError} when the body is not an object. */
export function fieldsOf(body: unknown): Fields {
  if (!isFields(body)) throw new ControlError('the body must be a JSON object');
  return body;
}

/** @throws {ControlError} when absent or no text. */
export function textField(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== 'string') throw new ControlError(`${name} must be a text`);
  return value;
}

/** @throws {ControlError} when present and no text. */
export function optionalText(fields: Fields, name: string): string | undefined {
  return fields[name] === undefined || fields[name] === null ? undefined : textField(fields, name);
}

/** @throws {ControlError} when present and no finite number. */
export function optionalNumber(fields: Fields, name: string): number | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new ControlError(`${name} must be a number`);
  return value;
}

/** @throws {ControlError} when present and neither true nor false. */
export function optionalFlag(fields: Fields, name: string): boolean | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'boolean') throw new ControlError(`${name} must be true or false`);
  return value;
}
