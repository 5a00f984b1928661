// What a Slack payload says a person did.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DecodeContext,
  decodeCommand,
  decodeEvent,
  decodeInteractive,
  modalPlace,
  msToTs,
  tsToMs,
} from '../../../../src/bots/slack/decode.ts';

const context: DecodeContext = {
  teamId: 'T1',
  botId: 'B1',
  botUserId: 'UBOT',
  receivedAtMonotonicMs: 5,
  platformNowMs: 1_760_000_000_000,
  caughtUp: false,
  nameOf: (id) => (id === 'U1' ? 'alice' : undefined),
  rolesOf: (id) => (id === 'U1' ? ['S1'] : []),
};

function event(fields: Readonly<Record<string, unknown>>) {
  return decodeEvent({ event_id: 'Ev1', event: fields }, context);
}

const human = {
  type: 'message',
  channel: 'C1',
  user: 'U1',
  team: 'T1',
  text: 'ls',
  client_msg_id: 'm1',
  ts: '1760000010.000300',
};

describe('messages', () => {
  it('carries every key under which it may come again', () => {
    expect(event({ ...human, thread_ts: '1759999999.000200' })).toMatchObject({
      kind: 'message',
      dedupeKeys: ['ts:C1:1760000010.000300', 'event:Ev1', 'client-msg:m1'],
      place: { space: 'T1', channel: 'C1', root: '1759999999.000200' },
      author: { id: 'U1', space: 'T1', roles: ['S1'], isBot: false, name: 'alice' },
      text: 'ls',
      sentAtPlatformMs: 1_760_000_010_000,
    });
  });

  it('has no root outside of threads, and a parent is outside of its own', () => {
    expect(event(human)).toMatchObject({ place: { root: '' } });
    expect(event({ ...human, thread_ts: human.ts })).toMatchObject({ place: { root: '' } });
  });

  it('belongs to the workspace of its author, and to none when that is not said', () => {
    expect(event({ ...human, user_team: 'T2' })).toMatchObject({ author: { space: 'T2' } });
    const { team: _team, ...teamless } = human;
    expect(event(teamless)).toMatchObject({ author: { space: undefined } });
  });

  it('is of a bot when a bot id says so', () => {
    expect(event({ ...human, bot_id: 'B2' })).toMatchObject({ author: { isBot: true } });
    expect(
      event({ type: 'message', subtype: 'bot_message', bot_id: 'B2', channel: 'C1', ts: human.ts }),
    ).toBeUndefined();
  });

  it.each(['channel_join', 'channel_topic', 'message_replied', 'reminder_add'])(
    'is no act of a person with subtype %s',
    (subtype) => {
      expect(event({ ...human, subtype })).toBeUndefined();
    },
  );

  it.each(['thread_broadcast', 'file_share', 'me_message'])('is one with %s', (subtype) => {
    expect(event({ ...human, subtype })).toMatchObject({ kind: 'message' });
  });

  it('makes no act of changes, whoever made them', () => {
    const changed = { type: 'message', subtype: 'message_changed', channel: 'C1', ts: '1.000001' };
    expect(event({ ...changed, message: { ...human, text: 'rm' } })).toBeUndefined();
    expect(event({ ...changed, message: { bot_id: 'B1', ts: human.ts } })).toBeUndefined();
  });

  it('tells of deleted messages and of parents that became tombstones', () => {
    const gone = { kind: 'place-changed', change: 'message-deleted', messageId: human.ts };
    expect(
      event({
        type: 'message',
        subtype: 'message_deleted',
        channel: 'C1',
        deleted_ts: human.ts,
        previous_message: { thread_ts: '1.000001' },
      }),
    ).toMatchObject({ ...gone, place: { root: '1.000001' } });
    expect(
      event({
        type: 'message',
        subtype: 'message_changed',
        channel: 'C1',
        message: { subtype: 'tombstone', ts: human.ts },
      }),
    ).toMatchObject(gone);
  });

  it('names the row of our own message, and is silent about others of ours', () => {
    const own = { type: 'message', channel: 'C1', bot_id: 'B1', user: 'UBOT', ts: human.ts };
    const metadata = { event_type: 'chatd', event_payload: { b: 'abc', s: 7 } };
    expect(event({ ...own, metadata })).toMatchObject({
      kind: 'own-message',
      messageId: human.ts,
      row: { b: 'abc', s: 7 },
    });
    expect(event(own)).toBeUndefined();
    expect(event({ ...own, metadata: { ...metadata, event_type: 'other' } })).toBeUndefined();
    // Somebody else's metadata names no row of ours.
    expect(event({ ...human, metadata })).toMatchObject({ kind: 'message' });
  });

  it('lists files', () => {
    const files = [{ id: 'F1', name: 'a.log', size: 3, mimetype: 'text/plain' }, 'junk'];
    expect(event({ ...human, files })).toMatchObject({
      files: [{ id: 'F1', name: 'a.log', sizeBytes: 3, mediaType: 'text/plain' }],
    });
  });

  it('tells of archived and renamed channels', () => {
    expect(event({ type: 'channel_archive', channel: 'C1' })).toMatchObject({ change: 'archived' });
    expect(event({ type: 'group_unarchive', channel: 'C1' })).toMatchObject({
      change: 'unarchived',
    });
    expect(
      event({ type: 'channel_id_changed', old_channel_id: 'C1', new_channel_id: 'C2' }),
    ).toEqual({ kind: 'channel-id-changed', from: 'C1', to: 'C2' });
  });
});

