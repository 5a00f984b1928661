import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { parseSecretReference, resolveSecret } from '../../../src/config-secrets.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'chatd-secrets-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

async function resolveWritten(written: string, env: Record<string, string> = {}): Promise<string> {
  const { reference, problem } = parseSecretReference({
    key: 'slack.bot_token',
    written,
    shape: 'slack-bot',
    directory,
    configFile: join(directory, 'chatd.toml'),
    configMode: 0o600,
  });
  if (problem !== undefined) throw new Error(problem);
  return (await resolveSecret(reference, env)).reveal();
}

describe('a secret', () => {
  it('prints as [secret] whichever way it is printed', () => {
    const secret = new Secret('xoxb-hidden');
    expect(`${String(secret)} ${JSON.stringify({ secret })} ${inspect({ secret })}`).not.toContain(
      'hidden',
    );
    expect(secret.reveal()).toBe('xoxb-hidden');
  });

  it('comes from the environment', async () => {
    await expect(resolveWritten('env:TOKEN', { TOKEN: 'xoxb-1\n' })).resolves.toBe('xoxb-1');
  });

  it('says which variable is not set, and where a token is to be had', async () => {
    await expect(resolveWritten('env:TOKEN')).rejects.toThrow(
      'slack.bot_token: environment variable TOKEN is not set; a bot token (xoxb-…) is at https://api.slack.com/apps',
    );
  });

  it('comes from a file beside the configuration that only we can read', async () => {
    const file = join(directory, 'token');
    await writeFile(file, 'xoxb-2\n', { mode: 0o600 });
    await expect(resolveWritten('file:token')).resolves.toBe('xoxb-2');
  });

  it('refuses a file that others can read', async () => {
    const file = join(directory, 'token');
    await writeFile(file, 'xoxb-2\n');
    await chmod(file, 0o644);
    await expect(resolveWritten('file:token')).rejects.toThrow(`chmod 600 ${file}`);
  });

  it('names a file that does not exist, and one that is no file', async () => {
    await expect(resolveWritten('file:none')).rejects.toThrow('none does not exist');
    await expect(resolveWritten('file:.')).rejects.toThrow('not a regular file');
  });

  it('comes from a command, whose output never gets into an error', async () => {
    await expect(resolveWritten('cmd:echo xoxb-3')).resolves.toBe('xoxb-3');
    await expect(resolveWritten('cmd:echo xoxb-hidden; exit 3')).rejects.toThrow(
      /^slack\.bot_token: cmd: ended with 3$/,
    );
  });

  it('is refused when it is empty or of another kind, without being shown', async () => {
    await expect(resolveWritten('env:TOKEN', { TOKEN: ' ' })).rejects.toThrow('is empty');
    const wrong = resolveWritten('env:TOKEN', { TOKEN: 'xapp-hidden' });
    await expect(wrong).rejects.toThrow('this is a Slack app-level token');
    await expect(wrong).rejects.not.toThrow('hidden');
  });
});
