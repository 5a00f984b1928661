import { defineConfig } from 'vitest/config';

const project = (name: string, testTimeoutMs: number, parallel: boolean) => ({
  extends: true as const,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: testTimeoutMs,
    hookTimeout: testTimeoutMs,
    fileParallelism: parallel,
  },
});

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    reporters: ['default'],
    projects: [
      project('unit', 30_000, true),
      project('contract', 60_000, true),
      project('fault', 120_000, false),
      project('e2e', 180_000, false),
    ],
  },
});
