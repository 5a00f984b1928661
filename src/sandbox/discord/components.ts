// Components: buttons, selects, v2 layouts and modals, checked as Discord checks them.

import type { FormErrors } from './errors.ts';
import { isRecord, type Json, listOf, numberOf, recordOf, recordsOf, stringOf } from './json.ts';

export const KIND = {
  ROW: 1,
  BUTTON: 2,
  STRING_SELECT: 3,
  TEXT_INPUT: 4,
  USER_SELECT: 5,
  CHANNEL_SELECT: 8,
  SECTION: 9,
  TEXT: 10,
  THUMBNAIL: 11,
  GALLERY: 12,
  FILE: 13,
  SEPARATOR: 14,
  CONTAINER: 17,
  LABEL: 18,
} as const;

const CUSTOM_ID_MAX = 100;
const TOP_LEVEL_V1 = new Set<number>([KIND.ROW]);
const TOP_LEVEL_V2 = new Set<number>([
  KIND.ROW,
  KIND.SECTION,
  KIND.TEXT,
  KIND.GALLERY,
  KIND.FILE,
  KIND.SEPARATOR,
  KIND.CONTAINER,
]);

/** Every component below these, themselves included. */
export function walk(components: readonly unknown[]): readonly Json[] {
  const all: Json[] = [];
  for (const component of components.filter(isRecord)) {
    all.push(component);
    all.push(...walk(listOf(component['components'])));
    for (const key of ['accessory', 'component'])
      if (isRecord(component[key])) all.push(...walk([component[key]]));
  }
  return all;
}

/** The text of all text displays, top to bottom. */
export function displayText(components: readonly unknown[]): string {
  return walk(components)
    .filter((component) => component['type'] === KIND.TEXT)
    .map((component) => stringOf(component['content']) ?? '')
    .join('\n');
}

/** Sum of UTF-8 bytes above which the API fails with 500, and what each text display adds. */
const BYTES_MAX = 10_170;
const BYTES_PER_DISPLAY = 12;

export function exceedsHiddenByteLimit(components: readonly unknown[]): boolean {
  const displays = walk(components).filter((component) => component['type'] === KIND.TEXT);
  const bytes = displays.reduce(
    (sum, display) =>
      sum + Buffer.byteLength(stringOf(display['content']) ?? '') + BYTES_PER_DISPLAY,
    0,
  );
  return bytes > BYTES_MAX;
}

/** Checks the components of a message. */
export function checkMessageComponents(
  components: readonly unknown[],
  v2: boolean,
  errors: FormErrors,
): void {
  const allowed = v2 ? TOP_LEVEL_V2 : TOP_LEVEL_V1;
  if (!v2 && components.length > 5) errors.badLength('components', 1, 5);
  const all = walk(components);
  if (all.length > 40)
    errors.add(
      'components',
      'COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED',
      'The total number of components must be 40 or fewer',
    );
  for (const [index, component] of components.entries()) {
    const type = numberOf(recordOf(component)['type']);
    if (type === undefined || !allowed.has(type)) errors.choices(`components.${index}.type`, type);
    else checkBlock(recordOf(component), `components.${index}`, errors);
  }
  checkUniqueIds(all, errors);
  if (v2) checkTextTotal(all, errors);
}

function checkTextTotal(all: readonly Json[], errors: FormErrors): void {
  const total = all
    .filter((component) => component['type'] === KIND.TEXT)
    .reduce((sum, display) => sum + (stringOf(display['content']) ?? '').length, 0);
  if (total > 4_000)
    errors.add(
      'components',
      'COMPONENT_MAX_TEXT_SIZE_EXCEEDED',
      'The total text size must be 4000 or fewer',
    );
}

function checkUniqueIds(all: readonly Json[], errors: FormErrors): void {
  const seen = new Set<string>();
  for (const component of all) {
    const id = stringOf(component['custom_id']);
    if (id === undefined) continue;
    if (seen.has(id))
      errors.add(
        'components',
        'COMPONENT_CUSTOM_ID_DUPLICATED',
        'Component custom id cannot be duplicated',
      );
    seen.add(id);
  }
}

function checkBlock(component: Json, path: string, errors: FormErrors): void {
  switch (component['type']) {
    case KIND.ROW:
      checkRow(component, path, errors);
      return;
    case KIND.CONTAINER:
      for (const [index, child] of listOf(component['components']).entries())
        checkBlock(recordOf(child), `${path}.components.${index}`, errors);
      return;
    case KIND.SECTION:
      checkSection(component, path, errors);
      return;
    case KIND.TEXT: {
      const text = stringOf(component['content']) ?? '';
      if (text === '' || text.length > 4_000) errors.badLength(`${path}.content`, 1, 4_000);
      return;
    }
    case KIND.GALLERY: {
      const items = listOf(component['items']).length;
      if (items < 1 || items > 10) errors.badLength(`${path}.items`, 1, 10);
      return;
    }
    case KIND.FILE:
      if (!(stringOf(recordOf(component['file'])['url']) ?? '').startsWith('attachment://'))
        errors.add(
          `${path}.file.url`,
          'URL_TYPE_INVALID_SCHEME',
          'Must be an attachment:// reference',
        );
      return;
    default:
      return;
  }
}

function checkSection(component: Json, path: string, errors: FormErrors): void {
  const texts = listOf(component['components']);
  if (texts.length < 1 || texts.length > 3) errors.badLength(`${path}.components`, 1, 3);
  if (!isRecord(component['accessory'])) errors.required(`${path}.accessory`);
  else if (component['accessory']['type'] === KIND.BUTTON)
    checkButton(component['accessory'], `${path}.accessory`, errors);
}

