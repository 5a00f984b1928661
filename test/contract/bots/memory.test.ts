// The platform in memory keeps the contract, so that what is tested on it holds on the real ones.

import { systemClock } from '../../../src/base/system-clock.ts';
import type { Outcome } from '../../../src/bots/chat-platform.ts';
import { type FakeFault, type FakeMethod, FakePlatform } from '../../support/fake-platform.ts';
import { PlatformRecorder } from '../../support/platform-recorder.ts';
import {
  chatPlatformContract,
  type Harness,
  type PlatformFault,
} from './chat-platform.contract.ts';

const FAULTS: Readonly<Record<PlatformFault, FakeFault>> = {
  'rate-limit': {
    outcome: {
      kind: 'refused',
      because: 'rate-limited',
      retryAfterMs: 1_000,
      detail: 'ratelimited',
    } satisfies Outcome<never>,
  },
  'long-limit': {
    outcome: {
      kind: 'refused',
      because: 'rate-limited',
      retryAfterMs: 300_000,
      detail: 'ratelimited',
    },
  },
  reset: { outcome: { kind: 'in-doubt', detail: 'ECONNRESET' } },
  'reset-processed': { outcome: { kind: 'in-doubt', detail: 'ECONNRESET' }, effect: 'done' },
  'server-error': { outcome: { kind: 'in-doubt', detail: 'HTTP 500' } },
};
const CALLS: Readonly<Record<'post' | 'edit' | 'find' | 'upload', FakeMethod>> = {
  post: 'post',
  edit: 'edit',
  find: 'findPosted',
  upload: 'upload',
};

async function startMemory(): Promise<Harness> {
  const platform = new FakePlatform({ clock: systemClock });
  const recorder = new PlatformRecorder();
  await platform.start(recorder);
  return {
    platform,
    recorder,
    channel: { space: 'T1', channel: 'C1', root: '' },
    personId: 'U1',
    seesOwnPosts: false,
    say: (place, text) => platform.say(place, text),
    press: (place, messageId, label) => {
      const buttons = platform.message(messageId)?.content.buttons?.flat() ?? [];
      const action = buttons.find((button) => button.label === label)?.action ?? '';
      return platform.press(place, messageId, action);
    },
    command: (command) =>
      platform.command({ space: 'T1', channel: 'C1', root: '' }, `run -- ${command}`),
    submit: (place, modal, values) => platform.submitModal(place, modal, values),
    read: async (place) =>
      platform.messages
        .filter((message) => !message.deleted && message.place.root === place.root)
        .map((message) => ({
          id: message.id,
          text: message.text,
          mine: message.row !== undefined,
          pings: message.content.mention ?? [],
          files: message.file === undefined ? [] : [message.file.name],
        })),
    privateTexts: async () => [
      ...platform.privateReplies,
      ...platform.whispers.map((whisper) => whisper.text),
    ],
    failNext: async (call, fault) => platform.failNext(CALLS[call], FAULTS[fault]),
    faultsStruck: async () => true,
    removeMessage: async (place, messageId) => {
      await platform.delete(place, messageId);
    },
    dropConnection: async () => {
      platform.dropConnection();
      platform.reconnect();
    },
    archive: async (place) => {
      platform.archived.add(place.root);
    },
    reopen: async (place) => {
      platform.archived.delete(place.root);
    },
    lock: async (place) => {
      platform.locked.add(place.root);
    },
    close: async () => undefined,
  };
}

chatPlatformContract('memory', startMemory);
