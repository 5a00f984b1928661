// The two workspaces a sandbox simulates.

export type SandboxPlatform = 'slack' | 'discord';
