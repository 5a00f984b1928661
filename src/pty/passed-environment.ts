// What keeper, host and sessions get of the environment chatd was started in.

/** A list of what may pass, because a list of what may not would miss the next secret. */
const PASSED =
  /^(HOME|USER|LOGNAME|SHELL|PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|SSH_AUTH_SOCK|DBUS_SESSION_BUS_ADDRESS|XDG_[A-Z_]+|EDITOR|VISUAL|PAGER|BROWSER|COLORTERM|MANPATH|INFOPATH|NIX_[A-Z_]+|TMPDIR)$/;

export function passedEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && PASSED.test(name)) passed[name] = value;
  }
  return passed;
}