function checkRow(row: Json, path: string, errors: FormErrors): void {
  const children = recordsOf(row['components']);
  if (children.length < 1 || children.length > 5) errors.badLength(`${path}.components`, 1, 5);
  const selects = children.filter((child) => child['type'] !== KIND.BUTTON);
  if (selects.length > 0 && children.length > 1)
    errors.add(
      `${path}.components`,
      'COMPONENT_LAYOUT_WIDTH_EXCEEDED',
      'A select needs a row of its own',
    );
  for (const [index, child] of children.entries()) {
    const at = `${path}.components.${index}`;
    if (child['type'] === KIND.BUTTON) checkButton(child, at, errors);
    else if (child['type'] === KIND.STRING_SELECT) checkSelect(child, at, errors);
    else if (child['type'] === KIND.TEXT_INPUT) errors.choices(`${at}.type`, KIND.TEXT_INPUT);
  }
}

function checkButton(button: Json, path: string, errors: FormErrors): void {
  const style = numberOf(button['style']);
  const label = stringOf(button['label']);
  if (style === undefined || style < 1 || style > 6) errors.choices(`${path}.style`, style);
  if (label !== undefined && label.length > 80) errors.tooLong(`${path}.label`, 80);
  if ((label ?? '') === '' && !isRecord(button['emoji']) && style !== 6)
    errors.add(
      path,
      'BUTTON_COMPONENT_REQUIRES_LABEL_OR_EMOJI',
      'A button needs a label or an emoji',
    );
  if (style === 5) {
    const url = stringOf(button['url']) ?? '';
    if (!/^(https?|discord):\/\//.test(url))
      errors.add(
        `${path}.url`,
        'URL_TYPE_INVALID_SCHEME',
        'Scheme must be one of (http, https, discord)',
      );
    if (url.length > 512) errors.tooLong(`${path}.url`, 512);
  } else if (style !== 6) checkCustomId(button, path, errors);
}

function checkCustomId(component: Json, path: string, errors: FormErrors): void {
  const id = stringOf(component['custom_id']);
  if (id === undefined) errors.required(`${path}.custom_id`);
  else if (id.length < 1 || id.length > CUSTOM_ID_MAX)
    errors.badLength(`${path}.custom_id`, 1, CUSTOM_ID_MAX);
}

function checkSelect(select: Json, path: string, errors: FormErrors): void {
  checkCustomId(select, path, errors);
  const options = recordsOf(select['options']);
  if (options.length < 1 || options.length > 25) errors.badLength(`${path}.options`, 1, 25);
  if ((stringOf(select['placeholder']) ?? '').length > 150)
    errors.tooLong(`${path}.placeholder`, 150);
  for (const [index, option] of options.entries()) {
    for (const key of ['label', 'value', 'description']) {
      const text = stringOf(option[key]);
      const at = `${path}.options.${index}.${key}`;
      if (text === undefined && key !== 'description') errors.required(at);
      else if ((text ?? '').length > 100) errors.tooLong(at, 100);
    }
  }
}

/** Checks the data of a modal (callback type 9). */
export function checkModal(modal: Json, errors: FormErrors): void {
  const title = stringOf(modal['title']) ?? '';
  if (title === '' || title.length > 45) errors.badLength('data.title', 1, 45);
  checkCustomId(modal, 'data', errors);
  const parts = recordsOf(modal['components']);
  if (parts.length < 1 || parts.length > 5) errors.badLength('data.components', 1, 5);
  for (const [index, part] of parts.entries())
    checkModalPart(part, `data.components.${index}`, errors);
}

function checkModalPart(part: Json, path: string, errors: FormErrors): void {
  if (part['type'] === KIND.LABEL) {
    const label = stringOf(part['label']) ?? '';
    if (label === '' || label.length > 45) errors.badLength(`${path}.label`, 1, 45);
    checkInput(recordOf(part['component']), `${path}.component`, errors);
  } else if (part['type'] === KIND.ROW) {
    for (const [inner, input] of recordsOf(part['components']).entries())
      checkInput(input, `${path}.components.${inner}`, errors);
  } else if (part['type'] !== KIND.TEXT) errors.choices(`${path}.type`, part['type']);
}

function checkInput(input: Json, path: string, errors: FormErrors): void {
  checkCustomId(input, path, errors);
  if (input['type'] !== KIND.TEXT_INPUT) return;
  if (input['style'] !== 1 && input['style'] !== 2) errors.choices(`${path}.style`, input['style']);
  const max = numberOf(input['max_length']);
  if (max !== undefined && (max < 1 || max > 4_000))
    errors.add(
      `${path}.max_length`,
      'NUMBER_TYPE_MAX',
      'int value should be less than or equal to 4000.',
    );
  if ((stringOf(input['placeholder']) ?? '').length > 100)
    errors.tooLong(`${path}.placeholder`, 100);
  if ((stringOf(input['value']) ?? '').length > 4_000) errors.tooLong(`${path}.value`, 4_000);
}

/** The text inputs of a modal with their ids: what a person can fill in. */
export function modalInputs(modal: Json): readonly Json[] {
  return walk(listOf(modal['components'])).filter(
    (component) =>
      component['type'] !== KIND.LABEL && stringOf(component['custom_id']) !== undefined,
  );
}
