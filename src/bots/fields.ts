// Reading untrusted objects field by field: what does not fit is absent. For payloads of platforms,
// where a schema would have to list hundreds of fields to use ten.

export type Fields = Readonly<Record<string, unknown>>;

/** The fields of an untrusted object; none for anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A string field, or undefined. */
export function textField(fields: Fields, name: string): string | undefined {
  const value = fields[name];
  return typeof value === 'string' ? value : undefined;
}

/** A finite number field, or undefined. */
export function numberField(fields: Fields, name: string): number | undefined {
  const value = fields[name];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A list field; empty when it is none. */
export function listField(fields: Fields, name: string): readonly unknown[] {
  const value = fields[name];
  return Array.isArray(value) ? value : [];
}
