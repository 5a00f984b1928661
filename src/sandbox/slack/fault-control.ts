// The part of the Slack control API that makes things go wrong: sockets, tokens, scopes, limits.

import { type Fields, fieldsOf, optionalFlag, optionalText, textField } from '../fields.ts';
import { ControlError, type ControlHandler } from '../module.ts';
import type { SlackApp } from './api-call.ts';
import type { RateLimits } from './options.ts';
import type { DisconnectReason } from './socket-mode.ts';
import type { Tokens } from './web-api.ts';

export interface Switches {
  readonly tokens: Tokens;
  setRateLimits(limits: RateLimits): void;
  setScopes(scopes: readonly string[]): void;
}

export function faultControl(
  app: SlackApp,
  switches: Switches,
): Readonly<Record<string, ControlHandler>> {
  const { sockets } = app;
  const idOf = (body: unknown): string | undefined => optionalText(fieldsOf(body), 'id');
  return {
    'slack/sockets': async () => ({ open: sockets.describe(), waiting: sockets.waitingCount }),
    'slack/sockets/disconnect': async (body) => ({
      told: sockets.disconnect(reasonOf(fieldsOf(body)), idOf(body)),
    }),
    'slack/sockets/drop': async (body) => ({ dropped: sockets.drop(idOf(body)) }),
    'slack/sockets/half-open': async (body) => ({ cut: sockets.halfOpen(idOf(body)) }),
    'slack/sockets/suppress-pongs': async (body) => ({ mute: sockets.suppressPongs(idOf(body)) }),
    'slack/sockets/raw': async (body) => ({ sent: sockets.sendRaw(rawFrame(fieldsOf(body))) }),
    'slack/sockets/enable': async () => sockets.enable(),
    'slack/app-rate-limited': async () => appRateLimited(app),
    'slack/kill-token': async (body) => {
      const fields = fieldsOf(body);
      switches.tokens.dead.set(
        tokenNamed(switches, fields),
        optionalText(fields, 'error') ?? 'token_revoked',
      );
    },
    'slack/revive-token': async (body) => {
      switches.tokens.dead.delete(tokenNamed(switches, fieldsOf(body)));
    },
    'slack/knobs': async (body) => turned(app, switches, fieldsOf(body)),
  };
}

function reasonOf(fields: Fields): DisconnectReason {
  const reasons = ['warning', 'refresh_requested', 'link_disabled', 'too_many_websockets'] as const;
  const reason = reasons.find((one) => one === fields['reason']);
  if (reason === undefined) throw new ControlError(`reason must be one of ${reasons.join(', ')}`);
  return reason;
}

function rawFrame(fields: Fields): string | Buffer {
  const base64 = optionalText(fields, 'base64');
  return base64 === undefined ? textField(fields, 'text') : Buffer.from(base64, 'base64');
}

/** An events_api payload that has no `event` member. */
function appRateLimited(app: SlackApp): void {
  app.sockets.deliver({
    type: 'events_api',
    acceptsResponse: false,
    isRepeated: true,
    payload: {
      token: 'deprecated',
      type: 'app_rate_limited',
      team_id: app.workspace.teamId,
      minute_rate_limited: Math.floor(app.core.clock.wallMs() / 1000),
      api_app_id: app.shapes.appId,
    },
    onAck: () => undefined,
    onFailure: () => undefined,
  });
}

function tokenNamed(switches: Switches, fields: Fields): string {
  const which = textField(fields, 'token');
  if (which !== 'bot' && which !== 'app') throw new ControlError('token must be bot or app');
  return switches.tokens[which];
}

function turned(app: SlackApp, switches: Switches, fields: Fields): unknown {
  app.knobs.neverShareFiles =
    optionalFlag(fields, 'never_share_files') ?? app.knobs.neverShareFiles;
  app.knobs.filesNeedInfo = optionalFlag(fields, 'files_need_info') ?? app.knobs.filesNeedInfo;
  const limits = fields['rate_limits'];
  if (limits === 'real' || limits === 'off' || typeof limits === 'number')
    switches.setRateLimits(limits);
  const scopes: unknown = fields['scopes'];
  if (Array.isArray(scopes)) switches.setScopes(scopes.map(String));
  return { ...app.knobs, scopes: app.settings.scopes };
}
