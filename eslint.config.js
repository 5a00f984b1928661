import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

const timeIsInjected = 'Take a Clock (src/base/clock.ts) so tests own time.';

export default defineConfig(
  { ignores: ['dist/', 'node_modules/', 'src/sandbox/web/'] },
  {
    files: ['src/**/*.ts', 'test/**/*.ts'],
    extends: [tseslint.configs.base],
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      // No promise is lost.
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: false }],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      // Errors are Errors.
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/prefer-promise-reject-errors': 'error',
      // Every state is handled, and no branch is dead.
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/no-unnecessary-condition': 'error',
      // `any` stops at the boundary.
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unsafe-argument': 'error',
      '@typescript-eslint/no-unsafe-assignment': 'error',
      '@typescript-eslint/no-unsafe-call': 'error',
      '@typescript-eslint/no-unsafe-member-access': 'error',
      '@typescript-eslint/no-unsafe-return': 'error',
      // Exported signatures are written, not inferred.
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-base-to-string': 'error',
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/base/system-*.ts', 'src/main.ts', 'src/cli/**', 'src/**/*-main.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        ...['Date', 'setTimeout', 'setInterval', 'setImmediate', 'performance'].map((name) => ({
          name,
          message: timeIsInjected,
        })),
        {
          name: 'process',
          message: 'Only the composition roots read the process; pass what you need.',
        },
      ],
      'no-restricted-imports': [
        'error',
        {
          paths: ['node:timers', 'node:timers/promises', 'node:process'].map((name) => ({
            name,
            message: timeIsInjected,
          })),
        },
      ],
      'no-restricted-properties': [
        'error',
        {
          object: 'Math',
          property: 'random',
          message: 'Take a Random so a failing run can be replayed from its seed.',
        },
      ],
    },
  },
);