describe('interactions', () => {
  const pressed = {
    type: 'block_actions',
    user: { id: 'U1', username: 'al', team_id: 'T1' },
    container: { message_ts: '1760000010.000300', channel_id: 'C1', thread_ts: '1.000001' },
    channel: { id: 'C1' },
    trigger_id: 't1',
    actions: [{ action_id: 'chatd.0.0', value: 'key:esc', action_ts: '1760000030.123456' }],
  };

  it('brings what a button carries, not what it shows', () => {
    expect(decodeInteractive(pressed, context)).toMatchObject({
      kind: 'action',
      action: 'key:esc',
      place: { space: 'T1', channel: 'C1', root: '1.000001' },
      messageId: '1760000010.000300',
      sentAtPlatformMs: 1_760_000_030_123,
    });
  });

  it('places a button of a root message into the thread of that message', () => {
    const container = { message_ts: '1760000010.000300', channel_id: 'C1' };
    expect(decodeInteractive({ ...pressed, container }, context)).toMatchObject({
      place: { root: '1760000010.000300' },
    });
  });

  it('gives two presses two keys and one press one', () => {
    const keysOf = (actionTs: string) => {
      const actions = [{ value: 'a', action_ts: actionTs }];
      const act = decodeInteractive({ ...pressed, actions }, context);
      return act?.kind === 'action' ? act.dedupeKeys : [];
    };
    expect(keysOf('1.000001')).toEqual(keysOf('1.000001'));
    expect(keysOf('1.000001')).not.toEqual(keysOf('1.000002'));
  });

  it('counts a person without a team as foreign', () => {
    expect(decodeInteractive({ ...pressed, user: { id: 'U9' } }, context)).toMatchObject({
      author: { space: undefined },
    });
  });

  it('knows where a submitted modal was opened', () => {
    const place = { space: 'T1', channel: 'C1', root: '1.000001' };
    const submitted = {
      type: 'view_submission',
      user: { id: 'U1', team_id: 'T1' },
      view: {
        id: 'V1',
        callback_id: 'secret:1',
        private_metadata: modalPlace(place),
        state: { values: { line: { value: { value: 'x "y"' } }, empty: { value: {} } } },
      },
    };
    expect(decodeInteractive(submitted, context)).toMatchObject({
      kind: 'modal',
      place,
      modal: 'secret:1',
      values: { line: 'x "y"', empty: '' },
    });
    const lost = { ...submitted, view: { ...submitted.view, private_metadata: '{' } };
    expect(decodeInteractive(lost, context)).toBeUndefined();
  });

  it('brings a slash command unescaped', () => {
    expect(
      decodeCommand(
        {
          channel_id: 'C1',
          user_id: 'U1',
          team_id: 'T1',
          text: ' run -- a &amp;&amp; b ',
          trigger_id: 't',
        },
        context,
      ),
    ).toMatchObject({ kind: 'command', text: 'run -- a && b', dedupeKeys: ['command:t'] });
  });
});

it('never fails, whatever arrives', () => {
  fc.assert(
    fc.property(fc.anything(), (anything) => {
      decodeEvent(anything, context);
      decodeEvent({ event: anything }, context);
      decodeInteractive(anything, context);
      decodeCommand(anything, context);
    }),
  );
});

it('turns moments into ids and back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_000_000_000_000 }), (ms) => {
      expect(tsToMs(msToTs(ms))).toBe(ms);
    }),
  );
});
