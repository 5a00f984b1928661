// Whether a process started from here would be ended together with a service of the service
// manager, and the way out. A new session (setsid) does not leave a service's control group; only
// a scope or unit of its own does. Without such a service this costs one read of /proc.

/** Runs a command to its end. `undefined`: could not be run, or not in time. */
export type RunCommand = (
  file: string,
  args: readonly string[],
) => Promise<{ readonly code: number; readonly stdout: string } | undefined>;

export type StartWay =
  | { readonly kind: 'direct' }
  /** Put these words before the command. */
  | { readonly kind: 'scope'; readonly prefix: readonly string[] }
  | { readonly kind: 'refused'; readonly because: string };

/**
 * The unit whose stop would reach us, from a control group path. A user's own manager
 * (`user@1000.service`) is no such unit, nor are login sessions and other scopes.
 */
export function serviceOf(controlGroup: string | undefined): string | undefined {
  const parts = (controlGroup ?? '').split('/').filter((part) => part !== '');
  // What is below a scope belongs to the scope; below a service, to the innermost service.
  const last = parts.findLast((part) => part.endsWith('.service') || part.endsWith('.scope'));
  if (last === undefined || last.endsWith('.scope') || last.startsWith('user@')) return undefined;
  return last;
}

/** How to start a process that must outlive the service we may be part of. */
export async function chooseStartWay(
  controlGroup: string | undefined,
  run: RunCommand,
): Promise<StartWay> {
  const unit = serviceOf(controlGroup);
  if (unit === undefined) return { kind: 'direct' };
  const ofUser = (controlGroup ?? '').includes('/user@');
  const scope = ofUser ? ['--user'] : [];
  const shown = await run('systemctl', [...scope, 'show', '--property=KillMode', unit]);
  // These units end their main process only (sshd, cron, chatd's own keeper unit).
  if (shown?.code === 0 && /^KillMode=(process|none)$/m.test(shown.stdout)) {
    return { kind: 'direct' };
  }
  for (const manager of [['--user'], []]) {
    const prefix = ['systemd-run', ...manager, '--scope', '--quiet', '--collect', '--'];
    const args = [...prefix.slice(1), 'true'];
    const tried = await run('systemd-run', args);
    if (tried?.code === 0) return { kind: 'scope', prefix };
  }
  return {
    kind: 'refused',
    because:
      `this process runs inside ${unit}, whose stop would end every session, and systemd-run ` +
      'cannot start a scope here: install the keeper as a unit of its own, or set KillMode=process',
  };
}
