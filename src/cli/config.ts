// chatd config check: every problem of the configuration in a line, secrets included.

import { errorText } from '../base/errors.ts';
import { type Config, type ConfigProblem, loadConfig, problemLine, readConfig } from '../config.ts';
import { resolveSecret, type SecretReference } from '../config-secrets.ts';
import type { CliContext } from './context.ts';

interface Finding {
  readonly line: string;
}

export async function runConfigCheck(context: CliContext): Promise<number> {
  const result = readConfig(context.paths.config);
  if (result.kind === 'invalid') return printProblems(context, result.problems);
  // Absent: says where the example is.
  const config = result.kind === 'ok' ? result.config : loadConfig(context.paths.config);
  const findings = await checkSecrets(context, config);
  if (context.json) {
    const problems = findings.map(({ line }) => ({ file: config.file, problem: line }));
    context.out(JSON.stringify({ ok: findings.length === 0, problems }, null, 2));
  } else {
    for (const { line } of findings) context.err(`${config.file}: ${line}`);
    if (findings.length === 0) context.out(`${config.file}: ok, ${summary(config)}`);
  }
  return findings.length === 0 ? 0 : 2;
}

function printProblems(context: CliContext, problems: readonly ConfigProblem[]): number {
  if (context.json) context.out(JSON.stringify({ ok: false, problems }, null, 2));
  else for (const problem of problems) context.err(problemLine(problem));
  return 2;
}

/** Only what is on: an unused section may wait for its tokens. */
function referencesOf(config: Config): readonly SecretReference[] {
  const { slack, discord } = config;
  return [
    ...(slack.state === 'on' ? [slack.config.botToken, slack.config.appToken] : []),
    ...(discord.state === 'on' ? [discord.config.token] : []),
  ];
}

async function checkSecrets(context: CliContext, config: Config): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const reference of referencesOf(config)) {
    try {
      await resolveSecret(reference, context.env);
    } catch (error) {
      findings.push({ line: errorText(error) });
    }
  }
  return findings;
}

function summary(config: Config): string {
  const kinds = (['slack', 'discord'] as const).map((kind) => {
    const section = config[kind];
    if (section.state !== 'on') return `${kind} ${section.state}`;
    const { drivers } = section.config.access;
    const nobody = drivers.people.length + drivers.groups.length === 0;
    return `${kind} on${nobody ? ' (no drivers: nobody may act)' : ''}`;
  });
  return [...kinds, `${config.profiles.length} profiles`].join(', ');
}
