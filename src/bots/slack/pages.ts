// One page of a Slack conversation, its cursor included.

import type { Outcome } from '../chat-platform.ts';
import { type Fields, fieldsOf, textField } from '../fields.ts';
import type { Call } from './people.ts';
import { MISSHAPEN } from './web.ts';

export interface Page {
  readonly messages: readonly Fields[];
  readonly cursor: string | undefined;
}

/** Reads a page of `conversations.history` or `conversations.replies`. */
export async function readPage(
  call: Call,
  method: 'conversations.history' | 'conversations.replies',
  args: Record<string, unknown>,
): Promise<Outcome<Page>> {
  const answer = await call(method, args);
  if (answer.kind !== 'ok') return answer;
  const messages = answer.value['messages'];
  if (!Array.isArray(messages)) return MISSHAPEN;
  const next = textField(fieldsOf(answer.value['response_metadata']), 'next_cursor');
  const cursor = next === undefined || next === '' ? undefined : next;
  // A page that says there is more but not where is not the end of anything.
  if (cursor === undefined && answer.value['has_more'] === true) return MISSHAPEN;
  return { kind: 'ok', value: { messages: messages.map(fieldsOf), cursor } };
}
