// One Web API call as its handler sees it, and the few ways to read arguments that arrive as form
// fields (all text) or JSON (typed).

import { type Fields, isFields } from '../fields.ts';
import type { SandboxCore } from '../module.ts';
import type { Severity } from '../violations.ts';
import type { Interactivity } from './interactivity.ts';
import type { SlackChannel, SlackMessage } from './model.ts';
import type { ShapeContext } from './shapes.ts';
import type { SocketMode } from './socket-mode.ts';
import { parseTs } from './ts.ts';
import { BOT_USER, type Workspace } from './workspace.ts';

/** What the handlers share. */
export interface SlackApp {
  readonly core: SandboxCore;
  readonly workspace: Workspace;
  readonly interactivity: Interactivity;
  readonly sockets: SocketMode;
  readonly shapes: ShapeContext;
  readonly settings: {
    readonly teamName: string;
    readonly fileShareDelayMs: readonly [number, number];
    readonly editWindowMs: number | undefined;
    /** Changed by control calls, as by a reinstallation. */
    scopes: readonly string[];
  };
  /** What control calls switch at run time. */
  readonly knobs: {
    /** Uploaded files stay unshared for ever. */
    neverShareFiles: boolean;
    /** Files in events say check_file_info. */
    filesNeedInfo: boolean;
  };
}

export interface ApiCall {
  readonly app: SlackApp;
  readonly method: string;
  readonly args: Fields;
  /** Warnings of the answer. */
  readonly warnings: string[];
}

export type ApiHandler = (call: ApiCall) => Fields | Promise<Fields>;

/** Answered as `{"ok":false,"error":code}` beside `more`. */
export class ApiError extends Error {
  readonly code: string;
  readonly more: Fields;

  constructor(code: string, more: Fields = {}) {
    super(code);
    this.code = code;
    this.more = more;
  }
}

export function textArg(args: Fields, name: string): string | undefined {
  const value = args[name];
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? String(value) : undefined;
}

export function flagArg(args: Fields, name: string): boolean | undefined {
  const value = args[name];
  if (typeof value === 'boolean') return value;
  if (value === 'true' || value === '1') return true;
  return value === 'false' || value === '0' ? false : undefined;
}

export function numberArg(args: Fields, name: string): number | undefined {
  const value = args[name];
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** Parses an argument that is JSON inside a form, or already parsed. Undefined when it is neither. */
export function jsonArg(args: Fields, name: string): unknown {
  const value = args[name];
  if (typeof value !== 'string') return value;
  try {
    const parsed: unknown = JSON.parse(value);
    return parsed;
  } catch {
    return undefined;
  }
}

/** @throws {ApiError} channel_not_found, also for private channels the bot cannot see. */
export function channelOf(call: ApiCall, name = 'channel'): SlackChannel {
  const { workspace } = call.app;
  const id = textArg(call.args, name) ?? '';
  const direct = workspace.users.get(id);
  if (direct !== undefined) return workspace.directMessages(direct.id);
  const channel = workspace.findChannel(id);
  if (channel === undefined) throw new ApiError('channel_not_found');
  const isHidden = channel.kind !== 'public' && !channel.members.has(BOT_USER);
  if (isHidden) throw new ApiError('channel_not_found');
  return channel;
}

/** @throws {ApiError} not_in_channel. */
export function memberChannelOf(call: ApiCall, name = 'channel'): SlackChannel {
  const channel = channelOf(call, name);
  if (!channel.members.has(BOT_USER)) throw new ApiError('not_in_channel');
  return channel;
}

/** @throws {ApiError} message_not_found or `error`. */
export function messageOf(
  channel: SlackChannel,
  ts: string | undefined,
  error = 'message_not_found',
): SlackMessage {
  const message =
    ts === undefined || parseTs(ts) === undefined ? undefined : channel.messages.get(ts);
  if (message === undefined || message.isTombstone) throw new ApiError(error);
  return message;
}

/** Something the real platform would mangle, warn about or refuse, without failing the call here. */
export function violate(call: ApiCall, rule: string, severity: Severity, detail: string): void {
  call.app.core.violations.add({ platform: 'slack', rule, severity, target: call.method, detail });
}

export function objectArg(args: Fields, name: string): Fields | undefined {
  const value = jsonArg(args, name);
  return isFields(value) ? value : undefined;
}
