// Answers to a Slack interaction: something only one person sees, or a modal. The trigger of a modal
// lives for 3 s and works once; the response address for 30 min and five times.

import { ChatdError } from '../../base/errors.ts';
import type { InteractionReply, ModalSpec, Outcome, ThreadRoot } from '../chat-platform.ts';
import { slackPlain } from '../render/slack-format.ts';
import { modalPlace } from './decode.ts';
import type { Call } from './people.ts';

/** Slack's limits of a modal: title 24, label 2,000, callback id 255. */
const TITLE_MAX = 24;
const LABEL_MAX = 2_000;
/** Of one section's text. */
const SECTION_MAX = 3_000;

export interface ReplyContext {
  readonly call: Call;
  readonly place: ThreadRoot;
  readonly personId: string;
  readonly triggerId: string | undefined;
  readonly responseUrl: string | undefined;
  /** Posts JSON to a response address; false when it was not taken. */
  readonly respond: (url: string, body: Record<string, unknown>) => Promise<boolean>;
}

/** Text that is shown as it is, whatever it looks like. */
export function plainSection(text: string): {
  text: string;
  blocks: readonly Record<string, unknown>[];
} {
  const shown = text.length > SECTION_MAX ? `${text.slice(0, SECTION_MAX - 1)}…` : text;
  return {
    text: slackPlain(shown),
    blocks: [{ type: 'section', text: { type: 'plain_text', text: shown || ' ', emoji: false } }],
  };
}

export function ephemeralArgs(
  place: ThreadRoot,
  personId: string,
  text: string,
): Record<string, unknown> {
  return {
    channel: place.channel,
    user: personId,
    ...(place.root === '' ? {} : { thread_ts: place.root }),
    ...plainSection(text),
    parse: 'none',
    link_names: false,
  };
}

export function slackReply(context: ReplyContext): InteractionReply {
  return {
    privately: async (text) => {
      // A command may come from a channel the bot is not in: only the response address works there.
      if (context.responseUrl !== undefined) {
        const body = {
          response_type: 'ephemeral',
          replace_original: false,
          ...plainSection(text),
          ...(context.place.root === '' ? {} : { thread_ts: context.place.root }),
        };
        if (await context.respond(context.responseUrl, body)) return;
      }
      const args = ephemeralArgs(context.place, context.personId, text);
      throwUnlessOk(await context.call('chat.postEphemeral', args), 'answer an interaction');
    },
    modal: async (spec) => {
      if (context.triggerId === undefined) {
        throw new ChatdError('platform-rejected', 'Cannot open a modal: no trigger');
      }
      const args = { trigger_id: context.triggerId, view: modalView(spec, context.place) };
      throwUnlessOk(await context.call('views.open', args), 'open a modal');
    },
  };
}

function throwUnlessOk(outcome: Outcome<unknown>, what: string): void {
  if (outcome.kind === 'ok') return;
  throw new ChatdError('platform-rejected', `Cannot ${what}: ${outcome.detail}`);
}

function modalView(spec: ModalSpec, place: ThreadRoot): Record<string, unknown> {
  return {
    type: 'modal',
    callback_id: spec.id,
    private_metadata: modalPlace(place),
    title: { type: 'plain_text', text: spec.title.slice(0, TITLE_MAX), emoji: false },
    submit: { type: 'plain_text', text: 'Send', emoji: false },
    close: { type: 'plain_text', text: 'Cancel', emoji: false },
    blocks: spec.fields.map((field) => ({
      type: 'input',
      block_id: field.id,
      label: { type: 'plain_text', text: field.label.slice(0, LABEL_MAX), emoji: false },
      element: { type: 'plain_text_input', action_id: 'value', multiline: field.multiline },
    })),
  };
}
